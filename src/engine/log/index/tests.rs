use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check<E: Entry + PartialEq + std::fmt::Debug>(rule: &str, entry: E, vector: &str) {
    let mut bytes = Vec::new();
    entry.encode(&mut bytes);
    assert_eq!(hex(&bytes), vector.replace(' ', ""), "{rule}");
    assert_eq!(bytes.len(), E::BYTES, "{rule}");
    assert_eq!(E::decode(&bytes), Some(entry), "{rule}");
    assert_eq!(E::decode(&bytes[1..]), None, "{rule}: too short");
}

#[test]
fn entries_are_kafkas_bytes() {
    let aborted = |producer_id, first_offset, last_offset, last_stable_offset| Aborted {
        producer_id,
        first_offset,
        last_offset,
        last_stable_offset,
    };
    check("1.2 .index", OffsetEntry { relative_offset: 9, position: 4782 }, "00000009 000012ae");
    check(
        "1.2 .timeindex",
        TimeEntry { timestamp: 1_700_000_000_009, relative_offset: 9 },
        "0000018bcfe56809 00000009",
    );
    check(
        "1.2 .txnindex",
        aborted(1000, 0, 9, 10),
        "0000 00000000000003e8 0000000000000000 0000000000000009 000000000000000a",
    );
    check(
        "T-505",
        aborted(1000, 10, 42, 43),
        "0000 00000000000003e8 000000000000000a 000000000000002a 000000000000002b",
    );
}

#[test]
fn another_version_of_the_transaction_index_is_none_of_ours() {
    let mut bytes = vec![0; 34];
    bytes[1] = 1;
    assert_eq!(Aborted::decode(&bytes), None);
}

#[test]
fn a_reader_is_told_of_what_touches_its_range_only() {
    let entry = Aborted { producer_id: 1, first_offset: 10, last_offset: 20, last_stable_offset: 15 };
    for (from, upper, touches, ends) in [
        (0, 10, false, true),
        (0, 11, true, true),
        (20, 30, true, false),
        (21, 30, false, false),
        (12, 15, true, true),
        (12, 16, true, false),
    ] {
        assert_eq!(entry.touches(from, upper), touches, "T-513: {from}..{upper}");
        assert_eq!(entry.ends_search(upper), ends, "T-513: {from}..{upper}");
    }
}

#[test]
fn partition_point_finds_the_border() {
    for count in 0..20_u64 {
        for border in 0..=count {
            let found = partition_point(count, |at| Ok::<_, ()>(at < border));
            assert_eq!(found, Ok(border), "{count}");
        }
    }
    assert_eq!(partition_point(3, |_| Err("no")), Err("no"));
}
