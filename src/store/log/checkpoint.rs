//! Checkpoints: indexes, leader epochs and a producer snapshot on disk, so that a recovery need not begin earlier.

use crate::engine::Offset;
use crate::engine::log::OffsetEntry;
use crate::engine::log::segments::{FileKind, parse_file_name};
use crate::known_bugs::{Bug, is_in};
use crate::store::StoreError;
use crate::store::disk::{Replacing, replace_file};
use crate::store::log::open::EPOCHS_FILE;
use crate::store::log::segment::{Place, Segment, remove_if_there, shown};
use crate::store::log::{Log, Names, RecoveryPoint};

/// Snapshots that are kept: the newest, and one more should that be unreadable.
const KEPT_SNAPSHOTS: usize = 2;

impl Log {
    /// Writes the producers' state as it was at offset `at`, and all index entries over synced bytes. `None` when `at`
    /// is not synced yet: a snapshot must not speak of what a power cut can take; ask again after
    /// [`note_synced`](Self::note_synced) reached it. Blocks for a few syncs of small files.
    ///
    /// The point is true from the moment it is returned, and until it is stored the earlier one still is.
    ///
    /// # Errors
    /// `Full`: nothing is lost, ask again later. `Broken` otherwise.
    pub fn checkpoint(&mut self, snapshot: &[u8], at: Offset) -> Result<Option<RecoveryPoint>, StoreError> {
        if at > self.synced.offset {
            return Ok(None);
        }
        self.flush_indexes(at)?;
        self.write_counts()?;
        if self.epochs_file == Names::Changed {
            write_epochs(&self.shared.place, &self.shared.epochs.read().to_text())?;
            self.epochs_file = Names::Durable;
        }
        let place = &self.shared.place;
        replace(place, &crate::engine::log::segments::file_name(at, FileKind::Snapshot), snapshot)?;
        remove_old_snapshots(place)?;
        self.debt = self.debt_after_synced();
        Ok(Some(RecoveryPoint {
            active_base: self.synced.base,
            synced_pos: self.synced.pos,
            synced_offset: self.synced.offset,
            snapshot_at: at,
        }))
    }

    /// Stops in order: syncs, writes the last index entries and a snapshot of the state at the log's end. Nothing may
    /// be appended afterwards, and no job of this log may still be running.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint); the log is then to be opened as after a crash.
    pub fn close(mut self, snapshot: &[u8]) -> Result<RecoveryPoint, StoreError> {
        if let Some(job) = self.take_unsynced() {
            job.run()?;
        }
        self.note_synced(self.next_offset);
        self.seal();
        let end = self.next_offset;
        let path = shown(&self.active.path());
        self.checkpoint(snapshot, end)?
            .ok_or_else(|| StoreError::Broken(format!("{path}: closed at {end}, but not synced up to there")))
    }

    /// Flushes the entries over synced bytes, and the aborted transactions below the snapshot that is to be written at
    /// `at`: an opening takes those above it from their markers again. Nobody reads an index file beyond what is flushed.
    fn flush_indexes(&mut self, at: Offset) -> Result<(), StoreError> {
        let synced = self.synced;
        let mut new_names = false;
        let segments = self.shared.segments();
        let below = segments.iter().take_while(|segment| segment.base <= synced.base);
        for segment in below.filter(|segment| segment.has_pending_entries()) {
            let disk = segment.disk();
            let covered = |relative: i32| segment.base.saturating_add(i64::from(relative)) < synced.offset;
            new_names |= segment.offsets.flush(disk, &|entry: &OffsetEntry| covered(entry.relative_offset))?;
            if segment.times.flush(disk, &|entry| covered(entry.relative_offset))? {
                // Kafka's tools open the one index by way of the other.
                segment.offsets.make_file(disk)?;
                new_names = true;
            }
            // Unlike the other two this index cannot be told from a wrong one, and a missing entry shows aborted
            // records to readers: it is on disk before a recovery point relies on it.
            if segment.base == synced.base || !is_in(Bug::AbortedIndexLostAtRoll) {
                new_names |= segment.aborted.flush(disk, &|entry| entry.last_offset < at)?;
            }
        }
        if new_names { self.shared.place.sync_dir() } else { Ok(()) }
    }

    fn debt_after_synced(&self) -> u64 {
        let later = |segment: &&std::sync::Arc<Segment>| segment.base >= self.synced.base;
        let bytes: u64 = self.shared.segments().iter().filter(later).map(|segment| segment.bytes()).sum();
        bytes.saturating_sub(self.synced.pos)
    }
}

pub(super) fn write_epochs(place: &Place, text: &str) -> Result<(), StoreError> {
    replace(place, EPOCHS_FILE, text.as_bytes())
}

pub(super) fn replace(place: &Place, name: &str, content: &[u8]) -> Result<(), StoreError> {
    let path = place.dir.join(name);
    replace_file(&*place.disk, &path, content).map_err(|error| match error {
        Replacing::Write(error) => StoreError::from_write(&shown(&path), &error),
        Replacing::Sync(error) => StoreError::from_sync(&shown(&path), &error),
    })
}

/// Offsets of the snapshots that are there, newest first.
pub(super) fn snapshots(place: &Place) -> Result<Vec<Offset>, StoreError> {
    let names = place.disk.list(&place.dir).map_err(|error| StoreError::from_read(&shown(&place.dir), &error))?;
    let mut offsets: Vec<Offset> = names
        .iter()
        .filter_map(|name| parse_file_name(name))
        .filter(|(_, kind)| *kind == FileKind::Snapshot)
        .map(|(offset, _)| offset)
        .collect();
    offsets.sort_unstable_by(|a, b| b.cmp(a));
    Ok(offsets)
}

fn remove_old_snapshots(place: &Place) -> Result<(), StoreError> {
    for offset in snapshots(place)?.into_iter().skip(KEPT_SNAPSHOTS) {
        remove_if_there(&*place.disk, &place.path(offset, FileKind::Snapshot))?;
    }
    Ok(())
}
