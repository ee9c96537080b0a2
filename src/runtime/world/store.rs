//! A ledger store in memory: says no when it is told to, and loses at a power cut what was not flushed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::catalog::Topic;
use crate::engine::group::GroupRow;
use crate::engine::ledger::recover::Loaded;
use crate::engine::ledger::rows::{Marks, RowKey, RowValue, Rows};
use crate::engine::txn::work::Owed;
use crate::engine::txn::{Ongoing, State, Txn};
use crate::known_bugs::{Bug, is_in};
use crate::store::StoreError;
use crate::store::meta::LedgerStore;

/// How commits go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mood {
    /// They are taken.
    #[default]
    Well,
    /// There is no room for any.
    Full,
    /// There is no room for commits of more than so many rows.
    FullAbove(usize),
    /// It is not known what became of one.
    Broken,
}

/// The store; clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct FakeDb(Arc<Mutex<Commits>>);

#[derive(Default)]
struct Commits {
    /// What stood when the process started.
    base: BTreeMap<RowKey, RowValue>,
    /// Commits since.
    commits: Vec<Rows>,
    flushed: usize,
    mood: Mood,
    /// Commits that were tried, taken or not.
    tried: usize,
}

impl FakeDb {
    pub(crate) fn set(&self, mood: Mood) {
        self.0.lock().mood = mood;
    }

    pub(crate) fn tried(&self) -> usize {
        self.0.lock().tried
    }

    pub(crate) fn flush(&self) {
        let mut inner = self.0.lock();
        inner.flushed = inner.commits.len();
    }

    /// How many of the commits a cut may keep: from the flushed ones to all that were written.
    pub(crate) fn may_keep(&self) -> (usize, usize) {
        let inner = self.0.lock();
        (inner.flushed, inner.commits.len())
    }

    /// The store as it is found when only the first `kept` commits reached the disk.
    pub(crate) fn after_cut(&self, kept: usize) -> Self {
        let inner = self.0.lock();
        assert!(kept >= inner.flushed, "a flushed commit cannot be lost");
        let base = rows_after(&inner, kept);
        Self(Arc::new(Mutex::new(Commits { base, ..Commits::default() })))
    }

    /// Every row, as the next start reads it.
    pub(crate) fn load(&self) -> Loaded {
        let inner = self.0.lock();
        let mut loaded = Loaded::default();
        for (key, value) in rows_after(&inner, inner.commits.len()) {
            take_row(&mut loaded, key, value);
        }
        loaded
    }
}

fn rows_after(inner: &Commits, kept: usize) -> BTreeMap<RowKey, RowValue> {
    let mut rows = inner.base.clone();
    for commit in inner.commits.iter().take(kept) {
        for gone in commit.unstaged() {
            rows.retain(|key, _| !matches!(key, RowKey::Pending(txn, _, _) if txn == gone));
        }
        for (key, value) in commit.changes() {
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
    }
    rows
}

fn take_row(loaded: &mut Loaded, key: RowKey, value: RowValue) {
    match (key, value) {
        (RowKey::Marks, RowValue::Marks(marks)) => {
            loaded.marks = Marks { next_producer_id: marks.producer_ids_end, ..marks };
        }
        (RowKey::Topic(_), RowValue::Topic(body)) => loaded.topics.push(Topic::decode(&body).expect("a topic")),
        (RowKey::Part(part), RowValue::Part(row)) => loaded.parts.push((part, row)),
        (RowKey::Group(id), RowValue::Group(body)) => {
            loaded.groups.push((id, GroupRow::decode(&body).expect("a group")));
        }
        (RowKey::Offset(group, part), RowValue::Offset(committed)) => loaded.offsets.push(((group, part), committed)),
        (RowKey::Txn(id), RowValue::Txn(txn)) => loaded.txns.push((id, bare(txn))),
        (RowKey::Pending(txn, group, part), RowValue::Pending(staged)) => {
            loaded.pending.push((txn, (group, part), staged));
        }
        (RowKey::Owed(seq), RowValue::Owed(owed)) => loaded.owed.push((seq, Owed { offsets: Vec::new(), ..owed })),
        (key, _) => panic!("{key:?} holds another kind of row"),
    }
}

/// The row's own body: staged offsets are rows of their own, and moments of the monotonic clock are not stored.
fn bare(txn: Txn) -> Txn {
    let state = match txn.state {
        State::Ongoing(ongoing) => State::Ongoing(Ongoing { staged: Arc::default(), since_mono_ms: 0, ..ongoing }),
        state @ (State::Empty | State::Ended { .. }) => state,
    };
    Txn { state, ..txn }
}

/// A store with a bug in it.
pub(crate) struct Buggy {
    store: Box<dyn LedgerStore>,
    bug: Bug,
    late: Rows,
}

impl Buggy {
    /// `store`, with the bug that was put back if it is one of stores.
    pub(crate) fn or_sound(store: Box<dyn LedgerStore>) -> Box<dyn LedgerStore> {
        let bug = [Bug::OffsetsOutsideDecision, Bug::OwedKeptAfterStart].into_iter().find(|bug| is_in(*bug));
        match bug {
            Some(bug) => Box::new(Self { store, bug, late: Rows::default() }),
            None => store,
        }
    }

    /// What is stored in place of these rows.
    fn instead(&mut self, rows: &Rows) -> Rows {
        let first = self.store.written() == 0;
        let decides = rows.changes().any(|(key, value)| matches!(key, RowKey::Owed(_)) && value.is_some());
        let mut stored = std::mem::take(&mut self.late);
        rows.unstaged().for_each(|id| stored.unstage(id));
        for (key, value) in rows.changes() {
            let late = self.bug == Bug::OffsetsOutsideDecision && decides && matches!(key, RowKey::Offset(..));
            let kept =
                self.bug == Bug::OwedKeptAfterStart && first && matches!(key, RowKey::Owed(_)) && value.is_none();
            match (late, kept) {
                (true, _) => self.late.put(key.clone(), value.cloned()),
                (false, true) => {}
                (false, false) => stored.put(key.clone(), value.cloned()),
            }
        }
        stored
    }
}

impl LedgerStore for Buggy {
    fn commit(&mut self, rows: &Rows) -> Result<u64, StoreError> {
        let stored = self.instead(rows);
        self.store.commit(&stored)
    }

    fn tidy(&mut self, idle: bool) -> Result<(), StoreError> {
        self.store.tidy(idle)
    }

    fn written(&self) -> u64 {
        self.store.written()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.store.close()
    }
}

impl LedgerStore for FakeDb {
    fn commit(&mut self, rows: &Rows) -> Result<u64, StoreError> {
        let mut inner = self.0.lock();
        inner.tried += 1;
        let many = rows.changes().count() + rows.unstaged().count();
        match inner.mood {
            Mood::Full => return Err(StoreError::Full("as told".to_owned())),
            Mood::FullAbove(most) if many > most => return Err(StoreError::Full("as told".to_owned())),
            Mood::Broken => return Err(StoreError::Broken("as told".to_owned())),
            Mood::Well | Mood::FullAbove(_) => {}
        }
        inner.commits.push(rows.clone());
        Ok(u64::try_from(inner.commits.len()).unwrap())
    }

    fn tidy(&mut self, _idle: bool) -> Result<(), StoreError> {
        Ok(())
    }

    fn written(&self) -> u64 {
        u64::try_from(self.0.lock().commits.len()).unwrap()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}
