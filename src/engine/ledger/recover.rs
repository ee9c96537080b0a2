//! The ledger from its rows, and what partitions found in their logs compared with it.

use std::sync::Arc;

use super::offsets::{Committed, OffsetKey};
use super::rows::{Marks, PartRow, RowKey, RowValue};
use super::{Ledger, Waits};
use crate::engine::catalog::{Catalog, Topic};
use crate::engine::group::{Group, GroupRow, Settings};
use crate::engine::txn::work::{Owed, Stage};
use crate::engine::txn::{Ongoing, Staged, State, Txn};
use crate::engine::{Epoch, GroupId, Now, PartId, Producer, TransactionalId};

/// Every row of `meta.db`, decoded.
#[derive(Debug, Default)]
pub struct Loaded {
    /// What is handed out once.
    pub marks: Marks,
    /// Topics.
    pub topics: Vec<Topic>,
    /// Partitions.
    pub parts: Vec<(PartId, PartRow)>,
    /// Groups.
    pub groups: Vec<(GroupId, GroupRow)>,
    /// Committed offsets.
    pub offsets: Vec<(OffsetKey, Committed)>,
    /// Transactional ids.
    pub txns: Vec<(TransactionalId, Txn)>,
    /// Staged offsets.
    pub pending: Vec<(TransactionalId, OffsetKey, Staged)>,
    /// Debts of decisions.
    pub owed: Vec<(u64, Owed)>,
}

/// What a transaction found open in a partition's log is to the ledger (storage rule 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// Its id is Ongoing with that epoch and lists the partition.
    Known,
    /// Its registration was lost with an unsynced row; it is Ongoing again.
    Again,
    /// Nobody's. It must be closed with an abort marker of this epoch; an invariant was broken.
    Orphan {
        /// What the marker must carry.
        marker: Producer,
    },
}

impl Ledger {
    /// The state that the rows say. Timeouts count anew from `now` (the order, against T-704).
    #[must_use]
    pub fn load(loaded: Loaded, groups: &Settings, now: Now) -> Self {
        let mut ledger = Self { catalog: Arc::new(Catalog::of(loaded.topics)), ..Self::default() };
        let marks = Marks { next_producer_id: loaded.marks.producer_ids_end, ..loaded.marks };
        ledger.marks.put((), marks);
        for (part, row) in loaded.parts {
            ledger.parts.put(part, row);
        }
        for (id, row) in loaded.groups {
            ledger.groups.put(id, Group::from_row(row, groups, now));
        }
        for (key, committed) in loaded.offsets {
            ledger.saw_order(committed.order);
            ledger.offsets.put(key, committed);
        }
        for (id, txn) in loaded.txns {
            ledger.load_txn(id, txn, now);
        }
        for (id, key, staged) in loaded.pending {
            ledger.load_staged(id, key, staged);
        }
        for (seq, mut owed) in loaded.owed {
            ledger.saw_order(seq.max(owed.number));
            owed.since_mono_ms = now.mono_ms;
            for part in owed.parts.values_mut() {
                part.stage = Stage::Due { at_mono_ms: now.mono_ms, tries: 0 };
            }
            // Each is one more that is pending until the decision is over, as it was when the decision was taken.
            for (key, _) in &owed.offsets {
                ledger.note_pending(key);
            }
            ledger.owing.put(owed.id.clone(), seq);
            ledger.owed.put(seq, owed);
        }
        let cleaning = ledger.rows.clone();
        ledger.commit();
        ledger.rows = cleaning;
        ledger
    }

    fn load_txn(&mut self, id: TransactionalId, mut txn: Txn, now: Now) {
        if let State::Ongoing(ongoing) = &mut txn.state {
            ongoing.since_mono_ms = now.mono_ms;
            self.saw_order(ongoing.number);
        }
        self.owners.put(txn.producer.id, id.clone());
        self.txns.put(id, txn);
    }

    /// A staged offset belongs to its id's open transaction; one whose id has none is a leftover and goes.
    fn load_staged(&mut self, id: TransactionalId, key: OffsetKey, staged: Staged) {
        self.saw_order(staged.order);
        let open = self.txns.get(&id).cloned().filter(|txn| txn.ongoing().is_some());
        let Some(mut txn) = open else {
            self.rows.put(RowKey::Pending(id, key.0, key.1), None);
            return;
        };
        if let State::Ongoing(ongoing) = &mut txn.state {
            Arc::make_mut(&mut ongoing.groups).insert(key.0.clone());
            Arc::make_mut(&mut ongoing.staged).insert(key.clone(), staged);
        }
        self.note_pending(&key);
        self.txns.put(id, txn);
    }

    fn saw_order(&mut self, order: u64) {
        self.next_order = self.next_order.max(order.saturating_add(1));
    }

    /// Compares a transaction that `part`'s log holds open with the ledger, and takes it up again where only its row
    /// was lost. Run before any listener opens, so that no last stable offset can hang on an orphan.
    pub fn adopt(&mut self, open: Producer, part: PartId, now: Now) -> Adopted {
        let Some(id) = self.owner_of(open.id).cloned() else {
            return Adopted::Orphan { marker: Producer { id: open.id, epoch: open.epoch.saturating_add(1) } };
        };
        let Some(txn) = self.txns.get(&id).cloned() else {
            return Adopted::Orphan { marker: Producer { id: open.id, epoch: open.epoch.saturating_add(1) } };
        };
        if txn.producer.epoch != open.epoch {
            let epoch: Epoch = txn.producer.epoch.max(open.epoch);
            return Adopted::Orphan { marker: Producer { id: open.id, epoch } };
        }
        if txn.ongoing().is_some_and(|ongoing| ongoing.parts.contains(&part)) {
            return Adopted::Known;
        }
        let number = self.next_order();
        let mut ongoing = txn.ongoing().cloned().unwrap_or_else(|| Ongoing::begun(number, now));
        Arc::make_mut(&mut ongoing.parts).insert(part);
        self.put_txn(&id, Txn { state: State::Ongoing(ongoing), updated_wall_ms: now.wall_ms, ..txn });
        Adopted::Again
    }

    /// What the partition is to be remembered by.
    #[must_use]
    pub fn part(&self, part: PartId) -> Option<&PartRow> {
        self.parts.get(&part)
    }

    /// Every partition.
    pub fn all_parts(&self) -> impl Iterator<Item = (PartId, &PartRow)> {
        self.parts.iter().map(|(part, row)| (*part, row))
    }

    /// Writes a partition's row.
    pub fn put_part(&mut self, part: PartId, row: PartRow) {
        self.rows.put(RowKey::Part(part), Some(RowValue::Part(row)));
        self.parts.put(part, row);
    }

    /// Removes a partition's row.
    pub(super) fn remove_part(&mut self, part: PartId) {
        self.rows.put(RowKey::Part(part), None);
        self.parts.remove(part);
    }

    /// Notes, in the commit that lets a transaction write to it, that the partition must be scanned for open
    /// transactions after a crash. True if it was not known before.
    pub(super) fn note_transactional(&mut self, part: PartId) -> bool {
        let Some(row) = self.parts.get(&part).copied().filter(|row| !row.transactional) else { return false };
        self.put_part(part, PartRow { transactional: true, ..row });
        true
    }

    /// Every open transaction with its id, for the grants of a start.
    pub fn open_transactions(&self) -> impl Iterator<Item = (&TransactionalId, &Txn, &Ongoing)> {
        self.txns.iter().filter_map(|(id, txn)| txn.ongoing().map(|ongoing| (id, txn, ongoing)))
    }

    /// Debts, oldest first.
    pub fn debts(&self) -> impl Iterator<Item = (u64, &Owed)> {
        self.owed.iter().map(|(seq, owed)| (*seq, owed))
    }

    /// Whether something waits for a moment under this name (tests).
    #[must_use]
    pub fn waits_for(&self, who: &Waits) -> Option<i64> {
        self.deadline_of.get(who).copied()
    }
}
