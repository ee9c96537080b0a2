//! A damaged log, as far as it can be read, and synced. Nothing of its files is changed: they may yet be put right.

use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::engine::Offset;
use crate::engine::log::scan::Expected;
use crate::engine::log::segments::FileKind;
use crate::engine::log::{Growth, LogSettings};
use crate::engine::partition::Aborted;
use crate::store::StoreError;
use crate::store::cache::{Source, drop_cache};
use crate::store::disk::Disk;
use crate::store::log::aborts::are_whole;
use crate::store::log::checkpoint::snapshots;
use crate::store::log::ends::check_end;
use crate::store::log::entries::EntryFile;
use crate::store::log::open::{Found, Listing, OpenHow, load_epochs, size_of_segment};
use crate::store::log::reader::Hints;
use crate::store::log::recover::{Progress, sound_batch, take};
use crate::store::log::replay::{Replay, read_whole, visit};
use crate::store::log::segment::{Indexes, Place, Segment, WALK_BYTES};
use crate::store::log::window::Window;
use crate::store::log::{Log, LogReader, ReadHow, Shared};

/// What can be had of a damaged log: everything up to the damage.
pub struct Salvaged {
    /// Reads it.
    pub reader: LogReader,
    /// The offset of the first batch that is not to be had.
    pub end: Offset,
    /// The highest leader epoch that wrote here.
    pub leader_epoch: Option<i32>,
}

impl Log {
    /// Looks how far a log can be read that [`Log::open`] found damaged, and rebuilds, through `visitor`, what was known
    /// of its producers there. Reads, and verifies, every segment from the recovery point's or the oldest snapshot's
    /// on, up to the first flaw. What it keeps of indexes is in memory.
    ///
    /// # Errors
    /// `Damaged` when nothing of it can be read.
    pub fn open_damaged(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: LogSettings,
        how: OpenHow,
        visitor: &mut dyn Replay,
    ) -> Result<Salvaged, StoreError> {
        let place = Place { disk, dir: dir.to_path_buf() };
        let listing = Listing::of(&place, &how)?;
        listing.must_begin(&place, how.log_start)?;
        let kept = snapshots(&place)?;
        let (segments, next_offset) = readable_front(&place, &listing, &settings, doubtful_from(&how, &kept))?;
        let found = Found { place, segments, next_offset };
        // As an opening does: what is shown must not be gone after a power cut.
        found.place.sync_dir()?;
        let mut epochs = load_epochs(&found).unwrap_or_default();
        epochs.cut(next_offset.max(1));
        let first = found.segments.first().map_or(next_offset, |segment| segment.base);
        let mut from = None;
        if are_whole(&found.place, &found.segments, next_offset)? {
            for at in kept.into_iter().filter(|at| *at <= next_offset) {
                if visitor.snapshot(&read_whole(&found.place, at)?) {
                    from = Some(at.max(first));
                    break;
                }
            }
        }
        let ends = found.segments.iter().skip(1).map(|next| next.base).chain([next_offset]);
        for (segment, end) in found.segments.iter().zip(ends) {
            match from {
                // No list is believed, or nothing says what one leaves open: all of it comes again, from the markers.
                None => segment.aborted.replace(segment.disk(), Vec::new())?,
                Some(from) if segment.aborted.is_new() => recall_aborted(segment, from)?,
                Some(_) => {}
            }
            let from = from.unwrap_or(first);
            if end > from {
                visit(segment, from, &mut epochs, visitor)?;
            }
        }
        let leader_epoch = epochs.latest();
        let shared = Shared {
            place: found.place,
            segments: RwLock::new(Arc::new(found.segments)),
            epochs: RwLock::new(epochs),
            hints: Mutex::new(Hints::default()),
        };
        Ok(Salvaged { reader: LogReader::new(Arc::new(shared)), end: next_offset, leader_epoch })
    }
}

/// The offset from which on nothing is believed unseen.
fn doubtful_from(how: &OpenHow, snapshots: &[Offset]) -> Offset {
    let oldest = snapshots.last().copied().unwrap_or(0);
    how.point.map_or(0, |point| point.active_base.min(oldest))
}

/// The segments up to the damage, the last one up to the byte before it, and the offset there.
fn readable_front(
    place: &Place,
    listing: &Listing,
    settings: &LogSettings,
    doubtful_from: Offset,
) -> Result<(Vec<Arc<Segment>>, Offset), StoreError> {
    let mut front = Vec::new();
    let mut end = listing.bases.first().copied().unwrap_or(0);
    let nexts = listing.bases.iter().skip(1).map(|next| Some(*next)).chain([None]);
    for (base, next) in listing.bases.iter().copied().zip(nexts) {
        if base != end {
            break;
        }
        let size = size_of_segment(place, base)?;
        if let Some(next) = next.filter(|next| *next <= doubtful_from) {
            let aborted = listing.has(base, FileKind::TransactionIndex);
            let segment = Segment::new(place, base, size, &Indexes::Found { aborted });
            if check_end(&segment, next).is_ok() {
                front.push(Arc::new(segment));
                end = next;
                continue;
            }
        }
        let segment = Segment::new(place, base, size, &Indexes::New);
        let reached = verify(&segment, size, settings)?;
        front.push(Arc::new(segment));
        end = reached.expected.next_offset;
        if reached.pos < size {
            break;
        }
    }
    Ok((front, end))
}

/// Walks a segment from its front to the first flaw, or to the first byte that cannot be read.
fn verify(segment: &Segment, size: u64, settings: &LogSettings) -> Result<Progress, StoreError> {
    let expected = Expected { next_offset: segment.base, leader_epoch: 0 };
    let mut at = Progress { pos: 0, expected, growth: Growth::empty(segment.base, 0) };
    segment.sync()?;
    let file = segment.file()?;
    // A first byte that cannot be read is met again below, and then it is where the damage begins.
    let source = match drop_cache(&file) {
        Ok(Source::Past(past)) => past,
        Ok(Source::Dropped | Source::Cached) | Err(_) => Arc::clone(&file),
    };
    let mut window = Window::new(Arc::clone(&source), segment.path(), size, WALK_BYTES);
    while at.pos < size {
        let batch = match sound_batch(&mut window, at.pos, Some(at.expected)) {
            Ok(batch) => batch,
            // The buffer reaches beyond the batch, maybe over the place that cannot be read.
            Err(_) => match sound_batch(
                &mut Window::new(Arc::clone(&source), segment.path(), size, 1),
                at.pos,
                Some(at.expected),
            ) {
                Ok(batch) => batch,
                Err(_) => break,
            },
        };
        match batch {
            Ok((header, size)) => take(segment, &mut at, &header, size, settings),
            Err(_) => break,
        }
    }
    segment.set_bytes(at.pos);
    segment.set_largest(at.growth.largest);
    Ok(at)
}

/// Takes over, from the segment's own file, the aborted transactions whose markers lie below `from`.
fn recall_aborted(segment: &Segment, from: Offset) -> Result<(), StoreError> {
    let file = EntryFile::<Aborted>::unread(segment.place.path(segment.base, FileKind::TransactionIndex));
    let mut entries = Vec::new();
    file.each_after(segment.disk(), &|_| false, ReadHow::Block, &mut |entry: Aborted| {
        entries.push(entry);
        true
    })?;
    for entry in entries.into_iter().filter(|entry| entry.last_offset < from) {
        let marker = segment.batch_with(entry.last_offset, segment.bytes())?;
        if marker.is_some_and(|marker| marker.is_control() && marker.producer_id == entry.producer_id) {
            segment.aborted.push(entry);
        }
    }
    Ok(())
}
