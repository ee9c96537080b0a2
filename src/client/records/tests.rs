use super::*;
use crate::engine::batch::check::{self, Keys, Rules, Times};
use crate::engine::batch::samples::{self, Entry};

const RULES: Rules = Rules {
    max_message_bytes: 1 << 20,
    segment_bytes: 1 << 30,
    keys: Keys::Optional,
    times: Times::CreateTime,
    before_max_ms: i64::MAX,
    after_max_ms: 1000,
    now_wall_ms: 1_700_000_000_000,
    produce_version: 9,
};

fn batch(producer: (i64, i16, i32), transactional: bool, values: &[&str]) -> Batch {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Batch { producer, transactional, wall_ms: RULES.now_wall_ms, values }
}

/// The broker's own check takes what is written here, and sees in it what was meant.
#[test]
fn a_batch_is_one_that_brokers_take() {
    let long = "x".repeat(70_000);
    for (producer, transactional, values) in [
        ((-1, -1, -1), false, &["a"] as &[&str]),
        ((7, 0, 0), false, &["a", "", "ccc"]),
        ((i64::MAX, i16::MAX, i32::MAX), true, &["ü", &long]),
    ] {
        let mut bytes = batch(producer, transactional, values).encode().unwrap();
        let header = check::check(Some(&bytes), &RULES).unwrap();
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), producer);
        assert_eq!(header.is_transactional(), transactional);
        let (read, whole) = next(&mut bytes).unwrap().unwrap();
        let want: Vec<(i64, String)> = (0..).zip(values.iter().map(|value| (*value).to_owned())).collect();
        assert_eq!((read, super::values(&read, &whole).unwrap()), (header, want));
        assert_eq!(next(&mut bytes), Ok(None), "nothing is left");
    }
}

/// What any producer writes: keys, headers, timestamps, nothing at all.
#[test]
fn other_producers_records_are_read() {
    let entries = [
        Entry { delta_ms: -5, key: Some(vec![1; 300]), value: Some(b"one".to_vec()), headers: vec![("h", Some("v"))] },
        Entry { delta_ms: i64::MAX, value: None, ..Entry::default() },
    ];
    let mut header = samples::header(2);
    header.base_offset = 40;
    let mut bytes = Bytes::from(samples::seal(&header, &samples::encode(&entries)));
    let (header, whole) = next(&mut bytes).unwrap().unwrap();
    assert_eq!(values(&header, &whole), Ok(vec![(40, "one".to_owned()), (41, String::new())]));
}

#[test]
fn bytes_that_are_no_batches() {
    let good = batch((-1, -1, -1), false, &["a", "b"]).encode().unwrap();
    let changed = |at: usize, to: u8| {
        let mut bytes = good.to_vec();
        bytes[at] = to;
        Bytes::from(bytes)
    };
    for (name, mut bytes, want) in [
        ("the rest was cut off", good.slice(..good.len() - 1), Ok(None)),
        ("nothing", Bytes::new(), Ok(None)),
        ("a negative length", changed(8, 0xff), Err("a batch has no length")),
        ("an old format", changed(16, 1), Err("a batch is not of format 2")),
        ("a changed byte", changed(70, 0x7f), Err("a batch has a wrong checksum")),
    ] {
        assert_eq!(next(&mut bytes), want, "{name}");
    }
    let payload = samples::encode(&[Entry { value: Some(b"v".to_vec()), ..Entry::default() }]);
    let mut bytes = Bytes::from(samples::seal(&samples::header(i32::MAX), &payload));
    let (header, whole) = next(&mut bytes).unwrap().unwrap();
    assert!(values(&header, &whole).is_err(), "more records are counted than are there");
}
