#![expect(clippy::arithmetic_side_effects, reason = "a test may count freely: an overflow fails it")]

use super::*;
use crate::engine::batch::samples::{self, Entry};

const NOW_MS: i64 = 1_700_000_000_000;

const RULES: Rules = Rules {
    max_message_bytes: 1_048_588,
    segment_bytes: 1 << 30,
    keys: Keys::Optional,
    times: Times::CreateTime,
    before_max_ms: i64::MAX,
    after_max_ms: 3_600_000,
    now_wall_ms: NOW_MS,
    produce_version: 9,
};

fn entries(count: usize) -> Vec<Entry> {
    vec![Entry { value: Some(b"value".to_vec()), key: Some(b"key".to_vec()), ..Entry::default() }; count]
}

fn batch(change: impl Fn(&mut Header)) -> Vec<u8> {
    let mut header = samples::header(3);
    change(&mut header);
    samples::seal(&header, &samples::encode(&entries(3)))
}

fn good() -> Vec<u8> {
    batch(|_| {})
}

fn raw(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = good();
    change(&mut bytes);
    bytes
}

fn with(payload: &[u8], codec: i16) -> Vec<u8> {
    samples::seal(&Header { attributes: codec, ..samples::header(3) }, payload)
}

/// Code and whether the log start is shown (T-318), or `None` for taken.
type Wanted = Option<(Refusal, bool)>;

fn verdict(records: Option<&[u8]>, rules: &Rules) -> Wanted {
    check(records, rules).err().map(|no| (no.refusal, no.show_log_start))
}

const SHAPE: Wanted = Some((Refusal::InvalidRecord, false));
const INVALID: Wanted = Some((Refusal::InvalidRecord, true));
const CORRUPT: Wanted = Some((Refusal::CorruptMessage, false));

/// How the bytes of a good batch are changed.
type Change = fn(&mut Vec<u8>);

#[rustfmt::skip]
const SHAPES: &[(&str, Change, Wanted)] = &[
    ("good", |_| {}, None),
    ("T-321 empty", |bytes| bytes.clear(), SHAPE),
    ("T-321 truncated", |bytes| bytes.truncate(70), SHAPE),
    ("T-321 no length", |bytes| bytes.truncate(11), SHAPE),
    ("T-322 two batches", |bytes| bytes.extend_from_slice(&good()), SHAPE),
    ("T-323 magic 0", |bytes| bytes[16] = 0, SHAPE),
    ("T-323 magic 1", |bytes| bytes[16] = 1, SHAPE),
    ("T-323 magic 3", |bytes| bytes[16] = 3, CORRUPT),
    ("T-323 magic -1", |bytes| bytes[16] = 0xff, CORRUPT),
    ("T-323 length below the least", |bytes| bytes[8..12].copy_from_slice(&[0, 0, 0, 13]), CORRUPT),
    ("T-323 negative length", |bytes| bytes[8] = 0x80, CORRUPT),
    ("T-332 shorter than a header", |bytes| bytes[8..12].copy_from_slice(&[0, 0, 0, 48]), CORRUPT),
    ("T-325 eleven more bytes", |bytes| bytes.extend([9; 11]), None),
    ("T-325 incomplete tail", |bytes| bytes.extend_from_slice(&good()[..66]), None),
    ("T-325 tail of no length", |bytes| bytes.extend([0; 12]), CORRUPT),
    ("T-325 tail of no magic", |bytes| bytes.extend([1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 99, 9, 9, 9, 9, 9]), CORRUPT),
    ("T-332 flipped", |bytes| bytes[70] ^= 1, CORRUPT),
];

#[test]
fn shape() {
    for (name, change, wanted) in SHAPES {
        assert_eq!(verdict(Some(&raw(change)), &RULES), *wanted, "{name}");
    }
    assert_eq!(verdict(None, &RULES), SHAPE, "T-321 null, X-97");
    let cut = check(Some(&raw(|bytes| bytes.extend([9; 11]))), &RULES).unwrap();
    assert_eq!(cut.size(), Some(good().len()), "T-325");
    let zstd = with(&samples::pack(4, &samples::encode(&entries(3))), 4);
    let old = Rules { produce_version: 6, ..RULES };
    assert_eq!(verdict(Some(&zstd), &old), Some((Refusal::UnsupportedCompressionType, false)), "T-324");
    assert_eq!(verdict(Some(&zstd), &RULES), None, "T-324");
}

fn producer(header: &mut Header) {
    (header.producer_id, header.producer_epoch, header.base_sequence) = (7, 0, 0);
}

/// How a good header is changed.
type FieldChange = fn(&mut Header);

const STAMPED: Wanted = Some((Refusal::InvalidTimestamp, true));

#[rustfmt::skip]
const FIELDS: &[(&str, FieldChange, Wanted)] = &[
    ("T-330", |header| header.base_offset = 1, INVALID),
    ("T-333 negative delta", |header| header.last_offset_delta = -1, INVALID),
    ("T-333 count 0", |header| header.count = 0, INVALID),
    ("T-333 count -1", |header| header.count = -1, INVALID),
    ("T-333 count and delta", |header| header.last_offset_delta = 3, INVALID),
    ("T-333 greatest delta", |header| header.last_offset_delta = i32::MAX, INVALID),
    ("T-334", |header| header.attributes = 0x20, INVALID),
    ("T-335", |header| (header.producer_id, header.producer_epoch) = (7, 0), INVALID),
    ("T-346 good producer", producer, None),
    ("T-346 transactional", |header| { producer(header); header.attributes = 0x10; }, None),
    ("T-346 transactional without producer", |header| header.attributes = 0x10, INVALID),
    ("T-346 no epoch", |header| { producer(header); header.producer_epoch = -1; }, INVALID),
    ("T-346 producer -2", |header| header.producer_id = -2, INVALID),
    ("sequence without producer, as Sarama has it", |header| header.base_sequence = 0, None),
    ("T-346 delete horizon", |header| header.attributes = 0x40, INVALID),
    ("T-346 codec 5", |header| header.attributes = 5, SHAPE),
    ("T-346 codec 7", |header| header.attributes = 7, SHAPE),
    ("T-346 broken payload", |header| header.attributes = 4, INVALID),
    ("T-340", |header| header.attributes = 8, STAMPED),
];

#[test]
fn fields() {
    for (name, change, wanted) in FIELDS {
        assert_eq!(verdict(Some(&batch(change)), &RULES), *wanted, "{name}");
    }
    let stamped = Rules { times: Times::LogAppendTime, ..RULES };
    let flagged = batch(|header| header.attributes = 8);
    assert_eq!(verdict(Some(&flagged), &stamped), Some((Refusal::InvalidTimestamp, true)), "T-340");
    let small = Rules { max_message_bytes: 61, ..RULES };
    assert_eq!(verdict(Some(&good()), &small), Some((Refusal::MessageTooLarge, false)), "T-331");
    let small = Rules { segment_bytes: 61, ..RULES };
    assert_eq!(verdict(Some(&good()), &small), Some((Refusal::RecordListTooLarge, false)), "T-342");
    let small = Rules { max_message_bytes: 61, segment_bytes: 61, ..RULES };
    let both = raw(|bytes| bytes[70] ^= 1);
    assert_eq!(verdict(Some(&both), &small), Some((Refusal::MessageTooLarge, false)), "T-331 before T-332");
}

#[test]
fn parsing() {
    let mut payload = samples::encode(&entries(3));
    assert_eq!(verdict(Some(&with(&payload, 0)), &RULES), None);
    payload.push(0);
    let one_more = samples::encode(&entries(4));
    let one_less = samples::encode(&entries(2));
    let mut jump = samples::encode(&entries(2));
    jump.extend_from_slice(&[12, 0, 0, 8, 1, 1, 0]);
    for (name, payload) in [
        ("T-336 trailing byte", &payload),
        ("T-336 a record more", &one_more),
        ("T-336 a record less", &one_less),
        ("T-346 offset delta is not the index", &jump),
    ] {
        for codec in 0..=5 {
            let packed = with(&samples::pack(codec, payload), if codec == 5 { 2 } else { codec });
            assert_eq!(verdict(Some(&packed), &RULES), INVALID, "{name}, codec {codec}");
        }
    }
}

/// T-338 to T-340a.
#[test]
fn keys_and_times() {
    let at = |delta_ms: i64, key: bool| Entry { delta_ms, key: key.then(|| b"k".to_vec()), ..Entry::default() };
    let rules = Rules { before_max_ms: 1000, after_max_ms: 1000, keys: Keys::Needed, ..RULES };
    let judge = |rules: &Rules, times: [Entry; 3]| check(Some(&with(&samples::encode(&times), 0)), rules);
    let bad = |result: Result<Header, Rejection>| {
        let no = result.unwrap_err();
        assert!(no.show_log_start && no.message.is_some());
        (no.refusal, no.bad_records.iter().map(|(index, _)| *index).collect::<Vec<_>>())
    };
    let fine = judge(&rules, [at(-1000, true), at(1000, true), at(-NOW_MS - 1, true)]).unwrap();
    assert_eq!(fine.max_timestamp, NOW_MS + 1000, "T-339 limits belong to the range, -1 is not judged");
    let early = judge(&rules, [at(0, true), at(-1001, true), at(0, true)]);
    assert_eq!(bad(early), (Refusal::InvalidTimestamp, vec![1]), "T-339");
    let late = judge(&rules, [at(0, true), at(0, true), at(1001, true)]);
    assert_eq!(bad(late), (Refusal::InvalidTimestamp, vec![2]), "T-339");
    let keyless = judge(&rules, [at(0, false), at(0, true), at(0, false)]);
    assert_eq!(bad(keyless), (Refusal::InvalidRecord, vec![0, 2]), "T-338");
    let mixed = judge(&rules, [at(0, false), at(1001, true), at(0, false)]);
    assert_eq!(bad(mixed), (Refusal::InvalidTimestamp, vec![0, 1, 2]), "T-340a");
    let stamped = Rules { times: Times::LogAppendTime, ..rules };
    assert!(judge(&stamped, [at(0, true), at(-9999, true), at(9999, true)]).is_ok(), "T-345");

    let many = vec![Entry::default(); 5000];
    let header = samples::header(5000);
    let no = check(Some(&samples::seal(&header, &samples::encode(&many))), &rules).unwrap_err();
    assert_eq!(no.bad_records.len(), BAD_RECORDS_MOST);
    assert_eq!(no.message.unwrap().matches("record").count(), 3, "T-340a quotes three");
}

/// A client may write any largest timestamp; what is stored is the records' own.
#[test]
fn largest_timestamp() {
    let times = [5, 70, 20].map(|delta_ms| Entry { delta_ms, ..Entry::default() });
    for codec in 0..=4 {
        let mut bytes = with(&samples::pack(codec, &samples::encode(&times)), codec);
        let header = check(Some(&bytes), &RULES).unwrap();
        assert_eq!(header.max_timestamp, NOW_MS + 70);
        settle(&mut bytes, &header);
        let stored = Header::read(&bytes).unwrap();
        assert_eq!((stored.max_timestamp, stored.crc), (NOW_MS + 70, checksum(&bytes)));
        let again = check(Some(&bytes), &RULES).unwrap();
        let before = bytes.clone();
        settle(&mut bytes, &again);
        assert_eq!(bytes, before);
    }
}

proptest::proptest! {
    /// No bytes stop the check, and what passes is what it says.
    #[test]
    fn hostile(at in proptest::collection::vec((0_usize..200, 0_u8..), 0..8), cut in 0_usize..200) {
        let mut bytes = good();
        for (place, value) in at {
            let length = bytes.len();
            bytes[place % length] = value;
        }
        bytes.truncate(cut.max(1));
        if let Ok(header) = check(Some(&bytes), &RULES) {
            proptest::prop_assert!(header.size().unwrap() <= bytes.len());
        }
    }
}
