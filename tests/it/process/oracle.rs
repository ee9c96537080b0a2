//! What each attempt at a transaction came to, and what may therefore be read.

use std::collections::{BTreeMap, BTreeSet};

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    Aborted,
}

/// One attempt: its name, which all its records bear, and where they went.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) name: String,
    /// Partition and value of each record.
    pub(crate) records: Vec<(i32, String)>,
    pub(crate) outcome: Outcome,
    /// Whether every record was acknowledged before the end, so that whoever reads everything must find them.
    pub(crate) acknowledged: bool,
}

/// All attempts of one transactional id, in order.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    attempts: Vec<Attempt>,
}

impl Oracle {
    pub(crate) fn note(&mut self, attempt: Attempt) {
        self.attempts.push(attempt);
    }

    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.attempts.iter().filter(|attempt| attempt.outcome == outcome).count()
    }

    /// Compares with what was read, by partition: `committed` must hold each committed record once, in order, and
    /// nothing else of this id; `all` those of aborted attempts too. Records of this id begin with `prefix`.
    pub(crate) fn check(&self, prefix: &str, committed: &[Vec<String>], all: &[Vec<String>]) {
        for (part, (committed, all)) in (0_i32..).zip(committed.iter().zip(all)) {
            let own = |values: &[String]| -> Vec<String> {
                values.iter().filter(|value| value.starts_with(prefix)).cloned().collect()
            };
            let (committed, all) = (own(committed), own(all));
            let right = self.records(part, |attempt| attempt.outcome == Outcome::Committed);
            assert!(committed == right, "{prefix} in {part}: {}", self.difference(&committed, &right));
            let seen: BTreeSet<_> = all.iter().collect();
            assert_eq!(seen.len(), all.len(), "{prefix} in {part}: a record is stored twice (P5)");
            let must = self.records(part, |attempt| attempt.acknowledged || attempt.outcome == Outcome::Committed);
            let missing: Vec<_> = must.iter().filter(|value| !seen.contains(value)).collect();
            assert!(missing.is_empty(), "{prefix} in {part}: acknowledged and not there: {missing:?} (P1)");
        }
    }

    fn records(&self, part: i32, which: impl Fn(&Attempt) -> bool) -> Vec<String> {
        let attempts = self.attempts.iter().filter(|attempt| which(attempt));
        let records = attempts.flat_map(|attempt| &attempt.records);
        records.filter(|(at, _)| *at == part).map(|(_, value)| value.clone()).collect()
    }

    fn difference(&self, read: &[String], right: &[String]) -> String {
        let count = |values: &[String]| {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            values.iter().for_each(|value| *counts.entry(value.clone()).or_default() += 1);
            counts
        };
        let (read_counts, right_counts) = (count(read), count(right));
        let extra: Vec<_> = read_counts.iter().filter(|(value, n)| right_counts.get(*value) != Some(n)).collect();
        let missing: Vec<_> = right_counts.keys().filter(|value| !read_counts.contains_key(*value)).collect();
        let named = |value: &str| self.attempts.iter().find(|attempt| value.starts_with(&format!("{}/", attempt.name)));
        let first = extra.first().and_then(|(value, _)| named(value));
        format!("too often {extra:?}, missing {missing:?}; the first is of {first:?} (P2, P3)")
    }
}
