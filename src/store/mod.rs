//! Remembers. Partition logs on files, everything else in SQLite. Synchronous: fails loudly or not at all.

mod cache;
pub mod dir_lock;
pub mod disk;
pub mod error;
pub mod faults;
pub mod log;
pub mod mem_disk;
pub mod meta;
pub mod os_disk;
pub mod space;
pub mod tickets;

pub use error::StoreError;
