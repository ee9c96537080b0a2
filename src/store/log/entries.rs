//! One index file: entries that are written, and a tail of newer ones that so far are only in memory.
//!
//! The file only ever grows, or is replaced whole by a rename, and only at a flush, which is the owner's. What an opening
//! takes off the list is taken off in memory: readers of the log before may look at the same file until they are told.

use std::io::{self, IoSlice};
use std::path::PathBuf;

use parking_lot::{Mutex, RwLock};

use crate::engine::log::Entry;
use crate::engine::log::index::partition_point;
use crate::store::StoreError;
use crate::store::disk::{Disk, File, Replacing, replace_file};
use crate::store::log::ReadHow;
use crate::store::log::window::as_u64;

/// Entries read from a file at a time.
const CHUNK_ENTRIES: u64 = 256;

/// A sorted list of entries, the older ones in a file. The owner of the log adds and flushes; anyone reads.
pub(super) struct EntryFile<E> {
    path: PathBuf,
    state: RwLock<State<E>>,
    // Held while the file changes, so that two of those never meet.
    writing: Mutex<()>,
}

struct State<E> {
    written: Written<E>,
    file: OnDisk,
    tail: Vec<E>,
}

/// What the file holds beside the entries that count as written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnDisk {
    Nothing,
    /// Bytes behind them that are none of the list: the next flush replaces the file.
    More,
}

#[derive(Clone, Copy)]
enum Written<E> {
    /// The file was not looked at yet.
    Unknown,
    Known {
        count: u64,
        last: Option<E>,
    },
}

/// An answer, unless it would have to wait for the device.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup<T> {
    Found(T),
    WouldBlock,
}

/// The two entries between which a condition turns from true to false.
pub(super) type Around<E> = (Option<E>, Option<E>);

/// Judges an entry, given the one before it.
pub(super) type Keeps<'a, E> = dyn FnMut(Option<&E>, &E) -> Result<bool, StoreError> + 'a;

impl<E: Entry> EntryFile<E> {
    /// A list whose file does not exist.
    pub(super) fn empty(path: PathBuf) -> Self {
        Self::with(path, Written::Known { count: 0, last: None })
    }

    /// A list whose file is looked at when first needed.
    pub(super) fn unread(path: PathBuf) -> Self {
        Self::with(path, Written::Unknown)
    }

    fn with(path: PathBuf, written: Written<E>) -> Self {
        Self {
            path,
            state: RwLock::new(State { written, file: OnDisk::Nothing, tail: Vec::new() }),
            writing: Mutex::new(()),
        }
    }

    pub(super) fn push(&self, entry: E) {
        self.state.write().tail.push(entry);
    }

    /// Number of entries and the last one.
    pub(super) fn last(&self, disk: &dyn Disk) -> Result<(u64, Option<E>), StoreError> {
        let (count, written_last) = self.written(disk)?;
        let state = self.state.read();
        Ok((count.saturating_add(as_u64(state.tail.len())), state.tail.last().copied().or(written_last)))
    }

    /// The last entry that `holds` is true of and the first it is not; it must be true of a prefix only.
    pub(super) fn around(
        &self,
        disk: &dyn Disk,
        holds: &dyn Fn(&E) -> bool,
        how: ReadHow,
    ) -> Result<Lookup<Around<E>>, StoreError> {
        let (written, next) = {
            let state = self.state.read();
            let at = state.tail.partition_point(holds);
            let next = state.tail.get(at).copied();
            if let Some(last) = at.checked_sub(1).and_then(|at| state.tail.get(at)) {
                return Ok(Lookup::Found((Some(*last), next)));
            }
            (state.written, next)
        };
        match written {
            Written::Known { last: None, .. } => return Ok(Lookup::Found((None, next))),
            Written::Known { last: Some(last), .. } if holds(&last) => return Ok(Lookup::Found((Some(last), next))),
            Written::Known { .. } | Written::Unknown => {}
        }
        if how == ReadHow::NoWait {
            return Ok(Lookup::WouldBlock);
        }
        let (count, _) = self.written(disk)?;
        if count == 0 {
            return Ok(Lookup::Found((None, next)));
        }
        let file = self.open(disk)?;
        let at = partition_point(count, |at| Ok::<_, StoreError>(holds(&self.entry(&*file, at)?)))?;
        let last = at.checked_sub(1).map(|at| self.entry(&*file, at)).transpose()?;
        let next = if at < count { Some(self.entry(&*file, at)?) } else { next };
        Ok(Lookup::Found((last, next)))
    }

    /// Hands out the entries after those that `skips` is true of, in order, until `take` says no more.
    pub(super) fn each_after(
        &self,
        disk: &dyn Disk,
        skips: &dyn Fn(&E) -> bool,
        how: ReadHow,
        take: &mut dyn FnMut(E) -> bool,
    ) -> Result<Lookup<()>, StoreError> {
        let (written, tail) = {
            let state = self.state.read();
            let at = state.tail.partition_point(skips);
            (state.written, state.tail.get(at..).unwrap_or_default().to_vec())
        };
        let in_file = match written {
            Written::Known { last, .. } => last.is_some_and(|last| !skips(&last)),
            Written::Unknown => true,
        };
        if in_file {
            if how == ReadHow::NoWait {
                return Ok(Lookup::WouldBlock);
            }
            if !self.each_written(disk, skips, take)? {
                return Ok(Lookup::Found(()));
            }
        }
        for entry in tail {
            if !take(entry) {
                break;
            }
        }
        Ok(Lookup::Found(()))
    }

    /// As [`each_after`](Self::each_after) for what is in the file; true when it got to the end.
    fn each_written(
        &self,
        disk: &dyn Disk,
        skips: &dyn Fn(&E) -> bool,
        take: &mut dyn FnMut(E) -> bool,
    ) -> Result<bool, StoreError> {
        let (count, _) = self.written(disk)?;
        if count == 0 {
            return Ok(true);
        }
        let file = self.open(disk)?;
        let mut at = partition_point(count, |at| Ok::<_, StoreError>(skips(&self.entry(&*file, at)?)))?;
        while at < count {
            let chunk = self.entries(&*file, at, CHUNK_ENTRIES.min(count - at))?;
            at = at.saturating_add(as_u64(chunk.len()));
            for entry in chunk {
                if !take(entry) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Moves the front of the tail that `ready` is true of into the file, and makes it durable; rids the file of what is
    /// none of the list. True when the file is new, so that its name has to be made durable too. A failure leaves all as
    /// it was. For the owner of the log only.
    pub(super) fn flush(&self, disk: &dyn Disk, ready: &dyn Fn(&E) -> bool) -> Result<bool, StoreError> {
        let _writing = self.writing.lock();
        let (file, moving) = {
            let state = self.state.read();
            (state.file, state.tail.iter().copied().take_while(ready).collect::<Vec<E>>())
        };
        if file == OnDisk::More {
            return self.rewrite(disk, &moving).map(|()| false);
        }
        let Some(last) = moving.last().copied() else {
            return Ok(false);
        };
        let (count, _) = self.written(disk)?;
        let (file, created) = match disk.open(&self.path) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (self.create(disk)?, true),
            Err(error) => return Err(self.write_error(&error)),
        };
        let mut bytes = Vec::new();
        moving.iter().for_each(|entry| entry.encode(&mut bytes));
        file.write_at(&[IoSlice::new(&bytes)], Self::position(count)).map_err(|error| self.write_error(&error))?;
        file.sync_data().map_err(|error| StoreError::from_sync(&self.path.display().to_string(), &error))?;
        let mut state = self.state.write();
        state.tail.drain(..moving.len());
        state.written = Written::Known { count: count.saturating_add(as_u64(moving.len())), last: Some(last) };
        Ok(created)
    }

    /// Replaces the file by what counts as written of it and `moving`, the front of the tail. Whoever reads the entries
    /// that are written meanwhile finds the same in either file.
    fn rewrite(&self, disk: &dyn Disk, moving: &[E]) -> Result<(), StoreError> {
        let (count, last) = self.written(disk)?;
        let mut bytes = Vec::new();
        if count > 0 {
            let file = self.open(disk)?;
            self.entries(&*file, 0, count)?.iter().for_each(|entry| entry.encode(&mut bytes));
        }
        moving.iter().for_each(|entry| entry.encode(&mut bytes));
        replace_file(disk, &self.path, &bytes).map_err(|error| match error {
            Replacing::Write(error) => self.write_error(&error),
            Replacing::Sync(error) => StoreError::from_sync(&self.path.display().to_string(), &error),
        })?;
        let mut state = self.state.write();
        state.tail.drain(..moving.len());
        let count = count.saturating_add(as_u64(moving.len()));
        state.written = Written::Known { count, last: moving.last().copied().or(last) };
        state.file = OnDisk::Nothing;
        Ok(())
    }

    /// Makes the file even if it has no entries yet.
    pub(super) fn make_file(&self, disk: &dyn Disk) -> Result<(), StoreError> {
        let _writing = self.writing.lock();
        if !disk.exists(&self.path).map_err(|error| self.read_error(&error))? {
            self.create(disk)?;
        }
        Ok(())
    }

    /// Keeps everything up to the last entry that `keeps` says yes to, seen with the one before it; for a log that is
    /// being opened. Looks from the end backwards: what a crash left half written is there, and nowhere else. The file
    /// stays as it is until the next flush.
    pub(super) fn cut(&self, disk: &dyn Disk, keeps: &mut Keeps<'_, E>) -> Result<(), StoreError> {
        let _writing = self.writing.lock();
        let size = self.size(disk)?;
        let (mut kept, mut last) = (size / as_u64(E::BYTES), None);
        if size > 0 {
            let file = self.open(disk)?;
            while let Some(at) = kept.checked_sub(1) {
                let entry = self.readable(&*file, at)?;
                let before = match at.checked_sub(1) {
                    Some(before) => self.readable(&*file, before)?,
                    None => None,
                };
                match entry {
                    Some(entry) if keeps(before.as_ref(), &entry)? => {
                        last = Some(entry);
                        break;
                    }
                    Some(_) | None => kept = at,
                }
            }
        }
        let file = if Self::position(kept) == size { OnDisk::Nothing } else { OnDisk::More };
        *self.state.write() = State { written: Written::Known { count: kept, last }, file, tail: Vec::new() };
        Ok(())
    }

    /// Whether the list has nothing to do with a file so far.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.state.read().written, Written::Known { count: 0, .. })
    }

    /// Whether the file is not what the list is.
    pub(super) fn is_pending(&self) -> bool {
        let state = self.state.read();
        !state.tail.is_empty() || state.file == OnDisk::More
    }

    /// Takes `entries` in place of all that was there, in memory until the next flush.
    pub(super) fn replace(&self, disk: &dyn Disk, entries: Vec<E>) -> Result<(), StoreError> {
        let _writing = self.writing.lock();
        let file = if self.size(disk)? == 0 { OnDisk::Nothing } else { OnDisk::More };
        *self.state.write() = State { written: Written::Known { count: 0, last: None }, file, tail: entries };
        Ok(())
    }

    fn size(&self, disk: &dyn Disk) -> Result<u64, StoreError> {
        match disk.size(&self.path) {
            Ok(size) => Ok(size),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(self.read_error(&error)),
        }
    }

    fn written(&self, disk: &dyn Disk) -> Result<(u64, Option<E>), StoreError> {
        if let Written::Known { count, last } = self.state.read().written {
            return Ok((count, last));
        }
        let count = self.size(disk)? / as_u64(E::BYTES);
        let last = match count.checked_sub(1) {
            Some(at) => Some(self.entry(&*self.open(disk)?, at)?),
            None => None,
        };
        let mut state = self.state.write();
        if let Written::Unknown = state.written {
            state.written = Written::Known { count, last };
        }
        Ok((count, last))
    }

    fn entry(&self, file: &dyn File, at: u64) -> Result<E, StoreError> {
        let found = self.entries(file, at, 1)?;
        found.first().copied().ok_or_else(|| self.bad_entry(at))
    }

    /// The entry at a place; `None` when the bytes there are none.
    fn readable(&self, file: &dyn File, at: u64) -> Result<Option<E>, StoreError> {
        let mut bytes = vec![0; E::BYTES];
        let read = file.read_at(&mut bytes, Self::position(at)).map_err(|error| self.read_error(&error))?;
        Ok(bytes.get(..read).and_then(E::decode))
    }

    fn entries(&self, file: &dyn File, at: u64, count: u64) -> Result<Vec<E>, StoreError> {
        let size = usize::try_from(count).unwrap_or(0).saturating_mul(E::BYTES);
        let mut bytes = vec![0; size];
        let read = file.read_at(&mut bytes, Self::position(at)).map_err(|error| self.read_error(&error))?;
        if read < size {
            return Err(self.bad_entry(at));
        }
        bytes.chunks_exact(E::BYTES).map(|entry| E::decode(entry).ok_or_else(|| self.bad_entry(at))).collect()
    }

    fn open(&self, disk: &dyn Disk) -> Result<std::sync::Arc<dyn File>, StoreError> {
        disk.open(&self.path).map_err(|error| self.read_error(&error))
    }

    fn create(&self, disk: &dyn Disk) -> Result<std::sync::Arc<dyn File>, StoreError> {
        disk.create(&self.path).map_err(|error| self.write_error(&error))
    }

    fn position(at: u64) -> u64 {
        at.saturating_mul(as_u64(E::BYTES))
    }

    fn bad_entry(&self, at: u64) -> StoreError {
        StoreError::Damaged(format!("{} at byte {}: not an entry", self.path.display(), Self::position(at)))
    }

    fn read_error(&self, error: &io::Error) -> StoreError {
        StoreError::from_read(&self.path.display().to_string(), error)
    }

    fn write_error(&self, error: &io::Error) -> StoreError {
        StoreError::from_write(&self.path.display().to_string(), error)
    }
}
