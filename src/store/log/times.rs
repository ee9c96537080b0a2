//! Offsets by timestamp (T-520 to T-526).

use std::ops::Range;
use std::sync::Arc;

use crate::engine::Offset;
use crate::engine::batch::Header;
use crate::engine::log::TimeEntry;
use crate::engine::log::times::first_at_or_after;
use crate::store::StoreError;
use crate::store::log::LogReader;
use crate::store::log::entries::Lookup;
use crate::store::log::reader::ReadWish;
use crate::store::log::segment::{Handle, Segment};
use crate::store::log::window::{View, Walked, Window, as_u64};
use crate::store::log::{ReadHow, ReadOutcome};

/// Bytes of the buffer that headers are walked with.
const WALK_BYTES: usize = 32 * 1024;

/// A record found by its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    /// The record's timestamp.
    pub timestamp: i64,
    /// The record's offset.
    pub offset: Offset,
    /// The leader epoch it was written in.
    pub leader_epoch: i32,
}

impl LogReader {
    /// The first record, in order of offsets, whose timestamp is at least `wanted` (T-526, F-763); control records
    /// count. `within` is log start to the limit of the reader: a record found beyond it is `None`. Waits for the
    /// device. Only headers are read but for the batches that may hold it.
    ///
    /// # Errors
    /// `Damaged`: a place on the way cannot be read.
    pub fn offset_for_timestamp(
        &self,
        wanted: i64,
        within: Range<Offset>,
    ) -> Result<Option<TimestampOffset>, StoreError> {
        let segments = self.shared.segments();
        for (at, segment) in segments.iter().enumerate() {
            if is_below(&segments, at, within.start)
                || segment.largest()?.is_none_or(|(timestamp, _)| timestamp < wanted)
            {
                continue;
            }
            if segment.base >= within.end {
                break;
            }
            if let Some(found) = search(segment, wanted, &within)? {
                return Ok(Some(found).filter(|found| found.offset < within.end));
            }
        }
        Ok(None)
    }

    /// The earliest record that holds the log's largest timestamp (T-522); `None` when it lies outside of `within`, or
    /// when there is none. Waits for the device.
    ///
    /// # Errors
    /// `Damaged`: a place on the way cannot be read.
    pub fn max_timestamp(&self, within: Range<Offset>) -> Result<Option<TimestampOffset>, StoreError> {
        let mut largest: Option<i64> = None;
        let segments = self.shared.segments();
        for (at, segment) in segments.iter().enumerate() {
            // One below the log start may have no files any more.
            if is_below(&segments, at, within.start) {
                continue;
            }
            largest = largest.max(segment.largest()?.map(|(timestamp, _)| timestamp));
        }
        match largest {
            Some(timestamp) => self.offset_for_timestamp(timestamp, within),
            None => Ok(None),
        }
    }

    /// Leader epoch of the batch that holds `offset`, for answers that name an offset; `None` when nothing does. Waits.
    ///
    /// # Errors
    /// `Damaged`: the place cannot be read.
    pub fn epoch_at(&self, offset: Offset) -> Result<Option<i32>, StoreError> {
        let wish = ReadWish { from: offset, limit: Offset::MAX, max_bytes: 1, at_least_one: true, how: ReadHow::Block };
        Ok(match self.read(&wish)? {
            ReadOutcome::Bytes { bytes, .. } => Header::read(&bytes).map(|header| header.leader_epoch),
            ReadOutcome::WouldBlock | ReadOutcome::Gone => None,
        })
    }
}

/// Whether all of a segment lies below an offset.
fn is_below(segments: &[Arc<Segment>], at: usize, offset: Offset) -> bool {
    segments.get(at.saturating_add(1)).is_some_and(|next| next.base <= offset)
}

fn search(segment: &Arc<Segment>, wanted: i64, within: &Range<Offset>) -> Result<Option<TimestampOffset>, StoreError> {
    let Handle::File(file) = segment.handle(ReadHow::Block)? else {
        return Ok(None);
    };
    let mut window = Window::new(file, segment.path(), segment.bytes(), WALK_BYTES);
    let mut pos = start_of_search(segment, wanted)?;
    loop {
        let (header, size) = match window.walk(pos)? {
            Walked::Batch(header, size) => (header, size),
            Walked::End => return Ok(None),
            Walked::WouldBlock => return Err(segment.damaged(pos, "cannot be read")),
            Walked::Flawed(flaw) => return Err(segment.damaged(pos, &format!("{flaw:?}"))),
        };
        if header.base_offset >= within.end {
            return Ok(None);
        }
        if header.max_timestamp >= wanted && header.last_offset() >= within.start {
            let View::Bytes(batch) = window.view(pos, size)? else {
                return Err(segment.damaged(pos, "cannot be read"));
            };
            let found = first_at_or_after(batch, wanted, within.start);
            let found = found.map_err(|broken| segment.damaged(pos, &format!("{broken:?}")))?;
            if let Some((timestamp, offset)) = found {
                return Ok(Some(TimestampOffset { timestamp, offset, leader_epoch: header.leader_epoch }));
            }
        }
        pos = pos.saturating_add(as_u64(size));
    }
}

/// A position before which nothing in the segment is as young as `wanted`.
fn start_of_search(segment: &Segment, wanted: i64) -> Result<u64, StoreError> {
    let holds = |entry: &TimeEntry| entry.timestamp <= wanted;
    match segment.times.around(segment.disk(), &holds, ReadHow::Block)? {
        Lookup::Found((Some(entry), _)) => {
            segment.start_for(segment.base.saturating_add(i64::from(entry.relative_offset)))
        }
        Lookup::Found((None, _)) | Lookup::WouldBlock => Ok(0),
    }
}
