//! Record batches of format 2, made and read byte by byte; none of the broker's code has a part in it.

use std::io::{Read, Write};

use bytes::{Buf, BufMut, Bytes};

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pid {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
}

/// Nobody in particular.
pub(crate) const NOBODY: Pid = Pid { id: -1, epoch: -1 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    None = 0,
    Gzip = 1,
    Snappy = 2,
    Lz4 = 3,
    Zstd = 4,
}

/// Key and value.
pub(crate) type Record = (Option<Vec<u8>>, Option<Vec<u8>>);

/// A batch to be sent. Fields are open: whoever wants a wrong one sets it.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) producer: Pid,
    pub(crate) sequence: i32,
    pub(crate) transactional: bool,
    pub(crate) codec: Codec,
    pub(crate) timestamp: i64,
    /// Keys and values; timestamps rise by one.
    pub(crate) records: Vec<Record>,
    /// Headers of each record.
    pub(crate) headers: Vec<(String, String)>,
}

const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
/// Where the bytes begin that the checksum is of.
const CHECKED_FROM: usize = 21;
/// Where the records begin.
const RECORDS_FROM: usize = 61;

impl Batch {
    /// `count` records of no particular producer.
    pub(crate) fn plain(count: usize) -> Self {
        Self {
            producer: NOBODY,
            sequence: -1,
            transactional: false,
            codec: Codec::None,
            timestamp: 1_700_000_000_000,
            records: Vec::new(),
            headers: Vec::new(),
        }
        .values("value", count)
    }

    /// `count` records of an idempotent producer, the first with this sequence.
    pub(crate) fn idempotent(producer: Pid, sequence: i32, count: usize) -> Self {
        Self { producer, sequence, ..Self::plain(count) }
    }

    /// The same within a transaction.
    pub(crate) fn transactional(producer: Pid, sequence: i32, count: usize) -> Self {
        Self { transactional: true, ..Self::idempotent(producer, sequence, count) }
    }

    /// As many records of values `prefix-0`, `prefix-1`, …
    pub(crate) fn values(mut self, prefix: &str, count: usize) -> Self {
        self.records = (0..count).map(|n| (None, Some(format!("{prefix}-{n}").into_bytes()))).collect();
        self
    }

    /// The same with one more header in each record.
    pub(crate) fn headed(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn compressed(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// The batch with a right length and checksum.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let count = i32::try_from(self.records.len()).unwrap();
        let records = compress(self.codec, &self.record_bytes());
        let attributes = self.codec as i16 | if self.transactional { TRANSACTIONAL } else { 0 };
        let mut batch = Vec::new();
        batch.put_i64(0);
        batch.put_i32(i32::try_from(RECORDS_FROM - 12 + records.len()).unwrap());
        batch.put_i32(-1);
        batch.put_i8(2);
        batch.put_u32(0);
        batch.put_i16(attributes);
        batch.put_i32(count - 1);
        batch.put_i64(self.timestamp);
        batch.put_i64(self.timestamp + i64::from(count - 1).max(0));
        batch.put_i64(self.producer.id);
        batch.put_i16(self.producer.epoch);
        batch.put_i32(self.sequence);
        batch.put_i32(count);
        batch.put_slice(&records);
        seal(&mut batch);
        batch
    }

    fn record_bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for (n, (key, value)) in (0_i64..).zip(&self.records) {
            let mut record = vec![0];
            put_varint(&mut record, n);
            put_varint(&mut record, n);
            put_nullable(&mut record, key.as_deref());
            put_nullable(&mut record, value.as_deref());
            put_varint(&mut record, i64::try_from(self.headers.len()).unwrap());
            for (name, value) in &self.headers {
                put_nullable(&mut record, Some(name.as_bytes()));
                put_nullable(&mut record, Some(value.as_bytes()));
            }
            put_varint(&mut all, i64::try_from(record.len()).unwrap());
            all.put_slice(&record);
        }
        all
    }
}

/// Writes the checksum that a changed batch has.
pub(crate) fn seal(batch: &mut [u8]) {
    let sum = crc32c(&batch[CHECKED_FROM..]);
    batch[CHECKED_FROM - 4..CHECKED_FROM].copy_from_slice(&sum.to_be_bytes());
}

/// A batch as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) producer: Pid,
    pub(crate) sequence: i32,
    pub(crate) transactional: bool,
    /// Whether it is a marker, and then whether one of a commit.
    pub(crate) marker: Option<bool>,
    /// Offsets and values of its records.
    pub(crate) records: Vec<(i64, String)>,
}

/// Every whole batch; a part of one at the end is left out, as consumers do. Checksums must be right.
pub(crate) fn read(mut bytes: Bytes) -> Vec<Stored> {
    let mut batches = Vec::new();
    while bytes.len() >= RECORDS_FROM {
        let length = usize::try_from((&bytes[8..12]).get_i32()).unwrap() + 12;
        if bytes.len() < length {
            break;
        }
        batches.push(read_one(&bytes.split_to(length)));
    }
    batches
}

fn read_one(batch: &[u8]) -> Stored {
    let mut head = batch;
    let base_offset = head.get_i64();
    head.advance(4);
    let leader_epoch = head.get_i32();
    assert_eq!(head.get_i8(), 2, "magic");
    assert_eq!(head.get_u32(), crc32c(&batch[CHECKED_FROM..]), "checksum of the batch at {base_offset}");
    let attributes = head.get_i16();
    let last_offset = base_offset + i64::from(head.get_i32());
    head.advance(16);
    let producer = Pid { id: head.get_i64(), epoch: head.get_i16() };
    let sequence = head.get_i32();
    let count = head.get_i32();
    let body = decompress(attributes & 7, head);
    let mut body = body.as_slice();
    let marker = (attributes & CONTROL != 0).then(|| body.last() == Some(&0) && control_type(body) == 1);
    let records = if marker.is_some() { Vec::new() } else { read_records(&mut body, base_offset, count) };
    let transactional = attributes & TRANSACTIONAL != 0;
    Stored { base_offset, last_offset, leader_epoch, producer, sequence, transactional, marker, records }
}

/// The type in a control record's key: 0 aborts, 1 commits.
fn control_type(mut record: &[u8]) -> i16 {
    take_varint(&mut record);
    record.advance(1);
    take_varint(&mut record);
    take_varint(&mut record);
    assert_eq!(take_varint(&mut record), 4, "a control record's key");
    record.advance(2);
    record.get_i16()
}

fn read_records(body: &mut &[u8], base_offset: i64, count: i32) -> Vec<(i64, String)> {
    let mut records = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(take_varint(body)).unwrap();
        let (mut record, rest) = body.split_at(length);
        *body = rest;
        record.advance(1);
        take_varint(&mut record);
        let offset = base_offset + take_varint(&mut record);
        take_nullable(&mut record);
        let value = take_nullable(&mut record).unwrap_or_default();
        records.push((offset, String::from_utf8_lossy(&value).into_owned()));
    }
    records
}

pub(crate) fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = u64::from_ne_bytes(((value << 1) ^ (value >> 63)).to_ne_bytes());
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap());
}

fn take_varint(from: &mut &[u8]) -> i64 {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let byte = from.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let half = i64::from_ne_bytes((value >> 1).to_ne_bytes());
            return half ^ -i64::from(value & 1 == 1);
        }
        shift += 7;
    }
}

fn put_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varint(out, i64::try_from(bytes.len()).unwrap());
            out.put_slice(bytes);
        }
    }
}

fn take_nullable(from: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(take_varint(from)).ok()?;
    let (bytes, rest) = from.split_at(length);
    *from = rest;
    Some(bytes.to_vec())
}

pub(crate) fn compress(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    match codec {
        Codec::None => bytes.to_vec(),
        Codec::Gzip => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
        Codec::Snappy => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
        Codec::Lz4 => {
            let mut out = lz4_flex::frame::FrameEncoder::new(Vec::new());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
        Codec::Zstd => zstd::encode_all(bytes, 3).unwrap(),
    }
}

fn decompress(codec: i16, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match codec {
        0 => out.extend_from_slice(bytes),
        1 => drop(flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap()),
        2 => out = snap::raw::Decoder::new().decompress_vec(bytes).unwrap(),
        3 => drop(lz4_flex::frame::FrameDecoder::new(bytes).read_to_end(&mut out).unwrap()),
        4 => out = zstd::decode_all(bytes).unwrap(),
        other => panic!("compression {other}"),
    }
    out
}

/// CRC-32C, bit by bit.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// The check value of the checksum's definition.
#[test]
fn the_checksum_is_castagnoli() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

#[test]
fn what_is_made_can_be_read() {
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let producer = Pid { id: 7, epoch: 3 };
        let made = Batch::transactional(producer, 300, 200).values("x", 200).compressed(codec);
        let mut bytes = made.bytes();
        bytes.extend_from_slice(&Batch::plain(1).bytes()[..70]);
        let batches = read(Bytes::from(bytes));
        assert_eq!(batches.len(), 1, "{codec:?}");
        assert_eq!((batches[0].producer, batches[0].sequence, batches[0].last_offset), (producer, 300, 199));
        assert_eq!((batches[0].transactional, batches[0].marker), (true, None));
        assert_eq!(batches[0].records[199], (199, "x-199".to_owned()), "{codec:?}");
    }
}
