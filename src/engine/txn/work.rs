//! What a decision still owes: one marker in each partition of the transaction.
//!
//! An owed row is stored in the same commit as its decision and outlives any crash. What there is to do is read off
//! it, before and after a restart alike; doing it twice does no harm.

use std::collections::BTreeMap;

use crate::engine::ledger::offsets::{Committed, OffsetKey};
use crate::engine::partition::MarkOrder;
use crate::engine::{Offset, Outcome, PartId, Producer, TransactionalId};

/// Longest pause between two tries of one marker, in milliseconds.
pub const RETRY_MAX_MS: i64 = 1_000;
/// First pause after a marker could not be written, in milliseconds.
pub const RETRY_FIRST_MS: i64 = 10;
/// How long a damaged partition may keep an id busy, in milliseconds; then the marker stays parked and the id is free.
pub const PARKED_FREE_MS: i64 = 5_000;

/// One ended transaction's debt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    /// Whose.
    pub id: TransactionalId,
    /// The transaction's number, as its grants carry it.
    pub number: u64,
    /// What the markers carry.
    pub marker: Producer,
    /// The decision.
    pub outcome: Outcome,
    /// Each partition, with how far its marker is. `sealed_end` tells this transaction from the next one of the same
    /// epoch after a restart (storage rule 4.3).
    pub parts: BTreeMap<PartId, OwedPart>,
    /// Offsets that a commit carried: stored with the decision, shown to readers once the markers are written.
    pub offsets: Vec<(OffsetKey, Committed)>,
    /// When it was decided, on the monotonic clock.
    pub since_mono_ms: i64,
}

/// One partition's part of the debt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwedPart {
    /// The partition's log end when it was sealed: all of the transaction lies below.
    pub sealed_end: Offset,
    /// How far its marker is.
    pub stage: Stage,
}

/// How far one marker is. Only `Synced` is ever relied on after a crash, and then the row is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// To be asked for, not before this moment of the monotonic clock, after `tries` failures.
    Due {
        /// Earliest moment.
        at_mono_ms: i64,
        /// Failures so far.
        tries: u32,
    },
    /// The partition has the letter.
    Asked {
        /// Failures so far.
        tries: u32,
    },
    /// The partition cannot take it: damaged. Kept for ever, asked again at the next start. Its id is busy for a while.
    Parked,
    /// Parked so long that its id is free again.
    Left,
    /// Written and visible; not yet known to be on disk.
    Appended,
    /// On disk, or the partition is gone.
    Synced,
}

impl Owed {
    /// Whether every marker is on disk: the row may be forgotten.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.parts.values().all(|part| part.stage == Stage::Synced)
    }

    /// Gives up on markers that have been parked long enough. True if there were any.
    pub fn leave_parked(&mut self, now_mono_ms: i64) -> bool {
        if now_mono_ms < self.since_mono_ms.saturating_add(PARKED_FREE_MS) {
            return false;
        }
        let parked = self.parts.values_mut().filter(|part| part.stage == Stage::Parked);
        parked.map(|part| part.stage = Stage::Left).count() > 0
    }

    /// Whether the transaction is over for its producer: every marker is on disk (or, under `redo`, written), but for
    /// those of damaged partitions that were given up.
    #[must_use]
    pub fn is_over(&self, redo: bool) -> bool {
        self.parts.values().all(|part| match part.stage {
            Stage::Synced | Stage::Left => true,
            Stage::Appended => redo,
            Stage::Parked | Stage::Due { .. } | Stage::Asked { .. } => false,
        })
    }

    /// Partitions to ask now.
    pub fn due(&self, now_mono_ms: i64) -> impl Iterator<Item = (PartId, OwedPart)> + '_ {
        self.parts.iter().filter_map(move |(part, owed)| match owed.stage {
            Stage::Due { at_mono_ms, .. } if at_mono_ms <= now_mono_ms => Some((*part, *owed)),
            Stage::Due { .. } | Stage::Asked { .. } | Stage::Parked | Stage::Left | Stage::Appended | Stage::Synced => {
                None
            }
        })
    }

    /// What the partition is asked to write. `redo`: the marker may be in its log already.
    #[must_use]
    pub fn order(&self, part: &OwedPart, coordinator_epoch: i32, redo: bool) -> MarkOrder {
        MarkOrder {
            producer: self.marker,
            outcome: self.outcome,
            coordinator_epoch,
            sealed_end: part.sealed_end,
            txn_no: Some(self.number),
            redo,
        }
    }

    /// The next moment at which something is due.
    #[must_use]
    pub fn deadline_mono_ms(&self) -> Option<i64> {
        let retries = self.parts.values().filter_map(|part| match part.stage {
            Stage::Due { at_mono_ms, .. } => Some(at_mono_ms),
            Stage::Parked => Some(self.since_mono_ms.saturating_add(PARKED_FREE_MS)),
            Stage::Asked { .. } | Stage::Left | Stage::Appended | Stage::Synced => None,
        });
        retries.min()
    }
}

/// The stage after a failed try: doubling pauses, never a busy loop (C-135).
#[must_use]
pub fn after_failure(stage: Stage, now_mono_ms: i64) -> Stage {
    let tries = match stage {
        Stage::Due { tries, .. } | Stage::Asked { tries } => tries.saturating_add(1),
        Stage::Parked | Stage::Left | Stage::Appended | Stage::Synced => return stage,
    };
    let pause = RETRY_FIRST_MS.saturating_mul(1_i64.checked_shl(tries.saturating_sub(1).min(10)).unwrap_or(1));
    Stage::Due { at_mono_ms: now_mono_ms.saturating_add(pause.min(RETRY_MAX_MS)), tries }
}
