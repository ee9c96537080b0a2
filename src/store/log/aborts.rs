//! Whether the lists of aborted transactions are whole. Unlike the other two indexes a shorter or an empty one looks like a
//! right one, and what it lacks is shown to readers as if it had been committed. So a small file says how many entries each
//! segment's list has; where it has less, or others, all lists are made anew from the log.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::engine::log::Entry;
use crate::engine::log::segments::FileKind;
use crate::engine::partition::{Aborted, Partition};
use crate::engine::{Now, Offset};
use crate::store::StoreError;
use crate::store::log::checkpoint::replace;
use crate::store::log::entries::EntryFile;
use crate::store::log::open::Found;
use crate::store::log::replay::{Replay, visit};
use crate::store::log::segment::{Place, Segment, shown};
use crate::store::log::window::{Walked, as_u64};
use crate::store::log::{Log, Names, ReadHow};

/// File of the counts, in the shape of Kafka's own checkpoint files: version, number of lines, a line a segment.
const COUNTS_FILE: &str = "txnindex-checkpoint";

/// Bytes of the buffer that markers are looked for with.
const WALK_BYTES: usize = 16 * 1024;

impl Log {
    /// Writes how many entries each list has in its file. Before the snapshot that relies on them.
    pub(super) fn write_counts(&mut self) -> Result<(), StoreError> {
        if self.aborted_counts == Names::Durable {
            return Ok(());
        }
        let segments = self.shared.segments();
        let mut lines = Vec::new();
        for segment in segments.iter() {
            match in_file(segment)? {
                0 => {}
                count => lines.push(format!("{} {count}\n", segment.base)),
            }
        }
        let text = format!("0\n{}\n{}", lines.len(), lines.concat());
        replace(&self.shared.place, COUNTS_FILE, text.as_bytes())?;
        if !segments.iter().any(|segment| segment.aborted.is_pending()) {
            self.aborted_counts = Names::Durable;
        }
        Ok(())
    }
}

/// Entries in a segment's file.
fn in_file(segment: &Segment) -> Result<u64, StoreError> {
    let path = segment.place.path(segment.base, FileKind::TransactionIndex);
    match segment.disk().size(&path) {
        Ok(size) => Ok(size / as_u64(Aborted::BYTES)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(StoreError::from_read(&shown(&path), &error)),
    }
}

/// Whether every list holds what it did when it was counted, and nothing below `end` that no marker stands for. Entries
/// that were counted are looked at by the last of them only.
pub(super) fn are_whole(place: &Place, segments: &[Arc<Segment>], end: Offset) -> Result<bool, StoreError> {
    let counts = read_counts(place)?;
    for segment in segments {
        let counted = counts.get(&segment.base).copied().unwrap_or(0);
        let there = in_file(segment)?;
        if there < counted {
            return Ok(false);
        }
        if there > 0 {
            let was_open = segment.is_open();
            let plausible = is_plausible(segment, counted, end)?;
            close_again(segment, was_open, segments);
            if !plausible {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A log may have more segments than the process may have files open.
fn close_again(segment: &Segment, was_open: bool, segments: &[Arc<Segment>]) {
    if !was_open && segments.last().is_some_and(|last| segment.base < last.base) {
        segment.close_file();
    }
}

fn is_plausible(segment: &Arc<Segment>, counted: u64, end: Offset) -> Result<bool, StoreError> {
    let mut at = 0_u64;
    let mut suspects = Vec::new();
    let file = EntryFile::<Aborted>::unread(segment.place.path(segment.base, FileKind::TransactionIndex));
    let read = file.each_after(segment.disk(), &|_| false, ReadHow::Block, &mut |entry: Aborted| {
        at = at.saturating_add(1);
        if at >= counted && entry.last_offset < end {
            suspects.push(entry);
        }
        true
    });
    match read {
        Ok(_) => {}
        Err(StoreError::Damaged(_)) => return Ok(false),
        Err(error) => return Err(error),
    }
    for entry in suspects {
        if entry.first_offset >= entry.last_offset || !has_marker(segment, &entry)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the marker of an entry is where it says. Damage on the way there is told by whoever reads on; here it proves
/// nothing.
fn has_marker(segment: &Segment, entry: &Aborted) -> Result<bool, StoreError> {
    let mut pos = segment.start_for(entry.last_offset)?;
    let mut window = segment.window(segment.bytes(), WALK_BYTES)?;
    loop {
        match window.walk(pos)? {
            Walked::Batch(header, _) if header.last_offset() >= entry.last_offset => {
                let found = header.base_offset <= entry.last_offset && header.is_control();
                return Ok(found && header.producer_id == entry.producer_id);
            }
            Walked::Batch(_, size) => pos = pos.saturating_add(as_u64(size)),
            Walked::End => return Ok(false),
            Walked::Flawed(_) | Walked::WouldBlock => return Ok(true),
        }
    }
}

/// Makes all lists anew from the log's batches; in memory until the next checkpoint, and nothing of the files changes
/// before.
pub(super) fn rebuild(found: &Found) -> Result<(), StoreError> {
    let first = found.segments.first().map_or(0, |segment| segment.base);
    let mut collect = Collect { engine: Partition::new(first, first), aborted: Vec::new() };
    for segment in &found.segments {
        let was_open = segment.is_open();
        visit(segment, first, &mut crate::engine::log::LeaderEpochs::default(), &mut collect)?;
        close_again(segment, was_open, &found.segments);
        segment.aborted.replace(segment.disk(), std::mem::take(&mut collect.aborted))?;
    }
    Ok(())
}

/// Follows transactions through the log, for what of them was aborted.
struct Collect {
    engine: Partition,
    aborted: Vec<Aborted>,
}

impl Replay for Collect {
    fn snapshot(&mut self, _: &[u8]) -> bool {
        false
    }

    fn batch(&mut self, header: &crate::engine::batch::Header, control: Option<&[u8]>) -> Option<Aborted> {
        let aborted = self.engine.replay(header, control, Now::default());
        self.aborted.extend(aborted);
        None
    }
}

/// What was counted, by first offset of the segment; nothing where the file is missing or not to be read.
fn read_counts(place: &Place) -> Result<BTreeMap<Offset, u64>, StoreError> {
    let path = place.dir.join(COUNTS_FILE);
    let read = || {
        let file = place.disk.open(&path)?;
        let mut bytes = vec![0; usize::try_from(file.size()?.min(1 << 24)).unwrap_or(0)];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        Ok::<_, io::Error>(bytes)
    };
    let bytes = match read() {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(StoreError::from_read(&shown(&path), &error)),
    };
    let text = String::from_utf8(bytes).unwrap_or_default();
    let line = |line: &str| {
        let (base, count) = line.split_once(' ')?;
        Some((base.parse().ok()?, count.parse().ok()?))
    };
    Ok(text.lines().skip(2).filter_map(line).collect())
}
