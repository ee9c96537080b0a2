use super::*;

#[test]
#[rustfmt::skip] // a table is read by its lines
fn heartbeats() {
    // G-451, in order.
    for (rule, state, claim, expected) in [
        ("Empty", "Empty", claim(2, "a", ""), Err(Refusal::UnknownMemberId)),
        ("unknown id", "Stable", claim(1, "x", ""), Err(Refusal::UnknownMemberId)),
        ("no id", "Stable", claim(1, "", ""), Err(Refusal::UnknownMemberId)),
        ("unmapped instance", "Stable", claim(1, "b", "ix"), Err(Refusal::UnknownMemberId)),
        ("fenced", "Stable", claim(9, "a", "ib"), Err(Refusal::FencedInstanceId)),
        ("generation", "Stable", claim(0, "a", ""), Err(Refusal::IllegalGeneration)),
        ("generation", "PreparingRebalance", claim(2, "a", ""), Err(Refusal::IllegalGeneration)),
        ("Preparing", "PreparingRebalance", claim(1, "a", ""), Err(Refusal::RebalanceInProgress)),
        ("Completing", "CompletingRebalance", claim(1, "a", ""), Ok(())),
        ("Stable", "Stable", claim(1, "b", "ib"), Ok(())),
    ] {
        let mut bench = Bench::in_state(state);
        bench.set_clock(bench.now.mono_ms + 500);
        let before = bench.group.sessions.get(&claim.member).copied();
        assert_eq!(bench.heartbeat(&claim), expected, "G-451 {rule}");
        let after = bench.group.sessions.get(&claim.member).copied();
        let restarts = matches!(expected, Ok(()) | Err(Refusal::RebalanceInProgress));
        assert_eq!(after > before, restarts, "G-451 {rule}: session");
        assert!(!bench.stored, "G-481");
    }
}

#[test]
fn commits_are_a_sign_of_life() {
    // G-452.
    for (state, restarts) in
        [("Empty", false), ("PreparingRebalance", true), ("CompletingRebalance", false), ("Stable", true)]
    {
        let mut bench = Bench::in_state(state);
        bench.set_clock(bench.now.mono_ms + 500);
        let before = bench.group.clone();
        bench.take(bench.group.committed(&claim(1, "a", ""), bench.now));
        assert_eq!(bench.group != before, restarts, "{state}");
        assert!(!bench.stored);
    }
}

#[test]
fn leaving() {
    // G-455 to G-457: (rule, state, (member, instance), answer, state after).
    let unknown = Some(Refusal::UnknownMemberId);
    let fenced = Some(Refusal::FencedInstanceId);
    let (empty, preparing, stable) = ("Empty", "PreparingRebalance", "Stable");
    for (rule, state, leaving, expected, after) in [
        ("by instance alone", stable, ("", "ib"), None, preparing),
        ("no id, unmapped instance", stable, ("", "ix"), unknown, stable),
        ("nothing", stable, ("", ""), unknown, stable),
        ("pending, R no rebalance", stable, ("p", ""), None, stable),
        ("pending", empty, ("p", ""), None, empty),
        ("unknown", stable, ("x", ""), unknown, stable),
        ("unmapped instance", stable, ("b", "ix"), unknown, stable),
        ("fenced", stable, ("a", "ib"), fenced, stable),
        ("member", stable, ("a", ""), None, preparing),
        ("member, Completing", "CompletingRebalance", ("a", ""), None, preparing),
        ("member, Preparing", preparing, ("a", ""), None, preparing),
        ("static", stable, ("b", "ib"), None, preparing),
        ("former member", empty, ("a", ""), unknown, empty),
    ] {
        let mut bench = Bench::in_state(state);
        bench.join(&modern("p"));
        assert_eq!(bench.leave(&[leaving]), [expected], "G-457 {rule}");
        assert_eq!(bench.group.state_name(), after, "G-457 {rule}");
        let gone = MemberId::from(leaving.0);
        assert!(expected.is_some() || !bench.group.roster.contains(&gone) && !bench.group.pending.contains_key(&gone));
    }
}

#[test]
fn many_leave_at_once() {
    // v3 and above: each by itself, named twice is gone the second time; then one rebalance for all.
    let mut bench = Bench::stable(&[("a", ""), ("b", "ib"), ("c", "ic")]);
    let left = bench.leave(&[("a", ""), ("", "ib"), ("a", ""), ("", "ib"), ("c", "ic")]);
    let unknown = Some(Refusal::UnknownMemberId);
    assert_eq!(left, [None, None, unknown, unknown, None]);
    assert_eq!((bench.group.state_name(), bench.group.generation), ("Empty", 2));
    assert!(bench.stored, "G-407f");
}

#[test]
fn leaving_answers_what_is_parked() {
    // G-435: a JoinGroup, and the same for a SyncGroup.
    let mut bench = Bench::in_state("PreparingRebalance");
    let a = bench.join(&again("a"));
    bench.leave(&[("a", "")]);
    let answer = bench.joined(a).expect("answered");
    assert_eq!((answer.refusal, answer.member.as_str()), (Some(Refusal::UnknownMemberId), ""));
    let mut bench = Bench::in_state("CompletingRebalance");
    let b = bench.sync_as("b", &[]);
    bench.leave(&[("b", "")]);
    assert_eq!(bench.outcome(b), "UnknownMemberId");
    // Whoever else is here completes.
    let mut bench = Bench::in_state("PreparingRebalance");
    let a = bench.join(&again("a"));
    bench.leave(&[("", "ib")]);
    assert_eq!(bench.outcome(a), "ok");
}
