//! Whether a topic may be made, asked for (M-22x) or by being mentioned (M-21x).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::Refusal;
use crate::engine::catalog::settings::excerpt;
use crate::engine::catalog::{Catalog, Defaults, Refused, Replication, Topic, TopicSettings, names};

#[cfg(test)]
mod tests;

/// Most partitions that one request may make (M-221).
pub const MAX_NEW_PARTITIONS: i64 = 10_000;

/// One topic of a CreateTopics request, as the client says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTopic {
    /// The name it asks for, of whatever characters.
    pub name: String,
    /// How many partitions; none, or −1, for the broker's default (M-229).
    pub partitions: Option<i32>,
    /// How many replicas; −1 for the broker's default (M-229).
    pub replication_factor: i16,
    /// Brokers by partition number, in the request's order; empty to leave them to the broker.
    pub assignments: Vec<(i32, Vec<i32>)>,
    /// Settings with their values; a value that is none is refused.
    pub configs: Vec<(String, Option<String>)>,
    /// Whether only the answer is wanted (M-227). The rules are the same.
    pub validate_only: bool,
    /// Who makes it.
    pub by: Maker,
}

/// Who makes a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// A client.
    Client,
    /// The broker, for itself: such a topic may have a name that no client's has (M-211).
    Broker,
}

impl CreateTopic {
    /// A topic by its name alone, everything else by the broker's defaults (M-229).
    #[must_use]
    pub fn by_defaults(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            partitions: None,
            replication_factor: -1,
            assignments: Vec::new(),
            configs: Vec::new(),
            validate_only: false,
            by: Maker::Client,
        }
    }

    /// The topic that tools expect where groups are (M-211). Offsets are kept in `meta.db`, so nothing is ever written to it.
    #[must_use]
    pub fn offsets() -> Self {
        let compact = ("cleanup.policy".to_owned(), Some("compact".to_owned()));
        Self { partitions: Some(1), configs: vec![compact], by: Maker::Broker, ..Self::by_defaults(names::OFFSETS) }
    }

    /// How many partitions it asks for: those assigned, or the number it names, or the default.
    fn asked_partitions(&self, defaults: &Defaults) -> i64 {
        match (self.assignments.len(), self.partitions) {
            (0, None | Some(-1)) => i64::from(defaults.partitions),
            (0, Some(count)) => i64::from(count.max(0)),
            (assigned, _) => i64::try_from(assigned).unwrap_or(i64::MAX),
        }
    }
}

/// A topic that may be made: all that is still to draw are its id and its partitions' ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// How many partitions, at least 1.
    pub partitions: i32,
    /// The settings given to it.
    pub settings: TopicSettings,
}

/// Whether Metadata may make the topics it does not find: the broker's setting, the request's flag and the caller's
/// permission together (M-210).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoCreate {
    /// All three allow it.
    Allowed,
    /// One of them does not.
    Forbidden,
}

/// What a topic's name in a Metadata request leads to (M-206).
#[derive(Debug, Clone)]
pub enum Named {
    /// It exists.
    Exists(Arc<Topic>),
    /// It is to be made first, and then answered complete (M-213).
    Make(Planned),
}

impl Catalog {
    /// Judges a whole CreateTopics request: one result per name, in the order the names first appear (M-220). Two new
    /// names that collide with each other are not both made, unlike in Kafka (M-225). `permit` says whether
    /// the caller may create a topic of a name.
    pub fn plan_create(
        &self,
        specs: &[CreateTopic],
        permit: impl Fn(&str) -> Result<(), Refused>,
        defaults: &Defaults,
    ) -> Vec<(String, Result<Planned, Refused>)> {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for spec in specs {
            let count = times.entry(&spec.name).or_default();
            *count = count.saturating_add(1);
        }
        let asked = specs.iter().fold(0_i64, |sum, spec| sum.saturating_add(spec.asked_partitions(defaults)));
        let mut taken = BTreeSet::new();
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
                let planned = self.plan_one(spec, &permit, defaults);
                planned.and_then(|planned| take_name(&mut taken, &spec.name).map(|()| planned))
            };
            results.push((spec.name.clone(), result));
        }
        results
    }

    fn plan_one(
        &self,
        spec: &CreateTopic,
        permit: impl Fn(&str) -> Result<(), Refused>,
        defaults: &Defaults,
    ) -> Result<Planned, Refused> {
        check_not_reserved(self, spec)?;
        permit(&spec.name)?;
        self.check_create(spec, defaults)
    }

    /// Judges one topic by the rules that do not need the rest of its request or the caller's permissions (M-222 to
    /// M-224), in their order.
    ///
    /// # Errors
    /// The first rule that is not kept: 42, 17, 36, 40, 39, 38 or 37.
    pub fn check_create(&self, spec: &CreateTopic, defaults: &Defaults) -> Result<Planned, Refused> {
        check_not_reserved(self, spec)?;
        self.check_new_name(&spec.name)?;
        let settings = TopicSettings::of(&spec.configs, &defaults.levels)?;
        let partitions = if spec.assignments.is_empty() {
            check_counts(spec, defaults)?
        } else {
            check_assignments(spec, defaults)?
        };
        Ok(Planned { partitions, settings })
    }

    /// What a name in a Metadata request leads to (M-206, M-210, M-211). Topics of the broker's own are never made
    /// because a client mentions them.
    ///
    /// # Errors
    /// 17 for a name no topic can have or that collides, else 3 when there is none and none is to be made.
    pub fn named(&self, name: &str, auto_create: AutoCreate, defaults: &Defaults) -> Result<Named, Refusal> {
        if let Some(topic) = self.topic(name) {
            return Ok(Named::Exists(Arc::clone(topic)));
        }
        names::check_name(name).map_err(|_| Refusal::InvalidTopic)?;
        let reserved = names::is_internal(name) || name == names::CLUSTER_METADATA;
        match auto_create {
            AutoCreate::Allowed if !reserved => {}
            AutoCreate::Allowed | AutoCreate::Forbidden => return Err(Refusal::UnknownTopicOrPartition),
        }
        let planned = self.check_create(&CreateTopic::by_defaults(name), defaults);
        planned.map(Named::Make).map_err(|refused| refused.refusal)
    }

    /// M-222.
    fn check_new_name(&self, name: &str) -> Result<(), Refused> {
        names::check_name(name).map_err(|bad| Refused::new(Refusal::InvalidTopic, bad.to_string()))?;
        if self.topic(name).is_some() {
            return Err(Refused::new(Refusal::TopicAlreadyExists, format!("Topic '{name}' already exists.")));
        }
        match self.colliding(name) {
            Some(held) => Err(collides(name, held.as_str())),
            None => Ok(()),
        }
    }
}

/// Takes a name for this request, unless another name of it that collides with it is taken (M-225 R).
fn take_name(taken: &mut BTreeSet<String>, name: &str) -> Result<(), Refused> {
    if taken.insert(names::flattened(name)) { Ok(()) } else { Err(collides(name, "another topic of this request")) }
}

fn collides(name: &str, held: &str) -> Refused {
    let message = format!("Topic '{name}' collides with {held}: the names differ only in '.' and '_'.");
    Refused::new(Refusal::InvalidTopic, message)
}

pub(super) fn too_many_partitions(asked: i64) -> Refused {
    let message =
        format!("The request asks for {asked} new partitions; at most {MAX_NEW_PARTITIONS} are made at once.");
    Refused::new(Refusal::PolicyViolation, message)
}

/// Names that are the broker's own: Kafka's metadata log (M-221), and the internal topics when the broker has not made
/// them, since an ordinary topic of that name would be taken for what it is not.
fn check_not_reserved(catalog: &Catalog, spec: &CreateTopic) -> Result<(), Refused> {
    let name = spec.name.as_str();
    let kept = names::is_internal(name) && spec.by == Maker::Client && catalog.topic(name).is_none();
    let reserved = name == names::CLUSTER_METADATA || kept;
    if reserved {
        return Err(Refused::new(Refusal::InvalidRequest, format!("The topic name {name} is reserved.")));
    }
    Ok(())
}

/// Partitions and replicas as numbers (M-224, M-229, M-230).
fn check_counts(spec: &CreateTopic, defaults: &Defaults) -> Result<i32, Refused> {
    let factor = spec.replication_factor;
    if factor == 0 || factor < -1 {
        let message = format!("The replication factor {factor} is neither positive nor -1.");
        return Err(Refused::new(Refusal::InvalidReplicationFactor, message));
    }
    let partitions = match spec.partitions {
        None | Some(-1) => defaults.partitions,
        Some(count) if count > 0 => count,
        Some(count) => {
            let message = format!("The number of partitions {count} is neither positive nor -1.");
            return Err(Refused::new(Refusal::InvalidPartitions, message));
        }
    };
    if i64::from(partitions) > MAX_NEW_PARTITIONS {
        return Err(too_many_partitions(i64::from(partitions)));
    }
    match defaults.replication {
        Replication::Refuse if factor > 1 => {
            let message = format!(
                "Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot \
                 be reached because only 1 broker(s) are registered."
            );
            Err(Refused::new(Refusal::InvalidReplicationFactor, message))
        }
        Replication::Refuse | Replication::Clamp => Ok(partitions),
    }
}

/// Partitions with the brokers the client wants (M-224).
fn check_assignments(spec: &CreateTopic, defaults: &Defaults) -> Result<i32, Refused> {
    if spec.replication_factor != -1 {
        return Err(not_both("the replication factor"));
    }
    if !matches!(spec.partitions, None | Some(-1)) {
        return Err(not_both("the number of partitions"));
    }
    let mut numbers = BTreeSet::new();
    for (number, brokers) in &spec.assignments {
        if !numbers.insert(*number) {
            return Err(bad_assignment(format!("Partition {number} is assigned twice.")));
        }
        check_brokers(brokers, defaults.node_id)?;
    }
    // All different, so they are 0 to n - 1 when they count up from 0 without a gap.
    if (0..).zip(&numbers).any(|(expected, number)| expected != *number) {
        return Err(bad_assignment("The partitions assigned do not count up from 0 without a gap.".to_owned()));
    }
    i32::try_from(numbers.len()).map_err(|_| too_many_partitions(i64::MAX))
}

fn not_both(what: &str) -> Refused {
    let message = format!("An assignment of partitions was given, so {what} has to be -1.");
    Refused::new(Refusal::InvalidRequest, message)
}

fn bad_assignment(message: String) -> Refused {
    Refused::new(Refusal::InvalidReplicaAssignment, message)
}

/// The brokers of one partition: on a single node the list is that node, once (M-224).
pub(super) fn check_brokers(brokers: &[i32], node_id: i32) -> Result<(), Refused> {
    match brokers {
        [only] if *only == node_id => Ok(()),
        [] => Err(bad_assignment("A partition is assigned to no broker.".to_owned())),
        _ => match brokers.iter().find(|broker| **broker != node_id) {
            Some(unknown) => Err(bad_assignment(format!("The broker {unknown} is not registered."))),
            None => Err(bad_assignment(format!("A partition is assigned to broker {node_id} twice."))),
        },
    }
}

/// For a message about a name of whatever length.
pub(super) fn no_such_topic(name: &str) -> Refused {
    Refused::new(Refusal::UnknownTopicOrPartition, format!("The topic '{}' does not exist.", excerpt(name)))
}
