//! A disk in memory that loses at a power cut what was never synced, and keeps what was.
//!
//! # Fault model
//!
//! Every file has two images, the live one that reads see and the durable one. At a cut ([`MemDisk::crash`], which may
//! come after any change a disk is asked for, [`Power::off_after`]), per file and independently:
//!
//! * Bytes written since the file's last completed sync are kept or lost, sector by sector of [`SECTOR_BYTES`], in any
//!   combination: so writes reach the disk torn and in any order. A lost sector has its old content, or zeros where
//!   there was none. A sector is never half old, and bytes beside a write are left alone.
//! * A size may be there without its data, data without its size, or any size in between.
//! * The write at which the power goes, and a sync under way then, count as not synced.
//! * Names made, changed or removed since the directory's last sync are kept or lost, each on its own; a rename is
//!   whole, and no name leads to another file's content.
//! * What a sync that returned success covered is kept.
//!
//! Before a cut, on demand ([`MemDisk::faults`]): no space or an error at a write, a truncation, a creation, a rename, a
//! removal; a write that gets a part of its bytes down; a read that fails; a sync that fails. After a failed sync the
//! pages count as clean: they read back as written, a later sync succeeds, and a cut, or dropping the cache, loses them.
//! Behind everyone's back ([`MemDisk::damage`]): any change to what was synced. Bits that flip in what was not synced
//! come with [`MemDisk::crash`] too, where [`Cut::SeedAndFlips`] asks for them.
//!
//! Not modelled: a disk that says it synced and did not, and sectors that change without being written, other than by
//! `damage`. Against those nothing here is promised but that they are noticed.

mod capacity;
mod choice;
mod power;
mod tree;

use std::collections::BTreeSet;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::store::disk::{Disk, File};
use crate::store::faults::{Faults, Operation};
use capacity::Capacity;
use choice::Choice;
pub use power::Power;
use tree::{Node, Tree};

/// Bytes that reach the disk whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// What a power cut takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Everything that was not synced.
    LoseAll,
    /// Nothing: the disk was quicker than we knew.
    LoseNothing,
    /// Any of it, chosen by this seed.
    Seed(u64),
    /// As `Seed`, and what was kept of unsynced sectors may have a bit flipped.
    SeedAndFlips(u64),
}

/// Files in memory. Clones are the same disk.
#[derive(Default, Clone)]
pub struct MemDisk {
    tree: Arc<Mutex<Tree>>,
    faults: Faults,
    power: Power,
    capacity: Capacity,
}

impl MemDisk {
    /// The faults of this disk. Unlike those of a [`FaultyDisk`](crate::store::faults::FaultyDisk), a sync that fails
    /// here behaves as measured on Linux: the pages count as clean from then on, read back as written, a later sync
    /// succeeds, and the next cut, or dropping the cache, loses them.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Its current: how many changes it has been asked for, and when it goes off.
    #[must_use]
    pub fn power(&self) -> &Power {
        &self.power
    }

    /// The disk as it is found after the power went. This one, and every handle to it, belongs to the past.
    #[must_use]
    pub fn crash(&self, cut: Cut) -> Self {
        let mut choice = Choice::new(cut);
        let tree = self.tree.lock().after_cut(&mut choice);
        self.with_tree(tree)
    }

    /// The disk as the next process finds it after this one was killed: the machine went on, so reads see what was
    /// written, and a power cut may still take what was not synced. Handles to this one belong to the past.
    #[must_use]
    pub fn killed(&self) -> Self {
        let tree = self.tree.lock().clone();
        self.with_tree(tree)
    }

    fn with_tree(&self, tree: Tree) -> Self {
        Self { tree: Arc::new(Mutex::new(tree)), capacity: self.capacity.clone(), ..Self::default() }
    }

    /// Makes the disk hold no more than so many bytes of files; a write beyond it gets down what fits.
    pub fn set_capacity(&self, bytes: u64) {
        self.capacity.set(bytes);
    }

    /// Bytes of all files that have a name.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.tree.lock().used_bytes()
    }

    /// Bytes of a file as they are now.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.tree.lock().with_file(path, |file| file.live.clone())
    }

    /// Changes a file behind everyone's back: what comes out different is so in both images, where the durable one has it.
    /// What was not synced stays so.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.tree.lock().with_file(path, |file| {
            let before = file.live.clone();
            change(&mut file.live);
            file.damage_durable(&before);
        })
    }

    /// Says when a file was last written.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn set_modified(&self, path: &Path, wall_ms: i64) -> io::Result<()> {
        self.tree.lock().with_file(path, |file| file.modified_ms = Some(wall_ms))
    }

    fn handle(&self, path: &Path, node: usize) -> Arc<dyn File> {
        let (tree, capacity) = (Arc::clone(&self.tree), self.capacity.clone());
        let (path, faults, power) = (path.to_path_buf(), self.faults.clone(), self.power.clone());
        Arc::new(MemFile { tree, node, path, faults, power, capacity })
    }
}

impl Disk for MemDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let node = self.tree.lock().file_at(path)?;
        Ok(self.handle(path, node))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.power.spend()?;
        self.faults.check(Operation::Create, path)?;
        let mut tree = self.tree.lock();
        if let Ok(node) = tree.file_at(path) {
            tree.file(node)?.truncate(0);
            return Ok(self.handle(path, node));
        }
        let node = tree.add(Node::File(FileNode::default()));
        tree.link(path, node)?;
        Ok(self.handle(path, node))
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        self.tree.lock().with_file(path, |file| size_of(&file.live))
    }

    /// A disk in memory has no clock: what is never told counts as written just now.
    fn modified_ms(&self, path: &Path) -> io::Result<i64> {
        self.tree.lock().with_file(path, |file| file.modified_ms.unwrap_or(i64::MAX))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.tree.lock().resolve(path).is_ok())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.power.spend()?;
        self.faults.check(Operation::Rename, from)?;
        self.tree.lock().rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.power.spend()?;
        self.faults.check(Operation::Remove, path)?;
        let mut tree = self.tree.lock();
        tree.file_at(path)?;
        tree.unlink(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.power.spend()?;
        self.faults.check(Operation::Create, path)?;
        let mut tree = self.tree.lock();
        if tree.resolve(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = tree.add(Node::Dir(tree::DirNode::default()));
        tree.link(path, node)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.power.spend()?;
        self.faults.check(Operation::Remove, path)?;
        let mut tree = self.tree.lock();
        let node = tree.resolve(path)?;
        if !tree.dir(node)?.live.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        tree.unlink(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut tree = self.tree.lock();
        let node = tree.resolve(path)?;
        Ok(tree.dir(node)?.live.keys().cloned().collect())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.power.spend()?;
        self.faults.check(Operation::Sync, path)?;
        let mut tree = self.tree.lock();
        let node = tree.resolve(path)?;
        tree.dir(node)?.sync();
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.power.spend()?;
        self.faults.check(Operation::Sync, Path::new(""))?;
        self.tree.lock().sync_all();
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.capacity.free(|| self.used_bytes()))
    }

    fn capacity_bytes(&self) -> io::Result<u64> {
        Ok(self.capacity.bytes())
    }
}

struct MemFile {
    tree: Arc<Mutex<Tree>>,
    node: usize,
    path: PathBuf,
    faults: Faults,
    power: Power,
    capacity: Capacity,
}

impl MemFile {
    /// Bytes that fit into the file from `at` on.
    fn room_at(&self, at: usize) -> io::Result<usize> {
        let mut tree = self.tree.lock();
        let free = self.capacity.free(|| tree.used_bytes());
        let size = tree.file(self.node)?.live.len();
        Ok(size.saturating_add(usize::try_from(free).unwrap_or(usize::MAX)).saturating_sub(at))
    }

    fn with<T>(&self, act: impl FnOnce(&mut FileNode) -> T) -> io::Result<T> {
        self.tree.lock().file(self.node).map(act)
    }
}

impl File for MemFile {
    fn write_at(&self, parts: &[IoSlice<'_>], pos: u64) -> io::Result<()> {
        let last = self.power.spend();
        if last.is_err() && !self.power.is_going() {
            return last;
        }
        self.faults.write(&self.path, parts, |parts| {
            let mut at = usize::try_from(pos).map_err(|_| io::ErrorKind::FileTooLarge)?;
            let mut room = self.room_at(at)?;
            let fits = parts.iter().map(|part| part.len()).sum::<usize>() <= room;
            self.with(|file| {
                for part in parts {
                    let fits = part.get(..part.len().min(room)).unwrap_or_default();
                    file.write(fits, at);
                    at = at.saturating_add(part.len());
                    room = room.saturating_sub(part.len());
                }
            })?;
            if fits { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
        })?;
        last
    }

    fn read_at(&self, buf: &mut [u8], pos: u64) -> io::Result<usize> {
        self.power.check()?;
        self.faults.check(Operation::Read, &self.path)?;
        self.with(|file| {
            file.cold = false;
            file.read(buf, pos)
        })
    }

    fn read_at_nowait(&self, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>> {
        self.power.check()?;
        self.faults.check(Operation::Read, &self.path)?;
        self.with(|file| if file.cold { None } else { Some(file.read(buf, pos)) })
    }

    fn size(&self) -> io::Result<u64> {
        self.with(|file| size_of(&file.live))
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.power.spend()?;
        self.faults.check(Operation::Truncate, &self.path)?;
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.with(|file| file.truncate(size))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.power.spend()?;
        if let Some(fault) = self.faults.strike(Operation::Sync, &self.path) {
            self.with(FileNode::fail_sync)?;
            return Err(fault.error());
        }
        self.with(FileNode::sync)
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.with(FileNode::drop_cache)
    }
}

/// A file's two images and what tells them apart.
#[derive(Default, Clone)]
struct FileNode {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors written since the last completed sync.
    dirty: BTreeSet<usize>,
    /// Sectors whose sync failed: clean for the system, not on the disk.
    doomed: BTreeSet<usize>,
    /// Nothing of it is in memory.
    cold: bool,
    modified_ms: Option<i64>,
}

impl FileNode {
    fn write(&mut self, bytes: &[u8], at: usize) {
        let end = at.saturating_add(bytes.len());
        if self.live.len() < end {
            let from = self.live.len();
            self.live.resize(end, 0);
            self.touch(from, end);
        }
        if let Some(place) = self.live.get_mut(at..end) {
            place.copy_from_slice(bytes);
        }
        self.touch(at, end);
    }

    fn touch(&mut self, from: usize, to: usize) {
        for sector in from / SECTOR_BYTES..to.div_ceil(SECTOR_BYTES) {
            self.dirty.insert(sector);
            self.doomed.remove(&sector);
        }
    }

    fn read(&self, buf: &mut [u8], pos: u64) -> usize {
        let rest = usize::try_from(pos).ok().and_then(|at| self.live.get(at..)).unwrap_or_default();
        let count = rest.len().min(buf.len());
        if let (Some(into), Some(from)) = (buf.get_mut(..count), rest.get(..count)) {
            into.copy_from_slice(from);
        }
        count
    }

    fn truncate(&mut self, size: usize) {
        let before = self.live.len();
        self.live.resize(size, 0);
        self.touch(size.min(before), size.max(before));
    }

    fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        // A doomed sector is not dirty: a later sync says yes and keeps nothing.
        for sector in std::mem::take(&mut self.dirty) {
            restore(&mut self.durable, &self.live, sector);
        }
    }

    /// Does to the durable image what was done to the live one, which was `before`.
    fn damage_durable(&mut self, before: &[u8]) {
        if self.durable.len() == before.len() || self.durable.len() > self.live.len() {
            self.durable.resize(self.live.len(), 0);
        }
        for (at, byte) in self.live.iter().enumerate() {
            if before.get(at) != Some(byte)
                && let Some(place) = self.durable.get_mut(at)
            {
                *place = *byte;
            }
        }
    }

    fn fail_sync(&mut self) {
        let dirty = std::mem::take(&mut self.dirty);
        self.doomed.extend(dirty);
    }

    fn drop_cache(&mut self) {
        self.live = self.on_disk();
        self.doomed.clear();
        self.cold = true;
    }

    /// The live image, but for the sectors that a failed sync lost.
    fn on_disk(&self) -> Vec<u8> {
        let mut image = self.live.clone();
        for sector in &self.doomed {
            restore(&mut image, &self.durable, *sector);
        }
        image
    }

    fn after_cut(&self, choice: &mut Choice) -> Self {
        let mut image = self.on_disk();
        for sector in &self.dirty {
            if choice.loses() {
                restore(&mut image, &self.durable, *sector);
            } else if let Some(bit) = choice.flips() {
                flip(&mut image, *sector, bit, self.durable.len());
            }
        }
        let size = choice.between(self.durable.len(), self.live.len());
        image.resize(size, 0);
        Self { live: image.clone(), durable: image, cold: true, modified_ms: self.modified_ms, ..Self::default() }
    }
}

/// Gives a sector of `image` its content in `from`, or zeros where there is none.
fn restore(image: &mut [u8], from: &[u8], sector: usize) {
    let start = sector.saturating_mul(SECTOR_BYTES);
    let end = start.saturating_add(SECTOR_BYTES).min(image.len());
    let Some(place) = image.get_mut(start..end) else { return };
    let there = from.get(start..end.min(from.len())).unwrap_or_default();
    place.fill(0);
    if let Some(front) = place.get_mut(..there.len()) {
        front.copy_from_slice(there);
    }
}

/// Flips one bit of a sector, where it belongs to no byte that was synced.
fn flip(image: &mut [u8], sector: usize, bit: u64, synced: usize) {
    let at = usize::try_from(bit / 8).unwrap_or(0).saturating_add(sector.saturating_mul(SECTOR_BYTES));
    if at >= synced
        && let Some(byte) = image.get_mut(at)
    {
        *byte ^= 1 << (bit % 8);
    }
}

fn size_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
