//! What was set on a topic, and what its log goes by.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::engine::Refusal;
use crate::engine::catalog::describe::ConfigSource;
use crate::engine::catalog::keys::{KEYS, Parsed, TopicKey, list_items, topic_key};
use crate::engine::catalog::{BrokerLevels, Refused};

#[cfg(test)]
mod tests;

/// Longest value a setting may have, in characters.
const MAX_VALUE_CHARS: usize = 32_767;

/// The settings given to a topic, as text, as given. What was not given is not here: it follows the broker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicSettings {
    given: BTreeMap<String, String>,
}

/// How old records leave a log (`cleanup.policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// Whole segments go by age and size.
    Delete,
    /// Records go when a newer one has their key.
    Compact,
    /// Both.
    CompactAndDelete,
    /// Nothing ever goes.
    Never,
}

impl Cleanup {
    /// Whether segments go by age and size.
    #[must_use]
    pub fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::CompactAndDelete)
    }

    /// Whether records go when a newer one has their key.
    #[must_use]
    pub fn compacts(self) -> bool {
        matches!(self, Self::Compact | Self::CompactAndDelete)
    }
}

/// Whose clock a record's timestamp is of (`message.timestamp.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's.
    CreateTime,
    /// The broker's, at the append.
    LogAppendTime,
}

/// The settings a partition's log acts by, each with its value in effect.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSettings {
    /// `cleanup.policy`.
    pub cleanup: Cleanup,
    /// `retention.ms`; none for ever.
    pub retention_ms: Option<i64>,
    /// `retention.bytes`; none for no limit.
    pub retention_bytes: Option<i64>,
    /// `segment.bytes`, or `internal.segment.bytes` where that is given.
    pub segment_bytes: i32,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: i32,
    /// `index.interval.bytes`.
    pub index_interval_bytes: i32,
    /// `max.message.bytes`: of a batch as it comes.
    pub max_message_bytes: i32,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio`, from 0 to 1.
    pub min_cleanable_dirty_ratio: f64,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: i64,
}

/// One level at which a setting has a value.
pub(super) struct Level<'a> {
    pub(super) source: ConfigSource,
    /// The setting's name at that level.
    pub(super) name: &'static str,
    /// Its text there, in that name's unit.
    pub(super) text: Cow<'a, str>,
    /// The value it gives the topic.
    pub(super) parsed: Parsed,
}

impl TopicSettings {
    /// The settings of a new topic, or the complete new set of an old one. The last of two values of one key
    /// counts.
    ///
    /// # Errors
    /// 40 INVALID_CONFIG: no value, a key nobody knows, a value that is not valid, or two that contradict (M-223).
    pub fn of(given: &[(String, Option<String>)], levels: &BrokerLevels) -> Result<Self, Refused> {
        let mut settings = Self::default();
        for (name, value) in given {
            let Some(value) = value else {
                return Err(invalid(format!("Null value not supported for topic configs: {}", excerpt(name))));
            };
            settings = settings.set(name, value)?;
        }
        settings.check_whole(levels)?;
        Ok(settings)
    }

    /// Settings as they were stored: what is no longer valid among them has no effect.
    pub(super) fn stored(given: BTreeMap<String, String>) -> Self {
        Self { given }
    }

    /// What was given, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.given.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The text given for this key.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }

    pub(super) fn set(mut self, name: &str, value: &str) -> Result<Self, Refused> {
        let key = known(name)?;
        check_length(name, value)?;
        key.check
            .parse(value)
            .map_err(|why| invalid(format!("Invalid value {} for configuration {name}: {why}", excerpt(value))))?;
        self.given.insert(name.to_owned(), value.to_owned());
        Ok(self)
    }

    pub(super) fn unset(mut self, name: &str) -> Self {
        self.given.remove(name);
        self
    }

    /// Checks what no single value shows: whether the values in effect contradict each other.
    pub(super) fn check_whole(&self, levels: &BrokerLevels) -> Result<(), Refused> {
        let least = self.long("min.compaction.lag.ms", levels);
        let most = self.long("max.compaction.lag.ms", levels);
        if least > most {
            return Err(invalid(format!(
                "The setting min.compaction.lag.ms ({least}) is above max.compaction.lag.ms ({most})"
            )));
        }
        Ok(())
    }

    /// What the topic's logs act by: what was given, else what the broker says, else Kafka's default.
    #[must_use]
    pub fn in_effect(&self, levels: &BrokerLevels) -> LogSettings {
        LogSettings {
            cleanup: self.cleanup(levels),
            retention_ms: Some(self.long("retention.ms", levels)).filter(|ms| *ms >= 0),
            retention_bytes: Some(self.long("retention.bytes", levels)).filter(|bytes| *bytes >= 0),
            segment_bytes: match self.value("internal.segment.bytes", levels) {
                Some(small) => small.int(),
                None => self.int("segment.bytes", levels),
            },
            segment_ms: self.long("segment.ms", levels),
            segment_index_bytes: self.int("segment.index.bytes", levels),
            index_interval_bytes: self.int("index.interval.bytes", levels),
            max_message_bytes: self.int("max.message.bytes", levels),
            timestamp_type: self.timestamp_type(levels),
            timestamp_before_max_ms: self.long("message.timestamp.before.max.ms", levels),
            timestamp_after_max_ms: self.long("message.timestamp.after.max.ms", levels),
            delete_retention_ms: self.long("delete.retention.ms", levels),
            min_compaction_lag_ms: self.long("min.compaction.lag.ms", levels),
            max_compaction_lag_ms: self.long("max.compaction.lag.ms", levels),
            min_cleanable_dirty_ratio: self.value("min.cleanable.dirty.ratio", levels).map_or(0.5, |v| v.double()),
            file_delete_delay_ms: self.long("file.delete.delay.ms", levels),
        }
    }

    fn cleanup(&self, levels: &BrokerLevels) -> Cleanup {
        let items = list_items(&self.text("cleanup.policy", levels));
        let has = |policy: &str| items.iter().any(|item| item == policy);
        match (has("compact"), has("delete")) {
            (true, true) => Cleanup::CompactAndDelete,
            (true, false) => Cleanup::Compact,
            (false, true) => Cleanup::Delete,
            (false, false) => Cleanup::Never,
        }
    }

    /// Every level at which the key has a valid value, the one in effect first.
    pub(super) fn levels<'a>(&'a self, key: &'static TopicKey, levels: &'a BrokerLevels) -> Vec<Level<'a>> {
        let mut found = Vec::new();
        if let Some(text) = self.given.get(key.name)
            && let Ok(parsed) = key.check.parse(text)
        {
            found.push(Level { source: ConfigSource::Topic, name: key.name, text: Cow::Borrowed(text), parsed });
        }
        for (source, given) in levels.highest_first() {
            for behind in key.behind {
                if let Some(text) = given.get(behind.name)
                    && let Ok(parsed) = behind.parse(key, text)
                {
                    found.push(Level { source, name: behind.name, text: Cow::Borrowed(text), parsed });
                }
            }
        }
        if let Some(behind) = key.behind.last()
            && let Some(text) = behind.default_text(key)
            && let Ok(parsed) = behind.parse(key, &text)
        {
            found.push(Level { source: ConfigSource::Default, name: behind.name, text, parsed });
        }
        found
    }

    /// The value in effect; none for a key that has no default and was not given.
    pub(super) fn value(&self, name: &str, levels: &BrokerLevels) -> Option<Parsed> {
        let key = topic_key(name)?;
        match self.levels(key, levels).into_iter().next() {
            Some(level) => Some(level.parsed),
            None => key.check.parse(key.default?).ok(),
        }
    }

    // A name that the table lacks would read as 0 or empty; the test of the defaults names every field.

    fn long(&self, name: &str, levels: &BrokerLevels) -> i64 {
        self.value(name, levels).map_or(0, |value| value.long())
    }

    fn int(&self, name: &str, levels: &BrokerLevels) -> i32 {
        self.value(name, levels).map_or(0, |value| value.int())
    }

    pub(super) fn text(&self, name: &str, levels: &BrokerLevels) -> String {
        self.value(name, levels).map_or_else(String::new, |value| value.text())
    }

    fn timestamp_type(&self, levels: &BrokerLevels) -> TimestampType {
        match self.text("message.timestamp.type", levels).as_str() {
            "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        }
    }

    /// The keys that were given but that nobody knows any more.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        self.given.keys().map(String::as_str).filter(|name| topic_key(name).is_none())
    }

    /// The keys to show: all known ones that have a value.
    pub(super) fn shown(&self) -> impl Iterator<Item = &'static TopicKey> {
        KEYS.iter().filter(|key| key.default.is_some() || self.given.contains_key(key.name))
    }
}

/// The key, or what an unknown one is told.
pub(super) fn known(name: &str) -> Result<&'static TopicKey, Refused> {
    topic_key(name).ok_or_else(|| invalid(format!("Unknown topic config name: {}", excerpt(name))))
}

///
pub(super) fn check_length(name: &str, value: &str) -> Result<(), Refused> {
    if value.chars().count() <= MAX_VALUE_CHARS {
        return Ok(());
    }
    let name = excerpt(name);
    Err(invalid(format!("The value of configuration {name} is longer than {MAX_VALUE_CHARS} characters")))
}

pub(super) fn invalid(message: String) -> Refused {
    Refused::new(Refusal::InvalidConfig, message)
}

/// The start of a client's text, for a message that has to fit an answer whatever the text was.
pub(super) fn excerpt(text: &str) -> &str {
    const SHOWN_CHARS: usize = 200;
    text.char_indices().nth(SHOWN_CHARS).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}
