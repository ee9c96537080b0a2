//! What happens to a transaction, moment by moment, told to whoever keeps traces of them.
//!
//! Owners only say that a moment has come. They do not wait for whoever listens, and nothing they do depends on it.

use crate::engine::txn::end::Cause;
use crate::engine::{Outcome, PartId, Producer, TopicName, TransactionalId};
use crate::metrics::FencingReason;
use crate::runtime::post::MarkResult;

/// A moment in the life of a transaction, told when it has come.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// It has begun, or was found open by a start; that is stored.
    Begun {
        /// Its number.
        number: u64,
        /// Whose.
        id: &'a TransactionalId,
        /// Who holds the id.
        producer: Producer,
        /// When it began, by the wall clock, if that was before this moment.
        found_since_wall_ms: Option<i64>,
    },
    /// Somebody wants it to end; its partitions are being sealed.
    Asked {
        /// Its number.
        number: u64,
        /// How it is to end.
        outcome: Outcome,
        /// Why.
        cause: Cause,
    },
    /// All of it that lies in this partition is on disk.
    Sealed {
        /// Its number.
        number: u64,
        /// Where.
        part: PartId,
    },
    /// No decision came of the gather: there was no room for it, or it was void.
    Undone {
        /// Its number.
        number: u64,
    },
    /// The decision is stored; on disk it is when its first marker is asked for.
    Decided {
        /// Its number.
        number: u64,
        /// What is owed, if a marker is.
        debt: Option<u64>,
        /// How it ended.
        outcome: Outcome,
        /// Why.
        cause: Cause,
        /// Where it was; no more than [`PLACES`].
        places: &'a [Place],
        /// In how many partitions.
        partitions: usize,
    },
    /// A partition has the order for its marker: the decision is on disk.
    Ordered {
        /// For which debt.
        debt: u64,
        /// Where.
        part: PartId,
    },
    /// The marker is in the log's file.
    Appended {
        /// For which debt.
        debt: u64,
        /// Where.
        part: PartId,
    },
    /// The ledger heard how it went with a marker.
    Marked {
        /// For which debt.
        debt: u64,
        /// Where.
        part: PartId,
        /// How it went.
        result: MarkResult,
    },
    /// Nothing more is to come: every marker is on disk, but for those of damaged partitions that were given up.
    Over {
        /// Which debt is paid.
        debt: u64,
    },
    /// A producer of the id was fenced.
    Fenced {
        /// Whose id.
        id: &'a TransactionalId,
        /// The producer that holds it no longer.
        old: Producer,
        /// Who holds it, or what fences at the partitions.
        new: Producer,
        /// Why.
        reason: FencingReason,
    },
}

/// Partitions of a transaction that are told of one by one.
pub const PLACES: usize = 256;

/// A partition by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its id.
    pub part: PartId,
    /// Its topic.
    pub topic: TopicName,
    /// Its index in the topic.
    pub index: i32,
}

/// Keeps traces of transactions. Called by owners in the middle of their turns, so it must not wait.
pub trait Tracks: Send + Sync {
    /// A moment has come.
    fn note(&self, moment: &Moment<'_>);

    /// Whether this transaction is followed: nothing is gathered for one that is not.
    fn follows(&self, number: u64) -> bool;

    /// The trace of the id's latest transaction, as log lines name it, while there is one.
    fn trace_id(&self, id: &TransactionalId) -> Option<String>;
}
