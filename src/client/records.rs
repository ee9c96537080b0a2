//! Record batches as a client writes and reads them: not compressed, values that are text, no keys.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::engine::batch::{HEADER_BYTES, Header, LENGTH_PREFIX_BYTES, checksum};

const TRANSACTIONAL: i16 = 1 << 4;

/// A batch to be sent.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    /// Id and epoch of who writes, and the sequence of the first record; -1 each for nobody in particular.
    pub(super) producer: (i64, i16, i32),
    pub(super) transactional: bool,
    /// When it is written, in milliseconds since 1970.
    pub(super) wall_ms: i64,
    pub(super) values: Vec<String>,
}

impl Batch {
    /// Its bytes, or nothing if it holds more than one batch can.
    pub(super) fn encode(&self) -> Option<Bytes> {
        let records = self.records()?;
        let count = i32::try_from(self.values.len()).ok()?;
        let (id, epoch, sequence) = self.producer;
        let mut checked = BytesMut::new();
        checked.put_i16(if self.transactional { TRANSACTIONAL } else { 0 });
        checked.put_i32(count.saturating_sub(1));
        checked.put_i64(self.wall_ms);
        checked.put_i64(self.wall_ms);
        checked.put_i64(id);
        checked.put_i16(epoch);
        checked.put_i32(sequence);
        checked.put_i32(count);
        checked.put_slice(&records);
        // Leader epoch, magic and checksum stand between the length and the bytes that are checked.
        let length = i32::try_from(checked.len().saturating_add(9)).ok()?;
        let mut batch = BytesMut::new();
        batch.put_i64(0);
        batch.put_i32(length);
        batch.put_i32(-1);
        batch.put_i8(2);
        batch.put_u32(crc32c::crc32c(&checked));
        batch.put_slice(&checked);
        Some(batch.freeze())
    }

    fn records(&self) -> Option<BytesMut> {
        let mut all = BytesMut::new();
        for (delta, value) in (0_i32..).zip(&self.values) {
            let mut record = BytesMut::new();
            record.put_i8(0);
            put_varint(&mut record, 0);
            put_varint(&mut record, delta);
            put_varint(&mut record, -1);
            put_varint(&mut record, i32::try_from(value.len()).ok()?);
            record.put_slice(value.as_bytes());
            put_varint(&mut record, 0);
            put_varint(&mut all, i32::try_from(record.len()).ok()?);
            all.put_slice(&record);
        }
        Some(all)
    }
}

/// Takes the whole batch at the front of `bytes` off, or gives nothing if there is only a part of one.
///
/// # Errors
/// What is wrong with its bytes.
pub(super) fn next(bytes: &mut Bytes) -> Result<Option<(Header, Bytes)>, &'static str> {
    let Some(header) = Header::read(bytes) else { return Ok(None) };
    let size = header.size().ok_or("a batch has no length")?;
    if header.magic != 2 {
        return Err("a batch is not of format 2");
    }
    if bytes.len() < size {
        return Ok(None);
    }
    let batch = bytes.split_to(size);
    if checksum(&batch) != header.crc { Err("a batch has a wrong checksum") } else { Ok(Some((header, batch))) }
}

/// Offsets and values of a data batch; nothing for one that is compressed.
///
/// # Errors
/// What is wrong with its bytes.
pub(super) fn values(header: &Header, batch: &Bytes) -> Result<Vec<(i64, String)>, &'static str> {
    if header.codec() != 0 {
        return Ok(Vec::new());
    }
    let mut rest = batch.slice(HEADER_BYTES.min(batch.len())..);
    let mut values = Vec::new();
    for _ in 0..header.count.max(0) {
        values.push(value(&mut rest, header.base_offset).ok_or("a record goes beyond its batch")?);
    }
    Ok(values)
}

fn value(rest: &mut Bytes, base_offset: i64) -> Option<(i64, String)> {
    let mut record = split(rest)??;
    record.try_get_i8().ok()?;
    varint(&mut record)?;
    let offset = base_offset.saturating_add(varint(&mut record)?);
    split(&mut record)?;
    let value = split(&mut record)?.unwrap_or_default();
    Some((offset, String::from_utf8_lossy(&value).into_owned()))
}

/// Bytes with their length before them; inside, `None` for null.
fn split(from: &mut Bytes) -> Option<Option<Bytes>> {
    match varint(from)? {
        -1 => Some(None),
        length => {
            let length = usize::try_from(length).ok()?;
            (length <= from.len()).then(|| Some(from.split_to(length)))
        }
    }
}

fn put_varint(out: &mut BytesMut, value: i32) {
    let mut rest = ((value << 1) ^ (value >> 31)).cast_unsigned();
    while rest >= 0x80 {
        out.put_u8(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest.to_le_bytes()[0]);
}

/// A number in zigzag form, of up to 64 bits: timestamps have as many.
fn varint(from: &mut Bytes) -> Option<i64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = from.try_get_u8().ok()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg());
        }
    }
    None
}

const _: () = assert!(LENGTH_PREFIX_BYTES + 9 + 40 == HEADER_BYTES);

#[cfg(test)]
mod tests;
