//! The arithmetic of a partition's log: names, rolling, sparse indexes, what a scan may accept, leader epochs.

pub mod epochs;
pub mod index;
pub mod retention;
pub mod scan;
pub mod segments;
pub mod times;

pub use epochs::LeaderEpochs;
pub use index::{Entry, OffsetEntry, TimeEntry};
pub use retention::{Extent, Retention};
pub use segments::{Growth, LogSettings};
