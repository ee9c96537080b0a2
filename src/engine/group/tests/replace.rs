use super::*;

#[test]
fn a_stable_group_is_not_disturbed() {
    // G-425, G-426, G-1305: (rule, who returns, v9 and above, leader told, members told, skip).
    for (rule, old, i, version, leader, members, skip) in [
        ("the leader, v9", "a", "ia", JoinVersion::V9, "a2", 2, true),
        ("the leader, v8", "a", "ia", JoinVersion::V4, "a", 0, false),
        ("a follower, v9", "b", "ib", JoinVersion::V9, "a", 0, false),
        ("a follower, v8", "b", "ib", JoinVersion::V4, "a", 0, false),
    ] {
        let mut bench = Bench::stable(&[("a", "ia"), ("b", "ib")]);
        let new = format!("{old}2");
        let host = "/10.0.0.9".to_owned();
        let join = Join { version, client_host: host, ..fixed(&new, i) };
        let reply = bench.join(&join);
        let answer = bench.joined(reply).expect(rule);
        assert_eq!((answer.refusal, answer.generation), (None, 1), "{rule}");
        assert_eq!(answer.member.as_str(), new, "{rule}");
        assert_eq!((answer.leader.as_str(), answer.members.len(), answer.skip_assignment), (leader, members, skip));
        assert!(bench.stored, "{rule}: G-481");
        assert_eq!(bench.group.state_name(), "Stable", "{rule}");
        let synced = bench.sync(&sync_of(claim(1, &new, i), &[]));
        assert_eq!(bench.synced(synced).expect(rule).assignment, format!("for-{old}"), "{rule}: G-425");
        assert_eq!(bench.heartbeat(&claim(1, old, i)), Err(Refusal::FencedInstanceId), "{rule}: G-428");
        assert_eq!(bench.heartbeat(&claim(1, old, "")), Err(Refusal::UnknownMemberId), "{rule}");
        assert_eq!(bench.heartbeat(&claim(1, &new, i)), Ok(()), "{rule}");
        let kept = bench.group.roster.get(&MemberId::from(new.as_str())).expect(rule);
        assert_eq!(kept.client_host, "/10.0.0.9", "{rule}: G-427 R");
    }
}

#[test]
fn a_stable_group_whose_choice_would_change_rebalances() {
    let mut bench = Bench::empty();
    bench.join(&Join { protocols: protocols(&["range", "sticky"]), ..fixed("a", "ia") });
    bench.join(&Join { protocols: protocols(&["range", "sticky"]), ..fixed("b", "ib") });
    bench.pass(6000);
    bench.sync_as("a", &[("a", "x")]);
    bench.sync_as("b", &[]);
    let same = bench.join(&Join { protocols: protocols(&["range"]), ..fixed("b2", "ib") });
    assert_eq!(bench.outcome(same), "ok");
    let other = bench.join(&Join { protocols: protocols(&["sticky", "range"]), ..fixed("b3", "ib") });
    assert_eq!(bench.outcome(other), "ok", "the leader's order decides a tie, so range stays");
    let other = bench.join(&Join { protocols: protocols(&["sticky", "range"]), ..fixed("a2", "ia") });
    assert_eq!((bench.outcome(other).as_str(), bench.group.state_name()), ("parked", "PreparingRebalance"));
}

#[test]
fn what_the_old_process_parked_is_fenced() {
    // G-426, G-428: a JoinGroup in Preparing, a SyncGroup in Completing.
    let mut bench = Bench::preparing(&[("a", ""), ("b", "ib")]);
    let old = bench.join(&Join { instance: instance("ib"), ..again("b") });
    let new = bench.join(&fixed("b2", "ib"));
    assert_eq!((bench.outcome(old).as_str(), bench.outcome(new).as_str()), ("FencedInstanceId", "parked"));
    assert_eq!(bench.joined(old).expect("told").member.as_str(), "b");
    bench.join(&again("a"));
    assert_eq!(bench.outcome(new), "ok", "complete when all are here");

    let mut bench = Bench::completing(&[("a", ""), ("b", "ib"), ("c", "")]);
    let (old, c) = (bench.sync_as("b", &[]), bench.sync_as("c", &[]));
    let new = bench.join(&fixed("b2", "ib"));
    assert_eq!(bench.outcome(old), "FencedInstanceId");
    assert_eq!(bench.outcome(c), "RebalanceInProgress", "G-407c");
    assert_eq!((bench.outcome(new).as_str(), bench.group.state_name()), ("parked", "PreparingRebalance"));
}

#[test]
fn the_replaced_id_is_nobody_s_debt() {
    // G-427 R: b never synced; its successor does, and nothing happens at the sync time-out.
    let mut bench = Bench::completing(&[("a", "ia"), ("b", "ib")]);
    bench.sync_as("a", &[]);
    bench.join(&fixed("b2", "ib"));
    bench.sync_as("b2", &[]);
    for _ in 0..10 {
        bench.pass(9000);
        bench.heartbeat(&claim(1, "a", "ia")).expect("alive");
        bench.heartbeat(&claim(1, "b2", "ib")).expect("alive");
    }
    assert_eq!((bench.group.state_name(), bench.group.generation), ("Stable", 1));
}

#[test]
fn a_newcomer_s_successor_is_one_too() {
    let mut bench = Bench::empty();
    bench.settings.initial_rebalance_delay_ms = 600_000;
    bench.join(&fixed("a", "ia"));
    bench.pass(200_000);
    let reply = bench.join(&fixed("a2", "ia"));
    bench.pass(299_999);
    assert_eq!(bench.outcome(reply), "parked");
    bench.pass(1);
    assert_eq!(bench.outcome(reply), "UnknownMemberId");
}
