//! Every metric, in one place: name, kind, help, labels. Call sites say what happened and never name a label.
//!
//! No transactional id, producer id, client id, principal or host is ever a label: those are in the log and at
//! `/v1/transactions`. Topics and groups are, by name, so many and no more; the others share one series.

mod groups;
mod labels;
mod requests;
mod series;
mod storage;
mod topics;
mod traffic;
mod transactions;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::{Encoder, Error, Gauge, IntCounter, IntGauge, Registry, TextEncoder};

pub use groups::GroupLag;
pub use labels::{
    EndReason, FencingReason, GroupState, Invariant, LagTo, MarkerError, MarkerResult, OperatorAction, Phase,
    SequenceError, SyncedFile, TransactionState, Verified,
};
pub use storage::LogSizes;
pub use topics::StableLag;
pub use traffic::TopicTraffic;
pub use transactions::{HeldBack, OpenTransactions};

use crate::config::{Config, Durability, ListenerName, MarkerSync};
use crate::engine::{GroupId, Refusal, TopicName};
use groups::Groups;
use requests::Requests;
use series::{Counters, Gauges, Table};
use storage::Storage;
use topics::ByTopic;
use traffic::Traffic;
use transactions::{Producers, Transactions};

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
    ready: IntGauge,
    start: Gauge,
    lag: ByTopic,
    traffic: Traffic,
    transactions: Transactions,
    producers: Producers,
    requests: Requests,
    connections: Gauges<ListenerName>,
    wrong_doors: Counters<ListenerName>,
    topics: IntGauge,
    partitions: IntGauge,
    groups: Groups,
    fetches: Fetches,
    storage: Storage,
    trace_spans_dropped: IntCounter,
}

/// What consumers are given.
#[derive(Debug)]
struct Fetches {
    sessions: IntGauge,
    evicted: IntCounter,
    told_evicted: Mutex<u64>,
    held: IntCounter,
    aborted_ranges: IntCounter,
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
        let folded = "Series folded into another because their family was full";
        let dropped = table.counter("metrics_series_dropped_total", folded)?;
        Ok(Self {
            ready: table.int_gauge("ready", "1 while clients can be served")?,
            start: table.gauge("start_duration_seconds", "How long the start took, recovery included")?,
            lag: ByTopic::new(&table, dropped.clone())?,
            traffic: Traffic::new(&table, dropped.clone())?,
            transactions: Transactions::new(&table, config.transactions.max_timeout_ms)?,
            producers: Producers::new(&table)?,
            requests: Requests::new(&table, apis)?,
            connections: table.gauges("connections", "Open connections", "listener")?,
            wrong_doors: table.counters("wrong_door_connections_total", WRONG_DOORS, "listener")?,
            topics: table.int_gauge("topics", "Topics that exist")?,
            partitions: table.int_gauge("partitions", "Partitions of all topics")?,
            groups: Groups::new(&table, dropped)?,
            fetches: Fetches::new(&table)?,
            storage: Storage::new(&table)?,
            trace_spans_dropped: table.counter("trace_spans_dropped_total", "Spans that reached no collector")?,
            registry: table.0,
        })
    }

    /// Spans were lost: no room in the queue, or no collector.
    pub fn trace_spans_dropped(&self, count: u64) {
        self.trace_spans_dropped.inc_by(count);
    }

    /// Sets whether clients can be served.
    pub fn set_ready(&self, is_ready: bool) {
        self.ready.set(i64::from(is_ready));
    }

    /// The start is over.
    pub fn started(&self, took: Duration) {
        self.start.set(took.as_secs_f64());
    }

    /// Sets how many topics and partitions there are.
    pub fn set_catalog(&self, topics: u64, partitions: u64) {
        self.topics.set(count(topics));
        self.partitions.set(count(partitions));
    }

    /// The counters of a topic, to be kept by whoever counts.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Arc<TopicTraffic> {
        self.traffic.topic(name)
    }

    /// Another number says that the counters of a topic may be others than before.
    #[must_use]
    pub fn topic_generation(&self) -> u64 {
        self.traffic.generation()
    }

    /// Forgets the counters of topics that are gone.
    pub fn keep_topics(&self, exists: impl Fn(&TopicName) -> bool) {
        self.traffic.keep(exists);
    }

    /// Sets how many groups are in each state, and how many members they have.
    pub fn set_groups(&self, states: &[(GroupState, u64)], members: u64) {
        self.groups.set(states, members);
    }

    /// Replaces the lag of all groups. Groups beyond the cap share one series.
    ///
    /// # Errors
    /// Never for what is registered here; the library's own check of label counts.
    pub fn set_group_lag(&self, lags: Vec<(GroupId, GroupLag)>) -> Result<(), Error> {
        self.groups.fill(lags)
    }

    /// Sets how many fetch sessions there are, and how many gave way to others since the start.
    pub fn set_fetch_sessions(&self, sessions: u64, evicted: u64) {
        self.fetches.sessions.set(count(sessions));
        let mut told = self.fetches.told_evicted.lock();
        self.fetches.evicted.inc_by(evicted.saturating_sub(*told));
        *told = evicted.max(*told);
    }

    /// A read_committed reader was given nothing though there are records above the last stable offset.
    pub fn fetch_held(&self) {
        self.fetches.held.inc();
    }

    /// So many aborted transactions were named to a read_committed reader.
    pub fn aborted_ranges(&self, ranges: u64) {
        self.fetches.aborted_ranges.inc_by(ranges);
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

    /// A frame waited for so long until there was room for it in memory.
    pub fn request_queued(&self, waited: Duration) {
        self.requests.queued(waited);
    }

    /// A connection came from another machine through a listener whose clients are told to connect to their own.
    pub fn wrong_door(&self, listener: ListenerName) {
        self.wrong_doors.inc(listener);
    }

    /// Everything as Prometheus reads it; its type is [`CONTENT_TYPE`].
    ///
    /// # Errors
    /// A family without series, which the library will not write.
    pub fn render(&self) -> Result<Vec<u8>, Error> {
        let families = self.lag.still(|| self.groups.still(|| self.registry.gather()));
        let mut text = Vec::new();
        TextEncoder::new().encode(&families, &mut text)?;
        Ok(text)
    }
}

impl Fetches {
    fn new(table: &Table) -> Result<Self, Error> {
        let held = "Partitions that a read_committed Fetch got nothing of, with records above the last stable offset";
        Ok(Self {
            sessions: table.int_gauge("fetch_sessions", "Fetch sessions that are kept")?,
            evicted: table.counter("fetch_sessions_evicted_total", "Fetch sessions that gave way to others")?,
            told_evicted: Mutex::new(0),
            held: table.counter("read_committed_fetches_held_total", held)?,
            aborted_ranges: table
                .counter("aborted_ranges_sent_total", "Aborted transactions named to read_committed readers")?,
        })
    }
}

/// What stays as it is for the life of the process.
fn facts(table: &Table, config: &Config) -> Result<(), Error> {
    let version = env!("CARGO_PKG_VERSION");
    let revision = option_env!("ONCELOG_REVISION").unwrap_or("unknown");
    let rustc = env!("ONCELOG_RUSTC");
    let labels = [("version", version), ("revision", revision), ("rustc", rustc)];
    table.fact("build_info", "What is running", &labels)?;
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

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
