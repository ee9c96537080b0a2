//! Says it when a transaction is open for longer than any may be (KIP-664): one line for each partition, though nobody
//! looks at the metrics.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::Ops;
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
            let open_ms = view.oldest_open_wall_ms.map_or(0, |since| now.wall_ms.saturating_sub(since));
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
