use super::*;
use crate::engine::TopicName;

const RETENTION_MS: i64 = 1_000_000;

/// Consumer metadata of version 1 that names `topics`, with what follows the names.
fn metadata(topics: &[&str]) -> Bytes {
    let mut bytes = vec![0, 1];
    bytes.extend(i32::try_from(topics.len()).unwrap().to_be_bytes());
    for topic in topics {
        bytes.extend(i16::try_from(topic.len()).unwrap().to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    Bytes::from(bytes)
}

fn reading(kind: &str, metadata: Bytes) -> Bench {
    let mut bench = Bench::empty();
    let protocols = vec![("range".to_owned(), metadata)];
    bench.join(&Join { protocol_type: kind.to_owned(), protocols, ..new("a") });
    bench.pass(3000);
    bench.sync(&Sync { protocol_type: None, ..sync_of(claim(1, "a", ""), &[("a", "share")]) });
    bench
}

#[test]
fn describing() {
    // G-461: protocol and metadata only in Stable, the assignment also in a rebalance.
    for (state, protocol, metadata, assignment) in [
        ("Stable", "range", "meta-range", "for-a"),
        ("PreparingRebalance", "", "", "for-a"),
        ("CompletingRebalance", "", "", ""),
    ] {
        let described = Bench::in_state(state).group.describe();
        assert_eq!((described.state, described.protocol_type.as_str()), (state, "consumer"));
        assert_eq!(described.protocol, protocol, "{state}");
        let a = &described.members[0];
        assert_eq!((a.member.as_str(), a.client_id.as_str(), a.client_host.as_str()), ("a", "client", "/10.0.0.1"));
        assert_eq!((&a.metadata[..], &a.assignment[..]), (metadata.as_bytes(), assignment.as_bytes()), "{state}");
        assert_eq!(described.members[1].instance, instance("ib"));
    }
    let simple = Group::new(Now::default()).describe();
    let nothing = (String::new(), String::new());
    assert_eq!((simple.state, (simple.protocol_type, simple.protocol)), ("Empty", nothing), "G-464");
    assert_eq!(Bench::left().group.describe().protocol_type, "consumer", "O-652");
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn subscriptions() {
    // G-467, G-492.
    let topics = |names: &[&str]| Subscription::Topics(names.iter().map(|t| TopicName::from(*t)).collect());
    let huge_count = Bytes::from_static(&[0, 1, 0x7f, 0xff, 0xff, 0xff, 0, 1, b't']);
    for (rule, kind, metadata, expected) in [
        ("topics", "consumer", metadata(&["t", "u"]), topics(&["t", "u"])),
        ("no topic", "consumer", metadata(&[]), topics(&[])),
        ("not a consumer", "connect", metadata(&["t"]), Subscription::Unknown),
        ("no bytes", "consumer", Bytes::new(), Subscription::Unknown),
        ("a count beyond the bytes", "consumer", huge_count, Subscription::Unknown),
        ("a null array", "consumer", Bytes::from_static(&[0, 0, 255, 255, 255, 255]), Subscription::Unknown),
        ("a null name", "consumer", Bytes::from_static(&[0, 0, 0, 0, 0, 1, 255, 255]), Subscription::Unknown),
        ("no text", "consumer", Bytes::from_static(&[0, 0, 0, 0, 0, 1, 0, 1, 0xff]), Subscription::Unknown),
    ] {
        let bench = reading(kind, metadata);
        assert_eq!(bench.group.subscription(), expected, "G-467 {rule}");
    }
    assert_eq!(Bench::left().group.subscription(), topics(&[]));
    let mut bench = reading("consumer", metadata(&["t"]));
    bench.join(&Join {
        protocols: vec![("range".to_owned(), metadata(&["v"]))],
        ..new("z")
    });
    assert_eq!(
        bench.group.subscription(),
        topics(&["t", "v"]),
        "while rebalancing: of all that is offered"
    );
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn expiry_of_offsets() {
    // Committed at 0 by the group's clock; "r" is the retention. A Stable group reads "t".
    let base = Bench::empty().now.wall_ms;
    let stable = |kind: &str| reading(kind, metadata(&["t"])).group;
    let simple = Group::new(Bench::empty().now);
    let mut left = reading("consumer", metadata(&["t"]));
    left.leave(&[("a", "")]);
    let emptied_ms = left.now.wall_ms;
    assert!(emptied_ms > base);
    let mut rebalancing = reading("consumer", metadata(&["t"]));
    rebalancing.join(&Join {
        protocols: vec![("range".to_owned(), metadata(&["t"]))],
        ..new("z")
    });
    for (rule, group, topic, explicit_ms, at_ms, expected) in [
        ("O-643 simple, before", &simple, "t", None, base + RETENTION_MS - 1, false),
        ("O-643 simple, after", &simple, "t", None, base + RETENTION_MS, true),
        ("O-642 Empty, counted from then", &left.group, "t", None, emptied_ms + RETENTION_MS - 1, false),
        ("O-642 Empty, after", &left.group, "t", None, emptied_ms + RETENTION_MS, true),
        ("O-644 Stable, subscribed", &stable("consumer"), "t", None, i64::MAX, false),
        ("O-644 Stable, not subscribed, before", &stable("consumer"), "u", None, base + RETENTION_MS - 1, false),
        ("O-644 Stable, not subscribed, after", &stable("consumer"), "u", None, base + RETENTION_MS, true),
        ("O-644 rebalancing", &rebalancing.group, "u", None, i64::MAX, false),
        ("O-644 another type", &stable("connect"), "u", None, i64::MAX, false),
        ("O-641 explicit, before", &left.group, "t", Some(base + 5), base + 4, false),
        ("O-641 explicit, after", &left.group, "t", Some(base + 5), base + 5, true),
        ("O-641 explicit, but subscribed", &stable("consumer"), "t", Some(base + 5), i64::MAX, false),
    ] {
        let age = OffsetAge {
            committed_ms: base,
            expires_ms: explicit_ms,
        };
        let now = Now {
            mono_ms: 0,
            wall_ms: at_ms,
        };
        assert_eq!(
            group.forgets(&TopicName::from(topic), age, RETENTION_MS, now),
            expected,
            "{rule}"
        );
    }
}

#[test]
fn deleting() {
    for (state, groups, offsets) in [
        ("Empty", Ok(()), Ok(())),
        ("Stable", Err(Refusal::NonEmptyGroup), Ok(())),
        ("PreparingRebalance", Err(Refusal::NonEmptyGroup), Ok(())),
        ("CompletingRebalance", Err(Refusal::NonEmptyGroup), Ok(())),
    ] {
        let group = Bench::in_state(state).group;
        assert_eq!((group.may_delete(), group.may_delete_offsets()), (groups, offsets), "G-465, G-466 {state}");
        assert_eq!(group.may_vanish(), groups.is_ok(), "O-644 {state}");
    }
    let connect = reading("connect", Bytes::new());
    assert_eq!(connect.group.may_delete_offsets(), Err(Refusal::NonEmptyGroup), "G-466");
    let mut given = Bench::empty();
    given.join(&modern("n"));
    assert!(!given.group.may_vanish() && given.group.may_delete().is_ok());
}

#[test]
fn restart() {
    // G-482, G-485, G-1306: found where it last synced, with fresh sessions.
    let mut bench = Bench::in_state("PreparingRebalance");
    bench.join(&again("a"));
    bench.join(&again("b"));
    assert_eq!(bench.group.generation, 2);
    let row = GroupRow::decode(&bench.group.row().encode()).expect("a row");
    bench.now.mono_ms = 5;
    bench.group = Group::from_row(row, &bench.settings, bench.now);
    check_invariants(&bench.group);
    assert_eq!((bench.group.state_name(), bench.group.generation), ("Stable", 1));
    assert_eq!(bench.heartbeat(&claim(2, "a", "")), Err(Refusal::IllegalGeneration));
    assert_eq!(bench.heartbeat(&claim(2, "z", "")), Err(Refusal::UnknownMemberId));
    assert_eq!(bench.heartbeat(&claim(1, "b", "ib")), Ok(()));
    let b = bench.join(&again("b"));
    assert_eq!(bench.outcome(b), "ok", "unchanged metadata is still unchanged");
    let synced = bench.sync_as("b", &[]);
    assert_eq!(bench.synced(synced).expect("b").assignment, "for-b");
    assert_eq!(bench.group.deadline(), Some(5 + i64::from(SESSION_MS)));
    bench.pass(i64::from(SESSION_MS));
    assert_eq!(bench.group.state_name(), "Empty");

    let left = Bench::left();
    let found = Group::from_row((**left.group.row()).clone(), &left.settings, left.now);
    assert_eq!(found, left.group);
    assert_eq!(found.deadline(), None);
}

#[test]
fn a_loaded_group_that_is_too_big_rebalances() {
    // G-483.
    let bench = Bench::in_state("Stable");
    let settings = Settings { max_size: 1, ..bench.settings };
    let mut bench = Bench { settings, ..bench };
    bench.group = Group::from_row((**bench.group.row()).clone(), &settings, bench.now);
    assert_eq!(bench.group.state_name(), "PreparingRebalance");
    let (b, a) = (bench.join(&again("b")), bench.join(&again("a")));
    assert_eq!((bench.outcome(b).as_str(), bench.outcome(a).as_str()), ("ok", "GroupMaxSizeReached"));
    assert_eq!(bench.joined(b).expect("b").leader.as_str(), "b");
}

#[test]
fn stopping() {
    // G-484.
    let mut bench = Bench::in_state("PreparingRebalance");
    let join = bench.join(&again("a"));
    bench.take(bench.group.stop());
    assert_eq!(bench.outcome(join), "NotCoordinator");
    let mut bench = Bench::in_state("CompletingRebalance");
    let sync = bench.sync_as("b", &[]);
    bench.take(bench.group.stop());
    assert_eq!(bench.outcome(sync), "NotCoordinator");
    assert!(!bench.stored);
    for state in ["Empty", "Stable"] {
        let bench = Bench::in_state(state);
        assert_eq!(bench.group.stop(), Step::of(&bench.group));
    }
}

#[test]
fn damaged_rows_are_refused() {
    let row = Bench::in_state("Stable").group.row().encode();
    for end in 0..row.len() {
        assert_eq!(GroupRow::decode(&row[..end]), None, "cut at {end}");
    }
    let mut longer = row.clone();
    longer.push(0);
    assert_eq!(GroupRow::decode(&longer), None);
    let mut later = row.clone();
    later[0] = 2;
    assert_eq!(GroupRow::decode(&later), None, "a version from the future");
    for at in 0..row.len() {
        for bit in 0..8 {
            let mut damaged = row.clone();
            damaged[at] ^= 1 << bit;
            if let Some(read) = GroupRow::decode(&damaged) {
                check_invariants(&Group::from_row(read, &settings(), Now::default()));
            }
        }
    }
}
