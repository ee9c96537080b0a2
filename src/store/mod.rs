//! Remembers. Partition logs on files, everything else in SQLite. Synchronous: fails loudly or not at all.

pub mod error;

pub use error::StoreError;
