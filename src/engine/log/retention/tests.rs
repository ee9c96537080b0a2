#![expect(clippy::arithmetic_side_effects, reason = "a test may count freely: an overflow fails it")]

use super::*;
use crate::engine::catalog::{BrokerLevels, TopicSettings};

/// Segments of ten offsets each: bytes and the time of the youngest record. A clock of 1,000.
fn check(rule: &str, retention: (Option<i64>, Option<u64>), segments: &[(u64, i64)], limit: Offset, expected: usize) {
    let (age_ms, bytes) = retention;
    let extents: Vec<Extent> =
        (0..).zip(segments).map(|(n, (bytes, _))| Extent { base: n * 10, end: n * 10 + 10, bytes: *bytes }).collect();
    let mut time_of = |at: usize| Ok::<_, ()>(segments[at].1);
    let count = Retention { age_ms, bytes }.expired(&extents, limit, 1_000, &mut time_of);
    assert_eq!(count, Ok(expected), "{rule}: {retention:?} of {segments:?} below {limit}");
}

#[test]
fn segments_go_by_age_and_by_size() {
    let all = Offset::MAX;
    let ages = &[(5, 100), (5, 200), (5, 900)];
    check("T-543 age", (Some(500), None), ages, all, 2);
    check("T-543 an age that is equal", (Some(900), None), ages, all, 0);
    check("T-543 above it", (Some(899), None), ages, all, 1);
    check("T-543 everything has expired", (Some(99), None), ages, all, 3);
    check("T-543 age 0", (Some(0), None), &[(5, 999), (5, 1_000)], all, 1);
    check("T-543 nothing behind one that stays", (Some(500), None), &[(5, 900), (5, 100)], all, 0);
    check("C-23 a clock behind the records", (Some(500), None), &[(5, 2_000), (5, 100)], all, 0);
    check("C-23 and far behind", (Some(500), None), &[(5, i64::MAX), (5, i64::MAX)], all, 0);
    check("C-23 records from before 1970", (Some(500), None), &[(5, i64::MIN), (5, 900)], all, 1);
    check("T-543 size", (None, Some(10)), ages, all, 1);
    check("T-543 the size is not undercut", (None, Some(11)), ages, all, 0);
    check("T-543 nor by one byte", (None, Some(9)), ages, all, 1);
    check("T-543 size 0", (None, Some(0)), ages, all, 3);
    check("T-543 both, size first", (Some(850), Some(10)), &[(5, 900), (5, 100), (5, 900)], all, 2);
    check("T-543 both, age first", (Some(500), Some(10)), &[(5, 100), (5, 900), (5, 900)], all, 1);
    check("T-543 no limits", (None, None), ages, all, 0);
    check("T-543 an empty last segment stays", (Some(0), Some(0)), &[(5, 0), (0, 0)], all, 1);
    check("T-543 a lone empty one", (Some(0), Some(0)), &[(0, 0)], all, 0);
}

#[test]
fn nothing_goes_that_is_not_decided_and_on_disk() {
    let old = &[(5, 0), (5, 0), (5, 0)];
    for (limit, expected) in [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (29, 2), (30, 3)] {
        check("T-543 R", (Some(1), None), old, limit, expected);
        check("T-543 R", (None, Some(0)), old, limit, expected);
    }
}

#[test]
fn a_time_is_asked_no_further_than_needed() {
    let extents: Vec<Extent> = (0..4).map(|n| Extent { base: n, end: n + 1, bytes: 1 }).collect();
    let mut asked = Vec::new();
    let mut time_of = |at: usize| {
        asked.push(at);
        if at == 3 { Err("unreadable") } else { Ok(if at == 2 { 1_000 } else { 0 }) }
    };
    let retention = Retention { age_ms: Some(10), bytes: Some(3) };
    assert_eq!(retention.expired(&extents, Offset::MAX, 1_000, &mut time_of), Ok(2));
    assert_eq!(asked, [1, 2], "the first goes by size");
    let mut never = |_: usize| Err("unreadable");
    assert_eq!(retention.expired(&extents, Offset::MAX, 1_000, &mut never), Err("unreadable"));
}

#[test]
fn the_policy_says_whether_anything_goes() {
    for (policy, given, expected) in [
        ("delete", &[("retention.ms", "5")][..], Some((Some(5), None))),
        ("delete", &[("retention.ms", "-1")], None),
        ("delete", &[("retention.ms", "-1"), ("retention.bytes", "7")], Some((None, Some(7)))),
        ("delete", &[("retention.ms", "3"), ("retention.bytes", "0")], Some((Some(3), Some(0)))),
        ("compact", &[("retention.ms", "5"), ("retention.bytes", "7")], None),
        ("compact,delete", &[("retention.ms", "5")], Some((Some(5), None))),
        ("", &[("retention.ms", "5")], None),
    ] {
        let given = given.iter().copied().chain([("cleanup.policy", policy)]);
        let given: Vec<_> = given.map(|(key, value)| (key.to_owned(), Some(value.to_owned()))).collect();
        let settings = TopicSettings::of(&given, &BrokerLevels::default()).unwrap();
        let retention = Retention::of(&settings.in_effect(&BrokerLevels::default()));
        assert_eq!(retention.map(|r| (r.age_ms, r.bytes)), expected, "A-331 {policy:?} {given:?}");
    }
}
