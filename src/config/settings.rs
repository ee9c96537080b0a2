//! The reference of settings: key, what it accepts, what it is for. Whatever is not in this table is not a setting.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::address::HostPort;
use super::{
    Admin, Config, Durability, Groups, Listeners, Log, LogFormat, MarkerSync, Net, OnSyncFailure, Producers, Storage,
    Topics, Tracing, Transactions,
};

/// One line of the reference.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) key: &'static str,
    pub(super) accepts: Accepts,
    pub(super) meaning: &'static str,
}

/// What a setting accepts, and so how text from the environment is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Accepts {
    Switch,
    Number { unit: &'static str, min: i64, max: i64 },
    Choice(&'static [&'static str]),
    Address,
    Advertised,
    Directory,
    Level,
    Endpoint,
    Ratio,
}

const fn row(key: &'static str, accepts: Accepts, meaning: &'static str) -> Setting {
    Setting { key, accepts, meaning }
}

const fn ms(min: i64, max: i64) -> Accepts {
    Accepts::Number { unit: "milliseconds", min, max }
}

const fn bytes(min: i64, max: i64) -> Accepts {
    Accepts::Number { unit: "bytes", min, max }
}

const fn count(unit: &'static str, min: i64, max: i64) -> Accepts {
    Accepts::Number { unit, min, max }
}

/// Kafka's clients carry durations and sizes as 32-bit numbers.
const INT: i64 = i32::MAX as i64;
/// Ten years: longer is a mistake in the unit.
const YEARS: i64 = 10 * 365 * 24 * 3_600_000;
const MIB: i64 = 1 << 20;

use Accepts::{Address, Advertised, Choice, Directory, Endpoint, Level, Ratio, Switch};

/// Every setting, in the order it is shown.
pub(super) const SETTINGS: &[Setting] = &[
    row("data_dir", Directory, "where everything is kept"),
    row("listeners.external.bind", Address, "where clients from outside connect"),
    row("listeners.external.advertised", Advertised, "where they are told to connect; localhost unless set"),
    row("listeners.internal.bind", Address, "where clients of the same container network connect; off unless set"),
    row("listeners.internal.advertised", Advertised, "where they are told to connect; this host's name unless set"),
    row("admin.bind", Address, "HTTP for metrics, health and operators"),
    row("durability", Choice(&["strict", "relaxed"]), "strict: acknowledged survives a power cut; relaxed: page cache"),
    row("marker_sync", Choice(&["answer", "redo"]), "answer: EndTxn waits until its markers are on disk"),
    row("on_sync_failure", Choice(&["restart", "exit"]), "what the process does when the disk fails to sync"),
    row("storage.reserve_bytes", bytes(0, 1 << 40), "set aside for what must be stored on a full disk; 0 nothing"),
    row("storage.low_free_bytes", bytes(-1, 1 << 50), "free space below which records are refused; -1 by disk size"),
    row("storage.high_free_bytes", bytes(-1, 1 << 50), "free space that lets them in again; -1 twice the other"),
    row("topics.auto_create", Switch, "make a topic when a client asks for it"),
    row("topics.default_partitions", count("partitions", 1, 10_000), "partitions of a topic made without a count"),
    row("topics.segment_bytes", bytes(MIB, INT), "size at which a segment file is closed"),
    row("topics.max_message_bytes", bytes(1_024, INT), "largest batch accepted"),
    row("topics.retention_ms", ms(-1, i64::MAX), "age at which records may be deleted; -1 never"),
    row("topics.retention_bytes", bytes(-1, i64::MAX), "size of a partition above which records go; -1 no limit"),
    row("topics.retention_check_interval_ms", ms(1, YEARS), "how often it is looked for what may go"),
    row("transactions.max_timeout_ms", ms(1, INT), "longest transaction.timeout.ms a producer may ask for"),
    row("transactions.id_expiration_ms", ms(1, YEARS), "unused time after which a transactional.id is forgotten"),
    row("groups.min_session_timeout_ms", ms(1, INT), "shortest session timeout a member may ask for"),
    row("groups.max_session_timeout_ms", ms(1, INT), "longest session timeout a member may ask for"),
    row("groups.initial_rebalance_delay_ms", ms(0, INT), "how long a new group waits for more members"),
    row("groups.max_size", count("members", 1, INT), "most members of one group"),
    row("producers.id_expiration_ms", ms(1, YEARS), "idle time after which a producer's sequences are forgotten"),
    row("net.max_connections", count("connections", 1, 1_000_000), "most connections at one time"),
    row("net.max_request_bytes", bytes(16_384, INT), "largest request"),
    row("net.request_memory_bytes", bytes(MIB, 1 << 42), "requests held in memory at one time, all together"),
    row("net.idle_timeout_ms", ms(1_000, INT), "time without traffic after which a connection is closed"),
    row("log.format", Choice(&["text", "json"]), "shape of a log line"),
    row("log.level", Level, "what is logged, such as info or info,oncelog::net=debug"),
    row("tracing.endpoint", Endpoint, "OpenTelemetry collector that takes traces over HTTP; off unless set"),
    row("tracing.sample_ratio", Ratio, "share of requests and transactions traced, 0 to 1; all unless set"),
];

/// The setting of that name.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// A setting's name in the environment.
pub(super) fn variable(key: &str) -> String {
    format!("ONCELOG_{}", key.replace('.', "__").to_uppercase())
}

/// The settings as they are written, before anything is resolved. Its `Default` is the built-in defaults.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) data_dir: PathBuf,
    pub(super) listeners: Doors,
    admin: Admin,
    durability: Durability,
    marker_sync: MarkerSync,
    on_sync_failure: OnSyncFailure,
    storage: Storage,
    topics: Topics,
    transactions: Transactions,
    groups: Groups,
    producers: Producers,
    net: Net,
    log: Log,
    tracing: Tracing,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Doors {
    pub(super) external: OpenDoor,
    pub(super) internal: Door,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenDoor {
    pub(super) bind: HostPort,
    pub(super) advertised: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Door {
    pub(super) bind: Option<HostPort>,
    pub(super) advertised: Option<String>,
}

impl Settings {
    /// The checked whole, its doors resolved.
    pub(super) fn with_listeners(self, listeners: Listeners) -> Config {
        Config {
            data_dir: self.data_dir,
            listeners,
            admin: self.admin,
            durability: self.durability,
            marker_sync: self.marker_sync,
            on_sync_failure: self.on_sync_failure,
            storage: self.storage,
            topics: self.topics,
            transactions: self.transactions,
            groups: self.groups,
            producers: self.producers,
            net: self.net,
            log: self.log,
            tracing: self.tracing,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("./data"),
            listeners: Doors {
                external: OpenDoor { bind: HostPort::new("127.0.0.1", 9092), advertised: None },
                internal: Door { bind: None, advertised: None },
            },
            admin: Admin { bind: HostPort::new("127.0.0.1", 9644) },
            durability: Durability::Strict,
            marker_sync: MarkerSync::Answer,
            on_sync_failure: OnSyncFailure::Restart,
            storage: Storage { reserve_bytes: 64 << 20, low_free_bytes: -1, high_free_bytes: -1 },
            topics: Topics {
                auto_create: true,
                default_partitions: 1,
                segment_bytes: 1 << 30,
                max_message_bytes: 1_048_588,
                retention_ms: 604_800_000,
                retention_bytes: -1,
                retention_check_interval_ms: 300_000,
            },
            transactions: Transactions { max_timeout_ms: 900_000, id_expiration_ms: 604_800_000 },
            groups: Groups {
                min_session_timeout_ms: 6_000,
                max_session_timeout_ms: 1_800_000,
                initial_rebalance_delay_ms: 0,
                max_size: 10_000,
            },
            producers: Producers { id_expiration_ms: 86_400_000 },
            net: Net {
                max_connections: 10_000,
                max_request_bytes: 104_857_600,
                request_memory_bytes: 268_435_456,
                idle_timeout_ms: 600_000,
            },
            log: Log { format: LogFormat::Text, level: "info".to_owned() },
            tracing: Tracing { endpoint: None, sample_ratio: None },
        }
    }
}
