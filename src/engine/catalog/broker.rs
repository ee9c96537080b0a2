//! What stands behind a topic's own settings: the broker's settings, at the levels Kafka knows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::engine::catalog::describe::{ConfigSource, ConfigType};
use crate::engine::catalog::keys::{Behind, KEYS, Parsed, TopicKey};

/// What the broker decides for a topic that does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defaults {
    /// Partitions of a topic that names no number (`num.partitions`).
    pub partitions: i32,
    /// This broker's node id, the only one there is (M-203).
    pub node_id: i32,
    /// What a replication factor above 1 gets (M-230).
    pub replication: Replication,
    /// The broker's settings under Kafka's names.
    pub levels: BrokerLevels,
}

/// What a client gets that asks one broker for more than one replica (M-230).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// 38 INVALID_REPLICATION_FACTOR, as Kafka answers.
    Refuse,
    /// One replica, and the answer says so.
    Clamp,
}

/// The broker's settings under Kafka's own names, by where they come from. Upper levels cover lower ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerLevels {
    /// Set at run time for this broker.
    pub dynamic: BTreeMap<String, String>,
    /// Set at run time for all brokers.
    pub dynamic_default: BTreeMap<String, String>,
    /// What the configuration says; also the facts of this start, such as `listeners`.
    pub stated: BTreeMap<String, String>,
}

impl BrokerLevels {
    /// The levels with what is given at each, highest first.
    pub(super) fn highest_first(&self) -> [(ConfigSource, &BTreeMap<String, String>); 3] {
        [
            (ConfigSource::DynamicBroker, &self.dynamic),
            (ConfigSource::DynamicDefaultBroker, &self.dynamic_default),
            (ConfigSource::StaticBroker, &self.stated),
        ]
    }

    /// Checks everything that stands behind a topic's settings, for a start that wants to say what is wrong.
    ///
    /// # Errors
    /// A sentence that names the setting, its value, and what it should be.
    pub fn check(&self) -> Result<(), String> {
        for (_, given) in self.highest_first() {
            for (key, behind) in all_behind() {
                if let Some(text) = given.get(behind.name) {
                    let name = behind.name;
                    let wrong = |why| format!("Invalid value {text} for configuration {name}: {why}");
                    behind.parse(key, text).map_err(wrong)?;
                }
            }
        }
        Ok(())
    }
}

/// Every broker setting behind a topic's, with the topic's.
pub(super) fn all_behind() -> impl Iterator<Item = (&'static TopicKey, &'static Behind)> {
    KEYS.iter().flat_map(|key| key.behind.iter().map(move |behind| (key, behind)))
}

impl Behind {
    /// The broker's text as a value of the topic's setting: hours and minutes become milliseconds.
    pub(super) fn parse(&self, key: &TopicKey, text: &str) -> Result<Parsed, String> {
        if self.unit == 1 {
            return key.check.parse(text);
        }
        let units: i64 = text.trim().parse().map_err(|_| "Not a number of type INT".to_owned())?;
        let millis = if units < 0 { -1 } else { units.saturating_mul(self.unit) };
        key.check.parse(&millis.to_string())
    }

    /// The default of the topic's setting, said in this one's unit.
    pub(super) fn default_text(&self, key: &TopicKey) -> Option<Cow<'static, str>> {
        let text = key.default?;
        if self.unit == 1 {
            return Some(Cow::Borrowed(text));
        }
        let millis: i64 = text.parse().ok()?;
        Some(Cow::Owned(millis.checked_div(self.unit)?.to_string()))
    }
}

/// A setting of the broker that only a restart changes (A-341, A-342 R).
pub(super) struct BrokerKey {
    pub(super) name: &'static str,
    pub(super) kind: ConfigType,
    /// None where only this start knows the value.
    pub(super) default: Option<&'static str>,
    pub(super) doc: &'static str,
}

const fn key(name: &'static str, kind: ConfigType, default: Option<&'static str>, doc: &'static str) -> BrokerKey {
    BrokerKey { name, kind, default, doc }
}

/// Those that tools look at, beside the ones behind a topic's settings, in the order of their names.
pub(super) static BROKER_KEYS: &[BrokerKey] = &[
    key("advertised.listeners", ConfigType::List, None, "The addresses that clients are told."),
    key(
        "auto.create.topics.enable",
        ConfigType::Boolean,
        Some("true"),
        "Whether Metadata makes a topic it is asked for.",
    ),
    key("broker.id", ConfigType::Int, None, "This broker's node id under its older name."),
    key("default.replication.factor", ConfigType::Int, Some("1"), "Replicas of a topic that names no number."),
    key("delete.topic.enable", ConfigType::Boolean, Some("true"), "Whether a client may delete topics."),
    key("group.initial.rebalance.delay.ms", ConfigType::Int, Some("3000"), "How long a new group waits for members."),
    key("group.max.session.timeout.ms", ConfigType::Int, Some("1800000"), "The longest session timeout of a member."),
    key("group.max.size", ConfigType::Int, Some("2147483647"), "The most members of one group."),
    key("group.min.session.timeout.ms", ConfigType::Int, Some("6000"), "The shortest session timeout of a member."),
    key("listeners", ConfigType::List, None, "The addresses that are bound."),
    key("log.dirs", ConfigType::List, None, "The directory of the data."),
    key("node.id", ConfigType::Int, None, "This broker's node id."),
    key("num.partitions", ConfigType::Int, None, "Partitions of a topic that names no number."),
    key("offset.metadata.max.bytes", ConfigType::Int, Some("4096"), "The longest metadata of a committed offset."),
    key("offsets.retention.minutes", ConfigType::Int, Some("10080"), "How long offsets of an empty group are kept."),
    key("offsets.topic.num.partitions", ConfigType::Int, Some("50"), "Partitions that groups are numbered over."),
    key("offsets.topic.replication.factor", ConfigType::Short, Some("1"), "Replicas of committed offsets."),
    key("process.roles", ConfigType::List, Some("broker,controller"), "One process is broker and controller."),
    key("producer.id.expiration.ms", ConfigType::Int, Some("86400000"), "How long an idle producer is remembered."),
    key("socket.request.max.bytes", ConfigType::Int, Some("104857600"), "The largest request that is read."),
    key("transaction.max.timeout.ms", ConfigType::Int, Some("900000"), "The longest timeout of a transaction."),
    key("transaction.state.log.min.isr", ConfigType::Int, Some("1"), "Replicas a transaction's state must reach."),
    key(
        "transaction.state.log.num.partitions",
        ConfigType::Int,
        Some("50"),
        "Partitions that transactional ids are numbered over.",
    ),
    key("transaction.state.log.replication.factor", ConfigType::Short, Some("1"), "Replicas of transactional state."),
    key(
        "transactional.id.expiration.ms",
        ConfigType::Int,
        Some("604800000"),
        "How long an idle transactional id is kept.",
    ),
];
