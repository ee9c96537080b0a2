//! The data directory as the operating system has it.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use crate::store::disk::{Disk, File};

/// Slices that one system call may carry (`IOV_MAX`).
const MAX_SLICES: usize = 1024;

/// Files under one directory.
pub struct OsDisk {
    root: PathBuf,
    // Open from the start: a file system reports a failed write-back once per descriptor that was open before it.
    root_fd: OwnedFd,
}

impl OsDisk {
    /// The directory at `root`, which is created if need be.
    ///
    /// # Errors
    /// The system's.
    pub fn new(root: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(root)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root_fd = rustix::fs::open(root, flags, Mode::empty())?;
        Ok(Self { root: root.to_path_buf(), root_fd })
    }

    /// Whether the directory is a mount of its own, so that [`Disk::sync_all`] flushes our files and nothing else.
    ///
    /// # Errors
    /// The system's.
    pub fn is_own_mount(&self) -> io::Result<bool> {
        let here = rustix::fs::fstat(&self.root_fd)?;
        let parent = rustix::fs::stat(self.root.join(".."))?;
        Ok(here.st_dev != parent.st_dev)
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<Arc<dyn File>> {
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP;
        let path = self.at(path);
        let fd = retry_on_intr(|| rustix::fs::open(&path, flags | OFlags::RDWR | OFlags::CLOEXEC, mode))?;
        Ok(Arc::new(OsFile { fd, path }))
    }
}

impl Disk for OsDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_with(path, OFlags::empty())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_with(path, OFlags::CREATE | OFlags::TRUNC)
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        bytes(rustix::fs::stat(self.at(path))?.st_size)
    }

    fn modified_ms(&self, path: &Path) -> io::Result<i64> {
        let stat = rustix::fs::stat(self.at(path))?;
        let within = i64::try_from(stat.st_mtime_nsec).unwrap_or(0) / 1_000_000;
        Ok(stat.st_mtime.saturating_mul(1_000).saturating_add(within))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match rustix::fs::stat(self.at(path)) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::rename(self.at(from), self.at(to))?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlink(self.at(path))?)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::mkdir(self.at(path), Mode::RWXU | Mode::RGRP | Mode::XGRP)?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::rmdir(self.at(path))?)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.at(path))? {
            // A name that is not text is none of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(self.at(path), flags, Mode::empty()) {
            Ok(fd) => Ok(retry_on_intr(|| rustix::fs::fsync(&fd))?),
            // No file can be opened just now. That is no failed sync, after which nothing would be known: another way.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => self.sync_all(),
            Err(error) => Err(error.into()),
        }
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.root_fd)?)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.root_fd)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn capacity_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.root_fd)?;
        Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
    }
}

struct OsFile {
    fd: OwnedFd,
    path: PathBuf,
}

/// What positions, lengths and memory of reads past the cache are multiples of.
const DIRECT_BYTES: usize = 4096;

impl OsFile {
    /// Reads the aligned bytes around a wish from another descriptor, past the cache.
    fn around(&self, fd: &OwnedFd, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>> {
        let step = u64::try_from(DIRECT_BYTES).unwrap_or(1);
        let front = usize::try_from(pos % step).unwrap_or(0);
        let len = front.saturating_add(buf.len()).next_multiple_of(DIRECT_BYTES);
        let mut memory = vec![0; len.saturating_add(DIRECT_BYTES)];
        let skip = memory.as_ptr().align_offset(DIRECT_BYTES);
        let aligned = memory.get_mut(skip..skip.saturating_add(len)).unwrap_or_default();
        let mut filled = 0_usize;
        // Only the end of the file makes a read stop between multiples.
        while filled.is_multiple_of(DIRECT_BYTES)
            && let Some(rest) = aligned.get_mut(filled..).filter(|rest| !rest.is_empty())
        {
            let at = (pos - pos % step).saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
            match rustix::io::pread(fd, rest, at) {
                Ok(0) => break,
                Ok(read) => filled = filled.saturating_add(read),
                Err(Errno::INTR) => {}
                Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        let found = aligned.get(front..filled).unwrap_or_default();
        let count = found.len().min(buf.len());
        if let (Some(into), Some(from)) = (buf.get_mut(..count), found.get(..count)) {
            into.copy_from_slice(from);
        }
        Ok(Some(count))
    }
}

impl File for OsFile {
    fn write_at(&self, parts: &[IoSlice<'_>], mut pos: u64) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().filter(|part| !part.is_empty()).copied().collect();
        let mut left: &mut [IoSlice<'_>] = &mut slices;
        while !left.is_empty() {
            let some = left.get(..left.len().min(MAX_SLICES)).unwrap_or_default();
            let written = retry_on_intr(|| rustix::io::pwritev(&self.fd, some, pos))?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            pos = pos.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
            IoSlice::advance_slices(&mut left, written);
        }
        Ok(())
    }

    fn read_at(&self, buf: &mut [u8], pos: u64) -> io::Result<usize> {
        let mut filled = 0_usize;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = pos.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
            match rustix::io::pread(&self.fd, rest, at) {
                Ok(0) => break,
                Ok(read) => filled = filled.saturating_add(read),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }

    fn read_at_nowait(&self, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>> {
        let read =
            retry_on_intr(|| rustix::io::preadv2(&self.fd, &mut [IoSliceMut::new(buf)], pos, ReadWriteFlags::NOWAIT));
        match read {
            Ok(read) => Ok(Some(read)),
            // A file system that knows no such flag is one that may wait.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn read_direct(&self, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECT;
        match retry_on_intr(|| rustix::fs::open(&self.path, flags, Mode::empty())) {
            Ok(fd) => self.around(&fd, buf, pos),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn size(&self) -> io::Result<u64> {
        bytes(rustix::fs::fstat(&self.fd)?.st_size)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::ftruncate(&self.fd, size))?)
    }

    fn sync_data(&self) -> io::Result<()> {
        // Not repeated after a signal either: the first call may have taken the error along.
        Ok(rustix::fs::fdatasync(&self.fd)?)
    }

    fn drop_cache(&self) -> io::Result<()> {
        Ok(rustix::fs::fadvise(&self.fd, 0, None, Advice::DontNeed)?)
    }
}

fn bytes(size: i64) -> io::Result<u64> {
    u64::try_from(size).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests;
