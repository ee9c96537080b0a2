//! Making a log, opening one, and doing away with it.

use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::engine::log::epochs::partition_metadata;
use crate::engine::log::scan::Verdict;
use crate::engine::log::segments::{FileKind, condemned_dir, parse_file_name};
use crate::engine::log::{Growth, LeaderEpochs, LogSettings};
use crate::engine::{Offset, TopicId};
use crate::store::StoreError;
use crate::store::disk::{Disk, TEMPORARY_SUFFIX};
use crate::store::log::aborts::{are_whole, rebuild};
use crate::store::log::checkpoint::{replace, write_epochs};
use crate::store::log::ends::check_sealed;
use crate::store::log::reader::Hints;
use crate::store::log::recover::{Recovered, recover};
use crate::store::log::replay::{Replay, replay};
use crate::store::log::segment::{Indexes, Place, Segment, WALK_BYTES, remove_if_there, shown};
use crate::store::log::window::{Walked, as_u64};
use crate::store::log::{Log, Mark, Names, RecoveryPoint, Shared};

/// File of the leader epochs.
pub(super) const EPOCHS_FILE: &str = "leader-epoch-checkpoint";

/// File that names the topic's id to tools.
pub(super) const METADATA_FILE: &str = "partition.metadata";

/// What is known about a log before it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenHow {
    /// The last recovery point that was stored, if there ever was one.
    pub point: Option<RecoveryPoint>,
    /// The log start as stored; segments wholly below it are removed.
    pub log_start: Offset,
    /// Whether the process stopped in order, so that sizes can be trusted and nothing need be scanned.
    pub clean: bool,
    /// An offset that the log is durably known to have reached; 0 when nothing is known.
    pub witness: Offset,
    /// The highest leader epoch there can be: this start's number.
    pub incarnation: i32,
}

/// What a recovery cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The segment's file.
    pub path: PathBuf,
    /// Where it was cut.
    pub position: u64,
    /// Bytes that were cut.
    pub bytes: u64,
    /// `TornTail`, or `Hole` when sound batches followed.
    pub verdict: Verdict,
    /// Where the first 16 MiB of it are kept; `None` when there was no room.
    pub kept: Option<PathBuf>,
}

/// The lists of aborted transactions, as they were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortedLists {
    /// As they were left.
    Whole,
    /// They had lost something, or were others: made anew from the whole log.
    MadeAnew,
}

/// How opening went: for the log line and the metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The log's end.
    pub next_offset: Offset,
    /// Offset of the snapshot that was loaded.
    pub snapshot_at: Option<Offset>,
    /// Snapshots that were not valid, and are removed.
    pub rejected_snapshots: u32,
    /// Bytes that were verified.
    pub scanned_bytes: u64,
    /// Whether the page cache could not be dropped, so that the scan may have read from it.
    pub cache_kept: bool,
    /// How the lists of aborted transactions were found.
    pub aborted: AbortedLists,
    /// What was cut, if anything.
    pub torn: Option<Torn>,
}

/// A log's files as they are found, sorted out.
pub(super) struct Found {
    pub(super) place: Place,
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) next_offset: Offset,
}

impl Log {
    /// Makes an empty log that begins at offset 0. Durable when it returns. Goes over what an interrupted creation left.
    ///
    /// # Errors
    /// `Damaged` when there is a log with batches in it already; else as any write.
    pub fn create(
        disk: Arc<dyn Disk>,
        dir: &Path,
        topic: TopicId,
        leader_epoch: i32,
        settings: LogSettings,
    ) -> Result<Self, StoreError> {
        let place = Place { disk, dir: dir.to_path_buf() };
        match place.disk.create_dir(dir) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse_batches(&place)?,
            Err(error) => return Err(StoreError::from_write(&shown(dir), &error)),
        }
        let segment = Arc::new(Segment::create(&place, 0)?);
        replace(&place, METADATA_FILE, partition_metadata(topic).as_bytes())?;
        let mut epochs = LeaderEpochs::default();
        epochs.note(leader_epoch, 0);
        write_epochs(&place, &epochs.to_text())?;
        place.sync_dir()?;
        sync_parent(&*place.disk, dir)?;
        let found = Found { place, segments: vec![segment], next_offset: 0 };
        Ok(Self::assemble(found, epochs, Some(Growth::empty(0, 0)), settings))
    }

    /// Opens a log and rebuilds, through `visitor`, what is remembered of its producers.
    ///
    /// After a clean stop no segment is read. Otherwise everything above the recovery point is synced, dropped from the
    /// page cache, read back and verified; a torn tail is cut and what is accepted is on disk when this returns. A
    /// crash in the middle does no harm: the same is done again.
    ///
    /// # Errors
    /// `Damaged` when something is missing or wrong that was known to be on disk; it names file and byte. Nothing is cut
    /// then.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: LogSettings,
        how: OpenHow,
        visitor: &mut dyn Replay,
    ) -> Result<(Self, Opened), StoreError> {
        let place = Place { disk, dir: dir.to_path_buf() };
        let listing = Listing::of(&place, &how)?;
        let segments = find_segments(&place, &listing, &how)?;
        let mut found = Found { place, segments, next_offset: 0 };
        let trusted = trusted_end(&found, &how)?;
        if trusted.is_none() || how.point.is_none() {
            // Its creation may have been interrupted, by a crash or for want of room, before its names were durable.
            found.place.sync_dir()?;
            sync_parent(&*found.place.disk, dir)?;
        }
        check_sealed(&found.segments, &how, trusted)?;
        let recovered = match trusted {
            Some(next_offset) => Recovered::untouched(next_offset),
            None => recover(&found.segments, &how, &settings)?,
        };
        listing.tidy(&found.place)?;
        found.next_offset = recovered.next_offset;
        let stored = load_epochs(&found)?;
        let mut epochs = stored.clone();
        epochs.cut(found.next_offset.max(1));
        let aborted = match are_whole(&found.place, &found.segments, Offset::MAX)? {
            true => AbortedLists::Whole,
            false => AbortedLists::MadeAnew,
        };
        let (snapshot_at, rejected_snapshots) = replay(&found, &mut epochs, visitor)?;
        if aborted == AbortedLists::MadeAnew {
            rebuild(&found)?;
        }
        let changed = epochs != stored;
        let opened = Opened {
            next_offset: found.next_offset,
            snapshot_at,
            rejected_snapshots,
            scanned_bytes: recovered.scanned_bytes,
            cache_kept: recovered.cache_kept,
            aborted,
            torn: recovered.torn,
        };
        let mut log = Self::assemble(found, epochs, recovered.growth, settings);
        // Until another point is made the next start has it all to do again.
        log.debt = opened.scanned_bytes;
        if changed {
            log.epochs_file = Names::Changed;
        }
        if opened.aborted == AbortedLists::MadeAnew {
            // Even where no list is left to be written: what was counted is not there.
            log.aborted_counts = Names::Changed;
        }
        Ok((log, opened))
    }

    fn assemble(found: Found, epochs: LeaderEpochs, growth: Option<Growth>, settings: LogSettings) -> Self {
        // The list is never empty: finding and creating both see to it.
        let active = match found.segments.last() {
            Some(segment) => Arc::clone(segment),
            None => Arc::new(Segment::new(&found.place, 0, 0, &Indexes::New)),
        };
        let aborts_pending = found.segments.iter().any(|segment| segment.aborted.is_pending());
        let aborted_counts = if aborts_pending { Names::Changed } else { Names::Durable };
        let synced = Mark { base: active.base, pos: active.bytes(), offset: found.next_offset };
        let shared = Shared {
            place: found.place,
            segments: RwLock::new(Arc::new(found.segments)),
            epochs: RwLock::new(epochs),
            hints: Mutex::new(Hints::default()),
        };
        Self {
            settings,
            shared: Arc::new(shared),
            active,
            growth,
            next_offset: found.next_offset,
            synced,
            syncing: VecDeque::new(),
            dir: Names::Durable,
            epochs_file: Names::Durable,
            aborted_counts,
            debt: 0,
            leaving: VecDeque::new(),
        }
    }
}

/// Removes a partition's directory: it first gets a name that no partition can have, durably, so that whatever happens
/// it is not met again. `unique` tells it from an earlier one of the same name. Readers that have files open go on.
///
/// # Errors
/// As any write; what is left over is removed by [`remove_condemned`] later.
pub fn delete_dir(disk: &dyn Disk, dir: &Path, unique: u128) -> Result<(), StoreError> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let condemned = dir.with_file_name(condemned_dir(&name, unique));
    match disk.rename(dir, &condemned) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::from_write(&shown(dir), &error)),
    }
    sync_parent(disk, dir)?;
    remove_condemned(disk, &condemned)
}

/// Removes a directory that is on its way out, with all its files.
///
/// # Errors
/// As any write.
pub fn remove_condemned(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::from_write(&shown(dir), &error);
    for name in disk.list(dir).map_err(failed)? {
        remove_if_there(disk, &dir.join(name))?;
    }
    disk.remove_dir(dir).map_err(failed)
}

fn sync_parent(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
    let parent = dir.parent().unwrap_or(Path::new(""));
    disk.sync_dir(parent).map_err(|error| StoreError::from_sync(&shown(parent), &error))
}

fn list(place: &Place) -> Result<Vec<String>, StoreError> {
    place.disk.list(&place.dir).map_err(|error| StoreError::from_read(&shown(&place.dir), &error))
}

fn refuse_batches(place: &Place) -> Result<(), StoreError> {
    for (base, kind) in list(place)?.iter().filter_map(|name| parse_file_name(name)) {
        let path = place.path(base, kind);
        let size = place.disk.size(&path).map_err(|error| StoreError::from_read(&shown(&path), &error))?;
        if kind == FileKind::Log && (size > 0 || base > 0) {
            return Err(StoreError::Damaged(format!("{}: there is a log already", shown(&place.dir))));
        }
    }
    Ok(())
}

/// The names in a log's directory, sorted out.
#[derive(Default)]
pub(super) struct Listing {
    /// First offsets of the segments that belong to the log.
    pub(super) bases: BTreeSet<Offset>,
    /// Index files, of whatever segments.
    others: Vec<(Offset, FileKind)>,
    /// Segments wholly below the log start.
    below: Vec<Offset>,
    temporaries: Vec<String>,
}

impl Listing {
    /// Looks, and changes nothing. A segment below the log start belongs to the log as long as no snapshot that is known
    /// to be on disk stands for its producers (C-64).
    pub(super) fn of(place: &Place, how: &OpenHow) -> Result<Self, StoreError> {
        let mut found = Self::default();
        for name in list(place)? {
            match parse_file_name(&name) {
                Some((base, FileKind::Log)) => {
                    found.bases.insert(base);
                }
                Some((base, kind @ (FileKind::OffsetIndex | FileKind::TimeIndex | FileKind::TransactionIndex))) => {
                    found.others.push((base, kind));
                }
                Some((_, FileKind::Snapshot)) => {}
                None if name.ends_with(TEMPORARY_SUFFIX) => found.temporaries.push(name),
                None => {}
            }
        }
        let covered = how.log_start.min(how.point.map_or(0, |point| point.snapshot_at));
        let kept_from = found.bases.range(..=covered).next_back().or(found.bases.first()).copied();
        found.below = found.bases.range(..kept_from.unwrap_or(0)).copied().collect();
        found.bases.retain(|base| Some(*base) >= kept_from);
        Ok(found)
    }

    /// Refuses a log whose beginning is not there.
    pub(super) fn must_begin(&self, place: &Place, log_start: Offset) -> Result<(), StoreError> {
        let gap = self.bases.first().is_some_and(|first| *first > log_start);
        if gap { Err(missing(place, log_start)) } else { Ok(()) }
    }

    pub(super) fn has(&self, base: Offset, kind: FileKind) -> bool {
        self.others.contains(&(base, kind))
    }

    /// Removes what does not belong to the log. Only when the log is found to be whole: of a damaged one nothing goes
    /// away, for what is missing may be put back.
    fn tidy(&self, place: &Place) -> Result<(), StoreError> {
        for name in &self.temporaries {
            remove_if_there(&*place.disk, &place.dir.join(name))?;
        }
        for base in &self.below {
            remove_if_there(&*place.disk, &place.path(*base, FileKind::Log))?;
        }
        for (base, kind) in self.others.iter().filter(|(base, _)| !self.bases.contains(base)) {
            remove_if_there(&*place.disk, &place.path(*base, *kind))?;
        }
        Ok(())
    }
}

/// The segments that belong to the log.
fn find_segments(place: &Place, listing: &Listing, how: &OpenHow) -> Result<Vec<Arc<Segment>>, StoreError> {
    if listing.bases.is_empty() {
        return begin_anew(place, how);
    }
    listing.must_begin(place, how.log_start)?;
    let segment = |base: &Offset| {
        let size = size_of_segment(place, *base)?;
        let aborted = listing.has(*base, FileKind::TransactionIndex);
        Ok(Arc::new(Segment::new(place, *base, size, &Indexes::Found { aborted })))
    };
    listing.bases.iter().map(segment).collect()
}

pub(super) fn size_of_segment(place: &Place, base: Offset) -> Result<u64, StoreError> {
    let path = place.path(base, FileKind::Log);
    place.disk.size(&path).map_err(|error| StoreError::from_read(&shown(&path), &error))
}

/// A directory without segments is a log whose creation was interrupted, unless anything speaks against it.
fn begin_anew(place: &Place, how: &OpenHow) -> Result<Vec<Arc<Segment>>, StoreError> {
    let known_end = how.point.map_or(0, |point| point.synced_offset).max(how.witness).max(how.log_start);
    if known_end > 0 {
        return Err(missing(place, how.log_start));
    }
    let segment = Segment::create(place, 0)?;
    place.sync_dir()?;
    Ok(vec![Arc::new(segment)])
}

fn missing(place: &Place, offset: Offset) -> StoreError {
    StoreError::Damaged(format!("{} at byte 0: the segment with offset {offset} is missing", shown(&place.dir)))
}

/// The log's end after a clean stop, when the files say the same; `None` when they have to be looked into.
fn trusted_end(found: &Found, how: &OpenHow) -> Result<Option<Offset>, StoreError> {
    let Some(active) = found.segments.last().filter(|_| how.clean) else {
        return Ok(None);
    };
    let Some(point) = how.point else {
        let empty = found.segments.len() == 1 && active.bytes() == 0;
        return Ok(empty.then_some(active.base));
    };
    // A stop in order gives a new point only to partitions that were in use, so the point may be older than a crash in
    // a run before: then more was written behind it, and is looked into as after that crash.
    match (active.base, active.bytes()).cmp(&(point.active_base, point.synced_pos)) {
        Ordering::Equal => Ok(Some(point.synced_offset)),
        Ordering::Greater => Ok(None),
        Ordering::Less => {
            let why = format!(
                "after a clean stop the log must reach byte {} of the segment at offset {}",
                point.synced_pos, point.active_base
            );
            Err(active.damaged(active.bytes(), &why))
        }
    }
}

/// The stored leader epochs; read off all headers where the file is not whole.
pub(super) fn load_epochs(found: &Found) -> Result<LeaderEpochs, StoreError> {
    let path = found.place.dir.join(EPOCHS_FILE);
    let read = || {
        let file = found.place.disk.open(&path)?;
        let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(0)];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        Ok::<_, io::Error>(bytes)
    };
    let bytes = match read() {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(StoreError::from_read(&shown(&path), &error)),
    };
    let text = String::from_utf8(bytes).unwrap_or_default();
    match LeaderEpochs::from_text(&text) {
        Some(epochs) => Ok(epochs),
        None => collect_epochs(found),
    }
}

fn collect_epochs(found: &Found) -> Result<LeaderEpochs, StoreError> {
    let mut epochs = LeaderEpochs::default();
    for segment in &found.segments {
        let mut window = segment.window(segment.bytes(), WALK_BYTES)?;
        let mut pos = 0_u64;
        while let Walked::Batch(header, size) = window.walk(pos)? {
            epochs.note(header.leader_epoch, header.base_offset);
            pos = pos.saturating_add(as_u64(size));
        }
    }
    Ok(epochs)
}
