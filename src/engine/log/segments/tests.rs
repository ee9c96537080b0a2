#![expect(clippy::arithmetic_side_effects, reason = "a test may count freely: an overflow fails it")]

use super::*;

const SETTINGS: LogSettings = LogSettings { segment_bytes: 1000, index_interval_bytes: 100, segment_ms: 60_000 };

fn batch(base_offset: Offset, records: i32, max_timestamp: i64) -> Header {
    Header {
        base_offset,
        batch_length: 88,
        leader_epoch: 0,
        magic: 2,
        crc: 0,
        attributes: 0,
        last_offset_delta: records - 1,
        base_timestamp: max_timestamp,
        max_timestamp,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count: records,
    }
}

#[test]
fn names_are_kafkas() {
    for (offset, kind, name) in [
        (0, FileKind::Log, "00000000000000000000.log"),
        (123_456, FileKind::OffsetIndex, "00000000000000123456.index"),
        (123_456, FileKind::TimeIndex, "00000000000000123456.timeindex"),
        (1, FileKind::TransactionIndex, "00000000000000000001.txnindex"),
        (i64::MAX, FileKind::Snapshot, "09223372036854775807.snapshot"),
    ] {
        assert_eq!(file_name(offset, kind), name);
        assert_eq!(parse_file_name(name), Some((offset, kind)));
    }
    for name in [
        "",
        "0.log",
        "00000000000000000000.log.cleaned",
        "-0000000000000000001.log",
        "é",
        "partition.metadata",
        "99999999999999999999.log",
        "00000000000000000000",
    ] {
        assert_eq!(parse_file_name(name), None, "{name}");
    }
    assert_eq!(partition_dir("orders", 3), "orders-3");
    let long = condemned_dir(&"t".repeat(253), 1);
    assert_eq!(long.len(), 255);
    assert!(is_condemned(&long));
    assert_eq!(condemned_dir("a-0", 255), "a-0.000000000000000000000000000000ff-delete");
    assert!(!is_condemned("my-delete"));
}

#[test]
fn when_a_batch_starts_a_new_segment() {
    let full = Growth { bytes: 900, first_timestamp: Some(1000), ..Growth::empty(0, 5000) };
    let untimed = Growth { first_timestamp: None, ..full };
    let mut line = 0;
    let mut check = |growth: Growth, header: Header, size: u64, now_ms: i64, rolls: bool| {
        line += 1;
        assert_eq!(growth.must_roll(&header, size, &SETTINGS, now_ms), rolls, "line {line}");
    };
    check(full, batch(10, 1, 1000), 100, 0, false);
    check(full, batch(10, 1, 1000), 101, 0, true);
    // An empty segment takes anything.
    check(Growth::empty(0, 0), batch(0, 1, 1000), 5000, i64::MAX, false);
    // By timestamps of records; by the clock only where there are none.
    check(full, batch(10, 1, 61_000), 100, i64::MAX, false);
    check(full, batch(10, 1, 61_001), 100, 0, true);
    check(full, batch(10, 1, -1), 100, 65_000, false);
    check(full, batch(10, 1, -1), 100, 65_001, true);
    check(untimed, batch(10, 1, 99_999_999), 100, 65_000, false);
    check(untimed, batch(10, 1, 99_999_999), 100, 65_001, true);
    // Relative offsets are int32.
    check(full, batch(i64::from(i32::MAX), 1, 1000), 100, 0, false);
    check(full, batch(i64::from(i32::MAX), 2, 1000), 100, 0, true);
    // Indexes have a size.
    check(Growth { offset_entries: 1_310_719, ..full }, batch(10, 1, 1000), 100, 0, false);
    check(Growth { offset_entries: 1_310_720, ..full }, batch(10, 1, 1000), 100, 0, true);
    check(Growth { time_entries: 873_813, ..full }, batch(10, 1, 1000), 100, 0, true);
}

#[test]
fn positions_are_int32_whatever_the_settings_say() {
    let large = LogSettings { segment_bytes: u32::MAX, ..SETTINGS };
    let near = Growth { bytes: MAX_SEGMENT_BYTES - 100, ..Growth::empty(0, 0) };
    assert!(!near.must_roll(&batch(10, 1, 1000), 100, &large, 0));
    assert!(near.must_roll(&batch(10, 1, 1000), 101, &large, 0));
}

#[test]
fn index_entries_come_after_more_than_the_interval() {
    let mut growth = Growth::empty(1000, 0);
    let mut made = Vec::new();
    // 50 bytes each: an entry before the batch that finds more than 100 bytes behind it.
    for (at, timestamp) in [5, 9, 7, 8, 9, 9, 12, 3].into_iter().enumerate() {
        let offset = 1000 + 2 * i64::try_from(at).unwrap();
        let (next, entry, time) = growth.with(&batch(offset, 2, timestamp), 50, 100);
        growth = next;
        made.push((entry.map(|e| (e.relative_offset, e.position)), time.map(|t| (t.timestamp, t.relative_offset))));
    }
    let none = (None, None);
    assert_eq!(
        made,
        [none, none, none, (Some((7, 150)), Some((9, 3))), none, none, (Some((13, 300)), Some((12, 13))), none]
    );
    assert_eq!(growth.closing_entry(), None, "12 is there already");
    let (growth, _, _) = growth.with(&batch(1016, 1, 20), 50, 100);
    assert_eq!(growth.closing_entry(), Some(TimeEntry { timestamp: 20, relative_offset: 16 }));
    assert_eq!(growth.with_time(growth.closing_entry()).closing_entry(), None);
}
