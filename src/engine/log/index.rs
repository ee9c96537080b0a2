//! Entries of the three index files, byte for byte Kafka's, and the search over them.

use crate::engine::Offset;
use crate::engine::partition::Aborted;

/// One fixed-size entry of an index file.
pub trait Entry: Copy + Send + Sync {
    /// Bytes of every entry.
    const BYTES: usize;

    /// Appends the entry's bytes.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads the entry at the front of `bytes`; `None` when they are too few or cannot be one.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// An entry of `.index`: a batch's last offset and where the batch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetEntry {
    /// Last offset of the batch, minus the segment's base.
    pub relative_offset: i32,
    /// First byte of that batch in the segment.
    pub position: i32,
}

impl Entry for OffsetEntry {
    const BYTES: usize = 8;

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            relative_offset: i32::from_be_bytes(field(bytes, 0)?),
            position: i32::from_be_bytes(field(bytes, 4)?),
        })
    }
}

/// An entry of `.timeindex`: the largest timestamp so far and the batch that brought it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeEntry {
    /// Largest timestamp of the segment when the entry was made.
    pub timestamp: i64,
    /// Last offset of the first batch with that timestamp, minus the segment's base.
    pub relative_offset: i32,
}

impl Entry for TimeEntry {
    const BYTES: usize = 12;

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            timestamp: i64::from_be_bytes(field(bytes, 0)?),
            relative_offset: i32::from_be_bytes(field(bytes, 8)?),
        })
    }
}

/// An entry of `.txnindex` (T-505).
impl Entry for Aborted {
    const BYTES: usize = 34;

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&0_i16.to_be_bytes());
        for value in [self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset] {
            out.extend_from_slice(&value.to_be_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        if i16::from_be_bytes(field(bytes, 0)?) != 0 {
            return None;
        }
        Some(Self {
            producer_id: i64::from_be_bytes(field(bytes, 2)?),
            first_offset: i64::from_be_bytes(field(bytes, 10)?),
            last_offset: i64::from_be_bytes(field(bytes, 18)?),
            last_stable_offset: i64::from_be_bytes(field(bytes, 26)?),
        })
    }
}

impl Aborted {
    /// Whether a reader that was given `from..upper` must be told of it (T-513 R, T-514).
    #[must_use]
    pub fn touches(&self, from: Offset, upper: Offset) -> bool {
        self.last_offset >= from && self.first_offset < upper
    }

    /// Whether no later entry can touch anything below `upper`.
    #[must_use]
    pub fn ends_search(&self, upper: Offset) -> bool {
        self.last_stable_offset >= upper
    }
}

/// How many of `count` entries, from the first on, `holds` is true of; it must be true of a prefix only.
///
/// # Errors
/// The first error of `holds`.
pub fn partition_point<E>(count: u64, mut holds: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    let (mut low, mut high) = (0_u64, count);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle)? {
            low = middle.saturating_add(1);
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests;
