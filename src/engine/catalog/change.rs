//! Whether what a request wants to be set otherwise may be. Only topics' settings change at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::Refusal;
use crate::engine::catalog::create::no_such_topic;
use crate::engine::catalog::describe::{ResourceKind, check_own_id};
use crate::engine::catalog::settings::{excerpt, invalid};
use crate::engine::catalog::{AlterOp, Alteration, Catalog, Defaults, Refused, Topic, TopicSettings, names};

#[cfg(test)]
mod tests;

/// One resource of an AlterConfigs or IncrementalAlterConfigs request, as the client says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeConfigs {
    /// The number of its kind.
    pub kind: i8,
    /// Its name.
    pub name: String,
    /// What is wanted.
    pub change: Change,
}

/// What is to become of a resource's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// IncrementalAlterConfigs: of each key the number of an operation, and a value.
    Keys(Vec<(String, i8, Option<String>)>),
    /// AlterConfigs: the keys with their values are the complete new set.
    All(Vec<(String, Option<String>)>),
}

/// A topic and its new settings; none for a resource of which nothing changes.
type Changed = Option<(Arc<Topic>, TopicSettings)>;

impl Catalog {
    /// Judges a whole request: one result per resource, in its order.
    #[must_use]
    pub fn plan_change(&self, resources: &[ChangeConfigs], defaults: &Defaults) -> Vec<Result<Changed, Refused>> {
        let mut times: BTreeMap<(i8, &str), usize> = BTreeMap::new();
        for resource in resources {
            let count = times.entry((resource.kind, &resource.name)).or_default();
            *count = count.saturating_add(1);
        }
        let judged = resources.iter().map(|resource| {
            if times.get(&(resource.kind, &resource.name)).is_some_and(|count| *count > 1) {
                return Err(refused("Each resource must appear at most once."));
            }
            self.check_change(resource, defaults)
        });
        judged.collect()
    }

    fn check_change(&self, resource: &ChangeConfigs, defaults: &Defaults) -> Result<Changed, Refused> {
        let ChangeConfigs { kind, name, change } = resource;
        let unknown = || refused(format!("The resource type {kind} is not known."));
        match ResourceKind::from_code(*kind).ok_or_else(unknown)? {
            ResourceKind::Topic => self.check_topic(name, change, defaults).map(Some),
            ResourceKind::Broker => {
                if !name.is_empty() {
                    check_own_id(name, defaults.node_id)?;
                }
                check_broker(&change.asked()?).map(|()| None)
            }
            ResourceKind::BrokerLogger => {
                check_own_id(name, defaults.node_id)?;
                check_logger(change).map(|()| None)
            }
            ResourceKind::ClientMetrics | ResourceKind::Group if name.is_empty() => {
                Err(refused("The resource has no name."))
            }
            ResourceKind::ClientMetrics => check_settingless(&change.asked()?, Refusal::InvalidRequest).map(|()| None),
            ResourceKind::Group => check_settingless(&change.asked()?, Refusal::InvalidConfig).map(|()| None),
        }
    }

    /// The values are judged before it is asked whether there is the topic.
    fn check_topic(
        &self,
        name: &str,
        change: &Change,
        defaults: &Defaults,
    ) -> Result<(Arc<Topic>, TopicSettings), Refused> {
        if name.is_empty() {
            return Err(refused("The resource has no name."));
        }
        names::check_name(name).map_err(|bad| Refused::new(Refusal::InvalidTopic, bad.to_string()))?;
        let topic = self.topic(name);
        let settings = match change {
            Change::Keys(_) => {
                let before = topic.map(|topic| topic.settings.clone()).unwrap_or_default();
                before.altered(&change.asked()?, &defaults.levels)?
            }
            Change::All(given) => TopicSettings::replaced(given, &defaults.levels)?,
        };
        let topic = topic.ok_or_else(|| no_such_topic(name))?;
        Ok((Arc::clone(topic), settings))
    }
}

impl Change {
    /// The operations asked for, understood; a complete set is so many values to set.
    fn asked(&self) -> Result<Vec<Alteration>, Refused> {
        let mut asked = Vec::new();
        let mut named = BTreeSet::new();
        for (key, code, value) in self.entries() {
            if !named.insert(key) {
                return Err(refused(format!("The config {} is named twice.", excerpt(key))));
            }
            let op = AlterOp::from_code(code, value.map(str::to_owned))?;
            asked.push(Alteration { key: key.to_owned(), op });
        }
        Ok(asked)
    }

    fn entries(&self) -> Vec<(&str, i8, Option<&str>)> {
        const SET: i8 = 0;
        match self {
            Self::Keys(keys) => keys.iter().map(|(key, op, value)| (key.as_str(), *op, value.as_deref())).collect(),
            Self::All(given) => given.iter().map(|(key, value)| (key.as_str(), SET, value.as_deref())).collect(),
        }
    }
}

/// The broker's own settings are those of its configuration until it is started with another one. Nothing
/// was ever set otherwise at run time, so to take that back is fine.
fn check_broker(asked: &[Alteration]) -> Result<(), Refused> {
    match asked.iter().find(|asked| asked.op != AlterOp::Delete) {
        None => Ok(()),
        Some(Alteration { key, .. }) => {
            let key = excerpt(key);
            Err(refused(format!(
                "Cannot update these configs dynamically: [{key}]; the broker's configuration says it."
            )))
        }
    }
}

/// There are no loggers, so none can be set.
fn check_logger(change: &Change) -> Result<(), Refused> {
    match change {
        Change::All(_) => Err(refused("Loggers are set one by one.")),
        Change::Keys(_) => match change.asked()?.first() {
            None => Ok(()),
            Some(Alteration { op: AlterOp::Append(_) | AlterOp::Subtract(_), .. }) => {
                Err(refused("A logger's level is no list."))
            }
            Some(Alteration { key, op: AlterOp::Set(_) | AlterOp::Delete }) => {
                Err(invalid(format!("Logger {} does not exist!", excerpt(key))))
            }
        },
    }
}

/// Groups and client metrics subscriptions have no settings here; to take one back is fine, as for a topic.
fn check_settingless(asked: &[Alteration], unknown: Refusal) -> Result<(), Refused> {
    match asked.iter().find(|asked| asked.op != AlterOp::Delete) {
        None => Ok(()),
        Some(Alteration { key, .. }) => Err(Refused::new(unknown, format!("Unknown config name: {}", excerpt(key)))),
    }
}

fn refused(message: impl Into<String>) -> Refused {
    Refused::new(Refusal::InvalidRequest, message)
}
