//! Batches for tests, built record by record.

#![expect(clippy::arithmetic_side_effects, reason = "a test may count freely: an overflow fails it")]

use std::io::Write;

use super::{HEADER_BYTES, Header, checksum, put};

/// A record to put into a batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// Its timestamp less the batch's base timestamp.
    pub(crate) delta_ms: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(&'static str, Option<&'static str>)>,
}

/// A header of `count` records that passes every check; the producer is none.
pub(crate) fn header(count: i32) -> Header {
    Header {
        base_offset: 0,
        batch_length: 0,
        leader_epoch: -1,
        magic: 2,
        crc: 0,
        attributes: 0,
        last_offset_delta: count - 1,
        base_timestamp: 1_700_000_000_000,
        max_timestamp: 1_700_000_000_000,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count,
    }
}

/// The bytes of a batch: `header` before `payload`, with length and checksum as they must be.
pub(crate) fn seal(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.extend_from_slice(payload);
    let length = i32::try_from(bytes.len() - 12).unwrap();
    put(&mut bytes, 0, &header.base_offset.to_be_bytes());
    put(&mut bytes, 8, &length.to_be_bytes());
    put(&mut bytes, 12, &header.leader_epoch.to_be_bytes());
    put(&mut bytes, 16, &header.magic.to_be_bytes());
    put(&mut bytes, 21, &header.attributes.to_be_bytes());
    put(&mut bytes, 23, &header.last_offset_delta.to_be_bytes());
    put(&mut bytes, 27, &header.base_timestamp.to_be_bytes());
    put(&mut bytes, 35, &header.max_timestamp.to_be_bytes());
    put(&mut bytes, 43, &header.producer_id.to_be_bytes());
    put(&mut bytes, 51, &header.producer_epoch.to_be_bytes());
    put(&mut bytes, 53, &header.base_sequence.to_be_bytes());
    put(&mut bytes, 57, &header.count.to_be_bytes());
    let crc = checksum(&bytes);
    put(&mut bytes, 17, &crc.to_be_bytes());
    bytes
}

/// Records one after the other, not packed.
pub(crate) fn encode(records: &[Entry]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let mut body = vec![0];
        zigzag(&mut body, record.delta_ms);
        zigzag(&mut body, i64::try_from(index).unwrap());
        field(&mut body, record.key.as_deref());
        field(&mut body, record.value.as_deref());
        zigzag(&mut body, i64::try_from(record.headers.len()).unwrap());
        for (name, value) in &record.headers {
            field(&mut body, Some(name.as_bytes()));
            field(&mut body, value.map(str::as_bytes));
        }
        zigzag(&mut payload, i64::try_from(body.len()).unwrap());
        payload.append(&mut body);
    }
    payload
}

/// Packs with Kafka's codec; 5 stands for snappy in the framing of Java's clients.
pub(crate) fn pack(codec: i16, payload: &[u8]) -> Vec<u8> {
    match codec {
        0 => payload.to_vec(),
        1 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(payload).unwrap();
            encoder.finish().unwrap()
        }
        2 => snap::raw::Encoder::new().compress_vec(payload).unwrap(),
        3 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(payload).unwrap();
            encoder.finish().unwrap()
        }
        4 => zstd::encode_all(payload, 3).unwrap(),
        5 => {
            let mut framed = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
            for chunk in payload.chunks(32 * 1024) {
                let block = snap::raw::Encoder::new().compress_vec(chunk).unwrap();
                framed.extend_from_slice(&u32::try_from(block.len()).unwrap().to_be_bytes());
                framed.extend_from_slice(&block);
            }
            framed
        }
        _ => panic!("no codec {codec}"),
    }
}

/// A plain number in zigzag form.
pub(crate) fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = (value.wrapping_shl(1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        bytes.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    bytes.push(u8::try_from(rest).unwrap());
}

fn field(bytes: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => zigzag(bytes, -1),
        Some(value) => {
            zigzag(bytes, i64::try_from(value.len()).unwrap());
            bytes.extend_from_slice(value);
        }
    }
}
