//! Transactions and those who run them.

use std::time::Duration;

use prometheus::{Error, Gauge, Histogram, IntCounter, IntGauge};

use super::labels::Label;
use super::series::{Counters, Gauges, Histograms, Table};
use super::{
    BUCKETS, EndReason, FencingReason, Invariant, LONG_BUCKETS, MarkerError, MarkerResult, Metrics, OperatorAction,
    Phase, SequenceError, TransactionState, Verified, count, seconds,
};
use crate::engine::{Now, Outcome};

#[derive(Debug)]
pub(super) struct Transactions {
    open_since: Gauge,
    open_age: Gauge,
    late: IntGauge,
    held_back: IntGauge,
    states: Gauges<TransactionState>,
    completed: Counters<(Outcome, EndReason)>,
    duration: Histograms<Outcome>,
    phases: Histograms<Phase>,
    markers_pending: IntGauge,
    marker_oldest: Gauge,
    marker_writes: Counters<(Outcome, MarkerResult)>,
    marker_retries: Counters<MarkerError>,
    pending_offsets: IntGauge,
    ledger_refused: IntCounter,
    invariants: Counters<Invariant>,
    operator: Counters<OperatorAction>,
}

#[derive(Debug)]
pub(super) struct Producers {
    fencing: Counters<FencingReason>,
    duplicates: IntCounter,
    sequence_errors: Counters<SequenceError>,
    verified: Counters<Verified>,
    verification: Histogram,
    producer_ids: IntGauge,
    transactional_ids: IntGauge,
    exhausted_soon: IntGauge,
}

/// What the ledger holds at one moment, as the gauges show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenTransactions {
    /// When the oldest open transaction began, in wall-clock milliseconds; `None` when none is open.
    pub oldest_start_ms: Option<i64>,
    /// How long it has been open by the monotonic clock, in milliseconds.
    pub oldest_age_ms: i64,
    /// Markers that are decided and not yet written.
    pub markers_pending: u64,
    /// How long the oldest of them has been waiting, in milliseconds.
    pub oldest_marker_ms: i64,
    /// Offsets that wait for a decision or its markers.
    pub pending_offsets: u64,
    /// Transactional ids that are known.
    pub ids: u64,
    /// Those whose next epochs are few.
    pub exhausted_soon: u64,
}

/// What partitions show of transactions at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeldBack {
    /// Partitions whose last stable offset is below their watermark.
    pub partitions: u64,
    /// Partitions with a transaction open longer than any may be (KIP-664).
    pub late: u64,
    /// Producers that partitions know.
    pub producers: u64,
}

impl Metrics {
    /// Somebody was fenced.
    pub fn fenced(&self, reason: FencingReason) {
        self.producers.fencing.inc(reason);
    }

    /// A batch came again and was recognised; it was not stored a second time (promise P5).
    pub fn duplicate_batch(&self) {
        self.producers.duplicates.inc();
    }

    /// A producer's batch was refused for its sequence, epoch or transaction.
    pub fn sequence_error(&self, error: SequenceError) {
        self.producers.sequence_errors.inc(error);
    }

    /// The coordinator was asked about a producer that a partition did not know.
    pub fn verified(&self, result: Verified, took: Duration) {
        self.producers.verified.inc(result);
        self.producers.verification.observe(took.as_secs_f64());
    }

    /// A transaction is over, its markers written; `took` is counted from its first partition, if that is known.
    pub fn transaction_completed(&self, outcome: Outcome, reason: EndReason, took: Option<Duration>) {
        self.transactions.completed.inc((outcome, reason));
        if let Some(took) = took {
            self.transactions.duration.observe(outcome, took.as_secs_f64());
        }
    }

    /// One part of a transaction's end is over.
    pub fn phase(&self, phase: Phase, took: Duration) {
        self.transactions.phases.observe(phase, took.as_secs_f64());
    }

    /// A marker was appended, or could not be.
    pub fn marker_written(&self, outcome: Outcome, result: MarkerResult) {
        self.transactions.marker_writes.inc((outcome, result));
    }

    /// A marker could not be appended and will be tried again.
    pub fn marker_retried(&self, error: MarkerError) {
        self.transactions.marker_retries.inc(error);
    }

    /// The ledger's store found no room for a commit.
    pub fn ledger_refused(&self) {
        self.transactions.ledger_refused.inc();
    }

    /// Something is seen that must never be.
    pub fn invariant_violated(&self, invariant: Invariant) {
        self.transactions.invariants.inc(invariant);
    }

    /// An operator acted by the admin port.
    pub fn operator_acted(&self, action: OperatorAction) {
        self.transactions.operator.inc(action);
    }

    /// Sets how many transactional ids are in each state; a state that is not named has none.
    pub fn set_transactions(&self, counts: &[(TransactionState, i64)]) {
        for state in TransactionState::ALL {
            let count = counts.iter().filter(|(named, _)| named == state).map(|(_, count)| count).sum();
            self.transactions.states.set(*state, count);
        }
    }

    /// Sets the gauges about what is open and what is owed.
    pub fn set_open(&self, open: &OpenTransactions) {
        let gauges = &self.transactions;
        gauges.open_since.set(open.oldest_start_ms.map_or(0.0, seconds));
        gauges.open_age.set(open.oldest_start_ms.map_or(0.0, |_| seconds(open.oldest_age_ms)));
        gauges.markers_pending.set(count(open.markers_pending));
        gauges.marker_oldest.set(seconds(open.oldest_marker_ms));
        gauges.pending_offsets.set(count(open.pending_offsets));
        self.producers.transactional_ids.set(count(open.ids));
        self.producers.exhausted_soon.set(count(open.exhausted_soon));
    }

    /// Sets the gauges about partitions that readers are held back in.
    pub fn set_held_back(&self, held: &HeldBack) {
        self.transactions.held_back.set(count(held.partitions));
        self.transactions.late.set(count(held.late));
        self.producers.producer_ids.set(count(held.producers));
    }
}

impl OpenTransactions {
    /// What the gauges show when the oldest open transaction entered Ongoing at `since`.
    #[must_use]
    pub fn with_oldest(self, since: Now, now: Now) -> Self {
        let oldest_age_ms = now.mono_ms.saturating_sub(since.mono_ms);
        Self { oldest_start_ms: Some(since.wall_ms), oldest_age_ms, ..self }
    }
}

impl Transactions {
    pub(super) fn new(table: &Table, max_timeout_ms: i64) -> Result<Self, Error> {
        let since = "When the oldest open transaction began, in seconds since 1970; 0 when none is open";
        let age = "How long the oldest open transaction has been open; 0 when none is";
        let late = "Partitions whose open transaction is older than any may be";
        let oldest = "How long the oldest marker that is owed has been waiting";
        let retries = "Markers that could not be written and were tried again";
        let refused = "Commits of the ledger that found no room on the disk";
        let duration = ("transaction_duration_seconds", "Time from a transaction's first partition to its last marker");
        let phases = ("transaction_commit_phase_seconds", "Time that each part of a transaction's end took");
        let max_timeout = table.gauge("transaction_max_timeout_seconds", "Longest timeout a producer may ask for")?;
        max_timeout.set(seconds(max_timeout_ms));
        Ok(Self {
            open_since: table.gauge("transaction_oldest_open_start_timestamp_seconds", since)?,
            open_age: table.gauge("transaction_open_age_seconds_max", age)?,
            late: table.int_gauge("partitions_with_late_transactions", late)?,
            held_back: table.int_gauge("partitions_held_back", "Partitions that hold read_committed readers back")?,
            states: table.gauges("transactions", "Transactional ids by state", "state")?,
            completed: table.pairs("transactions_completed_total", "Transactions that ended", ["outcome", "reason"])?,
            duration: table.histograms(duration, "outcome", LONG_BUCKETS)?,
            phases: table.histograms(phases, "phase", BUCKETS)?,
            markers_pending: table.int_gauge("transaction_markers_pending", "Markers decided and not yet written")?,
            marker_oldest: table.gauge("transaction_marker_oldest_pending_seconds", oldest)?,
            marker_writes: table.pairs("transaction_marker_writes_total", "Writes of markers", ["type", "result"])?,
            marker_retries: table.counters("transaction_marker_write_retries_total", retries, "error")?,
            pending_offsets: table
                .int_gauge("pending_transactional_offset_commits", "Offsets that wait for a transaction's end")?,
            ledger_refused: table.counter("transaction_log_append_retries_total", refused)?,
            invariants: table.counters(
                "invariant_violations_total",
                "What must never be, and was seen",
                "invariant",
            )?,
            operator: table.counters("operator_actions_total", "What operators did by the admin port", "action")?,
        })
    }
}

impl Producers {
    pub(super) fn new(table: &Table) -> Result<Self, Error> {
        let duplicates = "Batches that came again and were not stored a second time";
        let verified = "Producers that a partition did not know, by what the coordinator said of them";
        let soon = "Transactional ids with fewer than 1000 epochs left";
        Ok(Self {
            fencing: table.counters("fencing_events_total", "Producers fenced", "reason")?,
            duplicates: table.counter("producer_duplicate_batches_total", duplicates)?,
            sequence_errors: table.counters("producer_sequence_errors_total", "Batches refused", "error")?,
            verified: table.counters("transaction_verifications_total", verified, "result")?,
            verification: table.histogram(
                "transaction_verification_seconds",
                "Time the coordinator took to be asked about a producer",
                BUCKETS,
            )?,
            producer_ids: table.int_gauge("producer_ids", "Producers that partitions know, counted once in each")?,
            transactional_ids: table.int_gauge("transactional_ids", "Transactional ids that are known")?,
            exhausted_soon: table.int_gauge("producer_epochs_near_exhaustion", soon)?,
        })
    }
}
