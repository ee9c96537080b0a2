//! Retention's side of a log: which segments have expired, a new active one, segments that leave.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::engine::Offset;
use crate::engine::log::segments::{FileKind, file_name, parse_file_name};
use crate::engine::log::{Entry, Extent, Growth, Retention, TimeEntry};
use crate::store::StoreError;
use crate::store::disk::Disk;
use crate::store::log::segment::{Segment, shown};
use crate::store::log::window::as_u64;
use crate::store::log::{Log, LogReader, Names, Shared};

/// Segments that left the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// How many.
    pub segments: u64,
    /// Their bytes of batches.
    pub bytes: u64,
}

/// Whether files of segments that left the log are still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// No.
    Nothing,
    /// There are more.
    More,
}

impl Shared {
    fn extents(&self, end: Offset) -> Vec<Extent> {
        let segments = self.segments();
        let ends = segments.iter().skip(1).map(|next| next.base).chain([end]);
        let extent =
            |(segment, end): (&Arc<Segment>, Offset)| Extent { base: segment.base, end, bytes: segment.bytes() };
        segments.iter().zip(ends).map(extent).collect()
    }

    /// The offset below which everything has expired, where that is at least one segment.
    fn expired(
        &self,
        retention: &Retention,
        (limit, end): (Offset, Offset),
        now_ms: i64,
    ) -> Result<Option<Offset>, StoreError> {
        let (segments, extents) = (self.segments(), self.extents(end));
        let mut time_of = |at: usize| match segments.get(at) {
            Some(segment) => segment.written_ms(now_ms),
            None => Ok(i64::MAX),
        };
        let count = retention.expired(&extents, limit, now_ms, &mut time_of)?;
        Ok(count.checked_sub(1).and_then(|last| extents.get(last)).map(|last| last.end))
    }
}

impl Segment {
    /// When its youngest record is from. Its file says it where no record does, or where one is dated in the future:
    /// such a one would keep the segment, and all that follow, for ever (C-79).
    fn written_ms(&self, now_ms: i64) -> Result<i64, StoreError> {
        match self.largest()? {
            Some((timestamp, _)) if (0..=now_ms).contains(&timestamp) => Ok(timestamp),
            Some(_) | None => modified_ms(self.disk(), &self.path()),
        }
    }
}

impl LogReader {
    /// As [`Log::expired`], for a first look past the owner. `end` is the log's end as far as it is known.
    ///
    /// # Errors
    /// `Damaged`: it cannot be read how old a segment is.
    pub fn expired(
        &self,
        retention: &Retention,
        bounds: (Offset, Offset),
        now_ms: i64,
    ) -> Result<Option<Offset>, StoreError> {
        self.shared.expired(retention, bounds, now_ms)
    }

    /// Bytes of batches in all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shared.segments().iter().map(|segment| segment.bytes()).sum()
    }

    /// How many segments there are.
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.shared.segments().len()
    }
}

impl Log {
    /// All segments, oldest first.
    #[must_use]
    pub fn extents(&self) -> Vec<Extent> {
        self.shared.extents(self.next_offset)
    }

    /// The offset below which everything has expired; `None` where that is not even one segment. It is the log's end
    /// if the active segment has expired as well: that one leaves only after a [`roll`](Self::roll). Nothing at or
    /// above `limit`.
    ///
    /// # Errors
    /// `Damaged`: it cannot be read how old a segment is.
    pub fn expired(&self, retention: &Retention, limit: Offset, now_ms: i64) -> Result<Option<Offset>, StoreError> {
        self.shared.expired(retention, (limit, self.next_offset), now_ms)
    }

    /// First offset of the active segment.
    #[must_use]
    pub fn active_base(&self) -> Offset {
        self.active.base
    }

    /// Whether [`drop_below`](Self::drop_below) would drop a segment.
    #[must_use]
    pub fn drops_below(&self, log_start: Offset) -> bool {
        self.shared.segments().get(1).is_some_and(|second| second.base <= log_start)
    }

    /// Seals the active segment and starts the next one, empty; both are durable when this returns. Nothing happens
    /// where the active one is empty. Every job taken before must be done.
    ///
    /// # Errors
    /// `Full`: nothing changed. `Broken`.
    pub fn roll(&mut self, now_ms: i64) -> Result<(), StoreError> {
        if self.active.bytes() == 0 {
            return Ok(());
        }
        // As with an append that rolls: a successor proves that what is before it is whole.
        self.active.sync()?;
        self.shared.place.sync_dir()?;
        let next = Arc::new(Segment::create(&self.shared.place, self.next_offset)?);
        self.shared.place.sync_dir()?;
        self.seal();
        let segments = self.shared.segments();
        let list: Vec<_> = segments.iter().cloned().chain([Arc::clone(&next)]).collect();
        *self.shared.segments.write() = Arc::new(list);
        self.active = next;
        self.growth = Some(Growth::empty(self.next_offset, now_ms));
        self.dir = Names::Durable;
        self.syncing.clear();
        self.synced = self.end_mark();
        Ok(())
    }

    /// Takes segments that lie wholly below `log_start` out of the log, never the active one. The log start must be
    /// stored durably, and published, and a snapshot of the producers at or above it be on disk. Readers that hold
    /// such a segment go on; its files stay until [`unlink`](Self::unlink).
    pub fn drop_below(&mut self, log_start: Offset) -> Dropped {
        let segments = self.shared.segments();
        let below = segments.iter().skip(1).take_while(|next| next.base <= log_start).count();
        let (gone, kept) = segments.split_at(below);
        if gone.is_empty() {
            return Dropped::default();
        }
        *self.shared.segments.write() = Arc::new(kept.to_vec());
        for segment in gone {
            self.leaving.push_back(Arc::clone(segment));
        }
        let bytes = gone.iter().fold(0_u64, |sum, segment| sum.saturating_add(segment.bytes()));
        Dropped { segments: as_u64(gone.len()), bytes }
    }

    /// Removes the files of up to `most` segments that left the log. The names go from the disk with the next sync of
    /// the directory; until then a crash may bring any of them back, and [`Log::open`] removes them.
    ///
    /// # Errors
    /// When a file cannot be removed: it is left to the next opening.
    pub fn unlink(&mut self, most: usize) -> Result<Left, StoreError> {
        for _ in 0..most {
            let Some(segment) = self.leaving.pop_front() else { break };
            segment.remove()?;
        }
        Ok(if self.leaving.is_empty() { Left::Nothing } else { Left::More })
    }
}

/// Whether it looks from outside as if segments of a log that is not open have expired: a few names, sizes and index
/// entries are looked at. The log's owner judges anew when it is opened.
///
/// # Errors
/// `Damaged`: a name or a file cannot be read.
pub fn may_expire(disk: &dyn Disk, dir: &Path, retention: &Retention, now_ms: i64) -> Result<bool, StoreError> {
    let extents = glimpse(disk, dir)?;
    let mut time_of = |at: usize| match extents.get(at) {
        Some(extent) => glimpse_ms(disk, dir, extent.base, now_ms),
        None => Ok(i64::MAX),
    };
    retention.expired(&extents, Offset::MAX, now_ms, &mut time_of).map(|count| count > 0)
}

/// Bytes of batches in the files of a log that is not open.
///
/// # Errors
/// `Damaged`: a name or a file cannot be read.
pub fn bytes_of(disk: &dyn Disk, dir: &Path) -> Result<u64, StoreError> {
    Ok(glimpse(disk, dir)?.iter().map(|extent| extent.bytes).sum())
}

/// The segments of a log that is not open, by the names and sizes of their files.
fn glimpse(disk: &dyn Disk, dir: &Path) -> Result<Vec<Extent>, StoreError> {
    let names = match disk.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::from_read(&shown(dir), &error)),
    };
    let mut bases: Vec<Offset> = (names.iter().filter_map(|name| parse_file_name(name)))
        .filter(|(_, kind)| *kind == FileKind::Log)
        .map(|(base, _)| base)
        .collect();
    bases.sort_unstable();
    let ends = bases.iter().skip(1).copied().chain([Offset::MAX]);
    let extent = |(base, end): (&Offset, Offset)| {
        let path = dir.join(file_name(*base, FileKind::Log));
        let bytes = disk.size(&path).map_err(|error| StoreError::from_read(&shown(&path), &error))?;
        Ok(Extent { base: *base, end, bytes })
    };
    bases.iter().zip(ends).map(extent).collect()
}

/// When a segment's youngest record seems to be from: the last entry of its time index, else its file.
fn glimpse_ms(disk: &dyn Disk, dir: &Path, base: Offset, now_ms: i64) -> Result<i64, StoreError> {
    let index = dir.join(file_name(base, FileKind::TimeIndex));
    let last = || {
        let file = disk.open(&index)?;
        let entries = file.size()? / as_u64(TimeEntry::BYTES);
        let mut bytes = vec![0; TimeEntry::BYTES];
        let Some(at) = entries.checked_sub(1) else { return Ok::<_, io::Error>(None) };
        file.read_at(&mut bytes, at.saturating_mul(as_u64(TimeEntry::BYTES)))?;
        Ok(TimeEntry::decode(&bytes))
    };
    match last() {
        Ok(Some(entry)) if (0..=now_ms).contains(&entry.timestamp) => Ok(entry.timestamp),
        Ok(_) => modified_ms(disk, &dir.join(file_name(base, FileKind::Log))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            modified_ms(disk, &dir.join(file_name(base, FileKind::Log)))
        }
        Err(error) => Err(StoreError::from_read(&shown(&index), &error)),
    }
}

fn modified_ms(disk: &dyn Disk, path: &Path) -> Result<i64, StoreError> {
    disk.modified_ms(path).map_err(|error| StoreError::from_read(&shown(path), &error))
}
