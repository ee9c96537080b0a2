use super::*;

/// `joins` in order against a group in `state` (see [`Bench::in_state`]); the last one ends as `expected`.
#[track_caller]
fn check(rule: &str, state: &str, joins: &[Join], expected: &str) -> Bench {
    let mut bench = Bench::in_state(state);
    let replies: Vec<ReplyTo> = joins.iter().map(|join| bench.join(join)).collect();
    assert_eq!(bench.outcome(*replies.last().expect("a join")), expected, "{rule}");
    bench
}

fn with_session(ms: i32) -> Join {
    Join { session_timeout_ms: ms, ..modern("n") }
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn checks_before_the_member_is_looked_at() {
    let odd_type = Join {
        protocol_type: "connect".to_owned(),
        ..new("n")
    };
    let odd_name = Join {
        protocols: protocols(&["sticky"]),
        ..new("n")
    };
    let none = Join {
        protocols: Vec::new(),
        ..new("n")
    };
    let typeless = Join {
        protocol_type: String::new(),
        ..new("n")
    };
    for (rule, state, join, expected) in [
        ("G-411 session below", "Stable", with_session(5999), "InvalidSessionTimeout"),
        ("G-411 session at least", "Stable", with_session(6000), "MemberIdRequired"),
        ("G-411 session at most", "Stable", with_session(1_800_000), "MemberIdRequired"),
        ("G-411 session above", "Stable", with_session(1_800_001), "InvalidSessionTimeout"),
        ("G-413 another type", "Stable", odd_type.clone(), "InconsistentGroupProtocol"),
        ("G-413 another type, nobody in", "Empty", odd_type, "parked"),
        ("G-413 no common protocol", "Stable", odd_name.clone(), "InconsistentGroupProtocol"),
        ("G-413 no common protocol, rebalancing", "PreparingRebalance", odd_name, "InconsistentGroupProtocol"),
        ("G-413 no protocol", "Empty", none.clone(), "InconsistentGroupProtocol"),
        ("G-413 no protocol", "Stable", none, "InconsistentGroupProtocol"),
        ("G-413 no type", "Empty", typeless, "InconsistentGroupProtocol"),
    ] {
        check(rule, state, &[join], expected);
    }
}

#[test]
fn who_has_no_id() {
    for state in ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"] {
        let bench = check("G-412 dynamic, v4 and above", state, &[modern("n")], "MemberIdRequired");
        let told = bench.answers.values().last().cloned();
        let expected = JoinAnswer::refused(Refusal::MemberIdRequired, MemberId::from("n"));
        assert_eq!(told, Some(expected.into()), "G-417");
        assert!(bench.group.pending.contains_key("n") && !bench.group.roster.contains(&MemberId::from("n")));
        assert_eq!(bench.group.state_name(), state);
        check("G-412 v3 and below", state, &[new("n")], "parked");
        check("G-412 a new instance", state, &[fixed("n", "in")], "parked");
        check("G-421 the id that was given", state, &[modern("n"), again("n")], "parked");
        let with_instance = Join { instance: instance("in"), ..again("n") };
        check("G-421 R with an instance", state, &[modern("n"), with_instance], "UnknownMemberId");
    }
    check("G-412 a known instance", "Stable", &[fixed("n", "ib")], "ok");
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn who_has_an_id() {
    let other_metadata = |id: &str| Join {
        protocols: protocols(&["range", "sticky"]),
        ..again(id)
    };
    let as_instance = |id: &str, i: &str| Join {
        instance: instance(i),
        ..again(id)
    };
    for (rule, state, join, expected) in [
        ("G-422 unmapped instance", "Stable", as_instance("a", "ix"), "UnknownMemberId"),
        ("G-422 instance of another", "Stable", as_instance("a", "ib"), "FencedInstanceId"),
        ("G-422 right instance", "Stable", as_instance("b", "ib"), "ok"),
        ("G-422 unknown id", "Stable", again("x"), "UnknownMemberId"),
        ("G-422 unknown id", "PreparingRebalance", again("x"), "UnknownMemberId"),
        ("G-422 unknown id", "CompletingRebalance", again("x"), "UnknownMemberId"),
        ("G-423 Preparing", "PreparingRebalance", again("a"), "parked"),
        ("G-423 Completing, equal", "CompletingRebalance", again("a"), "ok"),
        ("G-423 Completing, differs", "CompletingRebalance", other_metadata("b"), "parked"),
        ("G-424 Stable, leader", "Stable", again("a"), "parked"),
        ("G-424 Stable, differs", "Stable", other_metadata("b"), "parked"),
        ("G-424 Stable, follower, equal", "Stable", again("b"), "ok"),
        ("G-424 Empty", "Empty", again("a"), "UnknownMemberId"),
    ] {
        let bench = check(rule, state, &[join], expected);
        let rebalances = expected == "parked" || state == "PreparingRebalance";
        assert_eq!(bench.group.state_name() == "PreparingRebalance", rebalances, "{rule}");
        assert!(!bench.stored, "{rule}: G-481, joins are not stored");
    }
}

#[test]
fn a_repeated_join_tells_the_current_generation() {
    // G-1304, G-420: everyone's metadata for the leader, nothing for others.
    let mut bench = Bench::in_state("CompletingRebalance");
    let (a, b) = (bench.join(&again("a")), bench.join(&again("b")));
    let (a, b) = (bench.joined(a).expect("a").clone(), bench.joined(b).expect("b").clone());
    assert_eq!((a.generation, a.leader.as_str(), a.member.as_str()), (1, "a", "a"));
    assert_eq!((b.generation, b.leader.as_str(), b.member.as_str()), (1, "a", "b"));
    assert_eq!((a.protocol_type.as_deref(), a.protocol.as_deref()), (Some("consumer"), Some("range")));
    let told: Vec<_> = a.members.iter().map(|m| (m.member.as_str(), m.instance.clone(), &m.metadata[..])).collect();
    assert_eq!(told, [("a", None, &b"meta-range"[..]), ("b", instance("ib"), b"meta-range")]);
    assert!(b.members.is_empty() && !a.skip_assignment && !b.skip_assignment);
}

#[test]
fn order_and_bytes_of_protocols_are_metadata() {
    // G-415: the same names in another order are another metadata.
    let mut bench = Bench::empty();
    bench.join(&Join { protocols: protocols(&["range", "sticky"]), ..new("a") });
    bench.join(&Join { protocols: protocols(&["range", "sticky"]), ..new("b") });
    bench.pass(6000);
    bench.sync_as("a", &[]);
    let turned = Join { protocols: protocols(&["sticky", "range"]), ..again("b") };
    let reply = bench.join(&turned);
    assert_eq!(bench.outcome(reply), "parked");
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn size_limit() {
    // (rule, state, who comes, how it ends): a and b are in, at most two may be.
    for (rule, state, join, expected) in [
        ("G-418 Stable, new", "Stable", new("n"), "GroupMaxSizeReached"),
        ("G-418 Stable, new, modern", "Stable", modern("n"), "GroupMaxSizeReached"),
        ("G-418 Stable, existing", "Stable", again("b"), "ok"),
        ("G-418 Stable, existing instance", "Stable", fixed("b2", "ib"), "ok"),
        ("G-418 Completing, new", "CompletingRebalance", new("n"), "GroupMaxSizeReached"),
        ("G-418 Completing, existing", "CompletingRebalance", again("b"), "ok"),
        ("G-418 Preparing, room among the parked", "PreparingRebalance", again("a"), "parked"),
        ("G-418 Empty", "Empty", new("n"), "parked"),
    ] {
        let mut bench = Bench::in_state(state);
        bench.settings.max_size = 2;
        let reply = bench.join(&join);
        assert_eq!(bench.outcome(reply), expected, "{rule}");
        if expected == "GroupMaxSizeReached" {
            assert_eq!(bench.joined(reply).expect("answered").member.as_str(), "", "{rule}");
        }
    }
}

#[test]
fn a_member_refused_for_size_has_lost_its_place() {
    // G-418: a and the newcomer z fill the group, b is left outside and must not be waited for.
    let mut bench = Bench::in_state("PreparingRebalance");
    bench.settings.max_size = 2;
    let a = bench.join(&again("a"));
    assert_eq!(bench.outcome(a), "parked");
    let b = bench.join(&again("b"));
    assert_eq!((bench.outcome(b), bench.outcome(a)), ("GroupMaxSizeReached".to_owned(), "ok".to_owned()));
    assert_eq!(bench.group.roster.len(), 2);
    // The same for an id that was only given out.
    let mut bench = Bench::in_state("PreparingRebalance");
    bench.join(&modern("n"));
    bench.settings.max_size = 3;
    bench.join(&again("a"));
    let b = bench.join(&again("b"));
    assert_eq!(bench.outcome(b), "parked", "n is awaited");
    let n = bench.join(&again("n"));
    assert_eq!((bench.outcome(n), bench.outcome(b)), ("GroupMaxSizeReached".to_owned(), "ok".to_owned()));
}

#[test]
fn a_superseded_join_is_told_to_ask_again() {
    // G-419 R.
    let mut bench = Bench::in_state("PreparingRebalance");
    let first = bench.join(&again("a"));
    let second = bench.join(&again("a"));
    assert_eq!((bench.outcome(first).as_str(), bench.outcome(second).as_str()), ("RebalanceInProgress", "parked"));
    assert_eq!(bench.joined(first).expect("answered").member.as_str(), "a");
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn joining_a_group_that_does_not_exist() {
    let now = Bench::empty().now;
    let short = with_session(1);
    let short_with_id = Join {
        session_timeout_ms: 1,
        ..again("x")
    };
    let none = Join {
        protocols: Vec::new(),
        ..again("x")
    };
    for (rule, join, expected) in [
        ("G-411 an id nobody gave", again("x"), Refusal::UnknownMemberId),
        ("G-411 the session comes first", short_with_id, Refusal::InvalidSessionTimeout),
        ("G-411 the id comes before the protocols", none, Refusal::UnknownMemberId),
        ("G-411 session", short, Refusal::InvalidSessionTimeout),
        ("G-413 no protocol", Join { protocols: Vec::new(), ..new("n") }, Refusal::InconsistentGroupProtocol),
    ] {
        let answer = join_unknown(&join, ReplyTo(1), &settings(), now).expect_err(rule);
        assert_eq!(answer, JoinAnswer::refused(expected, join.member), "{rule}");
    }
    for (rule, join, answers) in [
        ("G-412", modern("n"), 1),
        ("G-411", new("n"), 0),
        ("G-412", fixed("n", "i"), 0),
    ] {
        let step = join_unknown(&join, ReplyTo(1), &settings(), now).expect(rule);
        assert!(step.stored, "{rule}: a group that was made is stored");
        assert_eq!(step.answers.len(), answers, "{rule}");
        assert_eq!(step.next.row().state, RowState::Empty { since_ms: now.wall_ms });
    }
}

#[test]
fn ids_given_out_are_bounded() {
    let mut bench = Bench::empty();
    bench.join(&modern("first"));
    let until = bench.now.mono_ms + 2 * i64::from(SESSION_MS);
    let many = (1..10_000).map(|n| (MemberId::from(format!("n{n}")), until));
    Arc::make_mut(&mut bench.group.pending).extend(many);
    assert_eq!(bench.group.pending.len(), 10_000);
    bench.join(&modern("last"));
    assert_eq!(bench.group.pending.len(), 10_000);
    assert!(bench.group.pending.contains_key("last") && !bench.group.pending.contains_key("first"));
}
