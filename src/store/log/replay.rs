//! Building up again what is remembered of producers: a snapshot, and every batch after it.

use std::sync::Arc;

use crate::engine::Offset;
use crate::engine::batch::Header;
use crate::engine::log::LeaderEpochs;
use crate::engine::log::segments::FileKind;
use crate::engine::partition::Aborted;
use crate::store::StoreError;
use crate::store::log::checkpoint::snapshots;
use crate::store::log::open::Found;
use crate::store::log::segment::{Place, Segment, WALK_BYTES, remove_if_there, shown};
use crate::store::log::window::{View, Walked, as_u64};

/// Who rebuilds a partition's state from its log.
pub trait Replay {
    /// Takes a snapshot file's bytes; false when they are not a valid one, and an older one or none is tried.
    fn snapshot(&mut self, bytes: &[u8]) -> bool;

    /// Takes the next batch after the snapshot; `control` is the whole batch where it is a control batch. What it returns is an aborted
    /// transaction that this marker ends (T-505): it becomes known to readers.
    fn batch(&mut self, header: &Header, control: Option<&[u8]>) -> Option<Aborted>;
}

/// Loads the newest snapshot that `visitor` accepts and shows it every batch after that. Gives the snapshots' offset, if
/// there was one, and how many were rejected.
pub(super) fn replay(
    found: &Found,
    epochs: &mut LeaderEpochs,
    visitor: &mut dyn Replay,
) -> Result<(Option<Offset>, u32), StoreError> {
    let (snapshot, rejected) = load_snapshot(found, visitor)?;
    let first = found.segments.first().map_or(found.next_offset, |segment| segment.base);
    let from = snapshot.unwrap_or(first).max(first);
    if from >= found.next_offset {
        return Ok((snapshot, rejected));
    }
    for (at, segment) in found.segments.iter().enumerate() {
        if found.segments.get(at.saturating_add(1)).is_some_and(|next| next.base <= from) {
            continue;
        }
        // Entries from here on come again, from the markers themselves.
        segment.cut_aborted(from)?;
        visit(segment, from, epochs, visitor)?;
    }
    Ok((snapshot, rejected))
}

fn load_snapshot(found: &Found, visitor: &mut dyn Replay) -> Result<(Option<Offset>, u32), StoreError> {
    let place = &found.place;
    let mut rejected = 0_u32;
    for offset in snapshots(place)? {
        if offset > found.next_offset {
            // It speaks of a log that a cut took back.
            remove_if_there(&*place.disk, &place.path(offset, FileKind::Snapshot))?;
            continue;
        }
        if visitor.snapshot(&read_whole(place, offset)?) {
            return Ok((Some(offset), rejected));
        }
        rejected = rejected.saturating_add(1);
        remove_if_there(&*place.disk, &place.path(offset, FileKind::Snapshot))?;
    }
    Ok((None, rejected))
}

pub(super) fn read_whole(place: &Place, offset: Offset) -> Result<Vec<u8>, StoreError> {
    let path = place.path(offset, FileKind::Snapshot);
    let read = || {
        let file = place.disk.open(&path)?;
        let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(0)];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        Ok(bytes)
    };
    read().map_err(|error| StoreError::from_read(&shown(&path), &error))
}

/// Shows one segment's batches from offset `from` on.
pub(super) fn visit(
    segment: &Arc<Segment>,
    from: Offset,
    epochs: &mut LeaderEpochs,
    visitor: &mut dyn Replay,
) -> Result<(), StoreError> {
    let mut window = segment.window(segment.bytes(), WALK_BYTES)?;
    let mut pos = segment.start_for(from)?;
    loop {
        let (header, size) = match window.walk(pos)? {
            Walked::Batch(header, size) => (header, size),
            Walked::End => return Ok(()),
            Walked::WouldBlock => return Err(segment.damaged(pos, "cannot be read")),
            Walked::Flawed(flaw) => return Err(segment.damaged(pos, &format!("{flaw:?}"))),
        };
        epochs.note(header.leader_epoch, header.base_offset);
        if header.last_offset() >= from {
            let control = match header.is_control() {
                true => match window.view(pos, size)? {
                    View::Bytes(bytes) => Some(bytes),
                    View::Short | View::WouldBlock => return Err(segment.damaged(pos, "cannot be read")),
                },
                false => None,
            };
            if let Some(aborted) = visitor.batch(&header, control) {
                segment.aborted.push(aborted);
            }
        }
        pos = pos.saturating_add(as_u64(size));
    }
}
