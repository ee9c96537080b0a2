//! Whether a topic may get more partitions (M-234), and whether it may go (M-232).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::catalog::create::{MAX_NEW_PARTITIONS, check_brokers, no_such_topic, too_many_partitions};
use crate::engine::catalog::{Catalog, Defaults, Refused, Topic};
use crate::engine::{PartId, Refusal, TopicId};

/// One topic of a CreatePartitions request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrowTopic {
    /// The topic's name.
    pub name: String,
    /// How many partitions it is to have in all.
    pub count: i32,
    /// The brokers of each new one; none to leave them to the broker.
    pub assignments: Option<Vec<Vec<i32>>>,
}

impl Catalog {
    /// Judges a whole CreatePartitions request: one result per name, in the order the names first appear, how many
    /// partitions the topic gets (M-234). What the request may make in all is limited as for new topics (M-221).
    #[must_use]
    pub fn plan_grow(&self, specs: &[GrowTopic], defaults: &Defaults) -> Vec<(String, Result<i32, Refused>)> {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for spec in specs {
            let count = times.entry(&spec.name).or_default();
            *count = count.saturating_add(1);
        }
        let added = |spec: &GrowTopic| {
            let held = self.topic(&spec.name)?.partition_count();
            Some(i64::from(spec.count.saturating_sub(held).max(0)))
        };
        let asked = specs.iter().filter_map(added).fold(0, i64::saturating_add);
        let mut results = Vec::new();
        for spec in specs {
            let Some(count) = times.remove(spec.name.as_str()) else {
                continue;
            };
            let result = if asked > MAX_NEW_PARTITIONS {
                Err(too_many_partitions(asked))
            } else if count > 1 {
                Err(Refused::new(Refusal::InvalidRequest, "Duplicate topic name."))
            } else {
                self.check_grow(&spec.name, spec.count, spec.assignments.as_deref(), defaults)
            };
            results.push((spec.name.clone(), result));
        }
        results
    }

    /// How many partitions a topic gets when it is to have `count`; `assignments` are the brokers of each new one.
    ///
    /// # Errors
    /// 3, 37, 39, or 44 for more at once than a request may make.
    pub fn check_grow(
        &self,
        name: &str,
        count: i32,
        assignments: Option<&[Vec<i32>]>,
        defaults: &Defaults,
    ) -> Result<i32, Refused> {
        let topic = self.topic(name).ok_or_else(|| no_such_topic(name))?;
        let held = topic.partition_count();
        let added = count.saturating_sub(held);
        if added == 0 {
            return Err(Refused::new(Refusal::InvalidPartitions, format!("Topic already has {held} partition(s).")));
        }
        if added < 0 {
            let message = format!("The topic {name} has {held} partition(s); {count} would not be an increase.");
            return Err(Refused::new(Refusal::InvalidPartitions, message));
        }
        if i64::from(added) > MAX_NEW_PARTITIONS {
            return Err(too_many_partitions(i64::from(added)));
        }
        let Some(assignments) = assignments else {
            return Ok(added);
        };
        if i32::try_from(assignments.len()) != Ok(added) {
            let message = format!("{added} partition(s) are added, but {} are assigned.", assignments.len());
            return Err(Refused::new(Refusal::InvalidReplicaAssignment, message));
        }
        assignments.iter().try_for_each(|brokers| check_brokers(brokers, defaults.node_id))?;
        Ok(added)
    }

    /// The topic a client wants to delete by name. The broker's own topics stay, unlike in Kafka (M-232 R).
    ///
    /// # Errors
    /// 3 when there is none, 42 when it is the broker's own.
    pub fn check_delete(&self, name: &str) -> Result<&Arc<Topic>, Refused> {
        deletable(self.topic(name).ok_or_else(|| no_such_topic(name))?)
    }

    /// The topic a client wants to delete by id (M-232).
    ///
    /// # Errors
    /// 100 when there is none, 42 when it is the broker's own.
    pub fn check_delete_by_id(&self, id: TopicId) -> Result<&Arc<Topic>, Refused> {
        let unknown = || Refused::new(Refusal::UnknownTopicId, "No topic has this id.");
        deletable(self.topic_by_id(id).ok_or_else(unknown)?)
    }
}

fn deletable(topic: &Arc<Topic>) -> Result<&Arc<Topic>, Refused> {
    if topic.is_internal() {
        let message = format!("The topic {} is the broker's own.", topic.name);
        return Err(Refused::new(Refusal::InvalidRequest, message));
    }
    Ok(topic)
}

impl Topic {
    /// The topic with these partitions behind those it has (M-234).
    #[must_use]
    pub fn grown(&self, added: impl IntoIterator<Item = PartId>) -> Self {
        let mut topic = self.clone();
        topic.parts.extend(added);
        topic
    }
}
