use super::*;

/// What a request with this claim is told in this state: "parked", "ok" or the refusal.
fn told(request: &str, state: &str, claim: &Claim) -> String {
    let mut bench = Bench::in_state(state);
    let verdict = |v: Result<(), Refusal>| v.map_or_else(|refusal| refusal.to_string(), |()| "ok".to_owned());
    match request {
        "join" => {
            let reply = bench.join(&again(claim.member.as_str()));
            bench.outcome(reply)
        }
        "sync" => {
            let reply = bench.sync(&sync_of(claim.clone(), &[]));
            bench.outcome(reply)
        }
        "heartbeat" => verdict(bench.heartbeat(claim)),
        "leave" => verdict(bench.leave(&[(claim.member.as_str(), "")])[0].map_or(Ok(()), Err)),
        "commit" => verdict(bench.group.may_commit(claim)),
        "stage" => verdict(bench.group.may_stage(claim)),
        other => panic!("{other}"),
    }
}

#[test]
fn error_by_state() {
    // The table of section 4.8; b is a follower, its generation 1 (2 once the group is empty).
    let (u, r, g) = ("UnknownMemberId", "RebalanceInProgress", "IllegalGeneration");
    let states = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"];
    for (request, member, generation, expected) in [
        ("join", "b", 1, [u, "parked", "ok", "ok"]),
        ("sync", "b", 1, [u, r, "parked", "ok"]),
        ("heartbeat", "b", 1, [u, r, "ok", "ok"]),
        ("leave", "b", 1, [u, "ok", "ok", "ok"]),
        ("commit", "b", 1, [u, "ok", r, "ok"]),
        ("stage", "b", 1, [u, "ok", "ok", "ok"]),
        ("commit", "", -1, ["ok", u, u, u]),
        ("stage", "", -1, ["ok", "ok", "ok", "ok"]),
        ("sync", "x", 0, [u, u, u, u]),
        ("heartbeat", "x", 0, [u, u, u, u]),
        ("commit", "x", 0, [u, u, u, u]),
        ("stage", "x", 0, [u, u, u, u]),
        ("sync", "b", 0, [u, g, g, g]),
        ("heartbeat", "b", 0, [u, g, g, g]),
        ("commit", "b", 0, [u, g, g, g]),
        ("stage", "b", 0, [u, g, g, g]),
    ] {
        for (state, expected) in states.iter().zip(expected) {
            let claim = claim(generation, member, "");
            assert_eq!(told(request, state, &claim), expected, "4.8 {request} of {member:?}/{generation} in {state}");
        }
    }
}
