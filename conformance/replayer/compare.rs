//! What is different from a recording, and whether there is a reason for it.

use std::collections::BTreeSet;

use crate::play::Exchange;
use crate::tree::{Tree, Unreadable};

/// One field that is not as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) script: String,
    pub(crate) step: String,
    pub(crate) field: String,
    pub(crate) theirs: String,
    pub(crate) ours: String,
}

/// Why a field may be different, and what it then must be.
#[derive(Debug)]
pub(crate) struct Reason {
    script: String,
    /// Ends in `*` where it is so in several steps.
    step: String,
    field: String,
    ours: String,
    why: String,
}

const ABSENT: &str = "absent";

/// Words for people: what they say, and whether anything is said, is no part of the protocol.
const WORDS: &[&str] = &["ErrorMessage", "BatchIndexErrorMessage", "Documentation"];

/// A long list in which what is missing must not shift what is there: its entries are compared by name.
const NAMED: &str = "/Configs";

impl Reason {
    pub(crate) fn all(tree: &Tree) -> Result<Vec<Self>, Unreadable> {
        let list = tree.as_list().ok_or_else(|| Unreadable("a list of reasons is wanted".to_owned()))?;
        let one = |item: &Tree| {
            let text = |name: &str| {
                let value = item.get(name).ok_or_else(|| Unreadable(format!("no `{name}` in {}", item.compact())))?;
                Ok(value.as_text().map_or_else(|| value.compact(), str::to_owned))
            };
            let ours = item.get("ours").map(Tree::compact);
            let ours = ours.ok_or_else(|| Unreadable(format!("no `ours` in {}", item.compact())))?;
            let ours = if ours == "\"absent\"" { ABSENT.to_owned() } else { ours };
            Ok(Self { script: text("script")?, step: text("step")?, field: text("field")?, ours, why: text("why")? })
        };
        list.iter().map(one).collect()
    }

    pub(crate) fn explains(&self, difference: &Difference) -> bool {
        self.script == difference.script
            && matches(&self.step, &difference.step)
            && matches(&self.field, &difference.field)
            && (self.ours == "\"*\"" || self.ours == difference.ours)
    }
}

/// Whether the text is as the pattern says, in which each `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|front| text.strip_prefix(front)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    false
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, step `{}`, {}: ours is {} because {}", self.script, self.step, self.field, self.ours, self.why)
    }
}

/// What was said that is not as recorded. An error if not even the same was asked.
pub(crate) fn differences(script: &str, recorded: &[Exchange], played: &[Exchange]) -> Result<Vec<Difference>, String> {
    let stale = || format!("{script}: the script was changed; record it again");
    if recorded.len() != played.len() {
        return Err(stale());
    }
    let mut found = Vec::new();
    for (theirs, ours) in recorded.iter().zip(played) {
        if (&theirs.step, &theirs.call, &theirs.request) != (&ours.step, &ours.call, &ours.request) {
            return Err(format!("{} (from `{}` on)", stale(), ours.step));
        }
        let mut note = |field: &str, theirs: String, ours_said: String| {
            let (script, step) = (script.to_owned(), ours.step.clone());
            found.push(Difference { script, step, field: field.to_owned(), theirs, ours: ours_said });
        };
        compare("", &theirs.response, &ours.response, &mut note);
    }
    Ok(found)
}

fn compare(path: &str, theirs: &Tree, ours: &Tree, note: &mut impl FnMut(&str, String, String)) {
    match (theirs, ours) {
        (Tree::List(left), Tree::List(right)) if path.ends_with(NAMED) => {
            let of = |list: &[Tree], name: &str| list.iter().find(|item| name_of(item) == name).cloned();
            let names: BTreeSet<&str> = left.iter().chain(right).map(name_of).collect();
            for name in names {
                let (theirs, ours) = (of(left, name), of(right, name));
                compare_one(&format!("{path}/{name}"), theirs.as_ref(), ours.as_ref(), note);
            }
        }
        (Tree::List(left), Tree::List(right)) => {
            for n in 0..left.len().max(right.len()) {
                compare_one(&format!("{path}/{n}"), left.get(n), right.get(n), note);
            }
        }
        (Tree::Fields(left), Tree::Fields(right)) => {
            for (name, value) in left.iter().filter(|(name, _)| !WORDS.contains(&name.as_str())) {
                compare_one(&format!("{path}/{name}"), Some(value), ours.get(name), note);
            }
            for (name, value) in right.iter().filter(|(name, _)| theirs.get(name).is_none()) {
                compare_one(&format!("{path}/{name}"), None, Some(value), note);
            }
        }
        (theirs, ours) if theirs == ours => {}
        (theirs, ours) => note(path, theirs.compact(), ours.compact()),
    }
}

fn name_of(item: &Tree) -> &str {
    item.get("Name").and_then(Tree::as_text).unwrap_or_default()
}

fn compare_one(path: &str, theirs: Option<&Tree>, ours: Option<&Tree>, note: &mut impl FnMut(&str, String, String)) {
    let shown = |value: Option<&Tree>| value.map_or_else(|| ABSENT.to_owned(), Tree::compact);
    match (theirs, ours) {
        (Some(theirs), Some(ours)) => compare(path, theirs, ours, note),
        (theirs, ours) => note(path, shown(theirs), shown(ours)),
    }
}
