use super::*;

#[test]
#[rustfmt::skip] // a table is read by its lines
fn checks_in_order() {
    let typed = |member: &str, kind: Option<&str>, name: Option<&str>| Sync {
        protocol_type: kind.map(str::to_owned),
        protocol: name.map(str::to_owned),
        ..sync_of(claim(1, member, ""), &[])
    };
    let plain = |generation, member, i| sync_of(claim(generation, member, i), &[]);
    for (rule, state, sync, expected) in [
        ("G-441 Empty", "Empty", plain(2, "a", ""), "UnknownMemberId"),
        ("G-441 unknown id", "Stable", plain(1, "x", ""), "UnknownMemberId"),
        ("G-441 unknown id before generation", "Stable", plain(9, "x", ""), "UnknownMemberId"),
        ("G-428 unmapped instance", "Stable", plain(1, "b", "ix"), "UnknownMemberId"),
        ("G-428 fenced before generation", "Stable", plain(9, "a", "ib"), "FencedInstanceId"),
        ("G-441 generation", "Stable", plain(0, "a", ""), "IllegalGeneration"),
        ("G-441 generation", "CompletingRebalance", plain(2, "a", ""), "IllegalGeneration"),
        ("G-441 generation before rebalance", "PreparingRebalance", plain(0, "a", ""), "IllegalGeneration"),
        ("G-441 type", "Stable", typed("a", Some("connect"), Some("range")), "InconsistentGroupProtocol"),
        ("G-441 name", "CompletingRebalance", typed("a", None, Some("x")), "InconsistentGroupProtocol"),
        ("G-441 type, Preparing", "PreparingRebalance", typed("a", Some("x"), None), "InconsistentGroupProtocol"),
        ("G-441 neither given", "Stable", typed("a", None, None), "ok"),
        ("G-441 Preparing", "PreparingRebalance", plain(1, "a", ""), "RebalanceInProgress"),
        ("G-442 Stable", "Stable", plain(1, "b", "ib"), "ok"),
        ("G-443 Completing", "CompletingRebalance", plain(1, "b", "ib"), "parked"),
        ("G-444 Completing, the leader", "CompletingRebalance", plain(1, "a", ""), "ok"),
    ] {
        let mut bench = Bench::in_state(state);
        let reply = bench.sync(&sync);
        assert_eq!(bench.outcome(reply), expected, "{rule}");
        assert_eq!(bench.stored, rule.starts_with("G-444"), "{rule}");
    }
}

#[test]
fn the_leader_s_assignment_is_everyone_s() {
    // G-444, G-447, C-81: unknown ids are passed over, who is not named gets nothing.
    let mut bench = Bench::completing(&[("a", ""), ("b", ""), ("c", "")]);
    let b = bench.sync_as("b", &[("b", "stolen")]);
    let c = bench.sync_as("c", &[]);
    assert_eq!((bench.outcome(b).as_str(), bench.outcome(c).as_str()), ("parked", "parked"));
    let a = bench.sync_as("a", &[("a", "1"), ("b", "2"), ("x", "3")]);
    assert!(bench.stored);
    for (reply, share) in [(a, "1"), (b, "2"), (c, "")] {
        let answer = bench.synced(reply).expect("answered");
        assert_eq!((answer.refusal, &answer.assignment), (None, &Bytes::from(share)));
        assert_eq!((answer.protocol_type.as_deref(), answer.protocol.as_deref()), (Some("consumer"), Some("range")));
    }
    let RowState::Stable { leader, protocol, members } = &bench.group.row().state else { panic!("stored") };
    assert_eq!((leader.as_str(), &**protocol, members.len()), ("a", "range", 3));
}

#[test]
fn late_and_repeated_syncs() {
    // G-445: a follower after the leader, and the leader again with other content.
    let mut bench = Bench::completing(&[("a", ""), ("b", "")]);
    bench.sync_as("a", &[("a", "1"), ("b", "2")]);
    let b = bench.sync_as("b", &[]);
    let a = bench.sync_as("a", &[("a", "9")]);
    assert_eq!(bench.synced(b).expect("b").assignment, "2");
    assert_eq!(bench.synced(a).expect("a").assignment, "1");
    assert!(!bench.stored);
    // G-445 R: of two parked ones the last is answered in the end.
    let mut bench = Bench::completing(&[("a", ""), ("b", "")]);
    let (first, second) = (bench.sync_as("b", &[]), bench.sync_as("b", &[]));
    bench.sync_as("a", &[]);
    assert_eq!((bench.outcome(first).as_str(), bench.outcome(second).as_str()), ("RebalanceInProgress", "ok"));
}

#[test]
fn a_sync_that_could_not_be_stored() {
    // G-407h, G-446: the step with the leader's assignment is dropped.
    let mut bench = Bench::completing(&[("a", ""), ("b", "")]);
    let b = bench.sync_as("b", &[]);
    let step = bench.group.sync_not_stored(Refusal::NotCoordinator, bench.now);
    assert!(!step.stored);
    bench.take(step);
    assert_eq!((bench.outcome(b).as_str(), bench.group.state_name()), ("NotCoordinator", "PreparingRebalance"));
    // If the group has moved on meanwhile, nothing happens.
    let bench = Bench::in_state("Stable");
    let step = bench.group.sync_not_stored(Refusal::NotCoordinator, bench.now);
    assert_eq!((step.next, step.answers.len()), (bench.group, 0));
}
