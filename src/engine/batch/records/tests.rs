#![expect(clippy::arithmetic_side_effects, reason = "a test may count freely: an overflow fails it")]

use super::*;
use crate::engine::batch::samples::{self, Entry};
use crate::engine::batch::{patch, stamp_log_append_time, unpacked_limit};

fn sample() -> Vec<Entry> {
    (0..500)
        .map(|index| Entry {
            delta_ms: i64::from(index) * 3 - 100,
            key: (index % 3 != 0).then(|| vec![b'k'; usize::try_from(index).unwrap() % 7]),
            value: (index % 5 != 0).then(|| vec![b'v'; 300]),
            headers: if index % 2 == 0 { vec![("trace", Some("1")), ("none", None)] } else { Vec::new() },
        })
        .collect()
}

fn packed(codec: i16, payload: &[u8], count: i32) -> Vec<u8> {
    let attributes = if codec == 5 { 2 } else { codec };
    samples::seal(&Header { attributes, ..samples::header(count) }, &samples::pack(codec, payload))
}

/// Every codec gives the same records.
#[test]
fn codecs() {
    let payload = samples::encode(&sample());
    let wanted: Vec<Record> = sample()
        .iter()
        .enumerate()
        .map(|(index, entry)| Record {
            offset_delta: i32::try_from(index).unwrap(),
            timestamp: 1_700_000_000_000 + entry.delta_ms,
            key: entry.key.as_ref().map_or(Field::Null, |key| Field::Bytes(key.len())),
            value: entry.value.as_ref().map_or(Field::Null, |value| Field::Bytes(value.len())),
        })
        .collect();
    for codec in 0..=5 {
        let mut bytes = packed(codec, &payload, 500);
        patch(&mut bytes, 77, 3);
        // What follows the batch in the file is not its own.
        bytes.extend_from_slice(&[7; 100]);
        let read: Vec<Record> = records(&bytes).collect::<Result<_, _>>().unwrap();
        assert_eq!(read, wanted, "codec {codec}");
        bytes.truncate(bytes.len() - 100);
        stamp_log_append_time(&mut bytes, 55);
        assert!(records(&bytes).all(|record| record.unwrap().timestamp == 55), "codec {codec}, T-345");
    }
}

/// A batch that unpacks to far more than it is ends with an error, not with the memory.
#[test]
fn bombs() {
    let zeros = vec![0; 1 << 20];
    let bomb = |codec| {
        let mut payload = Vec::new();
        samples::zigzag(&mut payload, i64::from(i32::MAX));
        // Attributes, deltas, and a key of all that follows.
        payload.extend_from_slice(&[0, 0, 0]);
        samples::zigzag(&mut payload, i64::from(i32::MAX) - 100);
        for _ in 0..(unpacked_limit(0) >> 20) + 2 {
            payload.extend_from_slice(&zeros);
        }
        packed(codec, &payload, 1)
    };
    for codec in [1, 3, 4] {
        let bytes = bomb(codec);
        assert_eq!(records(&bytes).last(), Some(Err(Broken::TooLarge)), "codec {codec}, {} bytes", bytes.len());
    }
    // A block of snappy that claims four gigabytes.
    let lie = samples::seal(&Header { attributes: 2, ..samples::header(1) }, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]);
    assert_eq!(records(&lie).last(), Some(Err(Broken::Compression)));
}

#[rustfmt::skip]
const BROKEN: &[(&str, i16, &[u8], Broken)] = &[
    ("no bytes", 0, &[], Broken::Record),
    ("negative size", 0, &[1], Broken::Record),
    ("size too small", 0, &[10, 0, 0, 0, 1, 1, 0], Broken::Record),
    ("size too large", 0, &[14, 0, 0, 0, 1, 1, 0], Broken::Record),
    ("key of -2", 0, &[12, 0, 0, 0, 3, 1, 0], Broken::Record),
    ("negative headers", 0, &[12, 0, 0, 0, 1, 1, 1], Broken::Record),
    ("header name null", 0, &[16, 0, 0, 0, 1, 1, 2, 1, 1], Broken::Record),
    ("endless number", 0, &[0xff; 12], Broken::Record),
    ("codec 5", 5, &[1], Broken::UnknownCodec),
    ("no gzip", 1, &[1; 40], Broken::Compression),
    ("no snappy", 2, &[40, 1, 1], Broken::Compression),
    ("no lz4", 3, &[1; 40], Broken::Compression),
    ("no zstd", 4, &[1; 40], Broken::Compression),
];

#[test]
fn broken() {
    let batch = |codec, payload: &[u8]| samples::seal(&Header { attributes: codec, ..samples::header(1) }, payload);
    for (name, codec, payload, wanted) in BROKEN {
        assert_eq!(records(&batch(*codec, payload)).collect::<Vec<_>>(), vec![Err(*wanted)], "{name}");
    }
    assert!(records(&batch(0, &[12, 0, 0, 0, 1, 1, 0])).all(|record| record.is_ok()), "the smallest record");
    assert_eq!(records(&[0; 60]).count(), 0);
}

proptest::proptest! {
    /// Hostile bytes behind any codec: an error at most.
    #[test]
    fn hostile(codec in 0_i16..=5, at in proptest::collection::vec((0_usize..4000, 0_u8..), 1..6)) {
        let payload = samples::encode(&sample());
        let mut bytes = packed(codec, &payload, 500);
        for (place, value) in at {
            let length = bytes.len() - HEADER_BYTES;
            bytes[HEADER_BYTES + place % length] = value;
        }
        proptest::prop_assert!(records(&bytes).count() <= 500);
    }
}
