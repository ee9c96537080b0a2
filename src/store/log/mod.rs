//! One partition's log: segments of Kafka's own batches, byte for byte, with Kafka's own files beside them.
//!
//! [`Log`] is the owner's end: it appends, says what has to be synced, takes checkpoints. [`LogReader`] is everyone
//! else's: it sees what is written and is bounded by the offsets it is given, never by what is durable; that is for the
//! caller to know. A *recovery point* says how far the log, its indexes and a producer snapshot are on disk; it is kept
//! by the ledger, and only what lies after it is looked at when the process did not stop in order.

mod aborts;
mod append;
mod checkpoint;
mod ends;
mod entries;
mod leftovers;
mod open;
mod reader;
mod recover;
mod replay;
mod retain;
mod salvage;
mod segment;
mod sync;
mod times;
mod window;

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::engine::Offset;
use crate::engine::log::{Growth, LeaderEpochs, LogSettings};
use crate::engine::partition::Aborted;

pub use crate::engine::ledger::rows::RecoveryPoint;
pub use append::Appended;
pub use leftovers::{Belongs, Leftovers, belongs_to, delete_dir_of, dirs_with_records, name_again, remove_leftovers};
pub use open::{AbortedLists, OpenHow, Opened, Torn, delete_dir, remove_condemned};
pub use reader::{LogReader, ReadOutcome, ReadWish};
pub use replay::Replay;
pub use retain::{Dropped, Left, bytes_of, may_expire};
pub use salvage::Salvaged;
pub use sync::SyncJob;
pub use times::TimestampOffset;

use reader::Hints;
use segment::{Place, Segment};

/// Whether a read may wait for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadHow {
    /// Only what is in memory; the answer may be that nothing is.
    NoWait,
    /// Waits.
    Block,
}

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    base: Offset,
    pos: u64,
    offset: Offset,
}

/// What owner and readers share.
struct Shared {
    place: Place,
    /// Never empty; the last one is active.
    segments: RwLock<Arc<Vec<Arc<Segment>>>>,
    epochs: RwLock<LeaderEpochs>,
    hints: Mutex<Hints>,
}

impl Shared {
    fn segments(&self) -> Arc<Vec<Arc<Segment>>> {
        Arc::clone(&self.segments.read())
    }
}

/// One partition's log, in the hands of its owner.
pub struct Log {
    settings: LogSettings,
    shared: Arc<Shared>,
    active: Arc<Segment>,
    /// The active segment's; read from disk at the first append.
    growth: Option<Growth>,
    next_offset: Offset,
    /// Up to here everything is on disk.
    synced: Mark,
    /// Ends of the jobs that are not reported done, oldest first.
    syncing: VecDeque<Mark>,
    /// A segment was created since the last job.
    dir: Names,
    epochs_file: Names,
    /// The file that counts aborted transactions.
    aborted_counts: Names,
    /// Bytes appended since the last checkpoint.
    debt: u64,
    /// Segments that have left the log and whose files are still there, oldest first.
    leaving: VecDeque<Arc<Segment>>,
}

/// Whether something small beside the batches differs from what is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Durable,
    Changed,
}

impl Log {
    /// The offset that the next batch gets.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        self.next_offset
    }

    /// Up to here everything is known to be on disk.
    #[must_use]
    pub fn synced_offset(&self) -> Offset {
        self.synced.offset
    }

    /// First offset of the oldest segment.
    #[must_use]
    pub fn first_base(&self) -> Offset {
        self.shared.segments().first().map_or(self.active.base, |segment| segment.base)
    }

    /// Bytes appended since the last checkpoint: what a recovery would have to read.
    #[must_use]
    pub fn debt(&self) -> u64 {
        self.debt
    }

    /// A reader of this log; it sees what is appended later, too.
    #[must_use]
    pub fn reader(&self) -> LogReader {
        LogReader::new(Arc::clone(&self.shared))
    }

    /// Changes roll and index settings, from the next append on.
    pub fn set_settings(&mut self, settings: LogSettings) {
        self.settings = settings;
    }

    /// The highest leader epoch that wrote here.
    #[must_use]
    pub fn leader_epoch(&self) -> Option<i32> {
        self.shared.epochs.read().latest()
    }

    /// Notes an aborted transaction that left data here, in the segment that holds its marker (T-505). Readers see it at
    /// once: to be called before a last stable offset beyond the marker is published. In order of markers.
    pub fn note_aborted(&mut self, aborted: Aborted) {
        let segments = self.shared.segments();
        let holder = segments.iter().rev().find(|segment| segment.base <= aborted.last_offset);
        if let Some(segment) = holder.or(segments.first()) {
            segment.aborted.push(aborted);
            self.aborted_counts = Names::Changed;
        }
    }
}

#[cfg(test)]
mod tests;
