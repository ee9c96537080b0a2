//! What is left of a log after the process did not stop in order (storage rules 2.3 and 2.4).

use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::Offset;
use crate::engine::batch::{HEADER_BYTES, Header};
use crate::engine::log::scan::{
    Expected, Flaw, MAX_CANDIDATES, Verdict, check_header, check_sum, find_candidate, verdict,
};
use crate::engine::log::segments::torn_name;
use crate::engine::log::{Growth, LogSettings, OffsetEntry, TimeEntry};
use crate::store::StoreError;
use crate::store::cache::{Source, drop_cache};
use crate::store::disk::File;
use crate::store::log::open::{OpenHow, Torn};
use crate::store::log::segment::{Segment, WALK_BYTES, shown};
use crate::store::log::window::{View, Walked, Window, as_u64};

/// So much of a torn tail is kept for a look.
const MAX_KEPT_BYTES: u64 = 16 * 1024 * 1024;

/// What a recovery came to.
pub(super) struct Recovered {
    pub(super) next_offset: Offset,
    /// The active segment's, when it was looked at.
    pub(super) growth: Option<Growth>,
    pub(super) torn: Option<Torn>,
    pub(super) scanned_bytes: u64,
    pub(super) cache_kept: bool,
}

impl Recovered {
    /// Nothing was done.
    pub(super) fn untouched(next_offset: Offset) -> Self {
        Self { next_offset, growth: None, torn: None, scanned_bytes: 0, cache_kept: false }
    }
}

/// How far a scan has come.
pub(super) struct Progress {
    pub(super) pos: u64,
    pub(super) expected: Expected,
    pub(super) growth: Growth,
}

/// Verifies everything above the recovery point. A segment that has a successor was synced before that was created, so
/// only the last one can have a torn tail.
pub(super) fn recover(
    segments: &[Arc<Segment>],
    how: &OpenHow,
    settings: &LogSettings,
) -> Result<Recovered, StoreError> {
    let (first, pos, offset) = starting_point(segments, how)?;
    let mut recovered = Recovered::untouched(offset);
    let mut expected = Expected { next_offset: offset, leader_epoch: 0 };
    let mut pos = pos;
    for (at, segment) in segments.iter().enumerate().skip(first) {
        let (size, source) = distrust(segment, pos, &mut recovered)?;
        let start = restore_indexes(segment, pos, expected, settings)?;
        let mut window = Window::new(source, segment.path(), size, WALK_BYTES);
        let is_last = at.saturating_add(1) == segments.len();
        let limit = if is_last { how.incarnation } else { i32::MAX };
        let (end, flaw) = scan(segment, &mut window, start, (settings, limit))?;
        recovered.scanned_bytes = recovered.scanned_bytes.saturating_add(end.pos.saturating_sub(pos));
        if let Some(next) = segments.get(at.saturating_add(1)) {
            must_adjoin(segment, &end, flaw, next.base)?;
        } else {
            recovered.torn = judge_end(segment, &mut window, &end, flaw, how.witness)?;
        }
        segment.set_largest(end.growth.largest);
        recovered.next_offset = end.expected.next_offset;
        recovered.growth = Some(end.growth);
        expected = end.expected;
        pos = 0;
    }
    Ok(recovered)
}

/// The segment, byte and offset where verification begins.
pub(super) fn starting_point(segments: &[Arc<Segment>], how: &OpenHow) -> Result<(usize, u64, Offset), StoreError> {
    let first = segments.first().map_or(0, |segment| segment.base);
    match how.point {
        Some(point) if point.active_base >= first => {
            match segments.iter().position(|segment| segment.base == point.active_base) {
                Some(at) => Ok((at, point.synced_pos, point.synced_offset)),
                None => {
                    let why = format!("the segment at offset {} is missing", point.active_base);
                    Err(segments.first().map_or(StoreError::Damaged(why.clone()), |first| first.damaged(0, &why)))
                }
            }
        }
        // Retention removed the segment of the point; the log start vouches for the first that is there.
        Some(_) | None => Ok((0, 0, first)),
    }
}

/// Makes sure that what is verified next is what the device has; gives the file's size, and what to read it through.
fn distrust(segment: &Segment, synced_pos: u64, recovered: &mut Recovered) -> Result<(u64, Arc<dyn File>), StoreError> {
    segment.sync()?;
    let file = segment.file()?;
    let failed = |error: io::Error| StoreError::from_read(&shown(&segment.path()), &error);
    let size = file.size().map_err(failed)?;
    let source = match drop_cache(&file).map_err(failed)? {
        Source::Dropped => file,
        Source::Past(past) => past,
        Source::Cached => {
            recovered.cache_kept = true;
            file
        }
    };
    if size < synced_pos {
        return Err(segment.damaged(size, &format!("the file ends before its synced position {synced_pos}")));
    }
    Ok((size, source))
}

fn must_adjoin(segment: &Segment, end: &Progress, flaw: Option<Flaw>, next: Offset) -> Result<(), StoreError> {
    match flaw {
        Some(flaw) => Err(segment.damaged(end.pos, &format!("{flaw:?} in a sealed segment"))),
        None if end.expected.next_offset != next => {
            let why = format!("the segment ends at offset {}, the next begins at {next}", end.expected.next_offset);
            Err(segment.damaged(end.pos, &why))
        }
        None => Ok(()),
    }
}

/// Verifies batches from `start` on, and gives the indexes what they lack. The checksum does not cover the leader epoch: one
/// above `limit`, which nothing was written with, says that rows are older than the log if a batch that follows says so too,
/// and else that the batch did not reach the disk as it was.
fn scan(
    segment: &Segment,
    window: &mut Window,
    start: Progress,
    (settings, limit): (&LogSettings, i32),
) -> Result<(Progress, Option<Flaw>), StoreError> {
    let mut at = start;
    while at.pos < window.end() {
        let mut found = sound_batch(window, at.pos, Some(at.expected))?;
        if let Ok((header, size)) = found
            && header.leader_epoch > limit
            && at.expected.leader_epoch <= limit
            && sound_batch(window, at.pos.saturating_add(as_u64(size)), Some(Expected::after(&header)))?.is_err()
        {
            found = Err(Flaw::LoneEpoch);
        }
        match found {
            Ok((header, size)) => take(segment, &mut at, &header, size, settings),
            Err(flaw) => {
                segment.set_bytes(at.pos);
                return Ok((at, Some(flaw)));
            }
        }
    }
    segment.set_bytes(at.pos);
    Ok((at, None))
}

pub(super) fn take(segment: &Segment, at: &mut Progress, header: &Header, size: usize, settings: &LogSettings) {
    let (growth, offset, time) = at.growth.with(header, as_u64(size), settings.index_interval_bytes);
    at.growth = growth;
    if let Some(entry) = offset {
        segment.offsets.push(entry);
    }
    if let Some(entry) = time {
        segment.times.push(entry);
    }
    at.pos = at.pos.saturating_add(as_u64(size));
    at.expected = Expected::after(header);
}

/// The whole batch at `pos`, verified; continuity too if it must continue something.
pub(super) fn sound_batch(
    window: &mut Window,
    pos: u64,
    expected: Option<Expected>,
) -> Result<Result<(Header, usize), Flaw>, StoreError> {
    let left = window.end().saturating_sub(pos);
    let header = match window.view(pos, HEADER_BYTES)? {
        View::Bytes(bytes) => Header::read(bytes),
        View::Short | View::WouldBlock => None,
    };
    let Some(header) = header else {
        return Ok(Err(Flaw::ShortHeader));
    };
    let unbound = Expected { next_offset: header.base_offset, leader_epoch: header.leader_epoch };
    let size = match check_header(&header, left, expected.unwrap_or(unbound)) {
        Ok(size) => size,
        Err(flaw) => return Ok(Err(flaw)),
    };
    Ok(match window.view(pos, size)? {
        View::Bytes(bytes) => check_sum(&header, bytes).map(|()| (header, size)),
        View::Short | View::WouldBlock => Err(Flaw::ShortBatch),
    })
}

/// Judges the log's end, and cuts it where that is right.
fn judge_end(
    segment: &Segment,
    window: &mut Window,
    end: &Progress,
    flaw: Option<Flaw>,
    witness: Offset,
) -> Result<Option<Torn>, StoreError> {
    let next = end.expected.next_offset;
    let more = flaw.is_some() && next >= witness && sound_batch_follows(window, end.pos, next)?;
    let verdict = verdict(flaw, next, witness, more);
    match verdict {
        Verdict::Sound => Ok(None),
        Verdict::Damage => {
            let flaw = flaw.map_or("the file ends".to_owned(), |flaw| format!("{flaw:?}"));
            Err(segment.damaged(end.pos, &format!("{flaw}, though the log had reached offset {witness}")))
        }
        Verdict::TornTail | Verdict::Hole => {
            let kept = keep_torn(segment, window, end.pos)?;
            let bytes = window.end().saturating_sub(end.pos);
            let path = segment.path();
            let file = segment.file()?;
            file.truncate(end.pos).map_err(|error| StoreError::from_write(&shown(&path), &error))?;
            segment.sync()?;
            Ok(Some(Torn { path, position: end.pos, bytes, verdict, kept }))
        }
    }
}

fn sound_batch_follows(window: &mut Window, flawed: u64, from: Offset) -> Result<bool, StoreError> {
    let mut pos = flawed.saturating_add(1);
    for _ in 0..MAX_CANDIDATES {
        let Some(found) = next_candidate(window, pos, from)? else {
            return Ok(false);
        };
        if sound_batch(window, found, None)?.is_ok() {
            return Ok(true);
        }
        pos = found.saturating_add(1);
    }
    Ok(false)
}

fn next_candidate(window: &mut Window, start: u64, from: Offset) -> Result<Option<u64>, StoreError> {
    let mut pos = start;
    loop {
        let left = usize::try_from(window.end().saturating_sub(pos)).unwrap_or(usize::MAX);
        let len = left.min(WALK_BYTES);
        let View::Bytes(bytes) = window.view(pos, len)? else {
            return Ok(None);
        };
        if let Some((at, _)) = find_candidate(bytes, 0, from) {
            return Ok(Some(pos.saturating_add(as_u64(at))));
        }
        if len == left {
            return Ok(None);
        }
        // A header may begin in this piece and end in the next.
        pos = pos.saturating_add(as_u64(len - HEADER_BYTES));
    }
}

/// Copies what will be cut to a file beside it. Having no room for that is no reason to fail.
fn keep_torn(segment: &Segment, window: &mut Window, pos: u64) -> Result<Option<PathBuf>, StoreError> {
    let path = segment.place.dir.join(torn_name(segment.base, pos));
    let end = window.end().min(pos.saturating_add(MAX_KEPT_BYTES));
    let file = match segment.disk().create(&path) {
        Ok(file) => file,
        Err(error) => return no_room(&StoreError::from_write(&shown(&path), &error)),
    };
    let mut from = pos;
    while from < end {
        let len = usize::try_from(end - from).unwrap_or(usize::MAX).min(WALK_BYTES);
        let View::Bytes(bytes) = window.view(from, len)? else {
            return Ok(None);
        };
        if let Err(error) = file.write_at(&[IoSlice::new(bytes)], from - pos) {
            return no_room(&StoreError::from_write(&shown(&path), &error));
        }
        from = from.saturating_add(as_u64(len));
    }
    Ok(Some(path))
}

fn no_room(error: &StoreError) -> Result<Option<PathBuf>, StoreError> {
    match error {
        StoreError::Full(_) => Ok(None),
        StoreError::Damaged(text) => Err(StoreError::Damaged(text.clone())),
        StoreError::Broken(text) => Err(StoreError::Broken(text.clone())),
    }
}

/// Brings a segment's offset and time index to what they are worth at `pos`, everything below which is synced, and
/// walks the headers that the last entry leaves out.
fn restore_indexes(
    segment: &Segment,
    pos: u64,
    expected: Expected,
    settings: &LogSettings,
) -> Result<Progress, StoreError> {
    let mut window = segment.window(pos, WALK_BYTES)?;
    let base = segment.base;
    let disk = segment.disk();
    segment.offsets.cut(disk, &mut |before: Option<&OffsetEntry>, entry: &OffsetEntry| {
        let at = u64::try_from(entry.position).unwrap_or(u64::MAX);
        let rises = before.is_none_or(|before| before.position < entry.position);
        let plausible = rises && entry.position > 0 && at < pos;
        Ok(plausible && ends_at(&mut window, at, base.saturating_add(i64::from(entry.relative_offset)))?)
    })?;
    segment.times.cut(disk, &mut |before: Option<&TimeEntry>, entry: &TimeEntry| {
        let rises = before
            .is_none_or(|before| before.timestamp < entry.timestamp && before.relative_offset < entry.relative_offset);
        let offset = base.saturating_add(i64::from(entry.relative_offset));
        let holder = if rises && offset < expected.next_offset { segment.batch_with(offset, pos)? } else { None };
        Ok(holder.is_some_and(|holder| holder.last_offset() == offset && holder.max_timestamp == entry.timestamp))
    })?;
    if segment.times.last(disk)?.0 == 0 {
        // The largest timestamp below the last offset entry is not known then: the walk begins at the front.
        segment.offsets.cut(disk, &mut |_, _| Ok(false))?;
    }
    let growth = growth_at_last_entry(segment, &mut window)?;
    // Nothing was walked yet: the first batch met need not continue anything.
    let mut at = Progress { pos: growth.bytes, expected, growth };
    while at.pos < pos {
        match window.walk(at.pos)? {
            Walked::Batch(header, size) => take(segment, &mut at, &header, size, settings),
            Walked::Flawed(flaw) => return Err(segment.damaged(at.pos, &format!("{flaw:?} in synced bytes"))),
            Walked::End | Walked::WouldBlock => return Err(segment.damaged(at.pos, "cannot be read")),
        }
    }
    if at.pos != pos || at.expected.next_offset != expected.next_offset {
        let why = format!("offset {} where {} was synced", at.expected.next_offset, expected.next_offset);
        return Err(segment.damaged(at.pos, &why));
    }
    Ok(at)
}

pub(super) fn ends_at(window: &mut Window, pos: u64, last_offset: Offset) -> Result<bool, StoreError> {
    Ok(match window.walk(pos)? {
        Walked::Batch(header, _) => header.last_offset() == last_offset,
        Walked::Flawed(_) | Walked::End | Walked::WouldBlock => false,
    })
}

fn growth_at_last_entry(segment: &Segment, window: &mut Window) -> Result<Growth, StoreError> {
    let mut growth = Growth::empty(segment.base, 0);
    let (time_entries, last_time) = segment.times.last(segment.disk())?;
    growth.time_entries = time_entries;
    growth.last_time = last_time.map(|entry| entry.timestamp);
    growth.largest =
        last_time.map(|entry| (entry.timestamp, segment.base.saturating_add(i64::from(entry.relative_offset))));
    let (offset_entries, last) = segment.offsets.last(segment.disk())?;
    if let Some(entry) = last {
        growth.offset_entries = offset_entries;
        growth.bytes = u64::try_from(entry.position).unwrap_or(0);
        if let Walked::Batch(header, _) = window.walk(0)? {
            growth.first_timestamp = Some(header.max_timestamp).filter(|timestamp| *timestamp >= 0);
        }
    }
    Ok(growth)
}
