//! Transactions, offsets, groups and catalog as one state, because their steps read one another: the check of a
//! group's generation and the staging of its offset are one step, and a topic's deletion takes its pending offsets
//! with it in the same commit.
//!
//! A turn of the ledger's owner runs steps on the upper layer, stores `rows` in one commit, then calls `commit`; or
//! `discard` if the store refused. Nothing that a step returns may leave the owner before that.

pub mod groups;
pub mod offsets;
pub mod recover;
pub mod rows;
pub mod show;
pub mod tools;
pub mod topics;
pub mod transactions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::catalog::Catalog;
use crate::engine::group::Group;
use crate::engine::layered::Layered;
use crate::engine::txn::Txn;
use crate::engine::txn::work::Owed;
use crate::engine::{GroupId, PartId, TransactionalId};
use offsets::{Committed, Held, OffsetKey};
use rows::{Marks, PartRow, RowKey, RowValue, Rows};

/// Producer ids are reserved in blocks of this many: the mark is stored before the first of a block is handed out.
pub const PRODUCER_ID_BLOCK: i64 = 1_000;

/// The one state.
#[derive(Debug, Default)]
pub struct Ledger {
    pub(crate) txns: Layered<TransactionalId, Txn>,
    /// Transactional id by its current producer id.
    owners: Layered<i64, TransactionalId>,
    pub(crate) owed: Layered<u64, Owed>,
    /// The decision of an id that is still being carried out.
    owing: Layered<TransactionalId, u64>,
    offsets: Layered<OffsetKey, Committed>,
    /// How many transactions carry an offset here that readers may not see yet (T-821).
    pending: Layered<OffsetKey, u32>,
    held: Layered<OffsetKey, Held>,
    pub(crate) groups: Layered<GroupId, Group>,
    parts: Layered<PartId, PartRow>,
    marks: Layered<(), Marks>,
    catalog: Arc<Catalog>,
    next_catalog: Option<Arc<Catalog>>,
    next_order: u64,
    rows: Rows,
    deadlines: BTreeSet<(i64, Waits)>,
    deadline_of: BTreeMap<Waits, i64>,
}

/// Who waits for a moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// An open transaction, for its timeout.
    Txn(TransactionalId),
    /// An owed marker, for its next try.
    Owed(u64),
    /// A group, for its nearest timer.
    Group(GroupId),
}

impl Ledger {
    /// The changes that the store must have before `commit`.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The catalog as the turn under way sees it.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.next_catalog.as_ref().unwrap_or(&self.catalog)
    }

    /// A place in the order of all offset writes, transactions and decisions. Never given twice, also over a restart.
    fn next_order(&mut self) -> u64 {
        let order = self.next_order;
        self.next_order = order.saturating_add(1);
        order
    }

    fn marks(&self) -> Marks {
        self.marks.get(&()).copied().unwrap_or_default()
    }

    fn put_marks(&mut self, marks: Marks) {
        self.marks.put((), marks);
        self.rows.put(RowKey::Marks, Some(RowValue::Marks(marks)));
    }

    /// The rows are stored: the upper layer becomes the state.
    pub fn commit(&mut self) {
        self.rows.clear();
        for change in self.txns.commit() {
            let at = self.txns.get(&change.key).and_then(Txn::deadline_mono_ms);
            self.set_deadline(Waits::Txn(change.key), at);
        }
        for change in self.owed.commit() {
            let at = self.owed.get(&change.key).and_then(Owed::deadline_mono_ms);
            self.set_deadline(Waits::Owed(change.key), at);
        }
        for change in self.groups.commit() {
            let at = self.groups.get(&change.key).and_then(Group::deadline);
            self.set_deadline(Waits::Group(change.key), at);
        }
        self.owners.commit();
        self.owing.commit();
        self.offsets.commit();
        self.pending.commit();
        self.held.commit();
        self.parts.commit();
        self.marks.commit();
        if let Some(catalog) = self.next_catalog.take() {
            self.catalog = catalog;
        }
    }

    /// The store refused the rows: nothing happened. Order numbers drawn meanwhile stay unused.
    pub fn discard(&mut self) {
        self.rows.clear();
        self.txns.discard();
        self.owed.discard();
        self.groups.discard();
        self.owners.discard();
        self.owing.discard();
        self.offsets.discard();
        self.pending.discard();
        self.held.discard();
        self.parts.discard();
        self.marks.discard();
        self.next_catalog = None;
    }

    /// An end that fences is under way: the timeout has nothing more to say.
    pub fn pause_timeout(&mut self, id: &TransactionalId) {
        self.set_deadline(Waits::Txn(id.clone()), None);
    }

    /// That end was given up: the timeout counts again, as if it had never been asked for.
    pub fn resume_timeout(&mut self, id: &TransactionalId) {
        let at = self.txns.get(id).and_then(Txn::deadline_mono_ms);
        self.set_deadline(Waits::Txn(id.clone()), at);
    }

    /// What was due could not be stored: it is due again at `at_mono_ms`, unless its state changes before.
    pub fn put_off(&mut self, who: Waits, at_mono_ms: i64) {
        self.set_deadline(who, Some(at_mono_ms));
    }

    fn set_deadline(&mut self, who: Waits, at: Option<i64>) {
        if let Some(before) = self.deadline_of.remove(&who) {
            self.deadlines.remove(&(before, who.clone()));
        }
        if let Some(at) = at {
            self.deadlines.insert((at, who.clone()));
            self.deadline_of.insert(who, at);
        }
    }

    /// The next moment at which something is due, on the monotonic clock.
    #[must_use]
    pub fn deadline_mono_ms(&self) -> Option<i64> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Everything due by `now_mono_ms`. Reading changes nothing: what is due stays due until its state changes.
    #[must_use]
    pub fn due(&self, now_mono_ms: i64) -> Vec<Waits> {
        let due = self.deadlines.iter().take_while(|(at, _)| *at <= now_mono_ms);
        due.map(|(_, who)| who.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
