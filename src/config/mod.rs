//! Configuration: built-in defaults < `oncelog.toml` < `KAFKA_…`, `OTEL_…` < `ONCELOG_…` < flags, checked before anything starts.
//!
//! A key that does not exist, and a value that cannot be, stop the start with one sentence that says what to write
//! instead. [`Config`] is what is left when all of that has passed: whoever holds one need not check it again.

mod address;
mod check;
pub mod flags;
mod kafka_env;
mod nearest;
mod otel_env;
mod settings;
mod sources;
mod traces;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use address::{Advertised, HostPort};
pub use flags::{Command, Flags, Txn, TxnWish};
pub use sources::{Origin, Surroundings};
pub use traces::{Endpoint, Ratio, Tracing};

/// Why the configuration cannot be used, in one sentence that says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

/// Everything that can be set, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// The doors Kafka clients come through.
    pub listeners: Listeners,
    /// The HTTP port for metrics, health and operators.
    pub admin: Admin,
    /// What an acknowledgement promises.
    pub durability: Durability,
    /// When `EndTxn` is answered.
    pub marker_sync: MarkerSync,
    /// What happens when the disk fails to sync.
    pub on_sync_failure: OnSyncFailure,
    /// What happens when the disk fills up.
    pub storage: Storage,
    /// Defaults of topics.
    pub topics: Topics,
    /// Limits of transactions.
    pub transactions: Transactions,
    /// Limits of consumer groups.
    pub groups: Groups,
    /// Limits of idempotent producers.
    pub producers: Producers,
    /// Limits of connections and requests.
    pub net: Net,
    /// The log the process writes about itself.
    pub log: Log,
    /// Traces of requests and transactions.
    pub tracing: Tracing,
}

/// A configuration, where each value came from, and what should be said about it at the start.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The checked configuration.
    pub config: Config,
    /// Every setting as it stands, in the order of the reference.
    pub values: Vec<Shown>,
    /// Lines to log once, such as `KAFKA_…` variables that have no meaning here.
    pub notes: Vec<String>,
}

/// One setting as `oncelog config` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its name, levels joined by dots.
    pub key: &'static str,
    /// Its value as it is in force; empty when it is not set.
    pub value: String,
    /// Who set it.
    pub origin: Origin,
    /// What it is for, in one line.
    pub meaning: &'static str,
}

/// The doors Kafka clients come through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listeners {
    /// For clients outside: the machine's user, other machines.
    pub external: Listener,
    /// For clients in the same container network; off unless its `bind` is set.
    pub internal: Option<Listener>,
}

/// One door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Where it listens; port 0 takes any free port.
    pub bind: HostPort,
    /// Where clients that came through it are told to connect.
    pub advertised: Advertised,
}

/// Which door a connection came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenerName {
    /// `listeners.external`.
    External,
    /// `listeners.internal`.
    Internal,
}

impl ListenerName {
    /// The name as it is written in settings and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Internal => "internal",
        }
    }
}

/// The HTTP port for metrics, health and operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// Where it listens; port 0 takes any free port.
    pub bind: HostPort,
}

/// What an acknowledgement promises (promise P1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// A power cut takes back nothing that was acknowledged.
    Strict,
    /// Kafka's bargain: acknowledged once in the page cache.
    Relaxed,
}

/// When `EndTxn` is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkerSync {
    /// Once every marker is on disk.
    Answer,
    /// Once every marker is appended: the stored decision suffices to write it again after a crash.
    Redo,
}

/// What happens when the disk fails to sync; no sync is ever tried twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnSyncFailure {
    /// The process starts itself over.
    Restart,
    /// The process exits; a supervisor starts it again.
    Exit,
}

/// What happens when the disk fills up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Bytes set aside for decisions and markers, never more than a hundredth of the disk; 0 for none.
    pub reserve_bytes: i64,
    /// Free bytes below which records and new topics are refused; 0 never, -1 a twentieth of the disk, 256 MiB at most.
    pub low_free_bytes: i64,
    /// Free bytes from which they are taken again; -1 twice the low mark.
    pub high_free_bytes: i64,
}

/// Defaults of topics. A topic's own settings win.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topics {
    /// Whether asking for a topic's metadata makes it (M-210).
    pub auto_create: bool,
    /// Partitions of a topic made without a count.
    pub default_partitions: i32,
    /// A segment file is closed at this many bytes.
    pub segment_bytes: i64,
    /// Largest batch accepted, in bytes (T-331).
    pub max_message_bytes: i64,
    /// Records may be deleted after this many milliseconds; -1 never.
    pub retention_ms: i64,
    /// Records may be deleted when a partition has more bytes; -1 no limit.
    pub retention_bytes: i64,
    /// How often it is looked for what may be deleted, in milliseconds.
    pub retention_check_interval_ms: i64,
}

/// Limits of transactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transactions {
    /// Longest `transaction.timeout.ms` a producer may ask for.
    pub max_timeout_ms: i64,
    /// A `transactional.id` unused for this many milliseconds is forgotten (T-612).
    pub id_expiration_ms: i64,
}

/// Limits of consumer groups (G-402).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// Shortest session timeout a member may ask for, in milliseconds.
    pub min_session_timeout_ms: i64,
    /// Longest session timeout a member may ask for, in milliseconds.
    pub max_session_timeout_ms: i64,
    /// How long an empty group waits for further members before its first generation, in milliseconds (G-433).
    pub initial_rebalance_delay_ms: i64,
    /// Most members of one group (G-418).
    pub max_size: u32,
}

/// Limits of idempotent producers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Producers {
    /// A partition forgets an idle producer's sequences after this many milliseconds (T-611).
    pub id_expiration_ms: i64,
}

/// Limits of connections and requests (promise P8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Net {
    /// Most connections at one time, all listeners together (V-142).
    pub max_connections: usize,
    /// Largest request frame, in bytes (V-101).
    pub max_request_bytes: usize,
    /// Bytes of requests held in memory at one time, all connections together; beyond it sockets are not read.
    pub request_memory_bytes: usize,
    /// A connection without traffic is closed after this many milliseconds (V-141).
    pub idle_timeout_ms: i64,
}

/// The log the process writes about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Its shape.
    pub format: LogFormat,
    /// What is written: a level, or directives such as `info,oncelog::net=debug`.
    pub level: String,
}

/// The shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Config {
    /// The built-in defaults.
    #[must_use]
    pub fn builtin() -> Self {
        settings::Settings::default().with_listeners(Listeners {
            external: Listener {
                bind: HostPort::new("127.0.0.1", 9092),
                advertised: Advertised { host: "localhost".to_owned(), port: None },
            },
            internal: None,
        })
    }

    /// Reads every source and checks what they say together.
    ///
    /// # Errors
    /// The first thing that is wrong, in one sentence.
    pub fn load(flags: &Flags, around: &Surroundings) -> Result<Loaded, ConfigError> {
        check::load(flags, around)
    }

    /// The start-up table: one line for each open door, with what a client that comes through it will be told.
    ///
    /// `bound` names the port each door got, which differs from its setting when that was 0.
    #[must_use]
    pub fn welcome(&self, bound: &[(ListenerName, u16)]) -> Vec<String> {
        let line = |(name, port): &(ListenerName, u16)| {
            let listener = self.listener(*name)?;
            let told = listener.advertised.at(*port);
            let door = HostPort::new(&listener.bind.host, *port);
            Some(format!("who connects to {door} ({}) is told {told}", name.as_str()))
        };
        bound.iter().filter_map(line).collect()
    }

    /// The door of that name, if it is open.
    #[must_use]
    pub fn listener(&self, name: ListenerName) -> Option<&Listener> {
        match name {
            ListenerName::External => Some(&self.listeners.external),
            ListenerName::Internal => self.listeners.internal.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests;
