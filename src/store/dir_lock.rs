//! One process per data directory.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::FlockOperation;

/// Holds the directory until dropped, or until the process ends, however it ends.
pub struct DirLock {
    _file: File,
}

impl DirLock {
    /// Locks `.lock` in the directory the way Apache Kafka does, so that neither opens what the other has open. Both
    /// kinds of lock are taken: the POSIX one is what Kafka sees, the other one holds within one process too.
    ///
    /// # Errors
    /// The system's; `WouldBlock` when another process has it.
    pub fn take(root: &Path) -> io::Result<Self> {
        let path = root.join(".lock");
        let file = File::options().create(true).truncate(false).read(true).write(true).open(path)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { _file: file })
    }
}
