//! Takes out of an answer what differs from run to run, and says where that was.
//!
//! A value that was kept under a name is written as `$name`: that a producer id is *the same* as before is part of the
//! recording. Any other of its kind is written as `<kind>`.

use std::collections::BTreeMap;

use crate::tree::Tree;

/// Which fields hold what a broker makes up, and what that is called.
const KINDS: &[(&str, &[&str])] = &[
    ("producer id", &["ProducerId", "producerId"]),
    ("member id", &["MemberId", "Leader"]),
    ("topic id", &["TopicId"]),
    ("cluster id", &["ClusterId"]),
    ("node", &["NodeId", "LeaderId", "ControllerId", "BrokerId", "ReplicaNodes", "IsrNodes", "PreferredReadReplica"]),
    ("host", &["Host", "ClientHost"]),
    ("port", &["Port"]),
    ("leader epoch", &["LeaderEpoch", "partitionLeaderEpoch"]),
    ("coordinator epoch", &["CoordinatorEpoch", "coordinatorEpoch"]),
    ("session", &["SessionId"]),
    ("text", &["ErrorMessage", "BatchIndexErrorMessage", "Documentation"]),
    ("bytes", &["PartitionSize", "TotalBytes", "UsableBytes"]),
    ("directory", &["LogDir"]),
];

/// Fields by which a list is put in order: that of topics, partitions and groups in an answer means nothing.
const KEYS: &[&str] = &[
    "Name",
    "Topic",
    "GroupId",
    "TransactionalId",
    "ResourceName",
    "Key",
    "PartitionIndex",
    "Index",
    "Partition",
    "ApiKey",
    "FirstOffset",
    "ProducerId",
    "MemberId",
];

/// A list whose order says what covers what.
const RANKED: &str = "Synonyms";

/// Lists of numbers that are sets.
const SETS: &[&str] = &["Partitions", "PartitionIndexes"];

/// What a time may be away from now to be taken for one that was read from a clock.
const NEAR_MS: i64 = 24 * 3_600_000;

/// What an answer's values are called in one run of one script.
#[derive(Debug)]
pub(crate) struct Names {
    /// What `~` stands for in this run.
    pub(crate) suffix: String,
    pub(crate) started_ms: i64,
    /// Kept values, in the order in which their names were first used.
    kept: Vec<(String, &'static str, Tree)>,
}

fn kind_of(field: &str) -> Option<&'static str> {
    KINDS.iter().find(|(_, fields)| fields.contains(&field)).map(|(kind, _)| *kind)
}

/// Values that mean "none" and are the same everywhere.
fn is_nothing(kind: &str, value: &Tree) -> bool {
    match value {
        Tree::Null => true,
        Tree::Int(0) => kind == "session",
        Tree::Int(number) => *number < 0,
        Tree::Text(text) => text.chars().all(|c| matches!(c, '0' | '-')),
        Tree::Bool(_) | Tree::List(_) | Tree::Fields(_) => false,
    }
}

impl Names {
    pub(crate) fn new(suffix: String, started_ms: i64) -> Self {
        Self { suffix, started_ms, kept: Vec::new() }
    }

    pub(crate) fn keep(&mut self, name: &str, path: &str, value: Tree) {
        let kind = path.rsplit('/').find_map(kind_of).unwrap_or_default();
        match self.kept.iter_mut().find(|(own, _, _)| own == name) {
            Some(known) => *known = (name.to_owned(), kind, value),
            None => self.kept.push((name.to_owned(), kind, value)),
        }
    }

    fn kept(&self, name: &str) -> Option<&Tree> {
        self.kept.iter().find(|(own, _, _)| own == name).map(|(_, _, value)| value)
    }

    /// What `$name`, `$name+1` and `~` in a script stand for.
    pub(crate) fn resolve(&self, tree: &Tree) -> Result<Tree, String> {
        Ok(match tree {
            Tree::Text(text) if text.starts_with('$') => self.value_of(text)?,
            Tree::Text(text) => Tree::Text(text.replace('~', &self.suffix)),
            Tree::List(list) => Tree::List(list.iter().map(|item| self.resolve(item)).collect::<Result<_, _>>()?),
            Tree::Fields(fields) => {
                let resolved = |(name, value): &(String, Tree)| Ok((name.clone(), self.resolve(value)?));
                Tree::Fields(fields.iter().map(resolved).collect::<Result<_, String>>()?)
            }
            Tree::Null | Tree::Bool(_) | Tree::Int(_) => tree.clone(),
        })
    }

    fn value_of(&self, text: &str) -> Result<Tree, String> {
        let unknown = || format!("nothing is kept as {text}");
        if text == "$now" {
            return Ok(Tree::Int(self.started_ms));
        }
        let name = text.trim_start_matches('$');
        let at = name.find(['+', '-']).unwrap_or(name.len());
        let (name, change) = name.split_at(at);
        let change: i64 = if change.is_empty() { 0 } else { change.parse().map_err(|_| unknown())? };
        match self.kept(name).ok_or_else(unknown)? {
            Tree::Int(number) => Ok(Tree::Int(number + change)),
            other => Ok(other.clone()),
        }
    }

    /// The answer as it is recorded, and the paths of what was changed.
    pub(crate) fn normal(&self, answer: &Tree, mine: bool) -> (Tree, Vec<String>) {
        let mut tree = self.named("", answer);
        if mine {
            drop_foreign(&mut tree);
        }
        order("", &mut tree);
        let mut changed = Vec::new();
        paths(&tree, "", &mut changed);
        (tree, changed)
    }

    fn named(&self, field: &str, value: &Tree) -> Tree {
        match value {
            Tree::List(list) => Tree::List(list.iter().map(|item| self.named(field, item)).collect()),
            Tree::Fields(fields) => {
                Tree::Fields(fields.iter().map(|(name, value)| (name.clone(), self.named(name, value))).collect())
            }
            Tree::Text(text) if text.contains(&self.suffix) && kind_of(field) != Some("text") => {
                Tree::Text(text.replace(&self.suffix, "~"))
            }
            Tree::Int(number) if (number - self.started_ms).abs() < NEAR_MS => Tree::text("<time>"),
            Tree::Null | Tree::Bool(_) | Tree::Int(_) | Tree::Text(_) => match kind_of(field) {
                Some(kind) if !is_nothing(kind, value) => self.name_of(kind, value),
                _ => value.clone(),
            },
        }
    }

    fn name_of(&self, kind: &str, value: &Tree) -> Tree {
        let known = self.kept.iter().find(|(_, own, kept)| *own == kind && kept == value);
        Tree::Text(known.map_or_else(|| format!("<{kind}>"), |(name, _, _)| format!("${name}")))
    }
}

/// Leaves out list entries that name something, but nothing of this run.
fn drop_foreign(tree: &mut Tree) {
    let names = ["Name", "GroupId", "TransactionalId", "Topic"];
    match tree {
        Tree::List(list) => {
            list.retain(|item| {
                let own = names.iter().find_map(|name| item.get(name)?.as_text());
                own.is_none_or(|own| own.contains('~'))
            });
            list.iter_mut().for_each(drop_foreign);
        }
        Tree::Fields(fields) => fields.iter_mut().for_each(|(_, value)| drop_foreign(value)),
        Tree::Null | Tree::Bool(_) | Tree::Int(_) | Tree::Text(_) => {}
    }
}

fn order(field: &str, tree: &mut Tree) {
    match tree {
        Tree::List(list) => {
            list.iter_mut().for_each(|item| order(field, item));
            let key = |item: &Tree| {
                KEYS.iter().find_map(|key| item.get(key)).map(|value| match value {
                    Tree::Int(number) => format!("{number:020}"),
                    other => other.compact(),
                })
            };
            if field != RANKED && list.iter().all(|item| item.as_fields().is_some()) {
                list.sort_by_cached_key(key);
            } else if SETS.contains(&field) {
                list.sort_by_key(Tree::as_int);
            }
        }
        Tree::Fields(fields) => fields.iter_mut().for_each(|(name, value)| order(name, value)),
        Tree::Null | Tree::Bool(_) | Tree::Int(_) | Tree::Text(_) => {}
    }
}

fn paths(tree: &Tree, path: &str, found: &mut Vec<String>) {
    match tree {
        Tree::List(list) => {
            list.iter().enumerate().for_each(|(n, item)| paths(item, &format!("{path}/{n}"), found));
        }
        Tree::Fields(fields) => {
            fields.iter().for_each(|(name, value)| paths(value, &format!("{path}/{name}"), found));
        }
        Tree::Text(text) if text.starts_with(['$', '<']) || text.contains('~') => found.push(path.to_owned()),
        Tree::Null | Tree::Bool(_) | Tree::Int(_) | Tree::Text(_) => {}
    }
}

/// Kept values that are wanted elsewhere, such as in messages about what went wrong.
pub(crate) fn shown(names: &Names) -> BTreeMap<String, String> {
    names.kept.iter().map(|(name, _, value)| (name.clone(), value.compact())).collect()
}
