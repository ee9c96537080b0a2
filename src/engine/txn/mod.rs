//! A transactional id as a value.
//!
//! ```text
//!          add partition / add offsets        end: row Ended{outcome} + what is owed
//! Empty ──────────────────────────→ Ongoing ─────────────────────────────────────→ Ended{outcome}
//!   ↑ init (epoch + 1)                                                                  │ next add
//!   └───────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Every end (EndTxn, timeout, new owner, admin) is the same step. While its markers are owed, tools are shown
//! PrepareCommit or PrepareAbort; that is not a state of this value, it is read off the owed rows.

pub mod end;
pub mod init;
pub mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::{Epoch, GroupId, Now, Offset, Outcome, PartId, Producer, Refusal, TransactionalId};

/// Highest epoch that is ever handed to a client; an id that holds it is exhausted (T-0.3).
pub const LAST_EPOCH: Epoch = 32766;

/// What the broker remembers of one transactional id (T-013).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Txn {
    /// Who owns the id now.
    pub producer: Producer,
    /// Epoch before the last bump that its own holder asked for, -1 if none: recognises a repeated bump (T-125).
    /// Stored, unlike in Kafka, so that the repeat is recognised over a restart too (T-118 R).
    pub last_epoch: Epoch,
    /// Producer id before the last rotation, -1 if none (T-014).
    pub previous_producer_id: i64,
    /// How long a transaction may stay open, in milliseconds.
    pub timeout_ms: i32,
    /// Where the id stands.
    pub state: State,
    /// Wall clock of the last change; decides expiry of idle ids only (T-612).
    pub updated_wall_ms: i64,
}

/// Where a transactional id stands. Stored with the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Owned, nothing begun since.
    Empty,
    /// A transaction is open.
    Ongoing(Ongoing),
    /// Decided; it cannot be taken back. Markers may still be owed.
    Ended {
        /// How.
        outcome: Outcome,
        /// Start of the ended transaction, wall clock (T-803).
        started_wall_ms: i64,
    },
}

/// An open transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ongoing {
    /// Tells this transaction from every other, of this id or another; classic transactions share their epoch.
    pub number: u64,
    /// Partitions it may write to, with data or not. All get a marker (T-405).
    pub parts: Arc<BTreeSet<PartId>>,
    /// Groups whose offsets it may carry.
    pub groups: Arc<BTreeSet<GroupId>>,
    /// Offsets it will commit. Invisible until its markers are written (T-247).
    pub staged: Arc<BTreeMap<(GroupId, PartId), Staged>>,
    /// First add, wall clock, for tools.
    pub started_wall_ms: i64,
    /// Moment from which the timeout counts, on the monotonic clock; the restart's, for one found at a start.
    pub since_mono_ms: i64,
}

/// A consumer's position as committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Next offset to read; any value, not compared with the log (O-617).
    pub offset: Offset,
    /// Leader epoch of the last record read, -1 for none.
    pub leader_epoch: i32,
    /// The consumer's own text.
    pub metadata: String,
}

/// An offset that a transaction carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// Place in the order of all offset writes. A plain commit made later has a higher one and wins (T-823).
    pub order: u64,
    /// The position.
    pub position: Position,
}

/// What a request says of itself: which id, held by which producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed<'a> {
    /// The transactional id.
    pub id: &'a TransactionalId,
    /// Who claims to hold it.
    pub producer: Producer,
}

/// What joins a transaction: partitions to write to, groups to commit for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addition {
    /// AddPartitionsToTxn.
    Parts(BTreeSet<PartId>),
    /// AddOffsetsToTxn.
    Group(GroupId),
}

impl Addition {
    /// The partitions that are asked for.
    pub fn parts(&self) -> impl Iterator<Item = &PartId> {
        let parts = match self {
            Self::Parts(parts) => Some(parts),
            Self::Group(_) => None,
        };
        parts.into_iter().flatten()
    }
}

impl Ongoing {
    /// A transaction that has just begun, with nothing in it. Its timeout counts from `now`.
    #[must_use]
    pub fn begun(number: u64, now: Now) -> Self {
        Self {
            number,
            parts: Arc::default(),
            groups: Arc::default(),
            staged: Arc::default(),
            started_wall_ms: now.wall_ms,
            since_mono_ms: now.mono_ms,
        }
    }
}

impl Txn {
    /// The open transaction, if there is one.
    #[must_use]
    pub fn ongoing(&self) -> Option<&Ongoing> {
        match &self.state {
            State::Ongoing(ongoing) => Some(ongoing),
            State::Empty | State::Ended { .. } => None,
        }
    }

    /// When the open transaction times out, on the monotonic clock (T-601, and the order: counted anew after a
    /// restart).
    #[must_use]
    pub fn deadline_mono_ms(&self) -> Option<i64> {
        self.ongoing().map(|ongoing| ongoing.since_mono_ms.saturating_add(i64::from(self.timeout_ms)))
    }

    /// Whether `claimed` holds this id. The producer id is judged before the epoch; a higher epoch is as wrong as a
    /// lower one (T-212 rows 5 and 6, X-7). Nobody holds an epoch that only fences.
    ///
    /// # Errors
    /// `InvalidProducerIdMapping` for another producer id, `ProducerFenced` for another epoch.
    pub fn owned_by(&self, claimed: Producer) -> Result<(), Refusal> {
        if claimed.id != self.producer.id {
            return Err(Refusal::InvalidProducerIdMapping);
        }
        if claimed.epoch != self.producer.epoch || claimed.epoch > LAST_EPOCH {
            return Err(Refusal::ProducerFenced);
        }
        Ok(())
    }

    /// AddPartitionsToTxn and AddOffsetsToTxn (T-212, T-231). `None`: everything is in already, nothing to store.
    /// `number` is used if this begins a transaction.
    ///
    /// # Errors
    /// As [`Txn::owned_by`].
    pub fn add(&self, claimed: Producer, addition: &Addition, number: u64, now: Now) -> Result<Option<Self>, Refusal> {
        self.owned_by(claimed)?;
        let mut ongoing = self.ongoing().cloned().unwrap_or_else(|| Ongoing::begun(number, now));
        let grew = match addition {
            Addition::Parts(parts) if parts.is_subset(&ongoing.parts) => false,
            Addition::Parts(parts) => {
                Arc::make_mut(&mut ongoing.parts).extend(parts.iter().copied());
                true
            }
            Addition::Group(group) if ongoing.groups.contains(group) => false,
            Addition::Group(group) => {
                Arc::make_mut(&mut ongoing.groups).insert(group.clone());
                true
            }
        };
        if !grew && self.ongoing().is_some() {
            return Ok(None);
        }
        Ok(Some(self.with(State::Ongoing(ongoing), now)))
    }

    /// TxnOffsetCommit: the offsets join the open transaction. The group must have been added (T-242).
    ///
    /// # Errors
    /// `InvalidTxnState` if no transaction is open or the group is not in it; as [`Txn::owned_by`] otherwise.
    pub fn stage(
        &self,
        claimed: Producer,
        group: &GroupId,
        offsets: Vec<(PartId, Staged)>,
        now: Now,
    ) -> Result<Self, Refusal> {
        self.may_stage(claimed, group)?;
        let mut ongoing = self.ongoing().cloned().ok_or(Refusal::InvalidTxnState)?;
        let staged = Arc::make_mut(&mut ongoing.staged);
        staged.extend(offsets.into_iter().map(|(part, offset)| ((group.clone(), part), offset)));
        Ok(self.with(State::Ongoing(ongoing), now))
    }

    /// Whether `claimed` may stage offsets of `group` now (T-242, judged before the group itself).
    ///
    /// # Errors
    /// As [`Txn::stage`].
    pub fn may_stage(&self, claimed: Producer, group: &GroupId) -> Result<(), Refusal> {
        self.owned_by(claimed)?;
        match self.ongoing() {
            Some(ongoing) if ongoing.groups.contains(group) => Ok(()),
            Some(_) | None => Err(Refusal::InvalidTxnState),
        }
    }

    /// Whether `claimed` may write to `part` now (T-222, the verify form); what Produce is told when the partition
    /// knows of no permission.
    ///
    /// # Errors
    /// As [`Txn::owned_by`]; `InvalidTxnState` if the partition is not in an open transaction.
    pub fn may_write(&self, claimed: Producer, part: PartId) -> Result<&Ongoing, Refusal> {
        self.owned_by(claimed)?;
        self.ongoing().filter(|ongoing| ongoing.parts.contains(&part)).ok_or(Refusal::InvalidTxnState)
    }

    fn with(&self, state: State, now: Now) -> Self {
        Self { state, updated_wall_ms: now.wall_ms, previous_producer_id: self.producer.id, ..self.clone() }
    }
}

#[cfg(test)]
mod tests;
