use super::*;

fn names(group: &Group) -> Vec<String> {
    group.roster.iter().map(|m| m.id.to_string()).collect()
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn transitions() {
    // G-407: (rule, group before, what happens, state after, generation after).
    type Deed = fn(&mut Bench);
    fn changed() -> Join {
        Join {
            protocols: protocols(&["range", "sticky"]),
            ..again("b")
        }
    }
    let (preparing, completing, stable) = ("PreparingRebalance", "CompletingRebalance", "Stable");
    let lines: &[(&str, &str, Deed, &str, i32)] = &[
        ("a member added", "Empty", |b| b.comes(&new("n")), preparing, 2),
        ("b member added", stable, |b| b.comes(&new("n")), preparing, 1),
        ("b leader re-joins", stable, |b| b.comes(&again("a")), preparing, 1),
        ("b changed metadata", stable, |b| b.comes(&changed()), preparing, 1),
        ("b member left", stable, |b| b.goes("b"), preparing, 1),
        ("b members expired", stable, |b| b.pass(i64::from(SESSION_MS)), "Empty", 2),
        ("c member added", completing, |b| b.comes(&new("n")), preparing, 1),
        ("c changed metadata", completing, |b| b.comes(&changed()), preparing, 1),
        ("c member left", completing, |b| b.goes("b"), preparing, 1),
        ("c static replacement", completing, |b| b.comes(&fixed("b2", "ib")), preparing, 1),
        ("g leader syncs", completing, |b| b.syncs("a"), stable, 1),
        ("g a follower syncs", completing, |b| b.syncs("b"), completing, 1),
    ];
    for (rule, state, deed, after, generation) in lines {
        let mut bench = Bench::in_state(state);
        deed(&mut bench);
        assert_eq!(
            (bench.group.state_name(), bench.group.generation),
            (*after, *generation),
            "G-407{rule}"
        );
    }
}

#[test]
fn a_rebalance_ends_when_all_are_here() {
    // G-407d, G-1302.
    let mut bench = Bench::in_state("PreparingRebalance");
    let a = bench.join(&again("a"));
    assert_eq!(bench.group.state_name(), "PreparingRebalance");
    let b = bench.join(&again("b"));
    assert_eq!((bench.group.state_name(), bench.group.generation), ("CompletingRebalance", 2));
    assert_eq!(bench.joined(a).expect("a").members.len(), 3);
    assert_eq!(bench.joined(b).expect("b").leader.as_str(), "a", "the leader stays");
    // A sole member's re-join is complete in itself.
    let mut bench = Bench::stable(&[("a", "")]);
    let a = bench.join(&again("a"));
    assert_eq!(bench.joined(a).map(|answer| answer.generation), Some(2));
}

#[test]
fn an_id_given_out_is_waited_for() {
    // G-407d: and no longer than its session.
    for ending in ["joins", "leaves", "expires"] {
        let mut bench = Bench::in_state("PreparingRebalance");
        bench.join(&modern("n"));
        bench.join(&again("a"));
        let b = bench.join(&again("b"));
        assert_eq!(bench.outcome(b), "parked", "{ending}");
        match ending {
            "joins" => bench.comes(&again("n")),
            "leaves" => assert_eq!(bench.leave(&[("n", "")]), [None]),
            _ => bench.pass(i64::from(SESSION_MS)),
        }
        assert_eq!(bench.outcome(b), "ok", "{ending}");
        assert_eq!(bench.group.roster.len(), if ending == "joins" { 4 } else { 3 });
    }
}

#[test]
fn leaving_completing_clears_and_refuses() {
    // G-407c: parked SyncGroups are answered, assignments cleared.
    let mut bench = Bench::in_state("CompletingRebalance");
    let b = bench.sync_as("b", &[]);
    bench.join(&new("n"));
    assert_eq!(bench.outcome(b), "RebalanceInProgress");
    assert!(bench.group.roster.iter().all(|m| m.assignment.is_empty()));
    // G-407b keeps them: tools may still look (G-461).
    let bench = Bench::in_state("PreparingRebalance");
    assert_eq!(bench.group.roster.get(&MemberId::from("a")).expect("a").assignment, "for-a");
}

#[test]
fn who_does_not_come_is_left_behind_unless_static() {
    // G-431.1, G-431.2, G-429: "a" is dynamic, "b" static, the newcomer "z" is here. Both keep their sessions alive.
    let mut bench = Bench::in_state("PreparingRebalance");
    for _ in 0..7 {
        bench.pass(9000);
        bench.heartbeat(&claim(1, "a", "")).expect_err("rebalancing");
        bench.heartbeat(&claim(1, "b", "ib")).expect_err("rebalancing");
        if bench.group.generation == 2 {
            break;
        }
    }
    assert_eq!((bench.group.state_name(), bench.group.generation), ("CompletingRebalance", 2));
    assert_eq!(names(&bench.group), ["b", "z"]);
    let answer = bench.answers.keys().filter_map(|reply| bench.told_join(*reply)).filter(|j| j.member.as_str() == "z");
    let answer = answer.last().expect("z was answered");
    assert_eq!((answer.leader.as_str(), answer.members.len()), ("z", 2), "the kept one is listed to the new leader");
    assert_eq!(bench.group.row().generation, 1, "G-485: what was not synced is not stored");
}

#[test]
fn nobody_came_but_static_members_remain() {
    // G-431.2: the timer starts again, the generation stays.
    let mut bench = Bench::stable(&[("a", "ia"), ("b", "")]);
    let mut short = again("b");
    short.protocols = protocols(&["range", "other"]);
    bench.join(&short);
    assert_eq!(bench.leave(&[("b", "")]), [None]);
    assert_eq!((bench.group.state_name(), names(&bench.group)), ("PreparingRebalance", vec!["a".to_owned()]));
    let first = bench.group.phase_deadline().expect("a join timer");
    while bench.now.mono_ms < first {
        bench.pass(5000);
        bench.heartbeat(&claim(1, "a", "ia")).expect_err("rebalancing");
    }
    assert!(bench.group.phase_deadline() > Some(first));
    assert_eq!((bench.group.state_name(), bench.group.generation), ("PreparingRebalance", 1));
    bench.pass(i64::from(SESSION_MS));
    assert_eq!((bench.group.state_name(), bench.group.generation), ("Empty", 2), "G-407f");
    assert!(bench.stored);
}

#[test]
fn a_static_member_without_rebalance_time_does_not_spin() {
    let mut bench = Bench::empty();
    bench.join(&Join { rebalance_timeout_ms: 0, session_timeout_ms: 1_800_000, ..fixed("a", "ia") });
    bench.pass(3000);
    bench.sync_as("a", &[]);
    let eager = Join { rebalance_timeout_ms: -5, session_timeout_ms: 6000, ..new("b") };
    bench.join(&eager);
    bench.leave(&[("b", "")]);
    let mut fired = 0;
    while bench.group.state_name() == "PreparingRebalance" && fired < 5000 {
        let due = bench.group.deadline().expect("a timer");
        bench.set_clock(due.max(bench.now.mono_ms));
        let step = bench.group.expire(bench.now).expect("due");
        bench.take(step);
        fired += 1;
    }
    assert!(fired <= 1801, "{fired}");
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn choice_of_protocol() {
    // G-432, C-85: (lists of the members in order of joining, chosen).
    for (rule, lists, chosen) in [
        ("one list", vec![vec!["range", "sticky"]], "range"),
        ("common to all", vec![vec!["range", "sticky"], vec!["sticky"]], "sticky"),
        ("most votes", vec![vec!["r", "s"], vec!["s", "r"], vec!["s", "r"]], "s"),
        ("a tie: the leader's earlier", vec![vec!["s", "r"], vec!["r", "s"]], "s"),
        ("a vote goes to a candidate", vec![vec!["x", "r", "s"], vec!["s", "r"], vec!["y", "s", "r"]], "s"),
        ("named twice", vec![vec!["r", "r", "s"], vec!["s"]], "s"),
    ] {
        let mut bench = Bench::empty();
        for (n, list) in lists.iter().enumerate() {
            bench.join(&Join {
                protocols: protocols(list),
                ..new(&format!("m{n}"))
            });
        }
        bench.pass(60_000_i64.min(3000 * (i64::try_from(lists.len()).unwrap())));
        let elected = bench.group.elected().expect("completed");
        assert_eq!(&*elected.protocol, chosen, "G-432 {rule}");
    }
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn initial_delay() {
    // G-433: (delay, rebalance time-out, ms at which others join, ms at which generation 1 is told).
    for (rule, delay_ms, rebalance_ms, others, done_ms) in [
        ("alone", 3000, 60_000, vec![], 3000),
        ("all here does not cut it short", 3000, 60_000, vec![0], 6000),
        ("no newcomer since", 3000, 60_000, vec![1000], 6000),
        ("prolonged again", 3000, 60_000, vec![1000, 4000], 9000),
        ("bounded by the rebalance time-out", 3000, 7000, vec![1000, 4000, 6500], 7000),
        ("rebalance time-out below the delay", 3000, 1000, vec![1000], 3000),
        ("0 completes at once", 0, 60_000, vec![], 0),
    ] {
        let mut bench = Bench::empty();
        bench.settings.initial_rebalance_delay_ms = delay_ms;
        let a = bench.join(&Join {
            rebalance_timeout_ms: rebalance_ms,
            ..new("a")
        });
        let mut passed_ms = 0;
        for (n, at_ms) in others.iter().enumerate() {
            bench.pass(at_ms - passed_ms);
            passed_ms = *at_ms;
            bench.join(&Join {
                rebalance_timeout_ms: rebalance_ms,
                ..new(&format!("n{n}"))
            });
        }
        if done_ms > 0 {
            bench.pass(done_ms - 1 - passed_ms);
            assert_eq!(bench.outcome(a), "parked", "G-433 {rule}");
            bench.pass(1);
        }
        assert_eq!(bench.joined(a).map(|answer| answer.generation), Some(1), "G-433 {rule}");
        assert_eq!(bench.group.roster.len(), others.len() + 1, "G-433 {rule}");
    }
}

#[test]
fn delay_0_does_not_wait_for_ids_given_out() {
    let mut bench = Bench::empty();
    bench.settings.initial_rebalance_delay_ms = 0;
    bench.join(&modern("a"));
    bench.join(&modern("b"));
    let a = bench.join(&again("a"));
    assert_eq!(bench.outcome(a), "ok");
}

#[test]
fn the_last_one_leaves_during_the_initial_delay() {
    // G-435.
    let mut bench = Bench::empty();
    let a = bench.join(&new("a"));
    assert_eq!(bench.leave(&[("a", "")]), [None]);
    assert_eq!((bench.group.state_name(), bench.group.generation), ("Empty", 1));
    let answer = bench.joined(a).expect("answered");
    assert_eq!((answer.refusal, answer.member.as_str()), (Some(Refusal::UnknownMemberId), ""));
    assert!(bench.stored, "G-407f");
}

#[test]
fn an_empty_group_counts_on() {
    // G-436: and its former members are refused.
    let mut bench = Bench::left();
    let a = bench.join(&new("n"));
    bench.pass(3000);
    assert_eq!(bench.joined(a).map(|answer| answer.generation), Some(3));
    assert_eq!(bench.heartbeat(&claim(1, "a", "")), Err(Refusal::UnknownMemberId));
    assert_eq!(bench.heartbeat(&claim(1, "n", "")), Err(Refusal::IllegalGeneration));
}

#[test]
fn session_timers() {
    // G-434: a newcomer that vanished while parked is answered and removed after 300 s. Its rebalance time is longer.
    let mut bench = Bench::empty();
    bench.settings.initial_rebalance_delay_ms = 600_000;
    let a = bench.join(&Join { rebalance_timeout_ms: 900_000, ..new("a") });
    bench.pass(299_999);
    assert_eq!(bench.outcome(a), "parked");
    bench.pass(1);
    assert_eq!((bench.outcome(a).as_str(), bench.group.state_name()), ("UnknownMemberId", "Empty"));
    // Another member's timer does not run while its JoinGroup is parked.
    let mut bench = Bench::in_state("PreparingRebalance");
    let a = bench.join(&again("a"));
    bench.pass(9000);
    bench.heartbeat(&claim(1, "b", "ib")).expect_err("rebalancing");
    bench.pass(9000);
    assert_eq!(bench.outcome(a), "parked");
    bench.join(&again("b"));
    assert_eq!((bench.outcome(a).as_str(), names(&bench.group)), ("ok", vec!["a".into(), "b".into(), "z".into()]));
    // Nor while its SyncGroup is.
    bench.sync_as("b", &[]);
    for _ in 0..3 {
        bench.pass(8000);
        bench.heartbeat(&claim(2, "a", "")).expect("alive");
        bench.heartbeat(&claim(2, "z", "")).expect("alive");
    }
    let a = bench.sync_as("a", &[]);
    assert_eq!((bench.outcome(a).as_str(), bench.group.roster.len()), ("ok", 3));
    // Both completions restart it: 24 s after its SyncGroup b has its whole session before it.
    bench.pass(9999);
    assert_eq!(bench.group.roster.len(), 3);
    bench.pass(1);
    assert_eq!(bench.group.state_name(), "Empty");
}

#[test]
fn removal_of_the_leader() {
    // G-435 R: the oldest that is here leads.
    let mut bench = Bench::stable(&[("c", ""), ("b", ""), ("a", "")]);
    bench.leave(&[("c", "")]);
    bench.join(&again("a"));
    let b = bench.join(&again("b"));
    assert_eq!(bench.joined(b).expect("complete").leader.as_str(), "b");
}

#[test]
fn who_never_syncs_is_removed() {
    // G-407i, C-83, KAFKA-12890: heartbeats do not help.
    for (rule, syncs, remaining) in [("a follower", "a", "a"), ("the leader", "b", "b")] {
        let mut bench = Bench::completing(&[("a", ""), ("b", "")]);
        let synced = bench.sync_as(syncs, &[]);
        for _ in 0..6 {
            bench.pass(9000);
            bench.heartbeat(&claim(1, "a", "")).expect(rule);
            bench.heartbeat(&claim(1, "b", "")).expect(rule);
        }
        bench.pass(6000);
        assert_eq!((bench.group.state_name(), names(&bench.group)), ("PreparingRebalance", vec![remaining.into()]));
        let expected = if syncs == "a" { "ok" } else { "RebalanceInProgress" };
        assert_eq!(bench.outcome(synced), expected, "{rule}");
    }
    // Nobody ever does.
    let mut bench = Bench::completing(&[("a", ""), ("b", "")]);
    for _ in 0..6 {
        bench.pass(9000);
        bench.heartbeat(&claim(1, "a", "")).expect("alive");
        bench.heartbeat(&claim(1, "b", "")).expect("alive");
    }
    bench.pass(6000);
    assert_eq!((bench.group.state_name(), bench.group.generation), ("Empty", 2));
}

#[test]
fn a_leader_that_comes_back_leads_on() {
    // G-431.2: "c" is older but static and away for one generation, so "b" comes to lead, and stays.
    let mut bench = Bench::stable(&[("c", "ic"), ("b", "")]);
    let b = bench.join(&Join { protocols: protocols(&["range", "sticky"]), ..again("b") });
    while bench.outcome(b) == "parked" {
        bench.pass(5000);
        bench.heartbeat(&claim(bench.group.generation, "c", "ic")).unwrap_or_default();
    }
    assert_eq!(bench.joined(b).expect("b").leader.as_str(), "b");
    let c = bench.join(&Join { protocols: protocols(&["range", "sticky"]), ..again("c") });
    let b = bench.join(&again("b"));
    assert_eq!((bench.outcome(c).as_str(), bench.joined(b).expect("b").leader.as_str()), ("ok", "b"));
    // It named no instance, and is the same static member all the same.
    assert_eq!(bench.heartbeat(&claim(3, "c", "ic")), Ok(()));
}

#[test]
fn an_abandoned_generation_leaves_no_assignment() {
    // G-407c: of the generation before either.
    let mut bench = Bench::in_state("Stable");
    bench.comes(&again("a"));
    bench.comes(&Join { protocols: protocols(&["range", "sticky"]), ..again("b") });
    assert_eq!(bench.group.state_name(), "CompletingRebalance");
    assert!(bench.group.roster.iter().all(|m| !m.assignment.is_empty()));
    bench.comes(&new("n"));
    assert!(bench.group.roster.iter().all(|m| m.assignment.is_empty()));
}

#[test]
fn a_newcomer_s_heartbeat_does_not_cost_it_its_first_session() {
    // G-434: it is told to rebalance, and keeps what is left of its 300 s.
    let mut bench = Bench::empty();
    bench.settings.initial_rebalance_delay_ms = 100_000;
    let a = bench.join(&new("a"));
    assert_eq!(bench.heartbeat(&claim(0, "a", "")), Err(Refusal::RebalanceInProgress));
    bench.pass(50_000);
    assert_eq!(bench.outcome(a), "parked");
}
