//! Commit and abort markers: write, recognise.

use super::inflate::{Plain, Source};
use super::records::{varint, varlong};
use super::{HEADER_BYTES, Header, LENGTH_PREFIX_BYTES, checksum, put};
use crate::engine::{Offset, Outcome, Producer};

/// Bytes of a marker as it is written (T-401).
pub const MARKER_BYTES: usize = 78;

/// Transactional and control.
const ATTRIBUTES: i16 = 0x30;
const LOG_APPEND_TIME: i16 = 0x08;

/// Length 16, attributes, both deltas 0, key of 4 bytes with version 0.
const RECORD_FRONT: [u8; 7] = [0x20, 0, 0, 0, 0x08, 0, 0];
/// Value of 6 bytes with version 0.
const VALUE_FRONT: [u8; 3] = [0x0C, 0, 0];

/// A marker to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Whose transaction ends, and the epoch the marker carries (T-404).
    pub producer: Producer,
    /// How it ends.
    pub outcome: Outcome,
    /// The coordinator epoch in the value (T-407).
    pub coordinator_epoch: i32,
}

/// What a control batch says (T-403).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadMarker {
    /// How the transaction ended; `None` for a type that is not known, which consumers pass over.
    pub outcome: Option<Outcome>,
    /// The coordinator epoch in the value.
    pub coordinator_epoch: i32,
}

/// The bytes of `marker` at its place in the log (T-401), with its checksum.
#[must_use]
pub fn write(
    marker: &Marker,
    base_offset: Offset,
    leader_epoch: i32,
    wall_ms: i64,
    log_append_time: bool,
) -> [u8; MARKER_BYTES] {
    let mut bytes = [0; MARKER_BYTES];
    let attributes = if log_append_time { ATTRIBUTES | LOG_APPEND_TIME } else { ATTRIBUTES };
    let length = i32::try_from(MARKER_BYTES.saturating_sub(LENGTH_PREFIX_BYTES)).unwrap_or_default();
    let kind: i16 = match marker.outcome {
        Outcome::Abort => 0,
        Outcome::Commit => 1,
    };
    put(&mut bytes, 0, &base_offset.to_be_bytes());
    put(&mut bytes, 8, &length.to_be_bytes());
    put(&mut bytes, 12, &leader_epoch.to_be_bytes());
    put(&mut bytes, 16, &[2]);
    put(&mut bytes, 21, &attributes.to_be_bytes());
    put(&mut bytes, 27, &wall_ms.to_be_bytes());
    put(&mut bytes, 35, &wall_ms.to_be_bytes());
    put(&mut bytes, 43, &marker.producer.id.to_be_bytes());
    put(&mut bytes, 51, &marker.producer.epoch.to_be_bytes());
    put(&mut bytes, 53, &(-1_i32).to_be_bytes());
    put(&mut bytes, 57, &1_i32.to_be_bytes());
    put(&mut bytes, HEADER_BYTES, &RECORD_FRONT);
    put(&mut bytes, 68, &kind.to_be_bytes());
    put(&mut bytes, 70, &VALUE_FRONT);
    put(&mut bytes, 73, &marker.coordinator_epoch.to_be_bytes());
    let crc = checksum(&bytes);
    put(&mut bytes, 17, &crc.to_be_bytes());
    bytes
}

/// Reads one whole control batch. `None` if it is none, holds no record any more (compaction may leave it so), or its
/// key or value is not valid. A higher version is read as the highest known (T-403).
#[must_use]
pub fn read(batch: &[u8]) -> Option<ReadMarker> {
    let header = Header::read(batch)?;
    if !header.is_control() || header.codec() != 0 || header.count < 1 {
        return None;
    }
    let mut record = Plain::new(batch.get(HEADER_BYTES..header.size()?)?);
    // Sizes and deltas are read, not assumed: a cleaned marker counts its timestamp from the delete horizon.
    varint(&mut record).ok()?;
    record.byte().ok()?;
    varlong(&mut record).ok()?;
    varint(&mut record).ok()?;
    let (key_version, key) = versioned(&mut record)?;
    let (value_version, value) = versioned(&mut record)?;
    if key_version < 0 || value_version < 0 {
        return None;
    }
    let outcome = match i16::from_be_bytes(*key.first_chunk()?) {
        0 => Some(Outcome::Abort),
        1 => Some(Outcome::Commit),
        _ => None,
    };
    Some(ReadMarker { outcome, coordinator_epoch: i32::from_be_bytes(*value.first_chunk()?) })
}

/// A field of which the first two bytes are a version, and what follows them.
fn versioned<'a>(record: &mut Plain<'a>) -> Option<(i16, &'a [u8])> {
    let length = usize::try_from(varint(record).ok()?).ok()?;
    let (version, rest) = record.take(length).ok()?.split_first_chunk()?;
    Some((i16::from_be_bytes(*version), rest))
}

#[cfg(test)]
mod tests;
