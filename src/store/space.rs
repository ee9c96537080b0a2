//! Room on the disk: how much is left, and some that is set aside.
//!
//! Below the low mark no more records are taken, above the high mark they are again; all else goes on all the while. A file
//! of no use, `reserve.bin`, holds the room that decisions and markers need when nothing else has any: it is given up for
//! the first of them that finds the disk full, and made again when there is plenty.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::engine::ledger::rows::Rows;
use crate::store::StoreError;
use crate::store::disk::Disk;
use crate::store::meta::LedgerStore;

const RESERVE: &str = "reserve.bin";

/// Most of a disk that the low mark, unless it is set, keeps free: one part in twenty.
const LOW_PART: u64 = 20;
/// Most bytes that the low mark, unless it is set, keeps free.
const LOW_MOST_BYTES: u64 = 1 << 30;
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
    There,
    /// Given up for something that found the disk full.
    Spent,
}

/// One look at the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
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
    state: Mutex<State>,
}

impl Space {
    /// The room of this disk; what an earlier process set aside counts. Nothing is measured yet.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, limits: Limits) -> Self {
        let reserve = if disk.exists(Path::new(RESERVE)).unwrap_or(false) { Reserve::There } else { Reserve::Absent };
        let state = Mutex::new(State { reserve, ..State::default() });
        Self { disk, limits, low: AtomicBool::new(false), state }
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
        let (free, marks) = (self.disk.free_bytes()?, self.limits.marks(self.disk.capacity_bytes()?));
        let mut state = self.state.lock();
        let before = self.room();
        let room = match before {
            Room::Ample if free < marks.low => Room::Low,
            Room::Low if free >= marks.high => Room::Ample,
            Room::Ample | Room::Low => before,
        };
        (state.free, state.marks) = (free, marks);
        self.low.store(room == Room::Low, Ordering::Relaxed);
        Ok(Measured { free, room, before, marks })
    }

    /// Gives up what was set aside, for a write that found no room. True when there is room now that was not there.
    ///
    /// # Errors
    /// `Broken`.
    pub fn spend_reserve(&self) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        match state.reserve {
            Reserve::There => {}
            Reserve::Absent | Reserve::Spent => return Ok(false),
        }
        self.disk.remove(Path::new(RESERVE)).map_err(|error| StoreError::from_write(RESERVE, &error))?;
        state.reserve = Reserve::Spent;
        state.times_spent = state.times_spent.saturating_add(1);
        // Some file systems free what was removed only when the removal is on disk.
        self.disk.sync_dir(Path::new("")).map_err(|error| StoreError::from_sync("data directory", &error))?;
        Ok(true)
    }

    /// How often what was set aside was given up.
    #[must_use]
    pub fn times_spent(&self) -> u64 {
        self.state.lock().times_spent
    }

    /// Sets room aside if it was not yet, or was given up, and there is plenty by the last look. Written in full, and not
    /// with zeros: what a file system does not store it does not keep free. True when it was made. Takes a while.
    ///
    /// # Errors
    /// The system's; there is nothing set aside then.
    pub fn renew_reserve(&self) -> io::Result<bool> {
        let bytes = {
            let state = self.state.lock();
            let plenty = state.free >= state.marks.high.saturating_add(state.marks.reserve.saturating_mul(2));
            if state.reserve == Reserve::There || state.marks.reserve == 0 || !plenty {
                return Ok(false);
            }
            state.marks.reserve
        };
        if let Err(error) = self.fill(bytes) {
            match self.disk.remove(Path::new(RESERVE)) {
                Ok(()) => {}
                Err(also) if also.kind() == io::ErrorKind::NotFound => {}
                Err(also) => return Err(also),
            }
            return Err(error);
        }
        self.state.lock().reserve = Reserve::There;
        Ok(true)
    }

    fn fill(&self, bytes: u64) -> io::Result<()> {
        let file = self.disk.create(Path::new(RESERVE))?;
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
        file.sync_data()?;
        self.disk.sync_dir(Path::new(""))
    }

    /// What an operator must know of it.
    #[must_use]
    pub fn alarms(&self) -> Vec<String> {
        let state = self.state.lock();
        let (free, Marks { low, high, .. }) = (state.free, state.marks);
        let low = (self.room() == Room::Low).then(|| {
            format!("{free} bytes free on the disk, less than {low}: no records and no topics until there are {high}")
        });
        let spent = (state.reserve == Reserve::Spent)
            .then(|| format!("the disk was full and {RESERVE} was given up for what had to be stored: make room"));
        low.into_iter().chain(spent).collect()
    }
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
            Err(StoreError::Full(_)) if self.space.spend_reserve()? => self.store.commit(rows),
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
