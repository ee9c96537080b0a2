//! Whether what is read is what the device has. After a stop that was not in order the page cache may hold what a failed
//! sync never brought to disk, and reads back as if it had (storage rule 3.5).

use std::io::{self, IoSlice};
use std::sync::Arc;

use crate::store::disk::File;

/// Bytes that are compared at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// What a file is read through when the cache is not to be believed.
pub(super) enum Source {
    /// Its cache is dropped, which is proved: what is read next comes from the device.
    Dropped,
    /// Its cache stayed, or nothing can be proved of it; this reads past it.
    Past(Arc<dyn File>),
    /// Its cache stayed, as far as is known, and there is no way past it on this file system.
    Cached,
}

/// Drops a file's cache and looks whether that was done. All of the file is synced before.
pub(super) fn drop_cache(file: &Arc<dyn File>) -> io::Result<Source> {
    file.drop_cache()?;
    let in_memory = || Ok::<_, io::Error>(file.read_at_nowait(&mut [0], 0)?.is_some_and(|read| read > 0));
    if file.size()? == 0 {
        return Ok(Source::Dropped);
    }
    if !in_memory()? {
        // A file system that cannot tell says the same. What was read just now is in memory: one that can tells so.
        file.read_at(&mut [0], 0)?;
        if in_memory()? {
            return Ok(Source::Dropped);
        }
    }
    Ok(match file.read_direct(&mut [0], 0)? {
        Some(_) => Source::Past(Arc::new(PastCache(Arc::clone(file)))),
        None => Source::Cached,
    })
}

/// Whether two ways to read a file give the same.
pub(super) fn reads_same(one: &dyn File, other: &dyn File) -> io::Result<bool> {
    let size = one.size()?;
    let (mut left, mut right) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut pos = 0_u64;
    while pos < size {
        let (read, also) = (one.read_at(&mut left, pos)?, other.read_at(&mut right, pos)?);
        if read == 0 || read != also || left.get(..read) != right.get(..also) {
            return Ok(false);
        }
        pos = pos.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
    }
    Ok(true)
}

/// A file that is read from the device, whatever is in memory.
struct PastCache(Arc<dyn File>);

impl File for PastCache {
    fn write_at(&self, parts: &[IoSlice<'_>], pos: u64) -> io::Result<()> {
        self.0.write_at(parts, pos)
    }

    fn read_at(&self, buf: &mut [u8], pos: u64) -> io::Result<usize> {
        self.0.read_direct(buf, pos)?.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    fn read_at_nowait(&self, _: &mut [u8], _: u64) -> io::Result<Option<usize>> {
        Ok(None)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.0.truncate(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.0.drop_cache()
    }
}

#[cfg(test)]
mod tests;
