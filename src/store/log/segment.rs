//! One segment: its batches, its three indexes, and the rule that a failed sync is never asked again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::engine::Offset;
use crate::engine::batch::{HEADER_BYTES, Header};
use crate::engine::log::segments::{FileKind, file_name};
use crate::engine::log::{Growth, OffsetEntry, TimeEntry};
use crate::engine::partition::Aborted;
use crate::known_bugs::{Bug, is_in};
use crate::store::StoreError;
use crate::store::disk::{Disk, File};
use crate::store::log::ReadHow;
use crate::store::log::entries::{EntryFile, Lookup};
use crate::store::log::window::{Walked, Window, as_u64};

/// Bytes of the buffer that headers are walked with where whole files are read.
pub(super) const WALK_BYTES: usize = 256 * 1024;

/// Where a log lives.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
}

impl Place {
    pub(super) fn path(&self, offset: Offset, kind: FileKind) -> PathBuf {
        self.dir.join(file_name(offset, kind))
    }

    pub(super) fn sync_dir(&self) -> Result<(), StoreError> {
        self.disk.sync_dir(&self.dir).map_err(|error| StoreError::from_sync(&self.dir.display().to_string(), &error))
    }
}

/// A segment. Readers may hold it after it has left the log.
pub(super) struct Segment {
    pub(super) place: Place,
    pub(super) base: Offset,
    /// Bytes that readers may look at: whole batches, index entries included.
    bytes: AtomicU64,
    /// Opened when first needed. The active segment's stays open: a descriptor over unsynced bytes is never closed.
    file: Mutex<Option<Arc<dyn File>>>,
    synced: Mutex<SyncState>,
    largest: Mutex<Largest>,
    /// The indexes were made anew once; whatever is wrong with them now is not to be cured by that.
    rebuilt: AtomicBool,
    pub(super) offsets: EntryFile<OffsetEntry>,
    pub(super) times: EntryFile<TimeEntry>,
    pub(super) aborted: EntryFile<Aborted>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SyncState {
    Trusted,
    /// A sync failed: the page cache lies, and a second sync would say yes.
    Failed,
}

#[derive(Clone, Copy)]
enum Largest {
    Unknown,
    Known(Option<(i64, Offset)>),
}

/// A segment's file, if it is to be had.
pub(super) enum Handle {
    File(Arc<dyn File>),
    WouldBlock,
    /// Retention removed it.
    Gone,
}

/// The indexes of a new segment, or of one found on disk.
pub(super) enum Indexes {
    /// There are none yet.
    New,
    /// They are there; whether the third one is too.
    Found { aborted: bool },
}

impl Segment {
    pub(super) fn new(place: &Place, base: Offset, bytes: u64, indexes: &Indexes) -> Self {
        let path = |kind| place.path(base, kind);
        let (offsets, times, aborted) = match indexes {
            Indexes::New => (
                EntryFile::empty(path(FileKind::OffsetIndex)),
                EntryFile::empty(path(FileKind::TimeIndex)),
                EntryFile::empty(path(FileKind::TransactionIndex)),
            ),
            Indexes::Found { aborted } => (
                EntryFile::unread(path(FileKind::OffsetIndex)),
                EntryFile::unread(path(FileKind::TimeIndex)),
                match aborted {
                    true => EntryFile::unread(path(FileKind::TransactionIndex)),
                    false => EntryFile::empty(path(FileKind::TransactionIndex)),
                },
            ),
        };
        Self {
            place: place.clone(),
            base,
            bytes: AtomicU64::new(bytes),
            file: Mutex::new(None),
            synced: Mutex::new(SyncState::Trusted),
            largest: Mutex::new(Largest::Unknown),
            rebuilt: AtomicBool::new(false),
            offsets,
            times,
            aborted,
        }
    }

    /// Creates the file of an empty segment. Its name is not durable yet.
    pub(super) fn create(place: &Place, base: Offset) -> Result<Self, StoreError> {
        let segment = Self::new(place, base, 0, &Indexes::New);
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
            remove_if_there(&*place.disk, &place.path(base, kind))?;
        }
        let path = segment.path();
        let file = place.disk.create(&path).map_err(|error| StoreError::from_write(&shown(&path), &error))?;
        *segment.file.lock() = Some(file);
        segment.set_largest(None);
        Ok(segment)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.place.path(self.base, FileKind::Log)
    }

    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.place.disk
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Lets readers see up to here. Index entries come first.
    pub(super) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Release);
    }

    pub(super) fn set_largest(&self, largest: Option<(i64, Offset)>) {
        *self.largest.lock() = Largest::Known(largest);
    }

    pub(super) fn handle(&self, how: ReadHow) -> Result<Handle, StoreError> {
        let mut slot = self.file.lock();
        if let Some(file) = &*slot {
            return Ok(Handle::File(Arc::clone(file)));
        }
        if how == ReadHow::NoWait {
            return Ok(Handle::WouldBlock);
        }
        match self.place.disk.open(&self.path()) {
            Ok(file) => {
                *slot = Some(Arc::clone(&file));
                Ok(Handle::File(file))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Handle::Gone),
            Err(error) => Err(StoreError::from_read(&shown(&self.path()), &error)),
        }
    }

    /// The file, for the log's owner: it must be there.
    pub(super) fn file(&self) -> Result<Arc<dyn File>, StoreError> {
        match self.handle(ReadHow::Block)? {
            Handle::File(file) => Ok(file),
            Handle::WouldBlock | Handle::Gone => Err(self.damaged(0, "the file is missing")),
        }
    }

    /// Whether the file is open.
    pub(super) fn is_open(&self) -> bool {
        self.file.lock().is_some()
    }

    /// Closes the file of a sealed segment, all of which is on disk.
    pub(super) fn close_file(&self) {
        *self.file.lock() = None;
    }

    pub(super) fn window(&self, end: u64, capacity: usize) -> Result<Window, StoreError> {
        Ok(Window::new(self.file()?, self.path(), end, capacity))
    }

    /// Makes all that was written durable. One at a time: an error is reported to one caller only, and whoever asks
    /// after it must hear of it too.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let file = self.file()?;
        let mut state = self.synced.lock();
        if *state == SyncState::Failed {
            return Err(StoreError::Broken(format!("{}: an earlier sync failed", shown(&self.path()))));
        }
        let mut synced = file.sync_data();
        if synced.is_err() && is_in(Bug::FsyncRetried) {
            synced = file.sync_data();
        }
        synced.map_err(|error| {
            *state = SyncState::Failed;
            StoreError::from_sync(&shown(&self.path()), &error)
        })
    }

    /// Largest timestamp and the last offset of the first batch that carries it, from the time index, whose last entry
    /// says it of a sealed segment.
    pub(super) fn largest(&self) -> Result<Option<(i64, Offset)>, StoreError> {
        if let Largest::Known(largest) = *self.largest.lock() {
            return Ok(largest);
        }
        let (count, last) = self.times.last(self.disk())?;
        let largest = match last {
            Some(entry) => Some((entry.timestamp, self.base.saturating_add(i64::from(entry.relative_offset)))),
            None if count == 0 && self.bytes() > 0 => self.measure()?.0.largest,
            None => None,
        };
        // The owner may have appended meanwhile, and what it says holds.
        let mut slot = self.largest.lock();
        match *slot {
            Largest::Known(largest) => Ok(largest),
            Largest::Unknown => {
                *slot = Largest::Known(largest);
                Ok(largest)
            }
        }
    }

    /// Makes the indexes of a sealed segment anew from all its headers; once only. In memory, for any reader may find out
    /// that they are wrong, and only the owner writes: at its next checkpoint.
    pub(super) fn rebuild_indexes(&self) -> Result<(), StoreError> {
        if self.rebuilt.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (growth, offsets, mut times) = self.measure()?;
        times.extend(growth.closing_entry());
        self.offsets.replace(self.disk(), offsets)?;
        self.times.replace(self.disk(), times)?;
        self.set_largest(growth.largest);
        Ok(())
    }

    /// Where to begin looking for the batch with offset `from`: at or before it. Waits.
    pub(super) fn start_for(&self, from: Offset) -> Result<u64, StoreError> {
        let holds = |entry: &OffsetEntry| self.base.saturating_add(i64::from(entry.relative_offset)) <= from;
        let Lookup::Found((Some(entry), _)) = self.offsets.around(self.disk(), &holds, ReadHow::Block)? else {
            return Ok(0);
        };
        let pos = u64::try_from(entry.position).unwrap_or(0);
        match self.window(self.bytes(), HEADER_BYTES)?.walk(pos)? {
            Walked::Batch(header, _) if header.base_offset <= from => Ok(pos),
            Walked::Batch(..) | Walked::End | Walked::WouldBlock | Walked::Flawed(_) => Ok(0),
        }
    }

    /// The batch below byte `end` that holds `offset`, if any. Waits.
    pub(super) fn batch_with(&self, offset: Offset, end: u64) -> Result<Option<Header>, StoreError> {
        let mut pos = self.start_for(offset)?;
        let mut window = self.window(end, 4096)?;
        while let Walked::Batch(header, size) = window.walk(pos)? {
            if header.last_offset() >= offset {
                return Ok((header.base_offset <= offset).then_some(header));
            }
            pos = pos.saturating_add(as_u64(size));
        }
        Ok(None)
    }

    /// Forgets the aborted transactions whose markers lie at or above `from`, and entries that no marker stands for.
    pub(super) fn cut_aborted(&self, from: Offset) -> Result<(), StoreError> {
        let keeps = &mut |before: Option<&Aborted>, entry: &Aborted| {
            let rises = before.is_none_or(|before| before.last_offset < entry.last_offset);
            let plausible = rises && entry.first_offset < entry.last_offset && entry.last_offset < from;
            let marker = if plausible { self.batch_with(entry.last_offset, self.bytes())? } else { None };
            Ok(marker.is_some_and(|marker| marker.is_control() && marker.producer_id == entry.producer_id))
        };
        self.aborted.cut(self.disk(), keeps)
    }

    /// Whether any index has entries that are only in memory.
    pub(super) fn has_pending_entries(&self) -> bool {
        self.offsets.is_pending() || self.times.is_pending() || self.aborted.is_pending()
    }

    fn measure(&self) -> Result<(Growth, Vec<OffsetEntry>, Vec<TimeEntry>), StoreError> {
        let mut window = self.window(self.bytes(), WALK_BYTES)?;
        let mut growth = Growth::empty(self.base, 0);
        let (mut offsets, mut times) = (Vec::new(), Vec::new());
        loop {
            match window.walk(growth.bytes)? {
                Walked::Batch(header, size) => {
                    let (next, offset, time) = growth.with(&header, as_u64(size), REBUILD_INTERVAL);
                    growth = next;
                    offsets.extend(offset);
                    times.extend(time);
                }
                Walked::End => return Ok((growth, offsets, times)),
                Walked::WouldBlock => return Err(self.damaged(growth.bytes, "cannot be read")),
                Walked::Flawed(flaw) => return Err(self.damaged(growth.bytes, &format!("{flaw:?}"))),
            }
        }
    }

    pub(super) fn damaged(&self, pos: u64, why: &str) -> StoreError {
        StoreError::Damaged(format!("{} at byte {pos}: {why}", shown(&self.path())))
    }

    /// Removes the segment's files. Readers that have them open go on.
    pub(super) fn remove(&self) -> Result<(), StoreError> {
        for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
            remove_if_there(self.disk(), &self.place.path(self.base, kind))?;
        }
        Ok(())
    }
}

/// Interval of a rebuilt index; Kafka's default.
const REBUILD_INTERVAL: u32 = 4096;

pub(super) fn remove_if_there(disk: &dyn Disk, path: &Path) -> Result<(), StoreError> {
    match disk.remove(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::from_write(&shown(path), &error)),
    }
}

pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}
