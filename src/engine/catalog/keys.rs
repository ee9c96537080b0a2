//! The settings a topic may have: type, default, which values are valid, and the broker settings behind them.

use super::describe::ConfigType;

/// What a value must be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    Bool,
    /// Always false: what `true` would ask for does not exist here.
    OnlyFalse,
    Int(i32, i32),
    /// −1 (the codec's own level) or one of these.
    Level(i32, i32),
    Long(i64, i64),
    /// From 0 to 1.
    Ratio,
    OneOf(&'static [&'static str]),
    /// A list of these, none twice.
    ListOf(&'static [&'static str]),
    /// "*", or a list of `partition:broker`.
    ThrottledReplicas,
}

/// A value that was understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Parsed {
    Bool(bool),
    Int(i32),
    Long(i64),
    Double(f64),
    Text(String),
    List(Vec<String>),
}

impl Parsed {
    /// The value as DescribeConfigs writes it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Long(value) => value.to_string(),
            // With a point even when it is whole, as Java writes it.
            Self::Double(value) => format!("{value:?}"),
            Self::Text(value) => value.clone(),
            Self::List(items) => items.join(","),
        }
    }
}

impl Parsed {
    /// As a whole number; 0 for what is none.
    pub(super) fn long(&self) -> i64 {
        match self {
            Self::Int(value) => i64::from(*value),
            Self::Long(value) => *value,
            Self::Bool(_) | Self::Double(_) | Self::Text(_) | Self::List(_) => 0,
        }
    }

    /// As a whole number that was checked to be an INT; 0 for what is none.
    pub(super) fn int(&self) -> i32 {
        i32::try_from(self.long()).unwrap_or(0)
    }

    /// As a fraction; 0 for what is none.
    pub(super) fn double(&self) -> f64 {
        match self {
            Self::Double(value) => *value,
            Self::Int(_) | Self::Long(_) | Self::Bool(_) | Self::Text(_) | Self::List(_) => 0.0,
        }
    }
}

/// The items of a list. Blanks around items do not count; a blank text is the empty list.
pub(super) fn list_items(text: &str) -> Vec<String> {
    let text = text.trim();
    if text.is_empty() { Vec::new() } else { text.split(',').map(|item| item.trim().to_owned()).collect() }
}

impl Check {
    pub(super) fn kind(self) -> ConfigType {
        match self {
            Self::Bool | Self::OnlyFalse => ConfigType::Boolean,
            Self::Int(..) | Self::Level(..) => ConfigType::Int,
            Self::Long(..) => ConfigType::Long,
            Self::Ratio => ConfigType::Double,
            Self::OneOf(_) => ConfigType::String,
            Self::ListOf(_) | Self::ThrottledReplicas => ConfigType::List,
        }
    }

    /// Reads a value as a client wrote it; on error, what it should have been.
    pub(super) fn parse(self, text: &str) -> Result<Parsed, String> {
        let text = text.trim();
        match self {
            Self::Bool => parse_bool(text).map(Parsed::Bool),
            Self::OnlyFalse => match parse_bool(text)? {
                true => Err("Tiered storage is not available on this broker".to_owned()),
                false => Ok(Parsed::Bool(false)),
            },
            Self::Int(least, most) => number(text, "INT").and_then(|n| within(n, least, most)).map(Parsed::Int),
            Self::Level(least, most) => match number(text, "INT")? {
                -1 => Ok(Parsed::Int(-1)),
                level => within(level, least, most).map(Parsed::Int),
            },
            Self::Long(least, most) => number(text, "LONG").and_then(|n| within(n, least, most)).map(Parsed::Long),
            Self::Ratio => number(text, "DOUBLE").and_then(|n| within(n, 0.0, 1.0)).map(Parsed::Double),
            Self::OneOf(valid) if valid.contains(&text) => Ok(Parsed::Text(text.to_owned())),
            Self::OneOf(valid) => Err(format!("String must be one of: {}", valid.join(", "))),
            Self::ListOf(valid) => parse_list(text, valid).map(Parsed::List),
            Self::ThrottledReplicas => parse_replicas(text).map(Parsed::List),
        }
    }
}

fn parse_bool(text: &str) -> Result<bool, String> {
    if text.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err("Expected value to be either true or false".to_owned())
    }
}

fn number<N: std::str::FromStr>(text: &str, kind: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("Not a number of type {kind}"))
}

fn within<N: PartialOrd + std::fmt::Display>(value: N, least: N, most: N) -> Result<N, String> {
    // Not a number is neither above nor below anything, so it is asked whether it lies inside.
    if value >= least && value <= most {
        Ok(value)
    } else if value < least {
        Err(format!("Value must be at least {least}"))
    } else {
        Err(format!("Value must be no more than {most}"))
    }
}

fn parse_list(text: &str, valid: &[&str]) -> Result<Vec<String>, String> {
    let mut seen: Vec<String> = Vec::new();
    for item in list_items(text) {
        if !valid.contains(&item.as_str()) {
            return Err(format!("List items must be of: {}", valid.join(", ")));
        }
        if seen.contains(&item) {
            return Err(format!("The item {item} is in the list twice"));
        }
        seen.push(item);
    }
    Ok(seen)
}

fn parse_replicas(text: &str) -> Result<Vec<String>, String> {
    let items = list_items(text);
    let is_pair = |item: &String| {
        item.split_once(':')
            .is_some_and(|(partition, broker)| partition.parse::<i32>().is_ok() && broker.parse::<i32>().is_ok())
    };
    if text == "*" || items.iter().all(is_pair) {
        Ok(items)
    } else {
        Err("Expected \"*\" or a list of partition:broker".to_owned())
    }
}

/// A broker setting that stands behind a topic's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behind {
    pub(super) name: &'static str,
    /// What one unit of it is in units of the topic's setting; 1 for all but minutes and hours.
    pub(super) unit: i64,
}

/// One setting of a topic.
#[derive(Debug)]
pub(super) struct TopicKey {
    pub(super) name: &'static str,
    pub(super) check: Check,
    /// As text; none for a setting that is not listed unless it was given.
    pub(super) default: Option<&'static str>,
    /// First the one that counts most. The last one carries the default.
    pub(super) behind: &'static [Behind],
    pub(super) doc: &'static str,
}

const fn behind(name: &'static str) -> Behind {
    Behind { name, unit: 1 }
}

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;
const MAX: i64 = i64::MAX;
const MAX_TEXT: &str = "9223372036854775807";
const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];

/// The key of this name.
pub(super) fn topic_key(name: &str) -> Option<&'static TopicKey> {
    let at = KEYS.binary_search_by(|key| key.name.cmp(name)).ok()?;
    KEYS.get(at)
}

macro_rules! keys {
    ($($name:literal $check:expr, $default:expr, [$($behind:literal $(* $unit:expr)?),*] $doc:literal;)+) => {
        &[$(TopicKey {
            name: $name,
            check: $check,
            default: $default,
            behind: &[$(keys!(@behind $behind $(, $unit)?)),*],
            doc: $doc,
        }),+]
    };
    (@behind $name:literal) => { behind($name) };
    (@behind $name:literal, $unit:expr) => { Behind { name: $name, unit: $unit } };
}

/// All of them, in the order of their names. Those of 3.x that 4.0 took away are not here, so they are refused
/// like any unknown key.
pub(super) static KEYS: &[TopicKey] = keys! {
    "cleanup.policy" Check::ListOf(&["compact", "delete"]), Some("delete"), ["log.cleanup.policy"]
        "How old records go: 'delete' by age and size, 'compact' by key, both, or, as an empty list, never.";
    "compression.gzip.level" Check::Level(1, 9), Some("-1"), ["compression.gzip.level"]
        "Kept for tools; batches stay as the producer compressed them.";
    "compression.lz4.level" Check::Int(1, 17), Some("9"), ["compression.lz4.level"]
        "Kept for tools; batches stay as the producer compressed them.";
    "compression.type" Check::OneOf(CODECS), Some("producer"), ["compression.type"]
        "Kept for tools; whatever it says, batches stay as the producer compressed them.";
    "compression.zstd.level" Check::Int(-131_072, 22), Some("3"), ["compression.zstd.level"]
        "Kept for tools; batches stay as the producer compressed them.";
    "delete.retention.ms" Check::Long(0, MAX), Some("86400000"), ["log.cleaner.delete.retention.ms"]
        "How long a compacted topic keeps a tombstone, in milliseconds.";
    "errors.deadletterqueue.group.enable" Check::Bool, Some("false"), []
        "Kept for tools; share groups are not offered.";
    "file.delete.delay.ms" Check::Long(0, MAX), Some("60000"), ["log.segment.delete.delay.ms"]
        "How long a dropped segment's file stays before it is deleted, in milliseconds.";
    "flush.messages" Check::Long(1, MAX), Some(MAX_TEXT), ["log.flush.interval.messages"]
        "Kept for tools; when an append reaches the disk is the broker's durability setting.";
    "flush.ms" Check::Long(0, MAX), Some(MAX_TEXT), ["log.flush.interval.ms", "log.flush.scheduler.interval.ms"]
        "Kept for tools; when an append reaches the disk is the broker's durability setting.";
    "follower.replication.throttled.replicas" Check::ThrottledReplicas, Some(""), []
        "Kept for tools; a single broker has no followers.";
    "index.interval.bytes" Check::Int(0, i32::MAX), Some("4096"), ["log.index.interval.bytes"]
        "How many bytes of log lie between two entries of the offset index.";
    "internal.segment.bytes" Check::Int(14, i32::MAX), None, []
        "Stands in for segment.bytes below its smallest value; for tests.";
    "leader.replication.throttled.replicas" Check::ThrottledReplicas, Some(""), []
        "Kept for tools; a single broker has no followers.";
    "local.retention.bytes" Check::Long(-2, MAX), Some("-2"), ["log.local.retention.bytes"]
        "Kept for tools; there is no tiered storage.";
    "local.retention.ms" Check::Long(-2, MAX), Some("-2"), ["log.local.retention.ms"]
        "Kept for tools; there is no tiered storage.";
    "max.compaction.lag.ms" Check::Long(1, MAX), Some(MAX_TEXT), ["log.cleaner.max.compaction.lag.ms"]
        "The longest a record may wait for compaction, in milliseconds.";
    "max.message.bytes" Check::Int(0, i32::MAX), Some("1048588"), ["message.max.bytes"]
        "The largest batch that is taken, in bytes, as compressed.";
    "message.timestamp.after.max.ms" Check::Long(0, MAX), Some("3600000"), ["log.message.timestamp.after.max.ms"]
        "How far a record's timestamp may be ahead of the broker's clock, in milliseconds.";
    "message.timestamp.before.max.ms" Check::Long(0, MAX), Some(MAX_TEXT), ["log.message.timestamp.before.max.ms"]
        "How far a record's timestamp may be behind the broker's clock, in milliseconds.";
    "message.timestamp.type" Check::OneOf(&["CreateTime", "LogAppendTime"]), Some("CreateTime"),
        ["log.message.timestamp.type"]
        "Whether a record carries the producer's time or that of its append.";
    "min.cleanable.dirty.ratio" Check::Ratio, Some("0.5"), ["log.cleaner.min.cleanable.ratio"]
        "The share of a log that must be new before it is compacted again.";
    "min.compaction.lag.ms" Check::Long(0, MAX), Some("0"), ["log.cleaner.min.compaction.lag.ms"]
        "How long a record is safe from compaction, in milliseconds.";
    "min.insync.replicas" Check::Int(1, i32::MAX), Some("1"), ["min.insync.replicas"]
        "Kept for tools; a partition has one replica, and needs no more than it has.";
    "preallocate" Check::Bool, Some("false"), ["log.preallocate"]
        "Kept for tools; segments grow as they are written.";
    "remote.copy.lag.bytes" Check::Long(-1, MAX), Some("-1"), []
        "Kept for tools; there is no tiered storage.";
    "remote.copy.lag.ms" Check::Long(-1, MAX), Some("0"), []
        "Kept for tools; there is no tiered storage.";
    "remote.log.copy.disable" Check::Bool, Some("false"), []
        "Kept for tools; there is no tiered storage.";
    "remote.log.delete.on.disable" Check::Bool, Some("false"), []
        "Kept for tools; there is no tiered storage.";
    "remote.storage.enable" Check::OnlyFalse, Some("false"), []
        "There is no tiered storage; only false is taken.";
    "retention.bytes" Check::Long(i64::MIN, MAX), Some("-1"), ["log.retention.bytes"]
        "How many bytes a partition keeps before old segments go; negative for no limit.";
    "retention.ms" Check::Long(-1, MAX), Some("604800000"),
        ["log.retention.ms", "log.retention.minutes" * MINUTE_MS, "log.retention.hours" * HOUR_MS]
        "How long records are kept, in milliseconds; -1 for ever.";
    "segment.bytes" Check::Int(1_048_576, i32::MAX), Some("1073741824"), ["log.segment.bytes"]
        "The size at which a new segment is begun, in bytes.";
    "segment.index.bytes" Check::Int(4, i32::MAX), Some("10485760"), ["log.index.size.max.bytes"]
        "The largest size of a segment's offset index, in bytes.";
    "segment.jitter.ms" Check::Long(0, MAX), Some("0"), ["log.roll.jitter.ms", "log.roll.jitter.hours" * HOUR_MS]
        "Kept for tools; segments of one broker's disk are not spread in time.";
    "segment.ms" Check::Long(1, MAX), Some("604800000"), ["log.roll.ms", "log.roll.hours" * HOUR_MS]
        "The age at which a new segment is begun, in milliseconds.";
    "unclean.leader.election.enable" Check::Bool, Some("false"), ["unclean.leader.election.enable"]
        "Kept for tools; a partition has one replica and no election.";
};
