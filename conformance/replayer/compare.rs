//! What is different from a recording, and whether there is a reason for it.

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
        let matches = |pattern: &str, text: &str| match pattern.split_once('*') {
            Some((front, back)) => text.starts_with(front) && text.ends_with(back),
            None => text == pattern,
        };
        self.script == difference.script
            && matches(&self.step, &difference.step)
            && matches(&self.field, &difference.field)
            && (self.ours == "\"*\"" || self.ours == difference.ours)
    }
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

fn compare_one(path: &str, theirs: Option<&Tree>, ours: Option<&Tree>, note: &mut impl FnMut(&str, String, String)) {
    let shown = |value: Option<&Tree>| value.map_or_else(|| ABSENT.to_owned(), Tree::compact);
    match (theirs, ours) {
        (Some(theirs), Some(ours)) => compare(path, theirs, ours, note),
        (theirs, ours) => note(path, shown(theirs), shown(ours)),
    }
}
