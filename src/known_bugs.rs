//! Bugs that a broker of this kind is known to get, to be put back one at a time so that the simulator can show that it
//! would see them.
//!
//! In the program that ships [`is_in`] is a constant `false`: there is no switch. Only the simulator's crate, which
//! compiles these sources with `cfg(simulator)`, can put one in.

/// One bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// Markers are written while the decision is not on disk yet.
    MarkersBeforeDecision,
    /// Answers leave before the commit they rest on is on disk.
    AnswerBeforeStore,
    /// A producer snapshot speaks of batches that are not on disk.
    SnapshotNewerThanLog,
    /// A failed sync is tried again on the same descriptor, and believed.
    FsyncRetried,
    /// Entries of the aborted index are lost when their segment is sealed.
    AbortedIndexLostAtRoll,
    /// A transaction's offsets are stored with a later commit than its decision.
    OffsetsOutsideDecision,
    /// A seal is answered, and the permission stays open.
    SealClosesNothing,
    /// A decision is taken when it is asked for, without asking the partitions.
    DecisionAtReceipt,
    /// Debts that a start has paid stay in the store.
    OwedKeptAfterStart,
    /// The group's generation is checked when a request comes, and its offset staged a turn later.
    GenerationCheckedApart,
}

/// Every bug, and its name on the command line.
pub const ALL: [(Bug, &str); 10] = [
    (Bug::MarkersBeforeDecision, "markers-before-decision"),
    (Bug::AnswerBeforeStore, "answer-before-store"),
    (Bug::SnapshotNewerThanLog, "snapshot-newer-than-log"),
    (Bug::FsyncRetried, "fsync-retried"),
    (Bug::AbortedIndexLostAtRoll, "aborted-index-lost-at-roll"),
    (Bug::OffsetsOutsideDecision, "offsets-outside-decision"),
    (Bug::SealClosesNothing, "seal-closes-nothing"),
    (Bug::DecisionAtReceipt, "decision-at-receipt"),
    (Bug::OwedKeptAfterStart, "owed-kept-after-start"),
    (Bug::GenerationCheckedApart, "generation-checked-apart"),
];

/// Whether this bug is in. Never, in the broker.
#[cfg(not(simulator))]
#[must_use]
pub const fn is_in(_bug: Bug) -> bool {
    false
}

#[cfg(simulator)]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static IN: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Whether this bug was put back on this thread.
    #[must_use]
    pub fn is_in(bug: Bug) -> bool {
        IN.with(|which| which.get() == Some(bug))
    }

    /// Puts one bug back on this thread, or none.
    pub fn put_in(bug: Option<Bug>) {
        IN.with(|which| which.set(bug));
    }
}

#[cfg(simulator)]
pub use switch::{is_in, put_in};
