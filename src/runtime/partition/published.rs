//! What readers may know of a partition: one value, replaced as a whole, read once a fetch (T-503).

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::Syncing;
use crate::engine::{Offset, Producer};
use crate::runtime::post::Post;
use crate::store::log::LogReader;
use crate::store::tickets::Lane;

/// Whether a partition can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// Not loaded since the start.
    Unloaded,
    /// Served.
    Open,
    /// Its files are not what they should be. What lies below the watermark, which is where the damage begins, can be
    /// read; a negative one says that nothing can.
    Damaged,
    /// Its topic was deleted.
    Gone,
}

impl Availability {
    /// Whether nothing brings the partition back but another start.
    fn is_final(self) -> bool {
        match self {
            Self::Unloaded | Self::Open => false,
            Self::Damaged | Self::Gone => true,
        }
    }
}

/// The view of one partition. Everything below `watermark` is on disk (under `durability = "strict"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Whether it can be read.
    pub availability: Availability,
    /// First offset.
    pub log_start: Offset,
    /// End of what readers may have.
    pub watermark: Offset,
    /// End of what read_committed readers may have; never above the watermark.
    pub last_stable: Offset,
    /// The transaction that holds the last stable offset back.
    pub oldest_open: Option<OldestOpen>,
}

/// The earliest open transaction of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldestOpen {
    /// Whose.
    pub producer: Producer,
    /// When its first batch came here, or was found by the start, wall clock.
    pub started_wall_ms: i64,
}

impl Published {
    /// A partition that is served.
    #[must_use]
    pub fn open(log_start: Offset, watermark: Offset, last_stable: Offset, oldest_open: Option<OldestOpen>) -> Self {
        Self { availability: Availability::Open, log_start, watermark, last_stable, oldest_open }
    }

    /// A partition of which nothing is known.
    #[must_use]
    pub fn not(availability: Availability) -> Self {
        Self { availability, log_start: -1, watermark: -1, last_stable: -1, oldest_open: None }
    }
}

/// What owner, syncer and readers of a partition share.
pub struct Shared {
    /// How far the log is on disk, and who waits for more.
    pub lane: Lane<Post>,
    published: watch::Sender<Published>,
    reader: Mutex<Option<LogReader>>,
    syncs: Mutex<Syncs>,
    producers: AtomicUsize,
}

/// At most one sync of a partition is in flight; what is written meanwhile goes into the next.
#[derive(Default)]
enum Syncs {
    #[default]
    Idle,
    InFlight(Option<Syncing>),
}

impl Shared {
    /// A partition not loaded yet.
    #[must_use]
    pub fn unloaded() -> Self {
        Self {
            lane: Lane::new(0),
            published: watch::Sender::new(Published::not(Availability::Unloaded)),
            reader: Mutex::new(None),
            syncs: Mutex::new(Syncs::Idle),
            producers: AtomicUsize::new(0),
        }
    }

    /// What readers may know now.
    #[must_use]
    pub fn published(&self) -> Published {
        *self.published.borrow()
    }

    /// How many producers the partition knew after its last turn.
    #[must_use]
    pub fn producers(&self) -> usize {
        self.producers.load(Ordering::Relaxed)
    }

    pub(super) fn set_producers(&self, count: usize) {
        self.producers.store(count, Ordering::Relaxed);
    }

    /// To be told when that changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Published> {
        self.published.subscribe()
    }

    /// The files, once loaded.
    #[must_use]
    pub fn reader(&self) -> Option<LogReader> {
        self.reader.lock().clone()
    }

    pub(super) fn set_reader(&self, reader: LogReader) {
        *self.reader.lock() = Some(reader);
    }

    /// Publishes what is left of a damaged partition. The view goes before its reader, which knows no marker above the
    /// damage: nobody may have that reader with a view that reaches beyond. Where there is none yet nobody reads.
    pub(super) fn show_salvaged(&self, view: Published, reader: Option<LogReader>) {
        let Some(reader) = reader else { return self.publish(view) };
        self.reader.lock().get_or_insert_with(|| reader.clone());
        self.publish(view);
        self.set_reader(reader);
    }

    /// Publishes a view. Watermark and last stable offset never move back (T-1202). A partition that is damaged or gone
    /// stays so, whatever a sync that was in flight proves afterwards; one that is damaged may still go.
    pub fn publish(&self, view: Published) {
        self.published.send_if_modified(|now| {
            if now.availability.is_final() && view.availability != Availability::Gone {
                return false;
            }
            let serves = |view: &Published| view.availability == Availability::Open;
            let next = if serves(now) && serves(&view) {
                // A view that a sync brings late knows no better than a later one who holds readers back.
                let is_older = view.watermark < now.watermark;
                Published {
                    log_start: now.log_start.max(view.log_start),
                    watermark: now.watermark.max(view.watermark),
                    last_stable: now.last_stable.max(view.last_stable),
                    oldest_open: if is_older { now.oldest_open } else { view.oldest_open },
                    ..view
                }
            } else {
                view
            };
            let changed = *now != next;
            *now = next;
            changed
        });
    }

    /// Publishes a log start that is stored. Only the start moves: whatever a sync in flight shows later, it does not go
    /// back. The last stable offset is never below it (T-541 R).
    pub fn move_log_start(&self, log_start: Offset) {
        self.published.send_if_modified(|now| {
            let moves = now.availability == Availability::Open && now.log_start < log_start;
            if moves {
                *now = Published { log_start, last_stable: now.last_stable.max(log_start), ..*now };
            }
            moves
        });
    }

    /// Puts a sync in line. Gives it back if none is in flight: the caller starts it.
    #[must_use]
    pub fn put_in_line(&self, next: Syncing) -> Option<Syncing> {
        let mut syncs = self.syncs.lock();
        match &mut *syncs {
            Syncs::Idle => {
                *syncs = Syncs::InFlight(None);
                Some(next)
            }
            Syncs::InFlight(waiting) => {
                let merged = match waiting.take() {
                    Some(before) => before.and(next),
                    None => next,
                };
                *waiting = Some(merged);
                None
            }
        }
    }

    /// A sync came back: publishes what it proved, then gives what may leave. The partition counts as busy until
    /// [`Shared::next_sync`].
    #[must_use]
    pub fn synced(&self, end: Offset, then: Published) -> Vec<Post> {
        self.publish(then);
        self.lane.reached(u64::try_from(end).unwrap_or(0))
    }

    /// The sync that waited for the one that came back, if there is one.
    #[must_use]
    pub fn next_sync(&self) -> Option<Syncing> {
        let mut syncs = self.syncs.lock();
        let next = match &mut *syncs {
            Syncs::Idle => None,
            Syncs::InFlight(waiting) => waiting.take(),
        };
        if next.is_none() {
            *syncs = Syncs::Idle;
        }
        next
    }

    /// Whether nothing is on its way to the disk.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(*self.syncs.lock(), Syncs::Idle)
    }
}

#[cfg(test)]
mod tests;
