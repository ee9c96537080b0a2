//! Names of a partition's files, when a segment is full, and what its indexes get for each batch.

use crate::engine::Offset;
use crate::engine::batch::Header;
use crate::engine::log::index::{OffsetEntry, TimeEntry};

/// Positions and relative offsets are `int32`: no segment grows beyond this, whatever the settings say.
pub const MAX_SEGMENT_BYTES: u64 = 2_147_483_647;

/// An index file is full at Kafka's default of `segment.index.bytes`.
pub const MAX_INDEX_BYTES: u64 = 10 * 1024 * 1024;

/// Longest file name of the file systems we meet.
const MAX_NAME_BYTES: usize = 255;

/// What a topic's configuration says about its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    /// `segment.bytes`: a batch that would take the segment beyond it starts the next one.
    pub segment_bytes: u32,
    /// `index.interval.bytes`: an index entry after more than so many bytes.
    pub index_interval_bytes: u32,
    /// `segment.ms`: a batch so much younger than the segment's first starts the next one.
    pub segment_ms: i64,
}

/// The kinds of files that are named by an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// Batches.
    Log,
    /// Offsets to positions.
    OffsetIndex,
    /// Timestamps to offsets.
    TimeIndex,
    /// Aborted transactions; absent while there are none.
    TransactionIndex,
    /// Producers as they stand before that offset.
    Snapshot,
}

impl FileKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TransactionIndex, Self::Snapshot];

    /// What follows the twenty digits.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TransactionIndex => ".txnindex",
            Self::Snapshot => ".snapshot",
        }
    }
}

/// The file of that kind and offset: twenty digits and the suffix.
#[must_use]
pub fn file_name(offset: Offset, kind: FileKind) -> String {
    format!("{offset:020}{}", kind.suffix())
}

/// The reverse of [`file_name`]; `None` for any other name.
#[must_use]
pub fn parse_file_name(name: &str) -> Option<(Offset, FileKind)> {
    let (digits, suffix) = name.split_at_checked(20)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kind = FileKind::ALL.into_iter().find(|kind| kind.suffix() == suffix)?;
    Some((digits.parse().ok()?, kind))
}

/// Where the rest of a segment goes that a recovery cut off at `position`.
#[must_use]
pub fn torn_name(base: Offset, position: u64) -> String {
    format!("{base:020}-{position}.torn")
}

/// The directory of a partition.
#[must_use]
pub fn partition_dir(topic: &str, partition: i32) -> String {
    format!("{topic}-{partition}")
}

/// The name a partition's directory has on its way out. `unique` keeps a second deletion of the same name apart.
#[must_use]
pub fn condemned_dir(dir: &str, unique: u128) -> String {
    let suffix = format!(".{unique:032x}-delete");
    let room = MAX_NAME_BYTES.saturating_sub(suffix.len());
    let kept: String =
        dir.char_indices().take_while(|(at, c)| at.saturating_add(c.len_utf8()) <= room).map(|(_, c)| c).collect();
    kept + &suffix
}

/// Whether a directory's name says that it is on its way out.
#[must_use]
pub fn is_condemned(dir: &str) -> bool {
    let unique = dir.strip_suffix("-delete").and_then(|kept| kept.rsplit_once('.')).map(|(_, unique)| unique);
    unique.is_some_and(|unique| unique.len() == 32 && unique.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// What the next batch's fate depends on: how far a segment has grown and what its indexes hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// The segment's first offset.
    pub base: Offset,
    /// Bytes of whole batches.
    pub bytes: u64,
    /// Bytes since the last entry of the offset index.
    pub since_entry: u64,
    /// Largest timestamp of the first batch; `None` while the segment is empty or where it has no timestamp.
    pub first_timestamp: Option<i64>,
    /// Largest timestamp so far and the last offset of the first batch that carries it.
    pub largest: Option<(i64, Offset)>,
    /// Timestamp of the last entry of the time index.
    pub last_time: Option<i64>,
    /// Entries of the offset index.
    pub offset_entries: u64,
    /// Entries of the time index.
    pub time_entries: u64,
    /// When it was started, for batches without timestamps.
    pub created_ms: i64,
}

impl Growth {
    /// An empty segment.
    #[must_use]
    pub fn empty(base: Offset, created_ms: i64) -> Self {
        Self {
            base,
            bytes: 0,
            since_entry: 0,
            first_timestamp: None,
            largest: None,
            last_time: None,
            offset_entries: 0,
            time_entries: 0,
            created_ms,
        }
    }

    /// Whether this batch must start the next segment.
    #[must_use]
    pub fn must_roll(&self, batch: &Header, size: u64, settings: &LogSettings, now_ms: i64) -> bool {
        if self.bytes == 0 {
            return false;
        }
        let limit = u64::from(settings.segment_bytes).min(MAX_SEGMENT_BYTES);
        let waited = match self.first_timestamp {
            Some(first) if batch.max_timestamp >= 0 => batch.max_timestamp.saturating_sub(first),
            Some(_) | None => now_ms.saturating_sub(self.created_ms),
        };
        self.bytes.saturating_add(size) > limit
            || waited > settings.segment_ms
            || relative(batch.last_offset(), self.base).is_none()
            || is_full(self.offset_entries, 8)
            || is_full(self.time_entries, 12)
    }

    /// The segment with one more batch at its end, and the index entries that go with it: one before a batch when more
    /// than the interval was appended since the last, so never for the first.
    #[must_use]
    pub fn with(&self, batch: &Header, size: u64, interval: u32) -> (Self, Option<OffsetEntry>, Option<TimeEntry>) {
        let mut next = *self;
        if self.bytes == 0 && batch.max_timestamp >= 0 {
            next.first_timestamp = Some(batch.max_timestamp);
        }
        if batch.max_timestamp > self.largest.map_or(-1, |(timestamp, _)| timestamp) {
            next.largest = Some((batch.max_timestamp, batch.last_offset()));
        }
        let (mut offset, mut time) = (None, None);
        if self.since_entry > u64::from(interval) {
            offset = self.offset_entry(batch);
            time = next.closing_entry();
            next.since_entry = 0;
            next.offset_entries = next.offset_entries.saturating_add(u64::from(offset.is_some()));
            next = next.with_time(time);
        }
        next.bytes = next.bytes.saturating_add(size);
        next.since_entry = next.since_entry.saturating_add(size);
        (next, offset, time)
    }

    /// The entry that the time index lacks: the largest timestamp, unless it is there already. Also the last one of a
    /// segment, written when it is sealed or closed.
    #[must_use]
    pub fn closing_entry(&self) -> Option<TimeEntry> {
        let (timestamp, offset) = self.largest?;
        if timestamp <= self.last_time.unwrap_or(-1) {
            return None;
        }
        Some(TimeEntry { timestamp, relative_offset: relative(offset, self.base)? })
    }

    /// The segment after that entry was added to its time index.
    #[must_use]
    pub fn with_time(mut self, entry: Option<TimeEntry>) -> Self {
        if let Some(entry) = entry {
            self.last_time = Some(entry.timestamp);
            self.time_entries = self.time_entries.saturating_add(1);
        }
        self
    }

    fn offset_entry(&self, batch: &Header) -> Option<OffsetEntry> {
        Some(OffsetEntry {
            relative_offset: relative(batch.last_offset(), self.base)?,
            position: i32::try_from(self.bytes).ok()?,
        })
    }
}

/// An offset as the indexes of the segment at `base` say it; `None` when it does not fit.
#[must_use]
pub fn relative(offset: Offset, base: Offset) -> Option<i32> {
    let distance = offset.checked_sub(base)?;
    i32::try_from(distance).ok().filter(|distance| *distance >= 0)
}

fn is_full(entries: u64, entry_bytes: u64) -> bool {
    entries.saturating_add(1).saturating_mul(entry_bytes) > MAX_INDEX_BYTES
}

#[cfg(test)]
mod tests;
