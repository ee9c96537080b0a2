//! What a turn changes on disk: rows by key, the last change of a key winning.

use std::collections::{BTreeMap, BTreeSet};

use super::offsets::Committed;
use crate::engine::txn::work::Owed;
use crate::engine::txn::{Staged, Txn};
use crate::engine::{GroupId, Offset, PartId, TopicId, TransactionalId};

/// High-water marks of what is handed out once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// No producer id at or above this was ever handed out before the last start.
    pub producer_ids_end: i64,
    /// The next producer id to hand out; below `producer_ids_end`, in memory only.
    pub next_producer_id: i64,
    /// The next partition's id.
    pub next_part: i64,
}

/// Where a partition's recovery starts: everything below is on disk and was scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct RecoveryPoint {
    /// Base offset of the active segment.
    pub active_base: Offset,
    /// Bytes of that segment known to be on disk.
    pub synced_pos: u64,
    /// The log's end there.
    pub synced_offset: Offset,
    /// Offset of the producer snapshot to start from.
    pub snapshot_at: Offset,
}

/// A partition as `meta.db` knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartRow {
    /// Its topic.
    pub topic: TopicId,
    /// Its number within the topic.
    pub index: i32,
    /// First offset that readers may have.
    pub log_start: Offset,
    /// Whether it ever was part of a transaction; one that was not is never scanned for open ones.
    pub transactional: bool,
    /// Where recovery starts; `None` while nothing was ever written.
    pub point: Option<RecoveryPoint>,
}

/// A row's place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the kinds of rows; RowValue describes them")]
pub enum RowKey {
    Marks,
    Topic(TopicId),
    Part(PartId),
    Group(GroupId),
    Offset(GroupId, PartId),
    Txn(TransactionalId),
    Pending(TransactionalId, GroupId, PartId),
    Owed(u64),
}

/// A row's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowValue {
    /// What is handed out once.
    Marks(Marks),
    /// A topic, encoded by the catalog.
    Topic(Vec<u8>),
    /// A partition.
    Part(PartRow),
    /// A group, encoded by the group engine.
    Group(Vec<u8>),
    /// A committed offset.
    Offset(Committed),
    /// A transactional id; its staged offsets are rows of their own.
    Txn(Txn),
    /// An offset staged by an open transaction.
    Pending(Staged),
    /// A decision's debt.
    Owed(Owed),
}

/// The changes of one turn.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Rows {
    unstaged: BTreeSet<TransactionalId>,
    changes: BTreeMap<RowKey, Option<RowValue>>,
}

impl Rows {
    /// Writes or removes one row.
    pub fn put(&mut self, key: RowKey, value: Option<RowValue>) {
        self.changes.insert(key, value);
    }

    /// Removes every staged offset of an id, those of this turn too. Later ones of the same turn stand.
    pub fn unstage(&mut self, id: &TransactionalId) {
        self.changes.retain(|key, _| !matches!(key, RowKey::Pending(txn, _, _) if txn == id));
        self.unstaged.insert(id.clone());
    }

    /// Ids whose staged offsets go, before `changes` are applied.
    pub fn unstaged(&self) -> impl Iterator<Item = &TransactionalId> {
        self.unstaged.iter()
    }

    /// Rows to write (`Some`) or remove.
    pub fn changes(&self) -> impl Iterator<Item = (&RowKey, Option<&RowValue>)> {
        self.changes.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// Whether there is nothing to store.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.unstaged.is_empty()
    }

    /// Forgets everything: stored, or refused.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.unstaged.clear();
    }
}
