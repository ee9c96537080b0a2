//! Transactions within the ledger: the steps of `engine::txn` joined with what they touch elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::offsets::OffsetKey;
use super::rows::{Marks, RowKey, RowValue};
use super::{Ledger, PRODUCER_ID_BLOCK};
use crate::engine::txn::end::{Cause, Verdict, end, judge};
use crate::engine::txn::init::{Init, Initialised, init};
use crate::engine::txn::work::{Owed, OwedPart, Stage};
use crate::engine::txn::{Addition, Claimed, Position, Staged, State, Txn};
use crate::engine::{GroupId, Now, Offset, Outcome, PartId, Producer, Refusal, TransactionalId};

/// Permission to write, as the partition is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The transaction's number.
    pub number: u64,
    /// Partitions that were not in it before.
    pub parts: Vec<PartId>,
    /// Whether one of them never was part of any transaction: its first permission must wait until that is on disk, for
    /// a start looks for open transactions only where it knows that there may be some.
    pub first_ever: Vec<PartId>,
}

/// An InitProducerId's outcome within the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The id is owned by this producer now.
    Now(Producer),
    /// This open transaction must be ended first.
    EndFirst {
        /// Its number.
        number: u64,
    },
}

impl Ledger {
    /// A producer id never handed out before, also not before any crash (T-132 R).
    pub fn fresh_producer_id(&mut self) -> i64 {
        let marks = self.marks();
        let id = marks.next_producer_id;
        let next = Marks { next_producer_id: id.saturating_add(1), ..marks };
        if next.next_producer_id > marks.producer_ids_end {
            let producer_ids_end = marks.producer_ids_end.saturating_add(PRODUCER_ID_BLOCK);
            self.put_marks(Marks { producer_ids_end, ..next });
        } else {
            self.marks.put((), next);
        }
        id
    }

    /// InitProducerId with a transactional id; its timeout has been checked.
    ///
    /// # Errors
    /// `InvalidRequest` for "" (T-106); `ConcurrentTransactions` while a decision of the id is being carried out
    /// (T-112); as [`init`].
    pub fn init_producer(&mut self, id: &TransactionalId, request: Init, now: Now) -> Result<Owner, Refusal> {
        if id.is_empty() {
            return Err(Refusal::InvalidRequest);
        }
        if self.is_owing(id) {
            return Err(Refusal::ConcurrentTransactions);
        }
        let before = self.txns.get(id).cloned();
        let needs_fresh = before.as_ref().is_none_or(|txn| txn.producer.epoch >= crate::engine::txn::LAST_EPOCH);
        let fresh = if needs_fresh { self.marks().next_producer_id } else { -1 };
        match init(before.as_ref(), request, fresh, now)? {
            Initialised::Owned { next, used_fresh } => {
                if used_fresh {
                    self.fresh_producer_id();
                }
                let producer = next.producer;
                self.put_txn(id, next);
                Ok(Owner::Now(producer))
            }
            Initialised::EndFirst => {
                let number = before.as_ref().and_then(Txn::ongoing).map_or(0, |ongoing| ongoing.number);
                Ok(Owner::EndFirst { number })
            }
        }
    }

    /// AddPartitionsToTxn or AddOffsetsToTxn.
    ///
    /// # Errors
    /// T-212, in its order: unknown id, a decision being carried out, other producer id, other epoch.
    pub fn add_to_txn(&mut self, claimed: Claimed<'_>, addition: &Addition, now: Now) -> Result<Granted, Refusal> {
        let Claimed { id, producer } = claimed;
        let txn = self.known(id)?;
        if self.is_owing(id) {
            return Err(Refusal::ConcurrentTransactions);
        }
        let txn = txn.clone();
        let had: BTreeSet<PartId> = txn.ongoing().map(|ongoing| (*ongoing.parts).clone()).unwrap_or_default();
        let fresh_number = self.next_order();
        let next = txn.add(producer, addition, fresh_number, now)?;
        let number = next.as_ref().unwrap_or(&txn).ongoing().map_or(0, |ongoing| ongoing.number);
        let parts: Vec<PartId> = match addition {
            Addition::Parts(parts) => parts.difference(&had).copied().collect(),
            Addition::Group(_) => Vec::new(),
        };
        let mut first_ever: Vec<PartId> = parts.clone();
        first_ever.retain(|part| self.note_transactional(*part));
        if let Some(next) = next {
            self.put_txn(id, next);
        }
        Ok(Granted { number, parts, first_ever })
    }

    /// Whether a producer may write to a partition within its transaction; the transaction's number if so.
    ///
    /// # Errors
    /// T-222 and T-385, with our order: unknown id or other producer id, other epoch, a decision being carried out,
    /// not in the transaction.
    pub fn verify(&self, claimed: Claimed<'_>, part: PartId) -> Result<u64, Refusal> {
        let Claimed { id, producer } = claimed;
        let txn = self.known(id)?;
        txn.owned_by(producer)?;
        if self.is_owing(id) {
            return Err(Refusal::ConcurrentTransactions);
        }
        txn.may_write(producer, part).map(|ongoing| ongoing.number)
    }

    /// Whether offsets of `group` may join the transaction: TxnOffsetCommit's first half (T-242). The group's own
    /// fencing comes after it, in the same step.
    ///
    /// # Errors
    /// As [`Ledger::verify`], for the group.
    pub fn may_stage(&self, claimed: Claimed<'_>, group: &GroupId) -> Result<(), Refusal> {
        let Claimed { id, producer } = claimed;
        let txn = self.known(id)?;
        txn.owned_by(producer)?;
        if self.is_owing(id) {
            return Err(Refusal::ConcurrentTransactions);
        }
        txn.may_stage(producer, group)
    }

    /// TxnOffsetCommit's second half: the offsets join the transaction, invisible to readers (T-247).
    ///
    /// # Errors
    /// As [`Ledger::may_stage`].
    pub fn stage_offsets(
        &mut self,
        claimed: Claimed<'_>,
        group: &GroupId,
        offsets: Vec<(PartId, Position)>,
        now: Now,
    ) -> Result<(), Refusal> {
        let Claimed { id, producer } = claimed;
        self.may_stage(claimed, group)?;
        let txn = self.known(id)?.clone();
        let mut staged = Vec::with_capacity(offsets.len());
        for (part, position) in offsets {
            let offset = Staged { order: self.next_order(), position };
            let key: OffsetKey = (group.clone(), part);
            if !txn.ongoing().is_some_and(|ongoing| ongoing.staged.contains_key(&key)) {
                self.note_pending(&key);
            }
            let row = RowKey::Pending(id.clone(), group.clone(), part);
            self.rows.put(row, Some(RowValue::Pending(offset.clone())));
            staged.push((part, offset));
        }
        let next = txn.stage(producer, group, staged, now)?;
        self.txns.put(id.clone(), next);
        Ok(())
    }

    /// What an EndTxn meets, judged now; the open transaction's number comes with `Decide`.
    ///
    /// # Errors
    /// T-253: unknown id; as [`judge`].
    pub fn judge_end(&self, claimed: Claimed<'_>, outcome: Outcome) -> Result<(Verdict, u64), Refusal> {
        let Claimed { id, producer } = claimed;
        let txn = self.known(id)?;
        let verdict = judge(txn, producer, outcome, self.is_owing(id))?;
        Ok((verdict, txn.ongoing().map_or(0, |ongoing| ongoing.number)))
    }

    /// The decision: ends transaction `number` of `id` on the state as it is now. Its row, its offsets and its debt go
    /// into one commit, which is the point of no return. Gives the debt's key, if any marker is owed.
    ///
    /// # Errors
    /// `InvalidTxnState` if that transaction is not open any more: what was gathered for it is void.
    pub fn decide(
        &mut self,
        (id, number): (&TransactionalId, u64),
        (outcome, cause): (Outcome, Cause),
        sealed: &BTreeMap<PartId, Option<Offset>>,
        now: Now,
    ) -> Result<Option<u64>, Refusal> {
        let txn = self.known(id)?;
        let ended = end(txn, number, outcome, cause, now)?;
        let mut offsets = Vec::new();
        for (key, staged) in ended.was.staged.iter() {
            match outcome {
                Outcome::Commit => offsets.push((key.clone(), self.decide_offset(key.clone(), staged.clone(), now))),
                Outcome::Abort => self.drop_pending(key),
            }
        }
        self.rows.unstage(id);
        self.put_txn(id, ended.next);
        let due = Stage::Due { at_mono_ms: now.mono_ms, tries: 0 };
        let parts: BTreeMap<PartId, OwedPart> = (ended.was.parts.iter())
            .filter_map(|part| {
                let end = sealed.get(part).copied().flatten()?;
                Some((*part, OwedPart { sealed_end: end, stage: due }))
            })
            .collect();
        if parts.is_empty() {
            for (key, committed) in &offsets {
                self.show_decided(key, committed);
            }
            return Ok(None);
        }
        let seq = self.next_order();
        let owed =
            Owed { id: id.clone(), number, marker: ended.marker, outcome, parts, offsets, since_mono_ms: now.mono_ms };
        self.rows.put(RowKey::Owed(seq), Some(RowValue::Owed(owed.clone())));
        self.owed.put(seq, owed);
        self.owing.put(id.clone(), seq);
        Ok(Some(seq))
    }

    /// Moves one marker of a debt on. In memory only: a crash finds the row as the decision left it.
    pub fn set_stage(&mut self, seq: u64, part: PartId, stage: Stage) {
        let Some(mut owed) = self.owed.get(&seq).cloned() else { return };
        let Some(entry) = owed.parts.get_mut(&part) else { return };
        if entry.stage < stage || matches!(stage, Stage::Due { .. }) {
            entry.stage = stage;
        }
        self.owed.put(seq, owed);
    }

    /// Lets go of an id whose decision is over, and shows its offsets. True if that happened now. Markers parked long
    /// enough hold nothing up any more, each by itself.
    pub fn release_if_over(&mut self, seq: u64, redo: bool, now: Now) -> bool {
        let Some(mut owed) = self.owed.get(&seq).cloned() else { return false };
        if owed.leave_parked(now.mono_ms) {
            self.owed.put(seq, owed.clone());
        }
        if !owed.is_over(redo) || self.owing.get(&owed.id) != Some(&seq) {
            return false;
        }
        for (key, committed) in &owed.offsets {
            self.show_decided(key, committed);
        }
        self.owing.remove(owed.id);
        true
    }

    /// Forgets a debt whose every marker is on disk: with this commit or any later one (storage rule C).
    pub fn forget_owed(&mut self, seq: u64) {
        self.owed.remove(seq);
        self.rows.put(RowKey::Owed(seq), None);
    }

    /// Whether a decision of the id is still being carried out (T-020).
    #[must_use]
    pub fn is_owing(&self, id: &TransactionalId) -> bool {
        self.owing.get(id).is_some()
    }

    /// The debt of an id's last decision, while it is being carried out.
    #[must_use]
    pub fn owing_seq(&self, id: &TransactionalId) -> Option<u64> {
        self.owing.get(id).copied()
    }

    /// Removes one staged offset from every open transaction (T-824).
    pub(super) fn unstage_key(&mut self, key: &OffsetKey) {
        let carriers: Vec<(TransactionalId, Txn)> = (self.txns.iter())
            .filter(|(_, txn)| txn.ongoing().is_some_and(|ongoing| ongoing.staged.contains_key(key)))
            .map(|(id, txn)| (id.clone(), txn.clone()))
            .collect();
        for (id, mut txn) in carriers {
            if let State::Ongoing(ongoing) = &mut txn.state {
                Arc::make_mut(&mut ongoing.staged).remove(key);
            }
            self.rows.put(RowKey::Pending(id.clone(), key.0.clone(), key.1), None);
            self.txns.put(id, txn);
            self.drop_pending(key);
        }
    }

    /// The id's value.
    ///
    /// # Errors
    /// `InvalidProducerIdMapping` for an id never initialised or expired (T-212 row 3), `InvalidRequest` for "".
    pub fn known(&self, id: &TransactionalId) -> Result<&Txn, Refusal> {
        if id.is_empty() {
            return Err(Refusal::InvalidRequest);
        }
        self.txns.get(id).ok_or(Refusal::InvalidProducerIdMapping)
    }

    /// The transactional id that owns a producer id now.
    #[must_use]
    pub fn owner_of(&self, producer_id: i64) -> Option<&TransactionalId> {
        self.owners.get(&producer_id)
    }

    /// Forgets ids idle for `expiration_ms` (T-612). Gives those that went.
    pub fn expire_ids(&mut self, expiration_ms: i64, now: Now) -> Vec<TransactionalId> {
        let oldest = now.wall_ms.saturating_sub(expiration_ms);
        let idle: Vec<(TransactionalId, i64)> = (self.txns.iter())
            .filter(|(id, txn)| {
                txn.ongoing().is_none() && txn.updated_wall_ms <= oldest && self.owing.get(*id).is_none()
            })
            .map(|(id, txn)| (id.clone(), txn.producer.id))
            .collect();
        for (id, producer_id) in &idle {
            self.owners.remove(*producer_id);
            self.txns.remove(id.clone());
            self.rows.put(RowKey::Txn(id.clone()), None);
        }
        idle.into_iter().map(|(id, _)| id).collect()
    }

    pub(super) fn put_txn(&mut self, id: &TransactionalId, next: Txn) {
        let before = self.txns.get(id).map(|txn| txn.producer.id);
        if before != Some(next.producer.id) {
            if let Some(before) = before {
                self.owners.remove(before);
            }
            self.owners.put(next.producer.id, id.clone());
        }
        self.rows.put(RowKey::Txn(id.clone()), Some(RowValue::Txn(next.clone())));
        self.txns.put(id.clone(), next);
    }
}
