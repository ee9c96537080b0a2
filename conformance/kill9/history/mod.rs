//! What clients did and were told, what readers saw, and whether that can be true of a broker that keeps its promises.
//!
//! Nothing here reads a clock or a socket. Some things are wrong the moment they are seen: a value at two places, two
//! values at one place, an offset that goes back. The rest is judged by [`History::check`] when everything is at rest.

mod anomaly;
mod check;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub(crate) use anomaly::{Anomaly, What};
pub(crate) use check::Rest;

/// The topics of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// Read by the processors; holds plain records only.
    In,
    /// Written by everyone else.
    Out,
}

impl Topic {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }

    pub(crate) fn of(name: &str) -> Self {
        if name == Self::In.name() { Self::In } else { Self::Out }
    }
}

/// A partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    pub(crate) topic: Topic,
    pub(crate) number: i32,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic.name(), self.number)
    }
}

/// A record by its value, which exists once in a run: the nth of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Value {
    pub(crate) attempt: usize,
    pub(crate) n: usize,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.attempt, self.n)
    }
}

impl Value {
    /// From a payload, which begins with the value; behind a blank comes what makes records differ in size.
    pub(crate) fn of(payload: &str) -> Option<Self> {
        let (attempt, n) = payload.split(' ').next()?.split_once('.')?;
        Some(Self { attempt: attempt.parse().ok()?, n: n.parse().ok()? })
    }
}

/// Whose eyes something is seen with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum View {
    Committed,
    Uncommitted,
}

/// What an attempt consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Records each for itself.
    Plain,
    /// Records of one transaction.
    Transaction,
    /// Records sent under an epoch that was over, and known to be, before they left.
    Fenced,
}

/// What a client knows of the end of its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing: all of it or none of it. Also an end that was asked for and not answered.
    Nothing,
    Committed,
    /// Told so, or never asked to be committed.
    Aborted,
}

/// What is known of a record's way to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ack {
    None,
    /// Acknowledged, with its offset unless the answer had none.
    At(Option<i64>),
}

#[derive(Debug, Clone)]
struct Write {
    part: Part,
    ack: Ack,
    /// Partition and offset of the record this is the result of.
    source: Option<(i32, i64)>,
}

/// One attempt of one client.
#[derive(Debug, Clone)]
struct Attempt {
    who: String,
    kind: Kind,
    told: Told,
    writes: Vec<Write>,
    /// An offset of the client's own group, staged with the transaction.
    mark: Option<i64>,
    round: u32,
}

/// All of a run so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    round: u32,
    attempts: Vec<Attempt>,
    /// What any reader saw at each place.
    log: BTreeMap<(Part, i64), Value>,
    places: BTreeMap<Value, (Part, i64)>,
    /// Places that a reader of committed records was shown.
    shown: BTreeSet<(Part, i64)>,
    /// What the consumers that run all the time were given since the last check.
    live: BTreeSet<(View, Part, i64)>,
    /// The highest end each view of a partition had.
    ends: BTreeMap<(View, Part), i64>,
    /// The highest committed offsets, by group and partition.
    offsets: BTreeMap<(String, i32), i64>,
    /// The visible result of each record that was read.
    results: BTreeMap<(i32, i64), Value>,
    /// Offsets of a client's own group that follow from its visible transactions.
    marks: BTreeMap<String, i64>,
    /// Attempts, and processors' offsets, that a check is done with.
    checked: usize,
    processed: BTreeMap<i32, i64>,
    anomalies: Vec<Anomaly>,
}

/// Figures of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) transactions: usize,
    pub(crate) committed: usize,
    pub(crate) aborted: usize,
    pub(crate) records: usize,
}

/// What clients tell.
impl History {
    /// What follows belongs to this round.
    pub(crate) fn enter_round(&mut self, round: u32) {
        self.round = round;
    }

    /// A new attempt, by its number.
    pub(crate) fn begin(&mut self, who: &str, kind: Kind) -> usize {
        let (told, round) = (Told::Nothing, self.round);
        self.attempts.push(Attempt { who: who.to_owned(), kind, told, writes: Vec::new(), mark: None, round });
        self.attempts.len() - 1
    }

    /// A record that is about to be sent.
    pub(crate) fn write(&mut self, attempt: usize, part: Part, source: Option<(i32, i64)>) -> Value {
        let writes = &mut self.attempts[attempt].writes;
        writes.push(Write { part, ack: Ack::None, source });
        Value { attempt, n: writes.len() - 1 }
    }

    /// Where a record was sent.
    pub(crate) fn part_of(&self, value: Value) -> Part {
        self.attempts[value.attempt].writes[value.n].part
    }

    /// The broker says it has it.
    pub(crate) fn acknowledged(&mut self, value: Value, offset: Option<i64>) {
        self.attempts[value.attempt].writes[value.n].ack = Ack::At(offset);
    }

    /// The attempt stages this offset of its client's own group.
    pub(crate) fn stage(&mut self, attempt: usize, offset: i64) {
        self.attempts[attempt].mark = Some(offset);
    }

    pub(crate) fn end(&mut self, attempt: usize, told: Told) {
        self.attempts[attempt].told = told;
    }

    pub(crate) fn count(&self) -> Count {
        let count = |which: &dyn Fn(&Attempt) -> bool| {
            self.attempts.iter().filter(|attempt| attempt.kind == Kind::Transaction && which(attempt)).count()
        };
        Count {
            transactions: count(&|_| true),
            committed: count(&|attempt| attempt.told == Told::Committed),
            aborted: count(&|attempt| attempt.told == Told::Aborted),
            records: self.log.len(),
        }
    }

    /// All that is wrong so far.
    pub(crate) fn anomalies(&self) -> &[Anomaly] {
        &self.anomalies
    }
}

/// What readers see.
impl History {
    /// A consumer that runs all the time was given this.
    pub(crate) fn consumed(&mut self, view: View, part: Part, (offset, payload): (i64, &str)) {
        self.live.insert((view, part, offset));
        self.saw(view, part, offset, payload);
    }

    /// Somebody read all that is to be seen from one offset up to another. What was there before must still be.
    pub(crate) fn read(&mut self, view: View, part: Part, (from, to): (i64, i64), records: &[(i64, String)]) {
        for (offset, payload) in records {
            self.saw(view, part, *offset, payload);
        }
        let now: BTreeSet<i64> = records.iter().map(|(offset, _)| *offset).collect();
        let range = (part, from)..(part, to);
        let known = self.log.range(range).map(|((_, offset), value)| (*offset, *value));
        let known = known.filter(|(offset, _)| view == View::Uncommitted || self.shown.contains(&(part, *offset)));
        let gone: Vec<_> = known.filter(|(offset, _)| !now.contains(offset)).collect();
        for (offset, value) in gone {
            let place = format!("{value} at {part} {offset} was seen before and is not given to {view:?} any more");
            self.wrong(What::LostWrite, Some(value), place);
        }
    }

    /// Where the partition is known to end in this view. What is asked from now on may not be less.
    pub(crate) fn known_end(&self, view: View, part: Part) -> i64 {
        self.ends.get(&(view, part)).copied().unwrap_or(0)
    }

    /// ListOffsets or Fetch, asked when this much was known, says where a partition ends: the last stable offset or the
    /// watermark.
    pub(crate) fn ends_at(&mut self, view: View, part: Part, (known, end): (i64, i64)) {
        let highest = self.ends.entry((view, part)).or_default();
        *highest = end.max(*highest);
        if end < known {
            self.wrong(What::WentBack, None, format!("the {view:?} end of {part} was {known} and is {end}"));
        }
    }

    /// Where a group is known to stand; -1 for nowhere.
    pub(crate) fn known_stand(&self, group: &str, number: i32) -> i64 {
        self.offsets.get(&(group.to_owned(), number)).copied().unwrap_or(-1)
    }

    /// OffsetFetch, asked when this much was known, says where a group stands.
    pub(crate) fn group_stands(&mut self, (group, number): (&str, i32), (known, offset): (i64, i64)) {
        let highest = self.offsets.entry((group.to_owned(), number)).or_insert(-1);
        *highest = offset.max(*highest);
        if offset < known {
            self.wrong(What::WentBack, None, format!("{group} stood at {known} of in-{number} and is at {offset}"));
        }
    }

    /// Something else that may not be.
    pub(crate) fn wrong(&mut self, what: What, value: Option<Value>, detail: String) {
        let about = value.map(|value| format!("; {}", self.describe(value.attempt))).unwrap_or_default();
        self.anomalies.push(Anomaly { what, round: self.round, detail: format!("{detail}{about}") });
    }

    fn saw(&mut self, view: View, part: Part, offset: i64, payload: &str) {
        let known = Value::of(payload).filter(|value| {
            let attempt = self.attempts.get(value.attempt);
            attempt.is_some_and(|attempt| attempt.writes.get(value.n).is_some_and(|write| write.part == part))
        });
        let Some(value) = known else {
            let start: String = payload.chars().take(20).collect();
            return self.wrong(What::Divergent, None, format!("{part} {offset} holds {start:?}, sent there by nobody"));
        };
        let there = *self.log.entry((part, offset)).or_insert(value);
        if there != value {
            self.wrong(What::Divergent, Some(value), format!("{part} {offset} was {there} and is {value}"));
        }
        let place = *self.places.entry(value).or_insert((part, offset));
        if place != (part, offset) {
            let detail = format!("{value} is at {part} {offset} and at {} {}", place.0, place.1);
            self.wrong(What::Duplicate, Some(value), detail);
        }
        if view == View::Committed && self.shown.insert((part, offset)) {
            self.showed(value, part, offset);
        }
    }

    /// A reader of committed records was given it for the first time.
    fn showed(&mut self, value: Value, part: Part, offset: i64) {
        let attempt = &self.attempts[value.attempt];
        let (kind, told, source) = (attempt.kind, attempt.told, attempt.writes[value.n].source);
        if kind == Kind::Transaction && (told == Told::Aborted || value.attempt < self.checked) {
            self.wrong(What::AbortedRead, Some(value), format!("{value} is shown as committed at {part} {offset}"));
        }
        let Some(source) = source else { return };
        let result = *self.results.entry(source).or_insert(value);
        if result != value {
            let detail = format!("in-{} {} has two results, {result} and {value}", source.0, source.1);
            self.wrong(What::RecordsWithoutOffsets, Some(value), detail);
        }
    }
}
