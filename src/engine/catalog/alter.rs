//! Changing what is set on a topic: key by key, or the whole set at once.

use std::collections::BTreeSet;

use crate::engine::Refusal;
use crate::engine::catalog::describe::ConfigType;
use crate::engine::catalog::keys::list_items;
use crate::engine::catalog::settings::{check_length, excerpt, invalid, known};
use crate::engine::catalog::{BrokerLevels, Refused, TopicSettings};

#[cfg(test)]
mod tests;

/// What to do with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterOp {
    /// Give it this value.
    Set(String),
    /// Take back what was given.
    Delete,
    /// Add the items of this list that are not there yet.
    Append(String),
    /// Take the items of this list away.
    Subtract(String),
}

/// A key and what to do with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alteration {
    /// The setting's name.
    pub key: String,
    /// What to do.
    pub op: AlterOp,
}

impl AlterOp {
    /// The operation of an IncrementalAlterConfigs entry: 0 SET, 1 DELETE, 2 APPEND, 3 SUBTRACT.
    ///
    /// # Errors
    /// 42 for another number, and for no value where one is needed.
    pub fn from_code(code: i8, value: Option<String>) -> Result<Self, Refused> {
        let value = || value.ok_or_else(|| Refused::new(Refusal::InvalidRequest, "A config value is missing."));
        match code {
            0 => value().map(Self::Set),
            1 => Ok(Self::Delete),
            2 => value().map(Self::Append),
            3 => value().map(Self::Subtract),
            _ => Err(Refused::new(Refusal::InvalidRequest, format!("The config operation {code} is not known."))),
        }
    }
}

impl TopicSettings {
    /// The settings after these changes: all of them or none.
    ///
    /// # Errors
    /// 42 for a key named twice; 40 for an unknown key, a list operation on what is no list, or a result that is not
    /// valid.
    pub fn altered(&self, changes: &[Alteration], levels: &BrokerLevels) -> Result<Self, Refused> {
        let mut named = BTreeSet::new();
        for change in changes {
            if !named.insert(change.key.as_str()) {
                let message = format!("The config {} is named twice.", excerpt(&change.key));
                return Err(Refused::new(Refusal::InvalidRequest, message));
            }
        }
        let mut next = self.clone();
        for Alteration { key, op } in changes {
            next = match op {
                AlterOp::Set(value) => next.set(key, value)?,
                // Also of a key nobody knows, so that a stale one can be cleaned away.
                AlterOp::Delete => next.unset(key),
                AlterOp::Append(items) => {
                    let list = appended(next.list(key, levels)?, &short_list(key, items)?);
                    next.set(key, &list.join(","))?
                }
                AlterOp::Subtract(items) => {
                    let gone: BTreeSet<_> = short_list(key, items)?.into_iter().collect();
                    let mut list = next.list(key, levels)?;
                    list.retain(|item| !gone.contains(item));
                    next.set(key, &list.join(","))?
                }
            };
        }
        next.check_whole(levels)?;
        Ok(next)
    }

    /// The complete new set of an AlterConfigs: what is not in it is taken back.
    ///
    /// # Errors
    /// 42 for a value that is none or a key named twice; 40 as for a new topic.
    pub fn replaced(given: &[(String, Option<String>)], levels: &BrokerLevels) -> Result<Self, Refused> {
        let mut named = BTreeSet::new();
        for (key, value) in given {
            if value.is_none() {
                let message = format!("The config {} has no value.", excerpt(key));
                return Err(Refused::new(Refusal::InvalidRequest, message));
            }
            if !named.insert(key.as_str()) {
                let message = format!("The config {} is named twice.", excerpt(key));
                return Err(Refused::new(Refusal::InvalidRequest, message));
            }
        }
        Self::of(given, levels)
    }

    /// The items that a list key has now: what was given, else what stands behind it.
    fn list(&self, key: &str, levels: &BrokerLevels) -> Result<Vec<String>, Refused> {
        match known(key)?.check.kind() {
            ConfigType::List => Ok(list_items(&self.text(key, levels))),
            ConfigType::Boolean
            | ConfigType::String
            | ConfigType::Int
            | ConfigType::Short
            | ConfigType::Long
            | ConfigType::Double
            | ConfigType::Unknown => {
                Err(invalid(format!("The config {key} is no list, so nothing can be added to it or taken from it")))
            }
        }
    }
}

/// The items of a list that is no longer than a value may be.
fn short_list(key: &str, items: &str) -> Result<Vec<String>, Refused> {
    check_length(key, items)?;
    Ok(list_items(items))
}

/// The list with those of the items behind it that it has not yet.
fn appended(mut list: Vec<String>, items: &[String]) -> Vec<String> {
    let mut present: BTreeSet<String> = list.iter().cloned().collect();
    for item in items {
        if present.insert(item.clone()) {
            list.push(item.clone());
        }
    }
    list
}
