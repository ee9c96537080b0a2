//! The transactions that are open on a partition, in the order in which they hold back the last stable offset.

use std::collections::BTreeMap;

use crate::engine::{Offset, Producer};

/// A transaction with data here and no marker yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Whose it is.
    pub producer: Producer,
    /// Its first record here.
    pub first_offset: Offset,
    /// When that arrived, in milliseconds since 1970; after a restart a time not later than the newest known of it.
    pub started_wall_ms: i64,
}

/// A transaction that a marker has just aborted: an entry of the transaction index (T-505).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aborted {
    /// Whose it was.
    pub producer_id: i64,
    /// Its first record here.
    pub first_offset: Offset,
    /// Its marker.
    pub last_offset: Offset,
    /// First offset of the earliest other transaction still open, or the offset after the marker (T-506).
    pub last_stable_offset: Offset,
}

/// All open transactions, by first offset. No two begin at the same one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Open(BTreeMap<Offset, Begun>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    producer: Producer,
    wall_ms: i64,
}

impl Open {
    /// `false` if one already begins there.
    pub(super) fn begin(&mut self, producer: Producer, first: Offset, wall_ms: i64) -> bool {
        self.0.insert(first, Begun { producer, wall_ms }).is_none()
    }

    pub(super) fn end(&mut self, first: Offset) {
        self.0.remove(&first);
    }

    pub(super) fn earliest(&self) -> Option<Offset> {
        self.0.first_key_value().map(|(first, _)| *first)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = OpenTransaction> {
        self.0.iter().map(|(first, begun)| OpenTransaction {
            producer: begun.producer,
            first_offset: *first,
            started_wall_ms: begun.wall_ms,
        })
    }
}
