//! Remembers. Partition logs on files, everything else in SQLite. Synchronous: fails loudly or not at all.

pub mod disk;
pub mod error;
pub mod faults;
pub mod log;
pub mod mem_disk;
pub mod os_disk;

pub use error::StoreError;
