//! The only door to files. Everything above says what it wants in these words, so that a simulated disk can stand in.
//!
//! Paths are relative to the data directory. Results are plain `io::Result`; the caller knows whether it wrote, synced
//! or read and turns a failure into a [`StoreError`](crate::store::StoreError) accordingly.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

/// One open file. Any thread may use it; positions are explicit.
pub trait File: Send + Sync {
    /// Writes all of `parts` back to back from `pos` on. On an error any prefix may have been written.
    ///
    /// # Errors
    /// The system's, `StorageFull` among them.
    fn write_at(&self, parts: &[IoSlice<'_>], pos: u64) -> io::Result<()>;

    /// Reads from `pos` until `buf` is full or the file ends; gives the number of bytes read.
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, buf: &mut [u8], pos: u64) -> io::Result<usize>;

    /// As [`read_at`](Self::read_at), but never waits for the device: `None` when nothing is in memory, and fewer bytes
    /// than there are when only a part is.
    ///
    /// # Errors
    /// The system's.
    fn read_at_nowait(&self, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>>;

    /// As [`read_at`](Self::read_at), past the page cache: what the device has. `None` where that cannot be done.
    ///
    /// # Errors
    /// The system's.
    fn read_direct(&self, _buf: &mut [u8], _pos: u64) -> io::Result<Option<usize>> {
        Ok(None)
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// The system's.
    fn size(&self) -> io::Result<u64>;

    /// Cuts the file, or extends it with zeros.
    ///
    /// # Errors
    /// The system's.
    fn truncate(&self, size: u64) -> io::Result<()>;

    /// Makes all earlier writes of this file durable (`fdatasync`). Not its directory entry. After an error it is not
    /// known what is on disk, and a second call proves nothing.
    ///
    /// # Errors
    /// The system's.
    fn sync_data(&self) -> io::Result<()>;

    /// Asks that nothing of the file stays in memory, so that the next read comes from the device. The whole file: a
    /// partial drop leaves large folios behind.
    ///
    /// # Errors
    /// The system's.
    fn drop_cache(&self) -> io::Result<()>;
}

/// A data directory.
pub trait Disk: Send + Sync {
    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// The system's; `NotFound` when there is none.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Creates a file, or empties the one that is there. Its directory entry is durable after
    /// [`sync_dir`](Self::sync_dir).
    ///
    /// # Errors
    /// The system's.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Bytes of the file at `path`.
    ///
    /// # Errors
    /// The system's; `NotFound` when there is none.
    fn size(&self, path: &Path) -> io::Result<u64>;

    /// When the file at `path` was last written, in milliseconds since 1970.
    ///
    /// # Errors
    /// The system's; `NotFound` when there is none.
    fn modified_ms(&self, path: &Path) -> io::Result<i64>;

    /// Whether there is a file or directory at `path`.
    ///
    /// # Errors
    /// The system's.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Renames a file or directory within its directory, over what is there.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Handles that are open keep its bytes.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates a directory; its parent must be there.
    ///
    /// # Errors
    /// The system's; `AlreadyExists` when there is one.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// The system's.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Names of the entries of a directory, in order.
    ///
    /// # Errors
    /// The system's.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Makes earlier creations, renames and removals in this directory durable.
    ///
    /// # Errors
    /// The system's; as with a file's sync, nothing is known after one.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes everything of the file system durable (`syncfs`), names included. Errors are reported once only.
    ///
    /// # Errors
    /// The system's.
    fn sync_all(&self) -> io::Result<()>;

    /// Bytes that may still be written.
    ///
    /// # Errors
    /// The system's.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Bytes of the whole disk, used and free.
    ///
    /// # Errors
    /// The system's.
    fn capacity_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

/// Replaces a small file whole and durably: after a crash the old content is there or the new, never a mix.
///
/// # Errors
/// A failed write as such; a failed sync too, since the old file still stands and nothing was promised.
pub fn replace_file(disk: &dyn Disk, path: &Path, content: &[u8]) -> Result<(), Replacing> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(TEMPORARY_SUFFIX);
    let temporary = path.with_file_name(name);
    let file = disk.create(&temporary).map_err(Replacing::Write)?;
    file.write_at(&[IoSlice::new(content)], 0).map_err(Replacing::Write)?;
    file.sync_data().map_err(Replacing::Sync)?;
    disk.rename(&temporary, path).map_err(Replacing::Write)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new(""))).map_err(Replacing::Sync)
}

/// What the temporary file of [`replace_file`] ends with; such files are worthless after a crash.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// Where replacing a file failed; the two are told apart because they mean different things for the process.
#[derive(Debug, thiserror::Error)]
pub enum Replacing {
    /// Writing or renaming.
    #[error("{0}")]
    Write(io::Error),
    /// Syncing.
    #[error("{0}")]
    Sync(io::Error),
}
