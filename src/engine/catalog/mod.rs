//! Topics and partitions: which exist, under which rules one is made, grown, set up and described.
//!
//! A [`Catalog`] is a value. Its owner makes the next one with [`Catalog::with`] or [`Catalog::without`], stores what
//! changed, and only then shares it; whoever still holds the old one reads a catalog that was true a moment ago.

mod alter;
mod broker;
mod change;
mod create;
mod describe;
mod grow;
mod keys;
mod names;
mod row;
mod settings;
mod shared_map;
mod topic;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::engine::{PartId, Refusal, TopicId, TopicName};
use shared_map::SharedMap;

pub use alter::{AlterOp, Alteration};
pub use broker::{BrokerLevels, Defaults, Replication};
pub use change::{Change, ChangeConfigs};
pub use create::{AutoCreate, CreateTopic, MAX_NEW_PARTITIONS, Maker, Named, Planned};
pub use describe::{ConfigEntry, ConfigSource, ConfigType, ConfigValue, ResourceKind, Synonym};
pub use grow::GrowTopic;
pub use names::{BadName, MAX_NAME_LENGTH, OFFSETS, check_name, is_internal};
pub use row::DamagedRow;
pub use settings::{Cleanup, LogSettings, TimestampType, TopicSettings};
pub use topic::{Topic, is_fit_topic_id};

/// A request about topics that was refused: the code, and what a person should read beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The Kafka error.
    pub refusal: Refusal,
    /// One sentence for the answer's ErrorMessage.
    pub message: String,
}

impl Refused {
    fn new(refusal: Refusal, message: impl Into<String>) -> Self {
        Self { refusal, message: message.into() }
    }
}

/// All topics at one moment. Copies share everything that did not change, so a copy of ten thousand topics is cheap.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    by_name: SharedMap<TopicName, Arc<Topic>>,
    by_id: SharedMap<TopicId, Arc<Topic>>,
    /// By id rather than by topic, so that a change of settings leaves it alone.
    parts: SharedMap<PartId, (TopicId, i32)>,
    /// From a name with every '.' written '_' to the topic that holds it (M-201).
    flattened: SharedMap<TopicName, TopicName>,
}

impl Catalog {
    /// The topic of this name.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    /// The topic of this id (M-202).
    #[must_use]
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    /// The topic a partition belongs to, and the partition's number in it.
    #[must_use]
    pub fn part(&self, part: PartId) -> Option<(&Arc<Topic>, i32)> {
        let (id, index) = self.parts.get(&part)?;
        Some((self.by_id.get(id)?, *index))
    }

    /// The id of partition `index` of the topic `name`; none when either does not exist.
    #[must_use]
    pub fn part_id(&self, name: &str, index: i32) -> Option<PartId> {
        self.topic(name)?.part(index)
    }

    /// All topics in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name.iter().map(|(_, topic)| topic)
    }

    /// The topics whose name is `name` or greater, in the order of their names (M-235).
    pub fn iter_from<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<Topic>> + use<'a> {
        self.by_name.iter_from(name).map(|(_, topic)| topic)
    }

    /// How many topics there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is no topic.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many partitions there are in all.
    #[must_use]
    pub fn partition_count(&self) -> usize {
        self.parts.len()
    }

    /// The catalog with this topic in it. A topic of the same name or the same id gives way, partitions and all.
    #[must_use]
    pub fn with(&self, topic: Topic) -> Self {
        let mut next = self.clone();
        next.put(Arc::new(topic));
        next
    }

    /// The catalog of these topics, for a start that reads thousands of them.
    pub fn of(topics: impl IntoIterator<Item = Topic>) -> Self {
        let mut catalog = Self::default();
        for topic in topics {
            catalog.put(Arc::new(topic));
        }
        catalog
    }

    /// The catalog without the topic of this name; the same one if there is none.
    #[must_use]
    pub fn without(&self, name: &TopicName) -> Self {
        let mut next = self.clone();
        if let Some(topic) = self.by_name.get(name) {
            next.drop_topic(topic);
        }
        next
    }

    fn put(&mut self, topic: Arc<Topic>) {
        if let Some(old) = self.by_name.get(&topic.name).cloned() {
            self.give_way(&old, &topic);
        }
        if let Some(old) = self.by_id.get(&topic.id).cloned() {
            self.give_way(&old, &topic);
        }
        for (index, part) in topic.numbered_parts() {
            if self.parts.get(&part) != Some(&(topic.id, index)) {
                self.parts.insert(part, (topic.id, index));
            }
        }
        self.flattened.insert(TopicName::from(names::flattened(topic.name.as_str())), topic.name.clone());
        self.by_id.insert(topic.id, Arc::clone(&topic));
        self.by_name.insert(topic.name.clone(), topic);
    }

    /// Takes the old topic out unless the new one is the same topic with no partition fewer: then it is only replaced.
    fn give_way(&mut self, old: &Topic, new: &Topic) {
        let continues = old.id == new.id && old.name == new.name && new.parts.starts_with(&old.parts);
        if !continues {
            self.drop_topic(old);
        }
    }

    fn drop_topic(&mut self, topic: &Topic) {
        self.by_name.remove(&topic.name);
        self.by_id.remove(&topic.id);
        for part in &topic.parts {
            self.parts.remove(part);
        }
        let flattened = names::flattened(topic.name.as_str());
        if self.flattened.get(flattened.as_str()) == Some(&topic.name) {
            self.flattened.remove(flattened.as_str());
        }
    }

    /// An existing topic other than `name` whose metrics would collide with its own (M-201).
    fn colliding(&self, name: &str) -> Option<&TopicName> {
        self.flattened.get(names::flattened(name).as_str()).filter(|held| held.as_str() != name)
    }
}
