//! Whether the segments of a log adjoin, those that no scan looks at included: a file that is missing, shorter than it
//! was, or another one's, must not be passed over by readers.

use std::sync::Arc;

use crate::engine::Offset;
use crate::store::StoreError;
use crate::store::log::open::OpenHow;
use crate::store::log::recover::{ends_at, starting_point};
use crate::store::log::segment::Segment;
use crate::store::log::window::{Walked, Window, as_u64};

/// Bytes of the buffer that the last headers are walked with.
const WALK_BYTES: usize = 16 * 1024;

/// An index without entries over more than this was lost.
const UNINDEXED_BYTES: u64 = 4 * 1024 * 1024;

/// Checks that each segment below the one where a scan begins ends where the next begins; after a clean stop, which no
/// scan follows, all of them, the last one too. Reads the last entry of each index and the few batches after it; an
/// index that does not fit its segment is made anew.
pub(super) fn check_sealed(
    segments: &[Arc<Segment>],
    how: &OpenHow,
    trusted: Option<Offset>,
) -> Result<(), StoreError> {
    let unscanned = match trusted {
        Some(_) => segments.len(),
        None => starting_point(segments, how)?.0,
    };
    let ends = segments.iter().skip(1).map(|next| Some(next.base)).chain([trusted]);
    for (segment, end) in segments.iter().zip(ends).take(unscanned) {
        let Some(end) = end else { continue };
        let was_open = segment.is_open();
        check_end(segment, end)?;
        if !was_open && segment.base < segments.last().map_or(0, |last| last.base) {
            // A log may have a thousand segments, and nobody may ever read this one.
            segment.close_file();
        }
    }
    Ok(())
}

/// Checks that a segment's batches reach up to `end` exactly.
pub(super) fn check_end(segment: &Segment, end: Offset) -> Result<(), StoreError> {
    if segment.bytes() == 0 && segment.base == end {
        return Ok(());
    }
    let mut window = segment.window(segment.bytes(), WALK_BYTES)?;
    let from = match believable(segment, &mut window)? {
        Some(from) => from,
        None => {
            segment.rebuild_indexes()?;
            believable(segment, &mut window)?.unwrap_or(0)
        }
    };
    let (mut pos, mut reached) = (from, segment.base);
    loop {
        match window.walk(pos)? {
            Walked::Batch(header, size) => {
                reached = header.next_offset();
                pos = pos.saturating_add(as_u64(size));
            }
            Walked::End => break,
            Walked::WouldBlock => return Err(segment.damaged(pos, "cannot be read")),
            Walked::Flawed(flaw) => return Err(segment.damaged(pos, &format!("{flaw:?} below the recovery point"))),
        }
    }
    if reached == end {
        return Ok(());
    }
    let why = format!("the segment ends at offset {reached}, though the log goes on at offset {end}");
    Err(segment.damaged(pos, &why))
}

/// The position that the last entry of the offset index names, if both indexes fit the segment.
fn believable(segment: &Segment, window: &mut Window) -> Result<Option<u64>, StoreError> {
    let offsets = segment.offsets.last(segment.disk());
    let times = segment.times.last(segment.disk());
    let (Ok((_, last)), Ok((_, latest))) = (offsets, times) else {
        // What cannot be read of an index is made anew like anything else that is wrong with it.
        return Ok(None);
    };
    let at = |relative: i32| segment.base.saturating_add(i64::from(relative));
    let pos = match last {
        None if segment.bytes() > UNINDEXED_BYTES => return Ok(None),
        None => 0,
        Some(entry) => {
            let pos = u64::try_from(entry.position).unwrap_or(u64::MAX);
            if pos == 0 || pos >= segment.bytes() || !ends_at(window, pos, at(entry.relative_offset))? {
                return Ok(None);
            }
            pos
        }
    };
    if let Some(entry) = latest {
        let holder = segment.batch_with(at(entry.relative_offset), segment.bytes())?;
        let fits = |holder: &crate::engine::batch::Header| {
            holder.last_offset() == at(entry.relative_offset) && holder.max_timestamp == entry.timestamp
        };
        if !holder.as_ref().is_some_and(fits) {
            return Ok(None);
        }
    }
    Ok(Some(pos))
}
