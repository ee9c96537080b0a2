//! Whose a directory is, and what is left over of topics that are no more.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use parking_lot::Mutex;

use crate::engine::TopicId;
use crate::engine::log::LeaderEpochs;
use crate::engine::log::epochs::{partition_metadata, read_partition_metadata};
use crate::engine::log::segments::{FileKind, is_condemned, parse_file_name};
use crate::store::StoreError;
use crate::store::disk::Disk;
use crate::store::log::checkpoint::replace;
use crate::store::log::open::{EPOCHS_FILE, METADATA_FILE, delete_dir, remove_condemned};
use crate::store::log::segment::{Place, shown};

/// Between the look at whose a directory is and its new name nobody else may take it away and make another.
static DELETING: Mutex<()> = Mutex::new(());

/// Whose a partition's directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belongs {
    /// There is no such directory.
    Absent,
    /// It does not say: its creation was interrupted, or the file is lost.
    Nameless,
    /// A topic's.
    To(TopicId),
}

/// What a start did with directories that no partition has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Directories that are gone.
    pub removed: Vec<String>,
    /// Directories that look like a deleted topic's, but may be of one that the rows do not know any more.
    pub kept: Vec<String>,
}

/// Whose a partition's directory is, as its `partition.metadata` says.
///
/// # Errors
/// `Damaged` when the file cannot be read.
pub fn belongs_to(disk: &dyn Disk, dir: &Path) -> Result<Belongs, StoreError> {
    if !disk.exists(dir).map_err(|error| StoreError::from_read(&shown(dir), &error))? {
        return Ok(Belongs::Absent);
    }
    let text = text_of(disk, &dir.join(METADATA_FILE))?;
    Ok(read_partition_metadata(&text).map_or(Belongs::Nameless, Belongs::To))
}

/// Writes anew which topic a directory is of. Durable when it returns.
///
/// # Errors
/// As any write.
pub fn name_again(disk: std::sync::Arc<dyn Disk>, dir: &Path, topic: TopicId) -> Result<(), StoreError> {
    let place = Place { disk, dir: dir.to_path_buf() };
    replace(&place, METADATA_FILE, partition_metadata(topic).as_bytes())?;
    place.sync_dir()
}

/// Removes a partition's directory if it is that topic's. Another's, and one that does not say, is left as it is: the
/// name may have been given to a new topic by now. True when it was removed.
///
/// # Errors
/// As [`delete_dir`].
pub fn delete_dir_of(disk: &dyn Disk, dir: &Path, topic: TopicId) -> Result<bool, StoreError> {
    let _one_at_a_time = DELETING.lock();
    if belongs_to(disk, dir)? != Belongs::To(topic) {
        return Ok(false);
    }
    delete_dir(disk, dir, u128::from_be_bytes(topic.0))?;
    Ok(true)
}

/// Removes, at a start and before any partition is opened, what interrupted deletions left: directories on their way
/// out, and those of topics that are not known. `known` are the directories of all partitions there are, whose own
/// opening judges what is in them, and their topics.
///
/// Rows that were lost or are older than the logs know less topics than there are. So nothing of an unknown topic is
/// removed when no topic is known at all, or when any such directory was written by `incarnation` or a later one.
///
/// # Errors
/// When a directory cannot be renamed.
pub fn remove_leftovers(
    disk: &dyn Disk,
    incarnation: i32,
    known: &BTreeMap<String, TopicId>,
) -> Result<Leftovers, StoreError> {
    let root = Path::new("");
    let names = disk.list(root).map_err(|error| StoreError::from_read("data directory", &error))?;
    let mut leftovers = Leftovers::default();
    for name in names.iter().filter(|name| is_condemned(name)) {
        // Should that fail, the next start tries again: the name stands in nobody's way.
        match remove_condemned(disk, Path::new(name)) {
            Ok(()) => leftovers.removed.push(name.clone()),
            Err(_) => leftovers.kept.push(name.clone()),
        }
    }
    let topics: BTreeSet<TopicId> = known.values().copied().collect();
    let mut unknown = Vec::new();
    for name in names.iter().filter(|name| is_partition(name) && !known.contains_key(*name)) {
        if let Ok(Belongs::To(topic)) = belongs_to(disk, Path::new(name))
            && !topics.contains(&topic)
        {
            unknown.push((name, topic));
        }
    }
    let foreign =
        |(name, _): &(&String, TopicId)| latest_epoch(disk, Path::new(name)).is_none_or(|at| at >= incarnation);
    if known.is_empty() || unknown.iter().any(foreign) {
        leftovers.kept.extend(unknown.into_iter().map(|(name, _)| name.clone()));
        return Ok(leftovers);
    }
    for (name, topic) in unknown {
        delete_dir_of(disk, Path::new(name), topic)?;
        leftovers.removed.push(name.clone());
    }
    Ok(leftovers)
}

/// Partition directories that hold records, by name.
///
/// # Errors
/// `Damaged` when a directory cannot be read.
pub fn dirs_with_records(disk: &dyn Disk) -> Result<Vec<String>, StoreError> {
    let list = |dir: &Path| disk.list(dir).map_err(|error| StoreError::from_read(&shown(dir), &error));
    let mut found = Vec::new();
    for dir in list(Path::new(""))?.into_iter().filter(|name| is_partition(name)) {
        let is_log = |name: &String| matches!(parse_file_name(name), Some((_, FileKind::Log)));
        let Ok(names) = list(Path::new(&dir)) else { continue };
        let size = |name: &String| disk.size(&Path::new(&dir).join(name)).unwrap_or(0);
        if names.iter().any(|name| is_log(name) && size(name) > 0) {
            found.push(dir);
        }
    }
    Ok(found)
}

/// Whether a name is a topic's and a number, as partitions' directories are called.
fn is_partition(name: &str) -> bool {
    let parts = name.rsplit_once('-');
    parts.is_some_and(|(topic, index)| !topic.is_empty() && index.parse::<u32>().is_ok())
}

fn latest_epoch(disk: &dyn Disk, dir: &Path) -> Option<i32> {
    let text = text_of(disk, &dir.join(EPOCHS_FILE));
    text.map_or(None, |text| LeaderEpochs::from_text(&text)?.latest())
}

/// A small file's text; empty when there is no such file, or when it is no text.
fn text_of(disk: &dyn Disk, path: &Path) -> Result<String, StoreError> {
    let read = || {
        let file = disk.open(path)?;
        let mut bytes = vec![0; usize::try_from(file.size()?.min(1 << 20)).unwrap_or(0)];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        Ok::<_, io::Error>(bytes)
    };
    match read() {
        Ok(bytes) => Ok(String::from_utf8(bytes).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(StoreError::from_read(&shown(path), &error)),
    }
}
