//! Faults on demand, for tests of what must hold when the disk says no. No setting reaches this: a [`FaultyDisk`] has
//! to be built by whoever builds the broker.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::store::disk::{Disk, File};

/// What is about to be done to a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Writing at a position.
    Write,
    /// `fdatasync` of a file, sync of a directory or of everything.
    Sync,
    /// Reading at a position.
    Read,
    /// Cutting or extending.
    Truncate,
    /// Creating a file or directory.
    Create,
    /// Renaming.
    Rename,
    /// Removing a file or directory.
    Remove,
}

/// A change that was asked for: what, and of which file or directory.
pub type Change = (Operation, PathBuf);

/// How it goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `ENOSPC`.
    NoSpace,
    /// `EIO`.
    Io,
    /// A write that gets so many bytes down and then finds no space; any other operation fails as by `NoSpace`.
    Short(usize),
}

impl Fault {
    /// The error the caller sees.
    #[must_use]
    pub fn error(self) -> io::Error {
        match self {
            Self::NoSpace | Self::Short(_) => io::ErrorKind::StorageFull.into(),
            Self::Io => io::Error::from_raw_os_error(5),
        }
    }
}

/// One fault to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it strikes.
    pub operation: Operation,
    /// It strikes paths that contain this text; the empty text strikes all.
    pub path: String,
    /// Matching operations that pass before it strikes.
    pub after: u32,
    /// How often it strikes; `None` until it is lifted.
    pub times: Option<u32>,
    /// What it does.
    pub fault: Fault,
}

impl Rule {
    /// Strikes every such operation on paths containing `path` until lifted.
    #[must_use]
    pub fn always(operation: Operation, path: &str, fault: Fault) -> Self {
        Self { operation, path: path.to_owned(), after: 0, times: None, fault }
    }

    /// Strikes the next such operation only.
    #[must_use]
    pub fn once(operation: Operation, path: &str, fault: Fault) -> Self {
        Self { times: Some(1), ..Self::always(operation, path, fault) }
    }
}

/// The faults in force; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    rules: Arc<Mutex<Vec<Rule>>>,
    /// Every change asked for since somebody wanted to know.
    asked: Arc<Mutex<Option<Vec<Change>>>>,
}

impl Faults {
    /// Adds one.
    pub fn add(&self, rule: Rule) {
        self.rules.lock().push(rule);
    }

    /// From here on notes every change that is asked for.
    pub fn note(&self) {
        *self.asked.lock() = Some(Vec::new());
    }

    /// The changes noted so far, in order, whether or not they were made.
    #[must_use]
    pub fn noted(&self) -> Vec<Change> {
        self.asked.lock().clone().unwrap_or_default()
    }

    /// Lifts all.
    pub fn lift(&self) {
        self.rules.lock().clear();
    }

    /// The fault that strikes this operation, if any; counts it.
    #[must_use]
    pub fn strike(&self, operation: Operation, path: &Path) -> Option<Fault> {
        if operation != Operation::Read
            && let Some(asked) = self.asked.lock().as_mut()
        {
            asked.push((operation, path.to_path_buf()));
        }
        let path = path.to_string_lossy();
        for rule in self.rules.lock().iter_mut() {
            if rule.operation != operation || !path.contains(&rule.path) || rule.times == Some(0) {
                continue;
            }
            if rule.after > 0 {
                rule.after = rule.after.saturating_sub(1);
                continue;
            }
            rule.times = rule.times.map(|times| times.saturating_sub(1));
            return Some(rule.fault);
        }
        None
    }

    /// Fails if a fault strikes this operation.
    ///
    /// # Errors
    /// The fault's.
    pub fn check(&self, operation: Operation, path: &Path) -> io::Result<()> {
        self.strike(operation, path).map_or(Ok(()), |fault| Err(fault.error()))
    }

    /// Writes through `write`, or as much of it as the fault allows.
    pub(crate) fn write(
        &self,
        path: &Path,
        parts: &[IoSlice<'_>],
        write: impl Fn(&[IoSlice<'_>]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(fault) = self.strike(Operation::Write, path) else {
            return write(parts);
        };
        if let Fault::Short(bytes) = fault {
            let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).take(bytes).collect();
            write(&[IoSlice::new(&all)])?;
        }
        Err(fault.error())
    }
}

/// A disk that does as it is told by its [`Faults`] before it does anything else.
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    faults: Faults,
}

impl FaultyDisk {
    /// Puts `faults` before `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>, faults: Faults) -> Self {
        Self { inner, faults }
    }

    fn wrap(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile { inner, path: path.to_path_buf(), faults: self.faults.clone() })
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.wrap(path, self.inner.open(path)?))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.faults.check(Operation::Create, path)?;
        Ok(self.wrap(path, self.inner.create(path)?))
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        self.inner.size(path)
    }

    fn modified_ms(&self, path: &Path) -> io::Result<i64> {
        self.inner.modified_ms(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.check(Operation::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.faults.check(Operation::Remove, path)?;
        self.inner.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.faults.check(Operation::Create, path)?;
        self.inner.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.faults.check(Operation::Remove, path)?;
        self.inner.remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.inner.list(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.faults.check(Operation::Sync, path)?;
        self.inner.sync_dir(path)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.faults.check(Operation::Sync, Path::new(""))?;
        self.inner.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.inner.free_bytes()
    }

    fn capacity_bytes(&self) -> io::Result<u64> {
        self.inner.capacity_bytes()
    }
}

struct FaultyFile {
    inner: Arc<dyn File>,
    path: PathBuf,
    faults: Faults,
}

impl File for FaultyFile {
    fn write_at(&self, parts: &[IoSlice<'_>], pos: u64) -> io::Result<()> {
        self.faults.write(&self.path, parts, |parts| self.inner.write_at(parts, pos))
    }

    fn read_at(&self, buf: &mut [u8], pos: u64) -> io::Result<usize> {
        self.faults.check(Operation::Read, &self.path)?;
        self.inner.read_at(buf, pos)
    }

    fn read_at_nowait(&self, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>> {
        self.faults.check(Operation::Read, &self.path)?;
        self.inner.read_at_nowait(buf, pos)
    }

    fn read_direct(&self, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>> {
        self.faults.check(Operation::Read, &self.path)?;
        self.inner.read_direct(buf, pos)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.faults.check(Operation::Truncate, &self.path)?;
        self.inner.truncate(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.faults.check(Operation::Sync, &self.path)?;
        self.inner.sync_data()
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.inner.drop_cache()
    }
}
