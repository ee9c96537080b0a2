//! Room on the disk: how much is left, and some that is set aside.
//!
//! Below the low mark no more records are taken, above the high mark they are again; all else goes on all the while. A file
//! of no use, `reserve.bin`, holds the room that decisions and markers need when nothing else has any: it is given up for
//! the first of them that finds the disk full, and made again when there is plenty. Records are refused from that moment,
//! or they would eat what was set aside for others.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::engine::ledger::rows::{RowKey, Rows};
use crate::store::StoreError;
use crate::store::disk::{Disk, TEMPORARY_SUFFIX};
use crate::store::meta::LedgerStore;

const RESERVE: &str = "reserve.bin";

/// Most of a disk that the low mark, unless it is set, keeps free: one part in twenty.
const LOW_PART: u64 = 20;
/// Most bytes that the low mark, unless it is set, keeps free.
const LOW_MOST_BYTES: u64 = 256 << 20;
/// The reserve is never more than one part in a hundred of a disk.
const RESERVE_PART: u64 = 100;
/// Bytes of the reserve that are written at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// What was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Bytes to set aside; 0 for none.
    pub reserve_bytes: u64,
    /// Free bytes below which records are refused; by the size of the disk if `None`, never if 0.
    pub low_bytes: Option<u64>,
    /// Free bytes from which they are taken again; twice the low mark if `None`.
    pub high_bytes: Option<u64>,
}

impl Limits {
    /// Nothing is watched, and nothing set aside.
    pub const OFF: Self = Self { reserve_bytes: 0, low_bytes: Some(0), high_bytes: Some(0) };

    fn marks(&self, capacity: u64) -> Marks {
        let low = self.low_bytes.unwrap_or((capacity / LOW_PART).min(LOW_MOST_BYTES));
        let high = self.high_bytes.unwrap_or(low.saturating_mul(2)).max(low);
        Marks { low, high, reserve: self.reserve_bytes.min(capacity / RESERVE_PART) }
    }
}

/// What holds on this disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// Below it records are refused.
    pub low: u64,
    /// From it on they are taken again.
    pub high: u64,
    /// Set aside.
    pub reserve: u64,
}

impl Marks {
    /// Free bytes from which room is set aside.
    fn plenty(&self) -> u64 {
        self.high.saturating_add(self.reserve.saturating_mul(2))
    }
}

/// Whether there is room for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Room {
    /// There is.
    #[default]
    Ample,
    /// They are refused.
    Low,
}

/// What was set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reserve {
    /// Not made yet, or not to be made.
    #[default]
    Absent,
    There {
        bytes: u64,
    },
    /// Given up for something that found the disk full.
    Spent,
}

/// What became of setting room aside.
#[derive(Debug)]
pub enum Renewed {
    /// It was done.
    Made,
    /// There is nothing to do, or too little room to do it.
    NotDue,
    /// It could not be done; nothing is left of it.
    Failed(io::Error),
}

/// One look at the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Bytes of the whole disk.
    pub total: u64,
    /// Bytes that may still be written.
    pub free: u64,
    /// What holds now.
    pub room: Room,
    /// What held before.
    pub before: Room,
    /// The marks.
    pub marks: Marks,
}

#[derive(Default)]
struct State {
    free: u64,
    marks: Marks,
    reserve: Reserve,
    times_spent: u64,
}

/// The disk's room, shared by all who write.
pub struct Space {
    disk: Arc<dyn Disk>,
    limits: Limits,
    low: AtomicBool,
    /// Never held while the disk is waited for: readiness asks for it.
    state: Mutex<State>,
    /// Held by whoever gives the file up or puts it in its place.
    placing: Mutex<()>,
}

impl Space {
    /// The room of this disk; what an earlier process set aside counts, what it was at when it ended goes. Nothing is
    /// measured yet.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, limits: Limits) -> Self {
        let reserve = disk.size(Path::new(RESERVE)).map_or(Reserve::Absent, |bytes| Reserve::There { bytes });
        let state = Mutex::new(State { reserve, ..State::default() });
        let space = Self { disk, limits, low: AtomicBool::new(false), state, placing: Mutex::new(()) };
        if let Err(error) = space.remove_unfinished() {
            tracing::warn!(%error, "a half-made {RESERVE} is left behind");
        }
        space
    }

    /// Whether there is room for records, as of the last look. Does not wait.
    #[must_use]
    pub fn room(&self) -> Room {
        if self.low.load(Ordering::Relaxed) { Room::Low } else { Room::Ample }
    }

    /// Looks at the disk. May wait for it.
    ///
    /// # Errors
    /// The system's; what held before goes on to hold.
    pub fn measure(&self) -> io::Result<Measured> {
        let (free, capacity) = (self.disk.free_bytes()?, self.disk.capacity_bytes()?);
        let marks = self.limits.marks(capacity);
        let mut state = self.state.lock();
        let before = self.room();
        let room = match before {
            Room::Ample if free < marks.low => Room::Low,
            Room::Low if free >= marks.high => Room::Ample,
            Room::Ample | Room::Low => before,
        };
        (state.free, state.marks) = (free, marks);
        self.low.store(room == Room::Low, Ordering::Relaxed);
        Ok(Measured { total: capacity, free, room, before, marks })
    }

    /// Bytes of the whole disk, and those that may still be written, now. May wait for it.
    ///
    /// # Errors
    /// The system's.
    pub fn disk_bytes(&self) -> io::Result<(u64, u64)> {
        Ok((self.disk.capacity_bytes()?, self.disk.free_bytes()?))
    }

    /// Gives up what was set aside, for a write that found no room. True when there is room now that was not there; no
    /// records are taken until there is more.
    ///
    /// # Errors
    /// `Broken`.
    pub fn spend_reserve(&self) -> Result<bool, StoreError> {
        let _placing = self.placing.lock();
        match self.state.lock().reserve {
            Reserve::There { .. } => {}
            Reserve::Absent | Reserve::Spent => return Ok(false),
        }
        // Before there is room: no record may be quicker.
        if self.limits.low_bytes != Some(0) {
            self.low.store(true, Ordering::Relaxed);
        }
        self.disk.remove(Path::new(RESERVE)).map_err(|error| StoreError::from_write(RESERVE, &error))?;
        let mut state = self.state.lock();
        state.reserve = Reserve::Spent;
        state.times_spent = state.times_spent.saturating_add(1);
        drop(state);
        // Some file systems free what was removed only when the removal is on disk.
        self.disk.sync_dir(Path::new("")).map_err(|error| StoreError::from_sync("data directory", &error))?;
        Ok(true)
    }

    /// How often what was set aside was given up.
    #[must_use]
    pub fn times_spent(&self) -> u64 {
        self.state.lock().times_spent
    }

    /// Sets room aside if it was not yet, or less than is wanted, or was given up, and there is plenty by the last look.
    /// Written in full, and not with zeros: what a file system does not store it does not keep free. Takes a while.
    ///
    /// # Errors
    /// `Broken`: the directory could not be synced.
    pub fn renew_reserve(&self) -> Result<Renewed, StoreError> {
        let bytes = {
            let state = self.state.lock();
            let is_there = match state.reserve {
                Reserve::There { bytes } => bytes >= state.marks.reserve,
                Reserve::Absent | Reserve::Spent => state.marks.reserve == 0,
            };
            if is_there || state.free < state.marks.plenty() {
                return Ok(Renewed::NotDue);
            }
            state.marks.reserve
        };
        if let Err(error) = self.fill(bytes) {
            return Ok(Renewed::Failed(self.remove_unfinished().err().unwrap_or(error)));
        }
        let _placing = self.placing.lock();
        if let Err(error) = self.disk.rename(&unfinished(), Path::new(RESERVE)) {
            return Ok(Renewed::Failed(self.remove_unfinished().err().unwrap_or(error)));
        }
        self.state.lock().reserve = Reserve::There { bytes };
        self.disk.sync_dir(Path::new("")).map_err(|error| StoreError::from_sync("data directory", &error))?;
        Ok(Renewed::Made)
    }

    fn remove_unfinished(&self) -> io::Result<()> {
        match self.disk.remove(&unfinished()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Under another name: a process that ends in the middle leaves nothing that looks like the whole.
    fn fill(&self, bytes: u64) -> io::Result<()> {
        let file = self.disk.create(&unfinished())?;
        let mut chunk = vec![0_u8; CHUNK_BYTES];
        let (mut pos, mut draw) = (0_u64, 0x9E37_79B9_7F4A_7C15_u64);
        while pos < bytes {
            for word in chunk.chunks_exact_mut(8) {
                draw ^= draw << 13;
                draw ^= draw >> 7;
                draw ^= draw << 17;
                word.copy_from_slice(&draw.to_ne_bytes());
            }
            let len = usize::try_from(bytes - pos).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            file.write_at(&[IoSlice::new(chunk.get(..len).unwrap_or_default())], pos)?;
            pos = pos.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
        }
        file.sync_data()
    }

    /// What an operator must know of it.
    #[must_use]
    pub fn alarms(&self) -> Vec<String> {
        let state = self.state.lock();
        let (free, marks) = (state.free, state.marks);
        let low = (self.room() == Room::Low).then(|| why_low(free, &marks));
        let spent = (state.reserve == Reserve::Spent).then(|| {
            format!(
                "the disk was full and {RESERVE} was given up for what had to be stored: make room, it is made again \
                 when {} bytes are free",
                marks.plenty()
            )
        });
        low.into_iter().chain(spent).collect()
    }
}

fn unfinished() -> PathBuf {
    PathBuf::from(format!("{RESERVE}{TEMPORARY_SUFFIX}"))
}

/// Why records are refused, and what is to be done.
#[must_use]
pub fn why_low(free: u64, Marks { low, high, .. }: &Marks) -> String {
    format!(
        "{free} bytes free on the disk: below {low} (storage.low_free_bytes) records and new topics are refused, until \
         {high} (storage.high_free_bytes) are free again: remove files or topics, shorten retention, or set the marks lower"
    )
}

/// Whether rows must find room though the disk has none: they end or undo something, or let something go. A client whose
/// offset or topic finds none asks again.
fn must_fit(rows: &Rows) -> bool {
    let must = |key: &RowKey| match key {
        RowKey::Txn(_) | RowKey::Owed(_) | RowKey::Part(_) => true,
        RowKey::Marks | RowKey::Topic(_) | RowKey::Group(_) | RowKey::Offset(..) | RowKey::Pending(..) => false,
    };
    rows.unstaged().next().is_some() || rows.changes().any(|(key, row)| row.is_none() || must(key))
}

/// A store that finds room where there is none left: in what was set aside.
pub struct Spared {
    store: Box<dyn LedgerStore>,
    space: Arc<Space>,
}

impl Spared {
    /// Puts the room set aside behind `store`.
    #[must_use]
    pub fn new(store: Box<dyn LedgerStore>, space: Arc<Space>) -> Self {
        Self { store, space }
    }
}

impl LedgerStore for Spared {
    fn commit(&mut self, rows: &Rows) -> Result<u64, StoreError> {
        match self.store.commit(rows) {
            Err(StoreError::Full(_)) if must_fit(rows) && self.space.spend_reserve()? => self.store.commit(rows),
            stored => stored,
        }
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

#[cfg(test)]
mod tests;
