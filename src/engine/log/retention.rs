//! What may leave a log by age and by size (T-543).

use crate::engine::Offset;
use crate::engine::catalog::LogSettings;

/// What a topic's retention goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Segments whose records all are older than this, in milliseconds, may go; none for ever.
    pub age_ms: Option<i64>,
    /// The oldest segments may go as far as the log keeps at least this many bytes; none for no limit.
    pub bytes: Option<u64>,
}

/// A segment as retention looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First offset.
    pub base: Offset,
    /// Offset after the last.
    pub end: Offset,
    /// Bytes of batches.
    pub bytes: u64,
}

impl Retention {
    /// A topic's; `None` where nothing ever goes by age or size: `cleanup.policy` without `delete`, or no limit set.
    #[must_use]
    pub fn of(settings: &LogSettings) -> Option<Self> {
        let bytes = settings.retention_bytes.and_then(|bytes| u64::try_from(bytes).ok());
        let retention = Self { age_ms: settings.retention_ms, bytes };
        let limited = retention.age_ms.is_some() || retention.bytes.is_some();
        (settings.cleanup.deletes() && limited).then_some(retention)
    }

    /// How many of the oldest segments may go. None that reaches beyond `limit`, below which everything is decided and
    /// on disk (T-543 R), and nothing behind one that stays. `time_of` says when a segment's youngest record is from,
    /// in milliseconds since 1970; it is asked no further than needed.
    ///
    /// The last segment counts as any other, as long as it is not empty: Kafka, too, starts a new one when all of them
    /// have expired. A size is never undercut: a segment goes by size only if what is left has at least that many
    /// bytes. An age counts if it is above the limit, not if it is equal.
    ///
    /// # Errors
    /// Those of `time_of`.
    pub fn expired<E>(
        &self,
        extents: &[Extent],
        limit: Offset,
        now_ms: i64,
        time_of: &mut dyn FnMut(usize) -> Result<i64, E>,
    ) -> Result<usize, E> {
        let mut left: u64 = extents.iter().fold(0, |sum, extent| sum.saturating_add(extent.bytes));
        let mut count = 0_usize;
        for (at, extent) in extents.iter().enumerate() {
            if extent.end > limit || extent.bytes == 0 {
                break;
            }
            left = left.saturating_sub(extent.bytes);
            let by_size = self.bytes.is_some_and(|bytes| left >= bytes);
            let by_age = match self.age_ms {
                Some(age_ms) if !by_size => now_ms.saturating_sub(time_of(at)?) > age_ms,
                Some(_) | None => false,
            };
            if !by_size && !by_age {
                break;
            }
            count = count.saturating_add(1);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
