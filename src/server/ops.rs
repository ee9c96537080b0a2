//! What the admin port shows, and what the edge's counters tell.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::wrong_door::WrongDoor;
use crate::api::service::Peer;
use crate::config::ListenerName;
use crate::engine::TopicName;
use crate::http::{Admin, Readiness};
use crate::metrics::{Metrics, OpenTransactions, StableLag, TransactionState};
use crate::net::{End, Observer};
use crate::runtime::broker::Broker;
use crate::runtime::partition::published::{Availability, Published};
use crate::runtime::post::LedgerGauges;
use crate::wire::Api;

/// The broker as the admin port sees it.
pub(super) struct Ops {
    broker: Arc<Broker>,
}

impl Ops {
    pub(super) fn new(broker: Arc<Broker>) -> Self {
        Self { broker }
    }

    /// How far each topic's last stable offset is behind its watermark: the worst of its partitions.
    fn lags(&self) -> Vec<(TopicName, StableLag)> {
        let (catalog, now) = (self.broker.catalog(), self.broker.clock().now());
        let mut lags: BTreeMap<TopicName, StableLag> = BTreeMap::new();
        for topic in catalog.iter() {
            lags.insert(topic.name.clone(), StableLag { records: 0, seconds: 0.0 });
        }
        for (part, slot) in self.broker.router().partitions.all() {
            let Some((topic, _)) = catalog.part(part) else { continue };
            let view = slot.shared.published();
            if view.availability == Availability::Open {
                let lag = lags.entry(topic.name.clone()).or_insert(StableLag { records: 0, seconds: 0.0 });
                widen(lag, &view, now.wall_ms);
            }
        }
        lags.into_iter().collect()
    }

    fn show(&self, gauges: &LedgerGauges) {
        let metrics = self.broker.metrics();
        let states = [
            TransactionState::Empty,
            TransactionState::Ongoing,
            TransactionState::PrepareCommit,
            TransactionState::PrepareAbort,
            TransactionState::CompleteCommit,
            TransactionState::CompleteAbort,
        ];
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let counts: Vec<(TransactionState, i64)> =
            states.into_iter().zip(gauges.txns.iter().map(|count| signed(*count))).collect();
        metrics.set_transactions(&counts);
        metrics.set_open(&OpenTransactions {
            oldest_start_ms: gauges.oldest_open_wall_ms,
            oldest_age_ms: gauges.oldest_open_age_ms,
            late_partitions: 0,
            markers_pending: signed(gauges.markers_pending),
            oldest_marker_ms: gauges.oldest_marker_ms,
        });
    }
}

fn widen(lag: &mut StableLag, view: &Published, wall_ms: i64) {
    let records = view.watermark.saturating_sub(view.last_stable);
    lag.records = lag.records.max(records);
    if records > 0
        && let Some(since) = view.oldest_open_wall_ms
    {
        let behind = Duration::from_millis(u64::try_from(wall_ms.saturating_sub(since)).unwrap_or(0));
        lag.seconds = lag.seconds.max(behind.as_secs_f64());
    }
}

impl Admin for Ops {
    fn readiness(&self) -> Readiness {
        let router = self.broker.router();
        let mut reasons = router.partitions.damages();
        reasons.extend(router.why_broken().map(str::to_owned));
        reasons
            .extend(router.why_refusing().map(|why| format!("the ledger cannot store: {why}; make room on the disk")));
        // Too little room for records is no reason to take a broker away that serves all else: it is told as a warning.
        let ready = reasons.is_empty();
        reasons.extend(router.partitions.space().alarms());
        Readiness { ready, reasons }
    }

    fn before_scrape(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let metrics = self.broker.metrics();
            if let Err(error) = metrics.set_stable_lag(self.lags()) {
                tracing::warn!(%error, "lag of last stable offsets not shown");
            }
            let damaged = self.broker.router().partitions.damaged();
            metrics.set_partitions_offline(i64::try_from(damaged).unwrap_or(i64::MAX));
            if let Ok(gauges) = self.broker.gauges().await {
                self.show(&gauges);
            }
        })
    }

    fn metrics(&self) -> &Metrics {
        self.broker.metrics()
    }
}

/// Counts what happens at the edge.
pub(super) struct Watcher {
    broker: Arc<Broker>,
    wrong_door: WrongDoor,
}

impl Watcher {
    pub(super) fn new(broker: Arc<Broker>, wrong_door: WrongDoor) -> Self {
        Self { broker, wrong_door }
    }
}

fn door(peer: &Peer) -> ListenerName {
    if &*peer.listener == ListenerName::Internal.as_str() { ListenerName::Internal } else { ListenerName::External }
}

impl Observer for Watcher {
    fn opened(&self, peer: &Peer) {
        let metrics = self.broker.metrics();
        metrics.connection_opened(door(peer));
        self.wrong_door.judge(door(peer), peer.address.ip(), metrics);
    }

    fn closed(&self, peer: &Peer, _end: &End) {
        self.broker.metrics().connection_closed(door(peer));
    }

    fn answered(&self, api: Api, elapsed: Duration, _bytes: usize) {
        self.broker.metrics().request_answered(api.key(), elapsed);
    }
}
