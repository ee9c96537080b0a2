//! The disk's "no": refuse, or start over.

use std::io;

use rustix::io::Errno;

/// What went wrong below us. Never dropped, never turned into a client's mistake.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No room, on the disk, in memory or for another open file. Nothing changed; the same may succeed later. The caller refuses and tries again with back-off.
    #[error("no space left: {0}")]
    Full(String),
    /// Nothing changed and this request cannot be served: a read that failed, a partition found damaged. Names the
    /// file and the place.
    #[error("damaged: {0}")]
    Damaged(String),
    /// It is not known what is on disk any more (a failed sync, an I/O error on write). The process starts over.
    #[error("storage failed: {0}")]
    Broken(String),
}

impl StoreError {
    /// Sorts a failed *write* or metadata operation (storage rule 3.5.5): no room is `Full`, anything else `Broken`.
    #[must_use]
    pub fn from_write(what: &str, error: &io::Error) -> Self {
        let full = error.kind() == io::ErrorKind::StorageFull || error.kind() == io::ErrorKind::QuotaExceeded;
        match full || passes(error) {
            true => Self::Full(format!("{what}: {error}")),
            false => Self::Broken(format!("{what}: {error}")),
        }
    }

    /// A failed *sync* is always `Broken`, whatever the system calls it: the page cache lies from then on.
    #[must_use]
    pub fn from_sync(what: &str, error: &io::Error) -> Self {
        Self::Broken(format!("{what}: {error}"))
    }

    /// A failed *read* concerns one file; unless it says nothing of the file, but that this process or the system can
    /// have no other one open now.
    #[must_use]
    pub fn from_read(what: &str, error: &io::Error) -> Self {
        match passes(error) {
            true => Self::Full(format!("{what}: {error}")),
            false => Self::Damaged(format!("{what}: {error}")),
        }
    }
}

/// Whether an error is about what the process or the system has too much of just now, and not about a file.
fn passes(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

#[cfg(test)]
mod tests;
