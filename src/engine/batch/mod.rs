//! A record batch seen as bytes: its header, and the two fields that an append may change.
//!
//! Batches are Kafka's v2 batches and are stored byte for byte; only the base offset and the leader epoch, both outside
//! the checksum, are patched when a place in the log is given.

pub mod check;
pub mod headers;
mod inflate;
pub mod marker;
pub mod records;
#[cfg(any(test, simulator))]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "tests and the simulator alone have it: what cannot be ends them"
)]
pub(crate) mod samples;

pub use inflate::{Broken, unpacked_limit};

use crate::engine::{Offset, Producer};

/// Bytes of a v2 batch before its records.
pub const HEADER_BYTES: usize = 61;

/// Bytes before the part that `batchLength` counts: base offset and the length itself.
pub const LENGTH_PREFIX_BYTES: usize = 12;

const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const LOG_APPEND_TIME: i16 = 1 << 3;
const DELETE_HORIZON: i16 = 1 << 6;

/// The fields of a v2 batch header, as they stand. Reading one judges nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Offset of the first record.
    pub base_offset: Offset,
    /// Bytes after the length field.
    pub batch_length: i32,
    /// The incarnation that appended it.
    pub leader_epoch: i32,
    /// Format version; 2 is the only one stored.
    pub magic: i8,
    /// CRC-32C of everything from the attributes on.
    pub crc: u32,
    /// Codec and flags.
    pub attributes: i16,
    /// Last offset minus base offset.
    pub last_offset_delta: i32,
    /// Timestamp that the records' deltas count from; the delete horizon when bit 6 is set.
    pub base_timestamp: i64,
    /// Largest record timestamp.
    pub max_timestamp: i64,
    /// Producer id, -1 for none.
    pub producer_id: i64,
    /// Producer epoch, -1 for none.
    pub producer_epoch: i16,
    /// Sequence of the first record, -1 for none.
    pub base_sequence: i32,
    /// Number of records.
    pub count: i32,
}

impl Header {
    /// Reads the header at the front of `bytes`; `None` if there are fewer than 61 bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            base_offset: i64::from_be_bytes(field(bytes, 0)?),
            batch_length: i32::from_be_bytes(field(bytes, 8)?),
            leader_epoch: i32::from_be_bytes(field(bytes, 12)?),
            magic: i8::from_be_bytes(field(bytes, 16)?),
            crc: u32::from_be_bytes(field(bytes, 17)?),
            attributes: i16::from_be_bytes(field(bytes, 21)?),
            last_offset_delta: i32::from_be_bytes(field(bytes, 23)?),
            base_timestamp: i64::from_be_bytes(field(bytes, 27)?),
            max_timestamp: i64::from_be_bytes(field(bytes, 35)?),
            producer_id: i64::from_be_bytes(field(bytes, 43)?),
            producer_epoch: i16::from_be_bytes(field(bytes, 51)?),
            base_sequence: i32::from_be_bytes(field(bytes, 53)?),
            count: i32::from_be_bytes(field(bytes, 57)?),
        })
    }

    /// Bytes of the whole batch, or `None` when the length field cannot be one of a v2 batch.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        let size = usize::try_from(self.batch_length).ok()?.checked_add(LENGTH_PREFIX_BYTES)?;
        (size >= HEADER_BYTES).then_some(size)
    }

    /// Offset of the last record.
    #[must_use]
    pub fn last_offset(&self) -> Offset {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// Offset after the last record.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        self.last_offset().saturating_add(1)
    }

    /// Compression codec, 0 for none.
    #[must_use]
    pub fn codec(&self) -> i16 {
        self.attributes & 0x7
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether the batch is a control batch (a marker).
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Whether the timestamps are the broker's.
    #[must_use]
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// Whether the base timestamp is a delete horizon (left by compaction).
    #[must_use]
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON != 0
    }

    /// The producer, if the batch has one.
    #[must_use]
    pub fn producer(&self) -> Option<Producer> {
        (self.producer_id >= 0).then_some(Producer { id: self.producer_id, epoch: self.producer_epoch })
    }

    /// Sequence of the last record, wrapped at 2^31 (T-351); -1 where the batch has none.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 { -1 } else { add_sequence(self.base_sequence, self.last_offset_delta) }
    }
}

/// Sequence arithmetic: 0..=2147483647, and 0 again after it (T-351).
#[must_use]
pub fn add_sequence(sequence: i32, delta: i32) -> i32 {
    sequence.wrapping_add(delta) & i32::MAX
}

/// Gives the batch at the front of `bytes` its place: base offset and leader epoch. The checksum covers neither.
/// Bytes shorter than a header are left alone.
pub fn patch(bytes: &mut [u8], base_offset: Offset, leader_epoch: i32) {
    put(bytes, 0, &base_offset.to_be_bytes());
    put(bytes, 12, &leader_epoch.to_be_bytes());
}

/// Makes the batch's timestamps the broker's (T-345): sets attribute bit 3 and the largest timestamp, and the checksum
/// anew. The records' own deltas stay; readers take the largest timestamp for all of them.
pub fn stamp_log_append_time(bytes: &mut [u8], wall_ms: i64) {
    let Some(attributes) = field(bytes, 21).map(i16::from_be_bytes) else {
        return;
    };
    put(bytes, 21, &(attributes | LOG_APPEND_TIME).to_be_bytes());
    put(bytes, 35, &wall_ms.to_be_bytes());
    let crc = checksum(bytes);
    put(bytes, 17, &crc.to_be_bytes());
}

/// CRC-32C of a whole batch's bytes from the attributes on; 0 for fewer bytes than that.
#[must_use]
pub fn checksum(batch: &[u8]) -> u32 {
    batch.get(21..).map_or(0, crc32c::crc32c)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(value.len())) {
        place.copy_from_slice(value);
    }
}
