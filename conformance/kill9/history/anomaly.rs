//! What can be wrong.

use std::fmt;

use super::{Ack, History};

/// The kinds of what may never be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// Acknowledged or committed, or read before, and not there.
    LostWrite,
    /// A record of a transaction that ended as aborted, or was never asked to be committed, shown as committed.
    AbortedRead,
    /// A value at two places.
    Duplicate,
    /// A part of a transaction.
    Torn,
    /// A committed offset, a watermark or a last stable offset that is lower than it was.
    WentBack,
    /// Two values at one place, or a record elsewhere than the acknowledgement says.
    Divergent,
    /// A group stands behind records whose results are not there.
    OffsetsWithoutRecords,
    /// Results of records that the group does not stand behind, or two results of one.
    RecordsWithoutOffsets,
    /// A last stable offset held back, or a transaction open, with nobody at work; a client without an outcome.
    Stuck,
    /// A record stored under an epoch that was over.
    FencedWrite,
    /// A consumer passed over a record that is there for it.
    Missed,
    /// The process ended, or refused to start, or refused for good what it should have asked to be sent again.
    Broker,
}

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub(crate) struct Anomaly {
    pub(crate) what: What,
    /// The round in which it was found.
    pub(crate) round: u32,
    pub(crate) detail: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}: {:?}: {}", self.round, self.what, self.detail)
    }
}

impl History {
    /// All that is known of an attempt.
    pub(super) fn describe(&self, number: usize) -> String {
        let Some(attempt) = self.attempts.get(number) else { return format!("no attempt {number}") };
        let mut text = format!(
            "attempt {number} of {} in round {}, {:?}, told {:?}",
            attempt.who, attempt.round, attempt.kind, attempt.told
        );
        if let Some(mark) = attempt.mark {
            text.push_str(&format!(", staged {mark}"));
        }
        for (n, write) in attempt.writes.iter().enumerate() {
            let value = super::Value { attempt: number, n };
            let ack = match write.ack {
                Ack::None => String::new(),
                Ack::At(None) => " acknowledged".to_owned(),
                Ack::At(Some(offset)) => format!(" acknowledged at {offset}"),
            };
            let seen = match self.places.get(&value) {
                None => "never seen".to_owned(),
                Some(place) if self.shown.contains(place) => format!("committed at {}", place.1),
                Some(place) => format!("uncommitted at {}", place.1),
            };
            let source = write.source.map(|(part, offset)| format!(" from in-{part} {offset}")).unwrap_or_default();
            text.push_str(&format!("; {value} to {}{source}{ack}, {seen}", write.part));
        }
        text
    }
}
