//! The gauges that are read off the broker's state when somebody looks.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Ops;
use crate::engine::{GroupId, Offset, PartId, TopicName};
use crate::metrics::{
    GroupLag, GroupState, HeldBack, Invariant, LogSizes, OpenTransactions, StableLag, TransactionState,
};
use crate::runtime::partition::published::{Availability, Published};
use crate::runtime::post::LedgerGauges;

/// What Kafka grants a transaction beyond the longest timeout before it calls it late (KIP-664), in milliseconds.
const LATE_GRACE_MS: i64 = 300_000;

/// One look at all partitions.
#[derive(Default)]
struct Looked {
    lags: BTreeMap<TopicName, StableLag>,
    held: HeldBack,
    sizes: LogSizes,
    ends: BTreeMap<PartId, Published>,
}

impl Ops {
    /// Sets all gauges that partitions and the catalog show. Gives the views they were read off.
    pub(super) fn show_partitions(&self) -> BTreeMap<PartId, Published> {
        let (broker, metrics) = (&self.broker, self.broker.metrics());
        let catalog = broker.catalog();
        metrics.set_catalog(whole(catalog.len()), whole(catalog.partition_count()));
        metrics.keep_topics(|name| catalog.topic(name.as_str()).is_some());
        for topic in catalog.iter() {
            // Made here, so that a rate sees a topic's first batch.
            drop(metrics.topic(&topic.name));
        }
        let looked = self.look();
        metrics.set_held_back(&looked.held);
        metrics.set_log_sizes(&looked.sizes);
        if let Err(error) = metrics.set_stable_lag(looked.lags.into_iter().collect()) {
            tracing::warn!(%error, "lag of last stable offsets not shown");
        }
        let damaged = broker.router().partitions.damaged();
        metrics.set_partitions_offline(i64::try_from(damaged).unwrap_or(i64::MAX));
        let (sessions, evicted) = broker.fetch_session_figures();
        metrics.set_fetch_sessions(whole(sessions), evicted);
        looked.ends
    }

    fn look(&self) -> Looked {
        // Held from before the first view is taken: of two looks at once the later one compares later.
        let mut before = self.ends.lock();
        let (catalog, now) = (self.broker.catalog(), self.broker.clock().now());
        let mut looked = Looked::default();
        for topic in catalog.iter() {
            looked.lags.insert(topic.name.clone(), StableLag::default());
        }
        looked.sizes.debt_bytes = self.broker.router().partitions.debt_bytes();
        for (part, slot) in self.broker.router().partitions.all() {
            let Some((topic, _)) = catalog.part(part) else { continue };
            let view = slot.shared.published();
            if view.availability != Availability::Open {
                continue;
            }
            widen(looked.lags.entry(topic.name.clone()).or_default(), &view, now.wall_ms);
            looked.held.producers = looked.held.producers.saturating_add(whole(slot.shared.producers()));
            looked.held.partitions = looked.held.partitions.saturating_add(u64::from(holds_back(&view)));
            looked.held.late = looked.held.late.saturating_add(u64::from(self.is_late(&view, now.wall_ms)));
            if let Some(reader) = slot.shared.reader() {
                looked.sizes.bytes = looked.sizes.bytes.saturating_add(reader.bytes());
                looked.sizes.segments = looked.sizes.segments.saturating_add(whole(reader.segment_count()));
            }
            looked.ends.insert(part, view);
        }
        self.compare(&mut before, &looked.ends);
        looked
    }

    /// Whether a transaction has been open here for longer than any may be.
    pub(super) fn is_late(&self, view: &Published, wall_ms: i64) -> bool {
        let limit_ms = self.config.transactions.max_timeout_ms.saturating_add(LATE_GRACE_MS);
        view.oldest_open.is_some_and(|open| wall_ms.saturating_sub(open.started_wall_ms) > limit_ms)
    }

    /// What no view may show, compared with the look before.
    fn compare(&self, before: &mut BTreeMap<PartId, Offset>, ends: &BTreeMap<PartId, Published>) {
        for (part, view) in ends {
            if view.last_stable > view.watermark {
                self.violated(Invariant::StableAboveWatermark, *part, view);
            }
            if before.get(part).is_some_and(|watermark| *watermark > view.watermark) {
                self.violated(Invariant::WatermarkMovedBack, *part, view);
            }
        }
        *before = ends.iter().map(|(part, view)| (*part, view.watermark)).collect();
    }

    fn violated(&self, invariant: Invariant, part: PartId, view: &Published) {
        self.broker.metrics().invariant_violated(invariant);
        tracing::error!(?invariant, part = part.0, ?view, "something is seen that must never be");
    }

    /// Sets all gauges that the ledger shows.
    pub(super) fn show_ledger(&self, gauges: &LedgerGauges) {
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
            markers_pending: gauges.markers_pending,
            oldest_marker_ms: gauges.oldest_marker_ms,
            pending_offsets: gauges.pending_offsets,
            ids: gauges.ids,
            exhausted_soon: gauges.exhausted_soon,
        });
        let states =
            [GroupState::Empty, GroupState::PreparingRebalance, GroupState::CompletingRebalance, GroupState::Stable];
        let counts: Vec<(GroupState, u64)> = states.into_iter().zip(gauges.groups).collect();
        metrics.set_groups(&counts, gauges.members);
    }

    /// Sets how far groups are behind these ends.
    pub(super) fn show_lags(&self, ends: &BTreeMap<PartId, Published>, offsets: &BTreeMap<(GroupId, PartId), Offset>) {
        if let Err(error) = self.broker.metrics().set_group_lag(group_lags(ends, offsets)) {
            tracing::warn!(%error, "lag of groups not shown");
        }
    }
}

/// How far each group is behind. An offset below a log's start is as far behind as the log is long; one of a partition that
/// nobody has used since the start is not known to be behind at all.
fn group_lags(
    ends: &BTreeMap<PartId, Published>,
    offsets: &BTreeMap<(GroupId, PartId), Offset>,
) -> Vec<(GroupId, GroupLag)> {
    let mut lags: BTreeMap<&GroupId, GroupLag> = BTreeMap::new();
    for ((group, part), offset) in offsets.iter().filter(|(_, offset)| **offset >= 0) {
        let lag = lags.entry(group).or_default();
        let Some(view) = ends.get(part) else { continue };
        let from = (*offset).max(view.log_start);
        let behind = |end: Offset| u64::try_from(end.saturating_sub(from)).unwrap_or(0);
        lag.to_stable = lag.to_stable.saturating_add(behind(view.last_stable));
        lag.to_watermark = lag.to_watermark.saturating_add(behind(view.watermark));
    }
    lags.into_iter().map(|(group, lag)| (group.clone(), lag)).collect()
}

/// Whether read_committed readers are given less than others.
pub(super) fn holds_back(view: &Published) -> bool {
    view.availability == Availability::Open && view.last_stable < view.watermark
}

/// Age of the oldest record that is held back, in milliseconds.
pub(super) fn held_ms(view: &Published, wall_ms: i64) -> i64 {
    view.oldest_open.map_or(0, |open| wall_ms.saturating_sub(open.started_wall_ms).max(0))
}

fn widen(lag: &mut StableLag, view: &Published, wall_ms: i64) {
    let records = view.watermark.saturating_sub(view.last_stable);
    lag.records = lag.records.max(records);
    if records > 0 {
        let behind = Duration::from_millis(u64::try_from(held_ms(view, wall_ms)).unwrap_or(0));
        lag.seconds = lag.seconds.max(behind.as_secs_f64());
    }
}

fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
