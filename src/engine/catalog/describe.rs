//! Settings as DescribeConfigs shows them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::engine::Refusal;
use crate::engine::catalog::broker::{BROKER_KEYS, BrokerKey, all_behind};
use crate::engine::catalog::create::no_such_topic;
use crate::engine::catalog::keys::{Behind, TopicKey};
use crate::engine::catalog::settings::excerpt;
use crate::engine::catalog::{Catalog, Defaults, Refused, TopicSettings, names};

#[cfg(test)]
mod tests;

/// What a DescribeConfigs resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// 2: a topic, by name.
    Topic,
    /// 4: a broker, by node id; the empty name is all brokers' common settings.
    Broker,
    /// 8: a broker's loggers, by node id.
    BrokerLogger,
    /// 16: a client metrics subscription.
    ClientMetrics,
    /// 32: a group.
    Group,
}

impl ResourceKind {
    /// The kind of this number; none for a number that makes the whole request invalid.
    #[must_use]
    pub fn from_code(code: i8) -> Option<Self> {
        match code {
            2 => Some(Self::Topic),
            4 => Some(Self::Broker),
            8 => Some(Self::BrokerLogger),
            16 => Some(Self::ClientMetrics),
            32 => Some(Self::Group),
            _ => None,
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigSource {
    /// 0: nobody knows the key.
    Unknown,
    /// 1: given to the topic.
    Topic,
    /// 2: set at run time for this broker.
    DynamicBroker,
    /// 3: set at run time for all brokers.
    DynamicDefaultBroker,
    /// 4: the broker's configuration.
    StaticBroker,
    /// 5: nobody set it.
    Default,
}

impl ConfigSource {
    /// Kafka's number of it.
    #[must_use]
    pub fn code(self) -> i8 {
        match self {
            Self::Unknown => 0,
            Self::Topic => 1,
            Self::DynamicBroker => 2,
            Self::DynamicDefaultBroker => 3,
            Self::StaticBroker => 4,
            Self::Default => 5,
        }
    }
}

/// What kind of value a key has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each variant is Kafka's own name of the type")]
pub enum ConfigType {
    Unknown,
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    List,
}

impl ConfigType {
    /// Kafka's number of it.
    #[must_use]
    pub fn code(self) -> i8 {
        match self {
            Self::Unknown => 0,
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
        }
    }
}

/// What is shown of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigValue {
    /// The value as it was understood.
    Text(String),
    /// The key has no value.
    Absent,
    /// The value might be a secret: the answer says sensitive and gives none.
    Secret,
}

/// A level at which a key has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synonym {
    /// The key's name at that level.
    pub name: String,
    /// Its value there, in that name's unit.
    pub value: String,
    /// The level.
    pub source: ConfigSource,
}

/// One line of a DescribeConfigs answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The key.
    pub name: String,
    /// Its value in effect.
    pub value: ConfigValue,
    /// Where that comes from.
    pub source: ConfigSource,
    /// Whether only a restart can change it.
    pub read_only: bool,
    /// All levels at which it has a value, the one in effect first.
    pub synonyms: Vec<Synonym>,
    /// The kind of value.
    pub kind: ConfigType,
    /// What it means.
    pub documentation: Option<Cow<'static, str>>,
}

/// The keys that are asked for: all of them when none are named, whether by no list or an empty one.
#[derive(Clone, Copy)]
struct Wanted<'a>(Option<&'a [String]>);

impl Wanted<'_> {
    fn has(self, name: &str) -> bool {
        match self.0 {
            None | Some([]) => true,
            Some(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

impl Catalog {
    /// The settings of one resource, sorted by key. `keys` that do not exist are silently absent.
    ///
    /// # Errors
    /// 17 or 3 for a topic, 42 for another resource that there is not.
    pub fn describe(
        &self,
        kind: ResourceKind,
        name: &str,
        keys: Option<&[String]>,
        defaults: &Defaults,
    ) -> Result<Vec<ConfigEntry>, Refused> {
        match kind {
            ResourceKind::Topic => {
                names::check_name(name).map_err(|bad| Refused::new(Refusal::InvalidTopic, bad.to_string()))?;
                let topic = self.topic(name).ok_or_else(|| no_such_topic(name))?;
                Ok(topic.settings.describe(keys, defaults))
            }
            ResourceKind::Broker if name.is_empty() => Ok(describe_all_brokers(Wanted(keys), defaults)),
            ResourceKind::Broker => {
                check_own_id(name, defaults.node_id)?;
                Ok(describe_broker(Wanted(keys), defaults))
            }
            // The log level is one for the whole process and not a client's to see or set: there are no loggers.
            ResourceKind::BrokerLogger => check_own_id(name, defaults.node_id).map(|()| Vec::new()),
            // Neither has settings of its own here. Any name is allowed, as Kafka allows it, and shows none.
            ResourceKind::ClientMetrics | ResourceKind::Group if name.is_empty() => {
                Err(Refused::new(Refusal::InvalidRequest, "The resource has no name."))
            }
            ResourceKind::ClientMetrics | ResourceKind::Group => Ok(Vec::new()),
        }
    }
}

pub(super) fn check_own_id(name: &str, node_id: i32) -> Result<(), Refused> {
    if name.parse() == Ok(node_id) {
        return Ok(());
    }
    let message = format!("This broker's id is {node_id}, not '{}'.", excerpt(name));
    Err(Refused::new(Refusal::InvalidRequest, message))
}

impl TopicSettings {
    /// All settings of a topic with these given, sorted by key; also what CreateTopics answers (M-226).
    #[must_use]
    pub fn describe(&self, keys: Option<&[String]>, defaults: &Defaults) -> Vec<ConfigEntry> {
        let wanted = Wanted(keys);
        let known = self.shown().filter(|key| wanted.has(key.name)).map(|key| self.describe_key(key, defaults));
        let unknown = self.unknown().filter(|name| wanted.has(name)).map(describe_unknown);
        let mut entries: Vec<_> = known.chain(unknown).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    fn describe_key(&self, key: &'static TopicKey, defaults: &Defaults) -> ConfigEntry {
        let levels = self.levels(key, &defaults.levels);
        let synonyms: Vec<_> = levels
            .into_iter()
            .map(|level| Synonym {
                name: level.name.to_owned(),
                // A topic's own level is shown as understood; another is shown as it stands there.
                value: if level.source == ConfigSource::Topic { level.parsed.text() } else { level.text.into_owned() },
                source: level.source,
            })
            .collect();
        let value = self.value(key.name, &defaults.levels);
        ConfigEntry {
            name: key.name.to_owned(),
            value: value.map_or(ConfigValue::Absent, |value| ConfigValue::Text(value.text())),
            source: source_of(&synonyms),
            read_only: false,
            synonyms,
            kind: key.check.kind(),
            documentation: Some(Cow::Borrowed(key.doc)),
        }
    }
}

fn source_of(synonyms: &[Synonym]) -> ConfigSource {
    synonyms.first().map_or(ConfigSource::Default, |synonym| synonym.source)
}

/// A key that was valid when it was stored. Its value is not shown: nobody knows what it is.
fn describe_unknown(name: &str) -> ConfigEntry {
    ConfigEntry {
        name: name.to_owned(),
        value: ConfigValue::Secret,
        source: ConfigSource::Topic,
        read_only: false,
        synonyms: Vec::new(),
        kind: ConfigType::Unknown,
        documentation: None,
    }
}

/// Everything of this broker: what stands behind topics' settings, and what only a restart changes.
fn describe_broker(wanted: Wanted<'_>, defaults: &Defaults) -> Vec<ConfigEntry> {
    let mut entries = Vec::new();
    for key in BROKER_KEYS.iter().filter(|key| wanted.has(key.name)) {
        entries.extend(describe_broker_key(key, defaults));
    }
    for (key, behind) in all_behind().filter(|(_, behind)| wanted.has(behind.name)) {
        entries.push(describe_behind(key, behind, defaults));
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

/// Only what was set at run time for all brokers.
fn describe_all_brokers(wanted: Wanted<'_>, defaults: &Defaults) -> Vec<ConfigEntry> {
    let given: BTreeSet<&str> = defaults.levels.dynamic_default.keys().map(String::as_str).collect();
    let set = all_behind().filter(|(_, behind)| given.contains(behind.name) && wanted.has(behind.name));
    let mut entries: Vec<_> = set
        .map(|(key, behind)| {
            let mut entry = describe_behind(key, behind, defaults);
            entry.synonyms.retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBroker);
            entry.source = ConfigSource::DynamicDefaultBroker;
            if let Some(synonym) = entry.synonyms.first() {
                entry.value = ConfigValue::Text(synonym.value.clone());
            }
            entry
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

fn describe_behind(key: &'static TopicKey, behind: &'static Behind, defaults: &Defaults) -> ConfigEntry {
    let mut synonyms = broker_synonyms(behind.name, defaults);
    let is_last = key.behind.last().is_some_and(|last| last.name == behind.name);
    if let Some(text) = behind.default_text(key).filter(|_| is_last) {
        let value = text.into_owned();
        synonyms.push(Synonym { name: behind.name.to_owned(), value, source: ConfigSource::Default });
    }
    ConfigEntry {
        name: behind.name.to_owned(),
        value: value_of(&synonyms),
        source: source_of(&synonyms),
        // The broker's configuration says it, and is read at a start.
        read_only: true,
        synonyms,
        kind: if behind.unit == 1 { key.check.kind() } else { ConfigType::Int },
        documentation: Some(Cow::Owned(format!("What topics get that do not set {}. {}", key.name, key.doc))),
    }
}

/// None for a fact of a start that nobody stated.
fn describe_broker_key(key: &BrokerKey, defaults: &Defaults) -> Option<ConfigEntry> {
    let mut synonyms = broker_synonyms(key.name, defaults);
    let own = match key.name {
        "broker.id" | "node.id" => Some(defaults.node_id),
        "num.partitions" => Some(defaults.partitions),
        _ => None,
    };
    if let Some(number) = own {
        let (name, value) = (key.name.to_owned(), number.to_string());
        synonyms = vec![Synonym { name, value, source: ConfigSource::StaticBroker }];
    }
    if let Some(default) = key.default {
        let (name, value) = (key.name.to_owned(), default.to_owned());
        synonyms.push(Synonym { name, value, source: ConfigSource::Default });
    }
    if synonyms.is_empty() {
        return None;
    }
    Some(ConfigEntry {
        name: key.name.to_owned(),
        value: value_of(&synonyms),
        source: source_of(&synonyms),
        read_only: true,
        synonyms,
        kind: key.kind,
        documentation: Some(Cow::Borrowed(key.doc)),
    })
}

fn broker_synonyms(name: &str, defaults: &Defaults) -> Vec<Synonym> {
    let levels = defaults.levels.highest_first();
    let found = levels.into_iter().filter_map(|(source, given)| {
        given.get(name).map(|value| Synonym { name: name.to_owned(), value: value.clone(), source })
    });
    found.collect()
}

fn value_of(synonyms: &[Synonym]) -> ConfigValue {
    synonyms.first().map_or(ConfigValue::Absent, |synonym| ConfigValue::Text(synonym.value.clone()))
}
