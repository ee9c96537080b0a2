//! Which step of which script shows which rule.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::script::Script;

/// The page that says it, from the scripts and from the list of rules that have none.
pub(crate) fn page(scripts: &[Script], left_out: &str) -> String {
    let mut rules: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for script in scripts {
        for step in &script.steps {
            for rule in &step.rules {
                let said = format!("{}: {}", script.name, step.title.replace('|', "or"));
                rules.entry(key(rule)).or_default().push(said);
            }
        }
    }
    let covered = rules.len();
    let mut none = 0;
    for line in left_out.lines().filter(|line| !line.starts_with('#')) {
        if let Some((rule, why)) = line.split_once(' ') {
            none += 1;
            rules.entry(key(rule)).or_default().push(format!("not played: {}", why.trim()));
        }
    }
    let steps: usize = scripts.iter().map(|script| script.steps.len()).sum();
    let mut page = String::from("# What the scripts cover\n\n");
    page.push_str("Written by `conformance/replay --coverage` from the rules that the scripts' steps cite, and from ");
    page.push_str("`scripts/left-out.txt`.\n\n");
    let count = scripts.len();
    writeln!(page, "{count} scripts, {steps} steps; {covered} rules shown, {none} lines about what is not.\n").unwrap();
    page.push_str("| rule | where |\n|---|---|\n");
    for ((_, rule), places) in rules {
        let more = places.len().saturating_sub(3);
        let mut said = places.into_iter().take(3).collect::<Vec<_>>().join("; ");
        if more > 0 {
            write!(said, "; {more} more").unwrap();
        }
        writeln!(page, "| {rule} | {said} |").unwrap();
    }
    page
}

/// In the order of the numbers.
fn key(rule: &str) -> (String, String) {
    let padded = rule.split(|c: char| !c.is_ascii_digit()).fold(rule.to_owned(), |text, digits| {
        if digits.is_empty() { text } else { text.replacen(digits, &format!("{digits:0>6}"), 1) }
    });
    (padded, rule.to_owned())
}
