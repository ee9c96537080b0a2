//! What has to reach the disk, as a value that another thread can work off.

use std::sync::Arc;

use crate::engine::Offset;
use crate::store::StoreError;
use crate::store::log::segment::{Place, Segment};
use crate::store::log::{Log, Mark, Names};

/// What was written since the last job. Once it is done, everything below [`end`](Self::end) is on disk.
pub struct SyncJob {
    segment: Arc<Segment>,
    dir: Option<Place>,
    end: Offset,
}

impl SyncJob {
    /// Syncs. Blocks. Without it, where the whole file system was synced instead, nothing is missing.
    ///
    /// # Errors
    /// [`StoreError::Broken`]: it is not known what is on disk; never to be tried again.
    pub fn run(&self) -> Result<(), StoreError> {
        self.segment.sync()?;
        self.dir.as_ref().map_or(Ok(()), Place::sync_dir)
    }

    /// The offset below which all is on disk when this job is done.
    #[must_use]
    pub fn end(&self) -> Offset {
        self.end
    }
}

impl Log {
    /// What has been written and not been taken for syncing; `None` when that is nothing. Sealed segments are not among
    /// it: a roll syncs them.
    pub fn take_unsynced(&mut self) -> Option<SyncJob> {
        let taken = self.syncing.back().map_or(self.synced.offset, |mark| mark.offset);
        if taken == self.next_offset && self.dir == Names::Durable {
            return None;
        }
        self.syncing.push_back(self.end_mark());
        let dir = match self.dir {
            Names::Changed => Some(self.shared.place.clone()),
            Names::Durable => None,
        };
        self.dir = Names::Durable;
        Some(SyncJob { segment: Arc::clone(&self.active), dir, end: self.next_offset })
    }

    /// Brings to disk all that was written, what jobs hold that are under way or still to be run included.
    ///
    /// # Errors
    /// As [`SyncJob::run`].
    pub fn sync_everything(&mut self) -> Result<(), StoreError> {
        // One sync of a segment at a time: if the one under way fails, so does this.
        self.active.sync()?;
        self.shared.place.sync_dir()?;
        self.dir = Names::Durable;
        self.syncing.clear();
        self.synced = self.end_mark();
        Ok(())
    }

    /// Notes that the job with this end, and so every earlier one, is done.
    pub fn note_synced(&mut self, end: Offset) {
        while let Some(mark) = self.syncing.pop_front_if(|mark| mark.offset <= end) {
            self.synced = mark;
        }
    }

    pub(super) fn end_mark(&self) -> Mark {
        Mark { base: self.active.base, pos: self.active.bytes(), offset: self.next_offset }
    }
}
