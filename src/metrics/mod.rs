//! Every metric, in one place: name, kind, help, labels. Call sites say what happened and never name a label.
//!
//! No transactional id, producer id, client id, principal or host is ever a label: those are in the log and at
//! `/v1/transactions`.

mod labels;
mod requests;
mod series;
mod topics;

use std::time::Duration;

use prometheus::{Encoder, Error, Gauge, IntCounter, IntGauge, Registry, TextEncoder};

pub use labels::{EndReason, FencingReason, MarkerError, SequenceError, SyncedFile, TransactionState};
pub use topics::StableLag;

use crate::config::{Config, Durability, ListenerName, MarkerSync};
use crate::engine::{Now, Outcome, Refusal, TopicName};
use labels::Label;
use requests::Requests;
use series::{Counters, Gauges, Histograms, Table};
use topics::ByTopic;

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Seconds, for what a disk or a request takes.
const BUCKETS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Seconds, for what a transaction takes.
const LONG_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0];

const WRONG_DOORS: &str =
    "Connections from other machines to a listener that tells its clients to connect to their own";

/// The broker's metrics. One for the process, shared by reference.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    lag: ByTopic,
    transactions: Transactions,
    producers: Producers,
    requests: Requests,
    connections: Gauges<ListenerName>,
    wrong_doors: Counters<ListenerName>,
    fsync: Histograms<SyncedFile>,
    partitions_offline: IntGauge,
    log_verified_bytes: IntCounter,
    removed: Removed,
    disk_free_bytes: IntGauge,
    disk_space_low: IntGauge,
    disk_reserve_spent: IntCounter,
}

#[derive(Debug)]
struct Transactions {
    open_since: Gauge,
    open_age: Gauge,
    late: IntGauge,
    states: Gauges<TransactionState>,
    completed: Counters<(Outcome, EndReason)>,
    duration: Histograms<Outcome>,
    markers_pending: IntGauge,
    marker_oldest: Gauge,
    marker_writes: Counters<Outcome>,
    marker_retries: Counters<MarkerError>,
}

#[derive(Debug)]
struct Producers {
    fencing: Counters<FencingReason>,
    duplicates: IntCounter,
    sequence_errors: Counters<SequenceError>,
}

/// What left logs.
#[derive(Debug)]
struct Removed {
    segments: IntCounter,
    bytes: IntCounter,
}

/// What the ledger holds at one moment, as the gauges show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenTransactions {
    /// When the oldest open transaction began, in wall-clock milliseconds; `None` when none is open.
    pub oldest_start_ms: Option<i64>,
    /// How long it has been open by the monotonic clock, in milliseconds.
    pub oldest_age_ms: i64,
    /// Partitions with a transaction open longer than any may be (KIP-664).
    pub late_partitions: i64,
    /// Markers that are decided and not yet written.
    pub markers_pending: i64,
    /// How long the oldest of them has been waiting, in milliseconds.
    pub oldest_marker_ms: i64,
}

impl Metrics {
    /// Registers everything. `apis` holds the key and Kafka's name of every API that is served.
    ///
    /// # Errors
    /// A name that is malformed or given twice: a mistake in this file.
    pub fn new(config: &Config, apis: &[(i16, &'static str)]) -> Result<Self, Error> {
        let table = Table(Registry::new());
        facts(&table, config)?;
        #[cfg(target_os = "linux")]
        table.0.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        Ok(Self {
            lag: ByTopic::new(&table)?,
            transactions: Transactions::new(&table)?,
            producers: Producers::new(&table)?,
            requests: Requests::new(&table, apis)?,
            connections: table.gauges("connections", "Open connections", "listener")?,
            wrong_doors: table.counters("wrong_door_connections_total", WRONG_DOORS, "listener")?,
            fsync: table.histograms(("fsync_duration_seconds", "Time one sync took"), "file", BUCKETS)?,
            partitions_offline: table.int_gauge("partitions_offline", "Partitions that cannot be served: damaged")?,
            log_verified_bytes: table.counter("log_verified_bytes_total", "Bytes of logs verified by recoveries")?,
            removed: Removed {
                segments: table.counter("log_segments_removed_total", "Segments removed below a log start")?,
                bytes: table.counter("log_bytes_removed_total", "Bytes of batches in them")?,
            },
            disk_free_bytes: table.int_gauge("disk_free_bytes", "Bytes that may still be written")?,
            disk_space_low: table.int_gauge("disk_space_low", "1 while records are refused for want of space")?,
            disk_reserve_spent: table.counter("disk_reserve_spent_total", "Times the reserve was given up")?,
            registry: table.0,
        })
    }

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

    /// A transaction is over, its markers written; `took` is counted from its first partition.
    pub fn transaction_completed(&self, outcome: Outcome, reason: EndReason, took: Duration) {
        self.transactions.completed.inc((outcome, reason));
        self.transactions.duration.observe(outcome, took.as_secs_f64());
    }

    /// A marker was appended.
    pub fn marker_written(&self, outcome: Outcome) {
        self.transactions.marker_writes.inc(outcome);
    }

    /// A marker could not be appended and will be tried again.
    pub fn marker_retried(&self, error: MarkerError) {
        self.transactions.marker_retries.inc(error);
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
        gauges.late.set(open.late_partitions);
        gauges.markers_pending.set(open.markers_pending);
        gauges.marker_oldest.set(seconds(open.oldest_marker_ms));
    }

    /// Replaces the last-stable-offset lag of all topics. Topics beyond the cap share one series.
    ///
    /// # Errors
    /// Never for what is registered here; the library's own check of label counts.
    pub fn set_stable_lag(&self, lags: Vec<(TopicName, StableLag)>) -> Result<(), Error> {
        self.lag.fill(lags)
    }

    /// A request of that API key was answered, `took` after it was read.
    pub fn request_answered(&self, api_key: i16, took: Duration) {
        self.requests.answered(api_key, took);
    }

    /// An answer of that API key carried an error.
    pub fn request_refused(&self, api_key: i16, refusal: Refusal) {
        self.requests.refused(api_key, refusal);
    }

    /// A connection was opened.
    pub fn connection_opened(&self, listener: ListenerName) {
        self.connections.add(listener, 1);
    }

    /// A connection was closed.
    pub fn connection_closed(&self, listener: ListenerName) {
        self.connections.add(listener, -1);
    }

    /// A connection came from another machine through a listener whose clients are told to connect to their own.
    pub fn wrong_door(&self, listener: ListenerName) {
        self.wrong_doors.inc(listener);
    }

    /// A sync came back.
    pub fn synced(&self, file: SyncedFile, took: Duration) {
        self.fsync.observe(file, took.as_secs_f64());
    }

    /// Sets how many partitions cannot be served.
    pub fn set_partitions_offline(&self, count: i64) {
        self.partitions_offline.set(count);
    }

    /// A partition was opened after an end that was not in order, and so many bytes of its log were verified.
    pub fn log_verified(&self, bytes: u64) {
        self.log_verified_bytes.inc_by(bytes);
    }

    /// Bytes verified so far.
    #[must_use]
    pub fn log_verified_bytes(&self) -> u64 {
        self.log_verified_bytes.get()
    }

    /// Segments left a log, by retention or because a client asked.
    pub fn segments_removed(&self, segments: u64, bytes: u64) {
        self.removed.segments.inc_by(segments);
        self.removed.bytes.inc_by(bytes);
    }

    /// Sets how much of the disk is free, and whether records are refused for want of it.
    pub fn set_disk(&self, free_bytes: i64, is_low: bool) {
        self.disk_free_bytes.set(free_bytes);
        self.disk_space_low.set(i64::from(is_low));
    }

    /// What was set aside was given up for a write that found the disk full.
    pub fn disk_reserve_spent(&self) {
        self.disk_reserve_spent.inc();
    }

    /// Everything as Prometheus reads it; its type is [`CONTENT_TYPE`].
    ///
    /// # Errors
    /// A family without series, which the library will not write.
    pub fn render(&self) -> Result<Vec<u8>, Error> {
        let families = self.lag.still(|| self.registry.gather());
        let mut text = Vec::new();
        TextEncoder::new().encode(&families, &mut text)?;
        Ok(text)
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
    fn new(table: &Table) -> Result<Self, Error> {
        let since = "When the oldest open transaction began, in seconds since 1970; 0 when none is open";
        let age = "How long the oldest open transaction has been open; 0 when none is";
        let late = "Partitions whose open transaction is older than any may be";
        let oldest = "How long the oldest marker that is owed has been waiting";
        let retries = "Markers that could not be written and were tried again";
        let duration = ("transaction_duration_seconds", "Time from a transaction's first partition to its last marker");
        Ok(Self {
            open_since: table.gauge("transaction_oldest_open_start_timestamp_seconds", since)?,
            open_age: table.gauge("transaction_open_age_seconds_max", age)?,
            late: table.int_gauge("partitions_with_late_transactions", late)?,
            states: table.gauges("transactions", "Transactional ids by state", "state")?,
            completed: table.pairs("transactions_completed_total", "Transactions that ended", ["outcome", "reason"])?,
            duration: table.histograms(duration, "outcome", LONG_BUCKETS)?,
            markers_pending: table.int_gauge("transaction_markers_pending", "Markers decided and not yet written")?,
            marker_oldest: table.gauge("transaction_marker_oldest_pending_seconds", oldest)?,
            marker_writes: table.counters("transaction_marker_writes_total", "Markers written", "type")?,
            marker_retries: table.counters("transaction_marker_write_retries_total", retries, "error")?,
        })
    }
}

impl Producers {
    fn new(table: &Table) -> Result<Self, Error> {
        let duplicates = "Batches that came again and were not stored a second time";
        Ok(Self {
            fencing: table.counters("fencing_events_total", "Producers fenced", "reason")?,
            duplicates: table.counter("producer_duplicate_batches_total", duplicates)?,
            sequence_errors: table.counters("producer_sequence_errors_total", "Batches refused", "error")?,
        })
    }
}

/// What stays as it is for the life of the process.
fn facts(table: &Table, config: &Config) -> Result<(), Error> {
    let version = env!("CARGO_PKG_VERSION");
    let revision = option_env!("ONCELOG_REVISION").unwrap_or("unknown");
    table.fact("build_info", "What is running", &[("version", version), ("revision", revision)])?;
    let durability = match config.durability {
        Durability::Strict => "strict",
        Durability::Relaxed => "relaxed",
    };
    let marker_sync = match config.marker_sync {
        MarkerSync::Answer => "answer",
        MarkerSync::Redo => "redo",
    };
    let labels = [("durability", durability), ("marker_sync", marker_sync)];
    table.fact("durability_info", "What an acknowledgement promises", &labels)
}

/// Milliseconds in seconds.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; exact for any date")]
fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

#[cfg(test)]
mod tests;
