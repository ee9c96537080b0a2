//! Reading, by any thread, past the owner.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::engine::Offset;
use crate::engine::batch::{HEADER_BYTES, Header};
use crate::engine::log::OffsetEntry;
use crate::engine::log::scan::check_shape;
use crate::engine::partition::Aborted;
use crate::store::StoreError;
use crate::store::log::entries::Lookup;
use crate::store::log::segment::{Handle, Segment, shown};
use crate::store::log::window::{Walked, Window, as_u64};
use crate::store::log::{ReadHow, Shared};

/// Bytes of the buffer that looks for the first batch of a read.
const LOCATE_BYTES: usize = 8 * 1024;

/// A walk longer than this through a sealed segment says that its index has lost entries.
const SUSPICIOUS_WALK_BYTES: u64 = 4 * 1024 * 1024;

/// Places that are remembered, about one for each consumer that reads on where it stopped.
const HINTS: usize = 16;

/// What to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadWish {
    /// The first offset wanted; the batch that holds it comes whole.
    pub from: Offset,
    /// Nothing at or above this offset.
    pub limit: Offset,
    /// Not more bytes than this.
    pub max_bytes: usize,
    /// Whether the first batch comes even if it alone is larger.
    pub at_least_one: bool,
    /// Whether to wait for the device.
    pub how: ReadHow,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadOutcome {
    /// Whole batches of one segment; none when there is nothing between the offset and the limit.
    Bytes {
        /// The batches.
        bytes: Bytes,
        /// The offset after the last of them, or the offset asked for when there are none.
        next_offset: Offset,
    },
    /// The bytes are not in memory; nothing was read.
    WouldBlock,
    /// The offset lies below the oldest segment, or its segment was removed just now.
    Gone,
}

/// Reads a partition's log. Clones read the same log.
#[derive(Clone)]
pub struct LogReader {
    pub(super) shared: Arc<Shared>,
}

enum Located {
    At(u64),
    /// The segment ends before.
    Beyond,
    WouldBlock,
    /// Something led to a place that is not one.
    Misled(u64),
}

impl LogReader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Whether both read the same opening of the same log.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// First offset of the oldest segment; the log start may lie higher.
    #[must_use]
    pub fn first_base(&self) -> Offset {
        self.shared.segments().first().map_or(0, |segment| segment.base)
    }

    /// Where `requested` ends (F-752): see [`LeaderEpochs::end_of`](crate::engine::log::LeaderEpochs::end_of).
    #[must_use]
    pub fn epoch_end(&self, requested: i32, current: i32, end: Offset) -> (i32, Offset) {
        self.shared.epochs.read().end_of(requested, current, end)
    }

    /// Reads whole batches, beginning with the one that holds `from`, from one segment.
    ///
    /// # Errors
    /// `Damaged`: this place cannot be read.
    pub fn read(&self, wish: &ReadWish) -> Result<ReadOutcome, StoreError> {
        if wish.from >= wish.limit {
            return Ok(nothing(wish.from));
        }
        let segments = self.shared.segments();
        let Some(first) = segments.partition_point(|segment| segment.base <= wish.from).checked_sub(1) else {
            return Ok(ReadOutcome::Gone);
        };
        for (at, segment) in segments.iter().enumerate().skip(first) {
            let sealed = at.saturating_add(1) < segments.len();
            if segment.base >= wish.limit {
                break;
            }
            let pos = match self.locate(segment, wish, sealed)? {
                Located::At(pos) => pos,
                Located::Beyond => continue,
                Located::WouldBlock => return Ok(ReadOutcome::WouldBlock),
                Located::Misled(pos) => return Err(segment.damaged(pos, "not a batch")),
            };
            return self.read_from(segment, pos, wish);
        }
        let gone = segments.get(first).is_some_and(|segment| self.is_removed(segment));
        Ok(if gone { ReadOutcome::Gone } else { nothing(wish.from) })
    }

    /// Aborted transactions that a reader who was given `from..upper` must know of: producer id and first offset, in
    /// order of first offset, each once (T-513, C-06). `None` when it would have to wait.
    ///
    /// # Errors
    /// `Damaged`: an index cannot be read, so that no answer is right.
    pub fn aborted(&self, from: Offset, upper: Offset, how: ReadHow) -> Result<Option<Vec<(i64, Offset)>>, StoreError> {
        let segments = self.shared.segments();
        let first = segments.partition_point(|segment| segment.base <= from).saturating_sub(1);
        let mut found = Vec::new();
        let mut over = false;
        for segment in segments.iter().skip(first) {
            let mut take = |entry: Aborted| {
                if entry.touches(from, upper) {
                    found.push((entry.first_offset, entry.producer_id));
                }
                over = entry.ends_search(upper);
                !over
            };
            let skips = |entry: &Aborted| entry.last_offset < from;
            match segment.aborted.each_after(segment.disk(), &skips, how, &mut take)? {
                Lookup::Found(()) if over => break,
                Lookup::Found(()) => {}
                Lookup::WouldBlock => return Ok(None),
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(Some(found.into_iter().map(|(first_offset, producer_id)| (producer_id, first_offset)).collect()))
    }

    fn is_removed(&self, segment: &Arc<Segment>) -> bool {
        self.shared.segments().first().is_none_or(|first| first.base > segment.base)
    }

    /// The position of the batch that holds `from`, or of the first one after it.
    fn locate(&self, segment: &Arc<Segment>, wish: &ReadWish, sealed: bool) -> Result<Located, StoreError> {
        if let Some(pos) = self.shared.hints.lock().find(segment.base, wish.from) {
            return Ok(if pos < segment.bytes() { Located::At(pos) } else { Located::Beyond });
        }
        let located = match self.indexed_start(segment, wish)? {
            Lookup::WouldBlock => return Ok(Located::WouldBlock),
            Lookup::Found(0) => return self.walk_to(segment, 0, wish, sealed),
            Lookup::Found(start) => self.walk_to(segment, start, wish, sealed)?,
        };
        match located {
            Located::At(_) | Located::Beyond | Located::WouldBlock => Ok(located),
            Located::Misled(_) if wish.how == ReadHow::NoWait => Ok(Located::WouldBlock),
            // The index is a hint. Of the active segment's only what is in memory is used until it is sealed.
            Located::Misled(_) => {
                if sealed {
                    segment.rebuild_indexes()?;
                }
                self.walk_to(segment, 0, wish, sealed)
            }
        }
    }

    fn indexed_start(&self, segment: &Arc<Segment>, wish: &ReadWish) -> Result<Lookup<u64>, StoreError> {
        if wish.from <= segment.base {
            return Ok(Lookup::Found(0));
        }
        let holds = |entry: &OffsetEntry| segment.base.saturating_add(i64::from(entry.relative_offset)) <= wish.from;
        match segment.offsets.around(segment.disk(), &holds, wish.how) {
            Ok(Lookup::Found((Some(entry), _))) => Ok(Lookup::Found(u64::try_from(entry.position).unwrap_or(0))),
            Ok(Lookup::Found((None, _))) => Ok(Lookup::Found(0)),
            Ok(Lookup::WouldBlock) => Ok(Lookup::WouldBlock),
            // An index that cannot be read misleads.
            Err(StoreError::Damaged(_)) => Ok(Lookup::Found(0)),
            Err(error) => Err(error),
        }
    }

    fn walk_to(
        &self,
        segment: &Arc<Segment>,
        start: u64,
        wish: &ReadWish,
        sealed: bool,
    ) -> Result<Located, StoreError> {
        let file = match segment.handle(wish.how)? {
            Handle::File(file) => file,
            Handle::WouldBlock => return Ok(Located::WouldBlock),
            Handle::Gone => return Ok(Located::Beyond),
        };
        let mut window = Window::new(file, segment.path(), segment.bytes(), LOCATE_BYTES).how(wish.how);
        let mut pos = start;
        loop {
            let (header, size) = match window.walk(pos)? {
                Walked::Batch(header, size) => (header, size),
                Walked::End => return Ok(Located::Beyond),
                Walked::WouldBlock => return Ok(Located::WouldBlock),
                Walked::Flawed(_) => return Ok(Located::Misled(pos)),
            };
            if pos == start && start > 0 && header.base_offset > wish.from {
                return Ok(Located::Misled(pos));
            }
            if header.last_offset() >= wish.from {
                if sealed && wish.how == ReadHow::Block && pos.saturating_sub(start) > SUSPICIOUS_WALK_BYTES {
                    segment.rebuild_indexes()?;
                }
                return Ok(Located::At(pos));
            }
            pos = pos.saturating_add(as_u64(size));
        }
    }

    fn read_from(&self, segment: &Arc<Segment>, pos: u64, wish: &ReadWish) -> Result<ReadOutcome, StoreError> {
        let file = match segment.handle(wish.how)? {
            Handle::File(file) => file,
            Handle::WouldBlock => return Ok(ReadOutcome::WouldBlock),
            Handle::Gone => return Ok(ReadOutcome::Gone),
        };
        let end = segment.bytes();
        let below_limit = self.end_of_limit(segment, wish)?.min(end);
        let room = usize::try_from(below_limit.max(pos).saturating_sub(pos)).unwrap_or(usize::MAX);
        let in_file = usize::try_from(end.saturating_sub(pos)).unwrap_or(usize::MAX);
        let wanted = wish.max_bytes.min(room).max(HEADER_BYTES).min(in_file);
        let mut piece = Piece { file: &*file, segment, pos, how: wish.how, bytes: BytesMut::zeroed(wanted) };
        if !piece.fill(0)? {
            return Ok(ReadOutcome::WouldBlock);
        }
        let mut cut = whole_batches(&piece.bytes, wish.limit, wish.max_bytes);
        if let Cut::Incomplete { size } = cut {
            let within = as_u64(size) <= end.saturating_sub(pos);
            if !within || (!wish.at_least_one && size > wish.max_bytes) {
                return if within { Ok(nothing(wish.from)) } else { Err(segment.damaged(pos, "not a batch")) };
            }
            if !piece.grow(size)? {
                return Ok(ReadOutcome::WouldBlock);
            }
            cut = whole_batches(&piece.bytes, wish.limit, size);
        }
        match cut {
            Cut::Whole { bytes: 0, .. } => Ok(nothing(wish.from)),
            Cut::Whole { bytes, next_offset } => {
                self.shared.hints.lock().note(segment.base, next_offset, pos.saturating_add(as_u64(bytes)));
                piece.bytes.truncate(bytes);
                Ok(ReadOutcome::Bytes { bytes: piece.bytes.freeze(), next_offset })
            }
            Cut::Incomplete { .. } if wish.how == ReadHow::NoWait => Ok(ReadOutcome::WouldBlock),
            Cut::Incomplete { .. } | Cut::Flawed => Err(segment.damaged(pos, "not a batch")),
        }
    }

    /// A position that no batch below the limit reaches beyond, as near as the index in memory tells; the file's index
    /// is not asked, since this only saves reading what is then thrown away.
    fn end_of_limit(&self, segment: &Arc<Segment>, wish: &ReadWish) -> Result<u64, StoreError> {
        if let Some(pos) = self.shared.hints.lock().find(segment.base, wish.limit) {
            return Ok(pos);
        }
        let holds = |entry: &OffsetEntry| segment.base.saturating_add(i64::from(entry.relative_offset)) < wish.limit;
        match segment.offsets.around(segment.disk(), &holds, ReadHow::NoWait)? {
            Lookup::Found((_, Some(entry))) => Ok(u64::try_from(entry.position).unwrap_or(u64::MAX)),
            Lookup::Found((_, None)) | Lookup::WouldBlock => Ok(u64::MAX),
        }
    }
}

/// Bytes being read from a position on.
struct Piece<'a> {
    file: &'a dyn crate::store::disk::File,
    segment: &'a Segment,
    pos: u64,
    how: ReadHow,
    bytes: BytesMut,
}

impl Piece<'_> {
    /// Reads what follows the first `have` bytes; false when there is nothing to be had without waiting.
    fn fill(&mut self, have: usize) -> Result<bool, StoreError> {
        let at = self.pos.saturating_add(as_u64(have));
        let rest = self.bytes.get_mut(have..).unwrap_or_default();
        let read = match self.how {
            ReadHow::Block => self.file.read_at(rest, at).map(Some),
            ReadHow::NoWait => self.file.read_at_nowait(rest, at),
        };
        let read = read
            .map_err(|error| StoreError::from_read(&format!("{} at byte {at}", shown(&self.segment.path())), &error))?;
        self.bytes.truncate(have.saturating_add(read.unwrap_or(0)));
        Ok(read.is_some())
    }

    fn grow(&mut self, size: usize) -> Result<bool, StoreError> {
        let have = self.bytes.len().min(size);
        self.bytes.resize(size, 0);
        self.fill(have)
    }
}

enum Cut {
    /// So many bytes are whole batches below the limit.
    Whole { bytes: usize, next_offset: Offset },
    /// The first batch is longer than what was read.
    Incomplete { size: usize },
    /// There is no batch at the front.
    Flawed,
}

fn whole_batches(bytes: &[u8], limit: Offset, max_bytes: usize) -> Cut {
    let (mut end, mut next_offset) = (0_usize, 0);
    while let Some(header) = bytes.get(end..).and_then(Header::read) {
        let Ok(size) = check_shape(&header, u64::MAX) else {
            return if end == 0 { Cut::Flawed } else { Cut::Whole { bytes: end, next_offset } };
        };
        let after = end.saturating_add(size);
        if header.last_offset() >= limit {
            return Cut::Whole { bytes: end, next_offset };
        }
        if after > bytes.len() || after > max_bytes {
            return if end == 0 { Cut::Incomplete { size } } else { Cut::Whole { bytes: end, next_offset } };
        }
        end = after;
        next_offset = header.next_offset();
    }
    if end == 0 { Cut::Incomplete { size: HEADER_BYTES } } else { Cut::Whole { bytes: end, next_offset } }
}

fn nothing(from: Offset) -> ReadOutcome {
    ReadOutcome::Bytes { bytes: Bytes::new(), next_offset: from }
}

/// Where batches begin, from reads that ended there: so that one who reads on needs no index. A batch never moves.
#[derive(Default)]
pub(super) struct Hints {
    places: [Option<(Offset, Offset, u64)>; HINTS],
    next: usize,
}

impl Hints {
    fn find(&self, base: Offset, offset: Offset) -> Option<u64> {
        let known = |place: &&(Offset, Offset, u64)| place.0 == base && place.1 == offset;
        self.places.iter().flatten().find(known).map(|(_, _, pos)| *pos)
    }

    fn note(&mut self, base: Offset, offset: Offset, pos: u64) {
        if self.find(base, offset).is_some() {
            return;
        }
        if let Some(place) = self.places.get_mut(self.next) {
            *place = Some((base, offset, pos));
        }
        self.next = self.next.wrapping_add(1) % HINTS;
    }
}
