//! Says it when a transaction is open for longer than any may be (KIP-664): one line for each partition, though nobody
//! looks at the metrics.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::Ops;
use super::gauges::held_ms;
use crate::engine::PartId;

/// How often it is looked for.
const EVERY: Duration = Duration::from_secs(15);

/// Looks until `stop` says true.
pub(in crate::server) async fn watch_late(ops: Arc<Ops>, mut stop: watch::Receiver<bool>) {
    let mut told = BTreeSet::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => drop(ops.tell_late(&mut told)),
            // An error says that whoever could stop it is gone.
            _ = stop.wait_for(|over| *over) => return,
        }
    }
}

impl Ops {
    /// Tells of partitions that have become late since they were told of; gives how many those are.
    fn tell_late(&self, told: &mut BTreeSet<PartId>) -> usize {
        let (catalog, now) = (self.broker.catalog(), self.broker.clock().now());
        let mut late = BTreeSet::new();
        let mut news = 0_usize;
        for (part, slot) in self.broker.router().partitions.all() {
            let view = slot.shared.published();
            if !self.is_late(&view, now.wall_ms) {
                continue;
            }
            late.insert(part);
            if told.contains(&part) {
                continue;
            }
            news = news.saturating_add(1);
            let topic = catalog.part(part).map(|(topic, index)| (topic.name.clone(), index));
            let (topic, partition) = topic.map_or((String::new(), -1), |(name, index)| (name.to_string(), index));
            let open_ms = held_ms(&view, now.wall_ms);
            let last_stable_offset = view.last_stable;
            tracing::warn!(
                %topic, partition, last_stable_offset, open_ms,
                "late transaction: open for longer than any may be, and holds readers back (`oncelog txn blocked`)"
            );
        }
        *told = late;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::config::{Config, HostPort};
    use crate::engine::batch::Header;
    use crate::engine::batch::check::Times;
    use crate::engine::batch::samples::{Entry, encode, header, seal};
    use crate::engine::catalog::{CreateTopic, Maker};
    use crate::engine::txn::Addition;
    use crate::engine::{Producer, TransactionalId};
    use crate::runtime::broker::{Batch, Broker};
    use crate::server::{Parts, start};

    fn batch(producer: Producer, id: &TransactionalId) -> Batch {
        let written = Header {
            attributes: 0x10,
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            base_sequence: 0,
            ..header(1)
        };
        let bytes = seal(&written, &encode(&[Entry::default()]));
        let header = Header::read(&bytes).unwrap();
        Batch { header, bytes: bytes.into(), id: Some(id.clone()), durable: true, times: Times::CreateTime }
    }

    async fn open(broker: &Broker) {
        let topic = CreateTopic {
            name: "t".to_owned(),
            partitions: Some(1),
            replication_factor: 1,
            assignments: Vec::new(),
            configs: Vec::new(),
            validate_only: false,
            by: Maker::Client,
        };
        broker.create_topics(vec![topic]).await.unwrap();
        let part = broker.catalog().part_id("t", 0).unwrap();
        let id = TransactionalId::from("id");
        let producer = broker.init_producer(Some(id.clone()), 900_000, None).await.unwrap();
        broker.add_to_txn(id.clone(), producer, Addition::Parts([part].into())).await.unwrap();
        broker.produce(part, batch(producer, &id)).await.unwrap();
    }

    #[tokio::test]
    async fn a_late_partition_is_told_of_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::builtin();
        config.data_dir = dir.path().join("data");
        config.listeners.external.bind = HostPort::new("127.0.0.1", 0);
        config.admin.bind = HostPort::new("127.0.0.1", 0);
        config.storage.reserve_bytes = 0;
        let mut parts = Parts::real(&config);
        let clock = Clock::manual(1_700_000_000_000);
        parts.clock = clock.clone();
        let running = start(config.clone(), parts).await.unwrap();
        open(&running.broker).await;
        // As if the longest timeout had been shorter when it began: it is open for longer than any may be.
        config.transactions.max_timeout_ms = 1_000;
        let ops = Ops::new(Arc::clone(&running.broker), Arc::new(config), (Vec::new(), None));
        let mut told = BTreeSet::new();
        assert_eq!(ops.tell_late(&mut told), 0);
        clock.advance(301_500);
        assert_eq!(ops.tell_late(&mut told), 1);
        assert_eq!(ops.tell_late(&mut told), 0, "once");
        running.crash().await;
    }
}
