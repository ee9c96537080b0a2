//! What clients wanted, what they were promised, what readers were given. Promises count from the moment an answer left
//! the broker, whether or not it arrived.

use std::collections::BTreeMap;

use crate::engine::{Offset, Outcome, PartId, Producer};

/// One batch that some client made. Its number stands in its records.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Whose.
    pub of: Of,
    /// Where it goes.
    pub part: PartId,
    /// Whose sequence it is in, if it is in one.
    pub producer: Option<Producer>,
    /// Its first sequence number.
    pub sequence: i32,
    /// Records in it.
    pub records: i32,
    /// The offset that was answered, if it was acknowledged.
    pub acked: Option<Offset>,
}

/// Whose a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// One attempt's.
    Attempt(usize),
    /// An idempotent producer's.
    Idempotent,
    /// Nobody's in particular: it may be stored more than once when it was sent more than once.
    Plain,
}

/// One transaction that one process tried. It takes `from..to` of an input partition and writes batches.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its transactional id.
    pub id: String,
    /// Its owner.
    pub producer: Producer,
    /// The group whose offsets move with it.
    pub group: String,
    /// The partition it consumes.
    pub input: PartId,
    /// Where it begins to consume.
    pub from: Offset,
    /// Where it ends.
    pub to: Offset,
    /// Its batches, by number.
    pub batches: Vec<u64>,
    /// The outcome that was asked for; nobody asks for two.
    pub asked: Option<Outcome>,
    /// The outcome that was told.
    pub told: Option<Outcome>,
    /// An operator was told that it is aborted.
    pub aborted: bool,
}

/// Everything there is to compare.
#[derive(Debug, Default)]
pub struct History {
    /// Every batch, by number.
    pub batches: Vec<Batch>,
    /// Every attempt, by number.
    pub attempts: Vec<Attempt>,
    /// The newest owner of each id that was told to somebody.
    pub owners: BTreeMap<String, Producer>,
    /// Every pair that was ever told, and to which id.
    pub handed_out: BTreeMap<Producer, String>,
    /// Positions of groups that were shown, or whose commit was answered.
    pub positions: BTreeMap<(String, PartId), Offset>,
}

impl History {
    /// A new batch; gives its number.
    pub fn batch(&mut self, batch: Batch) -> u64 {
        self.batches.push(batch);
        u64::try_from(self.batches.len()).unwrap() - 1
    }

    /// The batch of a number.
    #[must_use]
    pub fn of(&self, number: u64) -> &Batch {
        &self.batches[usize::try_from(number).unwrap()]
    }

    /// It was acknowledged at this offset: the same one each time (C-61).
    pub fn acked(&mut self, number: u64, at: Offset) {
        let batch = &mut self.batches[usize::try_from(number).unwrap()];
        if batch.of != Of::Plain
            && let Some(before) = batch.acked
        {
            assert_eq!(before, at, "P5: batch {number} is answered with two offsets: {batch:?}");
        }
        batch.acked = batch.acked.or(Some(at));
    }

    /// An end was answered with success.
    pub fn told(&mut self, attempt: usize, outcome: Outcome) {
        let attempt = &mut self.attempts[attempt];
        assert_eq!(attempt.asked, Some(outcome), "P2: {attempt:?} is told {outcome:?}");
        assert!(!attempt.aborted || outcome == Outcome::Abort, "P2: {attempt:?} was aborted by an operator");
        attempt.told = Some(outcome);
    }

    /// The transaction that an operator's abort of this id, or of this pair in this partition, finds open: a batch of it
    /// is stored, and nobody has asked for its end.
    #[must_use]
    pub fn open(&self, is_meant: impl Fn(&Attempt, &Batch) -> bool) -> Option<usize> {
        self.attempts.iter().rposition(|attempt| {
            let mut batches = attempt.batches.iter().map(|number| self.of(*number));
            attempt.asked.is_none() && batches.any(|batch| batch.acked.is_some() && is_meant(attempt, batch))
        })
    }

    /// An operator was told that what he found open is aborted.
    pub fn aborted(&mut self, attempt: usize) {
        let attempt = &mut self.attempts[attempt];
        attempt.aborted |= attempt.asked.is_none();
    }

    /// An owner was told its pair.
    pub fn owner(&mut self, id: &str, producer: Producer) {
        if let Some(other) = self.handed_out.insert(producer, id.to_owned()) {
            panic!("P4: {producer:?} is told to {id} and was told to {other}");
        }
        if let Some(before) = self.owners.insert(id.to_owned(), producer) {
            let newer = producer.id != before.id || producer.epoch > before.epoch;
            assert!(newer, "P4: {id} is told {producer:?} after {before:?}");
        }
    }

    /// Whether somebody was told of a newer owner than this one.
    #[must_use]
    pub fn is_fenced(&self, id: &str, producer: Producer) -> bool {
        self.owners.get(id).is_some_and(|owner| owner.id != producer.id || owner.epoch > producer.epoch)
    }

    /// A group's position was shown, or its commit was answered: it never goes back, over no crash.
    pub fn position(&mut self, group: &str, part: PartId, at: Offset) {
        let before = self.positions.entry((group.to_owned(), part)).or_insert(at);
        assert!(*before <= at, "P1, P7: {group} is at {at} of {part:?} and was at {before}");
        *before = at;
    }
}
