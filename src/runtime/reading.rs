//! Reading past the owners: from memory at once, from the device on other threads, within one allowance of memory.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::engine::{Offset, PartId, Refusal};
use crate::runtime::broker::Broker;
use crate::runtime::readable::{Readable, Unread};
use crate::store::StoreError;
use crate::store::log::{LogReader, ReadHow, ReadOutcome, ReadWish, TimestampOffset};

/// Memory that records on their way to clients may take, all together.
const MEMORY_BYTES: usize = 256 << 20;

/// A reader is not sent away with room for less than this, unless it asks for less: it waits instead.
const LEAST_ROOM_BYTES: usize = 1 << 20;

/// Threads that wait for the device on behalf of readers at one time.
const BLOCKING_READS: usize = 16;

/// What all readers share.
pub struct Reads {
    memory: Arc<Semaphore>,
    memory_bytes: usize,
    pub(super) blocking: Arc<Semaphore>,
    /// Looks at the sizes of all partitions: one at a time, and readers do not wait behind it.
    pub(super) sizes: Arc<Semaphore>,
    /// Reads that were refused because no file could be opened.
    refused: AtomicU64,
}

impl Default for Reads {
    fn default() -> Self {
        Self::of(MEMORY_BYTES)
    }
}

/// Memory set apart for what is about to be read; given back when dropped.
#[derive(Debug)]
pub struct Reserved(Option<OwnedSemaphorePermit>);

/// Records with the memory they are counted by: given back when the last slice of them is dropped.
struct Counted {
    bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Reads {
    fn of(memory_bytes: usize) -> Self {
        Self {
            memory: Arc::new(Semaphore::new(memory_bytes)),
            memory_bytes,
            blocking: Arc::new(Semaphore::new(BLOCKING_READS)),
            sizes: Arc::new(Semaphore::new(1)),
            refused: AtomicU64::new(0),
        }
    }

    /// Sets up to `wanted` bytes apart. Takes what is there if that is enough to go on with, so that few readers with
    /// great wishes do not hold up all others; waits only while there is next to nothing.
    pub async fn reserve(&self, wanted: usize) -> Reserved {
        let free = self.memory.available_permits();
        let now = wanted.min(free.max(LEAST_ROOM_BYTES));
        self.exactly(now).await
    }

    /// Sets `bytes` apart, or all there is.
    pub async fn exactly(&self, bytes: usize) -> Reserved {
        let bytes = u32::try_from(bytes.min(self.memory_bytes)).unwrap_or(u32::MAX);
        // The semaphore is never closed, so an error cannot come; were it to, the bytes would only go uncounted.
        Reserved(Arc::clone(&self.memory).acquire_many_owned(bytes).await.ok())
    }

    /// Bytes that no reader holds.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.memory.available_permits()
    }
}

impl Reserved {
    /// How many bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Makes it at least `bytes`, if that is to be had at once.
    #[must_use]
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let Some(held) = &mut self.0 else { return false };
        let missing = bytes.saturating_sub(held.num_permits());
        let Ok(missing) = u32::try_from(missing) else { return false };
        match Arc::clone(held.semaphore()).try_acquire_many_owned(missing) {
            Ok(more) => {
                held.merge(more);
                true
            }
            Err(_) => false,
        }
    }

    /// Gives all of it back, for whoever is about to wait for another one.
    pub fn release(&mut self) {
        self.0 = None;
    }

    /// Lets the part that `bytes` take go with them.
    #[must_use]
    pub fn bind(&mut self, bytes: Bytes) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        let share = self.0.as_mut().and_then(|held| held.split(bytes.len().min(held.num_permits())));
        Bytes::from_owner(Counted { bytes, _share: share })
    }
}

/// What to read of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first offset wanted; the batch that holds it comes whole.
    pub from: Offset,
    /// Nothing at or above this offset.
    pub limit: Offset,
    /// Not more bytes than this.
    pub max_bytes: usize,
    /// Whether the first batch comes even if it alone is larger.
    pub at_least_one: bool,
}

impl Span {
    fn wish(&self, how: ReadHow) -> ReadWish {
        let Self { from, limit, max_bytes, at_least_one } = *self;
        ReadWish { from, limit, max_bytes, at_least_one, how }
    }
}

/// Whole batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batches {
    /// Their bytes; none when there is nothing within the limits.
    pub bytes: Bytes,
    /// The offset after the last of them, or the offset asked for when there are none.
    pub next_offset: Offset,
}

/// A record found by its timestamp.
pub type Found = Option<TimestampOffset>;

impl Broker {
    /// The allowance of memory that readers share.
    #[must_use]
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Reads whole batches of one segment.
    ///
    /// # Errors
    /// `OffsetOutOfRange` when they were removed just now; `KafkaStorageError`.
    pub async fn read(&self, readable: &Readable, span: Span) -> Result<Batches, Refusal> {
        let mut outcome = self.settled(readable, span.from, readable.reader()?.read(&span.wish(ReadHow::NoWait)))?;
        if outcome == ReadOutcome::WouldBlock {
            outcome = self.blocking(readable, span.from, move |reader| reader.read(&span.wish(ReadHow::Block))).await?;
        }
        match outcome {
            ReadOutcome::Bytes { .. } if readable.starts_after(span.from) => Err(Refusal::OffsetOutOfRange),
            ReadOutcome::Bytes { bytes, next_offset } => Ok(Batches { bytes, next_offset }),
            ReadOutcome::Gone => Err(Refusal::OffsetOutOfRange),
            ReadOutcome::WouldBlock => Err(Refusal::KafkaStorageError),
        }
    }

    /// The aborted transactions that a reader who is given `from..upper` must know of: producer id and first offset,
    /// in order of first offset (T-513).
    ///
    /// # Errors
    /// `KafkaStorageError`: without them the records may not be shown. `OffsetOutOfRange` when `from` was removed just now.
    pub async fn aborted(
        &self,
        readable: &Readable,
        from: Offset,
        upper: Offset,
    ) -> Result<Vec<(i64, Offset)>, Refusal> {
        let mut found = self.settled(readable, from, readable.reader()?.aborted(from, upper, ReadHow::NoWait))?;
        if found.is_none() {
            found = self.blocking(readable, from, move |reader| reader.aborted(from, upper, ReadHow::Block)).await?;
        }
        // Looked at last: an index may have gone while it was read, and with it the word that a transaction was aborted.
        if readable.starts_after(from) {
            return Err(Refusal::OffsetOutOfRange);
        }
        found.ok_or(Refusal::KafkaStorageError)
    }

    /// The first record within the range whose timestamp is at least `wanted` (T-526).
    ///
    /// # Errors
    /// `KafkaStorageError`, `OffsetOutOfRange` where the first of the range was removed just now.
    pub async fn find_time(&self, readable: &Readable, wanted: i64, within: Range<Offset>) -> Result<Found, Refusal> {
        let from = within.start;
        let find = move |reader: &LogReader| reader.offset_for_timestamp(wanted, within);
        self.blocking(readable, from, find).await
    }

    /// The earliest record that holds the largest timestamp, if it lies within the range (T-522).
    ///
    /// # Errors
    /// As [`find_time`](Self::find_time).
    pub async fn find_latest_time(&self, readable: &Readable, within: Range<Offset>) -> Result<Found, Refusal> {
        let from = within.start;
        let find = move |reader: &LogReader| reader.max_timestamp(within);
        self.blocking(readable, from, find).await
    }

    /// The leader epoch in which the record at `offset` was written, if there is one.
    ///
    /// # Errors
    /// `KafkaStorageError`, `OffsetOutOfRange` where it was removed just now.
    pub async fn epoch_at(&self, readable: &Readable, offset: Offset) -> Result<Option<i32>, Refusal> {
        self.blocking(readable, offset, move |reader| reader.epoch_at(offset)).await
    }

    /// Runs what waits for the device on another thread. A caller that goes away leaves it to end by itself, still
    /// counted among those that run.
    async fn blocking<T: Send + 'static>(
        &self,
        readable: &Readable,
        from: Offset,
        work: impl FnOnce(&LogReader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let reader = readable.reader()?;
        let turn = Arc::clone(&self.reads.blocking).acquire_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&reader);
            drop(turn);
            done
        });
        match done.await {
            Ok(done) => self.settled(readable, from, done),
            Err(error) => {
                tracing::error!(%error, "a read was given up");
                Err(Refusal::KafkaStorageError)
            }
        }
    }

    /// What a read from `from` came to.
    fn settled<T>(&self, readable: &Readable, from: Offset, done: Result<T, StoreError>) -> Result<T, Refusal> {
        readable.judge(from, done).map_err(|unread| match unread {
            Unread::Refused(refusal) => refusal,
            Unread::Failed(error) => self.unreadable(readable.part, error),
        })
    }

    /// A place that cannot be read is told once, by readiness and in the log: readers will come to it again and again.
    pub(super) fn unreadable(&self, part: PartId, error: StoreError) -> Refusal {
        match error {
            // Too many files are open: that passes, and says nothing of the partition.
            StoreError::Full(why) => {
                let before = self.reads.refused.fetch_add(1, Ordering::Relaxed);
                if before.saturating_add(1).is_power_of_two() {
                    tracing::warn!(part = part.0, why, before, "a read is refused for want of room");
                }
            }
            StoreError::Damaged(why) => {
                if self.router().partitions.note_unreadable(part, &why) {
                    tracing::error!(part = part.0, why, "a place of a partition cannot be read");
                }
            }
            StoreError::Broken(_) => self.router().broken(&error),
        }
        Refusal::KafkaStorageError
    }
}

#[cfg(test)]
mod tests;
