//! A partition as readers have it: what it publishes, and its files.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::engine::fetch::{Bounds, Isolation};
use crate::engine::{Offset, PartId, Refusal};
use crate::runtime::broker::Broker;
use crate::runtime::partition::published::{Availability, Published, Shared};
use crate::runtime::post::{PartLetter, Post};
use crate::store::StoreError;
use crate::store::log::LogReader;

/// How long a reader waits for a partition to be opened before it is told to come again: one that cannot be opened
/// for want of space is tried anew only when asked.
const OPENING: Duration = Duration::from_secs(10);
/// How long even the most impatient reader waits: most partitions are open by then, and he need not come again.
const OPENING_LEAST: Duration = Duration::from_millis(200);

/// A partition as readers have it.
pub struct Readable {
    /// The view to keep to: one value, taken once (T-503).
    pub published: Published,
    pub(super) part: PartId,
    shared: Arc<Shared>,
    reader: Option<LogReader>,
}

impl Readable {
    /// The files are taken before the view: while they are the partition's own, so is the view.
    pub(super) fn of(part: PartId, shared: Arc<Shared>) -> Self {
        let reader = shared.reader();
        Self { published: shared.published(), part, shared, reader }
    }

    /// Which partition this is.
    #[must_use]
    pub fn part(&self) -> PartId {
        self.part
    }

    /// To be told when the view changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Published> {
        self.shared.watch()
    }

    /// The largest epoch of the log that is not above `requested`, and where it ends; see
    /// [`LeaderEpochs::end_of`](crate::engine::log::LeaderEpochs::end_of) (F-752).
    #[must_use]
    pub fn epoch_end(&self, requested: i32, current: i32, end: Offset) -> (i32, Offset) {
        self.reader.as_ref().map_or((-1, -1), |reader| reader.epoch_end(requested, current, end))
    }

    /// Whether the log start has moved beyond an offset since the view was taken. It is published before anything goes,
    /// so what was read before the answer is no was all there.
    pub(super) fn starts_after(&self, offset: Offset) -> bool {
        self.shared.published().log_start > offset
    }

    /// The files as they were when the view was taken.
    pub(super) fn reader(&self) -> Result<LogReader, Refusal> {
        self.reader.clone().ok_or(Refusal::KafkaStorageError)
    }

    /// What a read from `from` came to, looked at when it is over. What it found does not count, no more than that it
    /// failed, where its files were not the view's any more: those of a deleted partition, whose place in the folder its
    /// successor may have by then; those below the log start, which go behind its back; those of a partition that was
    /// read anew. All three are published before any file changes.
    pub(super) fn judge<T>(&self, from: Offset, done: Result<T, StoreError>) -> Result<T, Unread> {
        let now = self.shared.published();
        if now.availability == Availability::Gone {
            return Err(Unread::Refused(Refusal::UnknownTopicOrPartition));
        }
        if self.is_replaced() {
            return Err(Unread::Refused(Refusal::KafkaStorageError));
        }
        match done {
            Err(StoreError::Damaged(_)) if now.log_start > from => Err(Unread::Refused(Refusal::OffsetOutOfRange)),
            done => done.map_err(Unread::Failed),
        }
    }

    /// Whether the partition was read anew since the view was taken, after a failed write or because it is damaged: its
    /// owner may have changed the indexes by now. Nothing changes before readers have the new files.
    pub(super) fn is_replaced(&self) -> bool {
        match (&self.reader, self.shared.reader()) {
            (Some(then), Some(now)) => !then.is_same(&now),
            (Some(_) | None, None) => false,
            (None, Some(_)) => true,
        }
    }
}

/// Why a read came to nothing.
#[derive(Debug)]
pub(super) enum Unread {
    /// What it was to read is not there any more; nothing is wrong with the partition.
    Refused(Refusal),
    /// The files of the view cannot be read.
    Failed(StoreError),
}

/// The offsets of a view that may be read by; of a damaged partition those below the damage.
///
/// # Errors
/// `UnknownTopicOrPartition` of a deleted partition, `KafkaStorageError` of one of which nothing can be read.
pub fn bounds(view: &Published) -> Result<Bounds, Refusal> {
    let Published { log_start, watermark, last_stable, .. } = *view;
    match view.availability {
        Availability::Damaged if watermark >= 0 => Ok(Bounds { log_start, watermark, last_stable }),
        Availability::Open => Ok(Bounds { log_start, watermark, last_stable }),
        Availability::Damaged | Availability::Unloaded => Err(Refusal::KafkaStorageError),
        Availability::Gone => Err(Refusal::UnknownTopicOrPartition),
    }
}

/// The offsets of a view whose end is the partition's own.
///
/// # Errors
/// As [`bounds`], and `KafkaStorageError` of a damaged partition: where it ends is not known.
pub fn whole_bounds(view: &Published) -> Result<Bounds, Refusal> {
    match view.availability {
        Availability::Damaged => Err(Refusal::KafkaStorageError),
        Availability::Open | Availability::Unloaded | Availability::Gone => bounds(view),
    }
}

/// The offsets that a reader at `from` may go by. Who has come to the end of what can be read of a damaged partition is
/// told so: nothing will come there, and nothing that he asks for beyond is out of range.
///
/// # Errors
/// As [`bounds`], and `KafkaStorageError` at or above the damage, or a transaction that is open there.
pub fn bounds_at(view: &Published, from: Offset, isolation: Isolation) -> Result<Bounds, Refusal> {
    let bounds = bounds(view)?;
    let is_damaged = view.availability == Availability::Damaged;
    if is_damaged && from >= bounds.limit(isolation) { Err(Refusal::KafkaStorageError) } else { Ok(bounds) }
}

impl Broker {
    /// A partition to read from; loads it if need be.
    ///
    /// # Errors
    /// `UnknownTopicOrPartition`; `KafkaStorageError` for a damaged one; `NotLeaderOrFollower` when it does not open
    /// in time.
    pub async fn readable(&self, part: PartId) -> Result<Readable, Refusal> {
        self.readable_within(part, OPENING).await
    }

    /// As [`readable`](Self::readable), for a reader who waits no longer than `patience`, and not while the broker ends:
    /// a partition that cannot be opened must not hold up others that he asked for as well.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    pub async fn readable_within(&self, part: PartId, patience: Duration) -> Result<Readable, Refusal> {
        if let Some(readable) = self.readable_now(part) {
            return readable;
        }
        let slot = self.router().partitions.slot(part).ok_or(Refusal::UnknownTopicOrPartition)?;
        let shared = Arc::clone(&slot.shared);
        let mut watch = shared.watch();
        self.router().deliver(Post::Part(part, PartLetter::Load));
        let loaded = watch.wait_for(|now| now.availability != Availability::Unloaded);
        let opened = tokio::select! {
            loaded = loaded => loaded.is_ok(),
            () = tokio::time::sleep(patience.clamp(OPENING_LEAST, OPENING)) => false,
            () = self.stopping() => false,
        };
        let readable = Readable::of(part, shared);
        if !opened || readable.published.availability == Availability::Unloaded {
            return Err(Refusal::NotLeaderOrFollower);
        }
        bounds(&readable.published).map(|_| readable)
    }

    /// A partition to read from if it is loaded; `None` when [`Self::readable`] would have to wait.
    #[must_use]
    pub fn readable_now(&self, part: PartId) -> Option<Result<Readable, Refusal>> {
        let Some(slot) = self.router().partitions.slot(part) else {
            return Some(Err(Refusal::UnknownTopicOrPartition));
        };
        let readable = Readable::of(part, Arc::clone(&slot.shared));
        let loaded = readable.published.availability != Availability::Unloaded;
        loaded.then(|| bounds(&readable.published).map(|_| readable))
    }

    /// The first offset of a partition as readers know it; -1 of one that is not served (T-318).
    #[must_use]
    pub fn log_start(&self, part: PartId) -> Offset {
        self.router().partitions.slot(part).map_or(-1, |slot| slot.shared.published().log_start)
    }
}
