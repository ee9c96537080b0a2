//! The records inside a batch, one after the other, without their keys and values being copied.

use super::inflate::{Broken, Inflated, Plain, Source};
use super::{HEADER_BYTES, Header};

/// What is asked of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its offset less the batch's base offset.
    pub offset_delta: i32,
    /// Milliseconds since 1970, -1 for none; on a batch of LogAppendTime the batch's own (T-345).
    pub timestamp: i64,
    /// Its key.
    pub key: Field,
    /// Its value; a record without one is a tombstone.
    pub value: Field,
}

/// Whether a key or value is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// It is null.
    Null,
    /// It has this many bytes.
    Bytes(usize),
}

/// Walks over the records of one whole batch, packed or not; after an error it ends. See [`records`].
pub struct Records<'a> {
    header: Header,
    left: i32,
    bytes: Bytes<'a>,
}

enum Bytes<'a> {
    Plain(Plain<'a>),
    Inflated(Inflated<'a>),
    /// The codec could not be begun; said once.
    Broken(Broken),
}

/// The records of `batch`, which is one whole batch from its first byte on. A batch without header gives none.
/// Memory stays bounded whatever the bytes say.
#[must_use]
pub fn records(batch: &[u8]) -> Records<'_> {
    let Some(header) = Header::read(batch) else {
        return Records { header: NO_HEADER, left: 0, bytes: Bytes::Broken(Broken::Record) };
    };
    let payload = batch.get(HEADER_BYTES..header.size().unwrap_or(HEADER_BYTES)).unwrap_or_default();
    let bytes = match header.codec() {
        0 => Bytes::Plain(Plain::new(payload)),
        codec => Inflated::new(codec, payload).map_or_else(Bytes::Broken, Bytes::Inflated),
    };
    Records { left: header.count, header, bytes }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            return None;
        }
        self.left = self.left.saturating_sub(1);
        let read = match &mut self.bytes {
            Bytes::Plain(source) => read_record(source, &self.header),
            Bytes::Inflated(source) => read_record(source, &self.header),
            Bytes::Broken(why) => Err(*why),
        };
        if read.is_err() {
            self.left = 0;
        }
        Some(read)
    }
}

const NO_HEADER: Header = Header {
    base_offset: -1,
    batch_length: 0,
    leader_epoch: -1,
    magic: 2,
    crc: 0,
    attributes: 0,
    last_offset_delta: -1,
    base_timestamp: -1,
    max_timestamp: -1,
    producer_id: -1,
    producer_epoch: -1,
    base_sequence: -1,
    count: 0,
};

/// Takes one record off `source` and holds it to its own sizes (T-336).
#[inline]
pub(super) fn read_record<S: Source>(source: &mut S, header: &Header) -> Result<Record, Broken> {
    let size = usize::try_from(varint(source)?).map_err(|_| Broken::Record)?;
    let start = source.taken();
    source.byte()?;
    let delta = varlong(source)?;
    let offset_delta = varint(source)?;
    let key = skip_field(source, size)?;
    let value = skip_field(source, size)?;
    let headers = varint(source)?;
    if headers < 0 {
        return Err(Broken::Record);
    }
    for _ in 0..headers {
        if skip_field(source, size)? == Field::Null {
            return Err(Broken::Record);
        }
        skip_field(source, size)?;
    }
    if source.taken().saturating_sub(start) != size {
        return Err(Broken::Record);
    }
    let timestamp =
        if header.is_log_append_time() { header.max_timestamp } else { header.base_timestamp.wrapping_add(delta) };
    Ok(Record { offset_delta, timestamp, key, value })
}

/// Passes over a field with its length before it.
#[inline]
fn skip_field<S: Source>(source: &mut S, most: usize) -> Result<Field, Broken> {
    match varint(source)? {
        -1 => Ok(Field::Null),
        length => {
            let length = usize::try_from(length).map_err(|_| Broken::Record)?;
            if length > most {
                return Err(Broken::Record);
            }
            source.skip(length)?;
            Ok(Field::Bytes(length))
        }
    }
}

/// A signed number of at most 32 bits in zigzag form.
#[inline]
pub(super) fn varint<S: Source>(source: &mut S) -> Result<i32, Broken> {
    let mut value = 0_u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = source.byte()?;
        value |= u32::from(byte & 0x7f).wrapping_shl(shift);
        if byte & 0x80 == 0 {
            return Ok((value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg());
        }
    }
    Err(Broken::Record)
}

/// A signed number of at most 64 bits in zigzag form.
#[inline]
pub(super) fn varlong<S: Source>(source: &mut S) -> Result<i64, Broken> {
    let mut value = 0_u64;
    for shift in [0, 7, 14, 21, 28, 35, 42, 49, 56, 63] {
        let byte = source.byte()?;
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte & 0x80 == 0 {
            return Ok((value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg());
        }
    }
    Err(Broken::Record)
}

#[cfg(test)]
mod tests;
