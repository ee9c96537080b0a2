use super::*;

const UNKNOWN: Result<(), Refusal> = Err(Refusal::UnknownMemberId);
const FENCED: Result<(), Refusal> = Err(Refusal::FencedInstanceId);
const GENERATION: Result<(), Refusal> = Err(Refusal::IllegalGeneration);
const REBALANCE: Result<(), Refusal> = Err(Refusal::RebalanceInProgress);

#[test]
fn to_a_group_that_does_not_exist() {
    // O-606, T-244: (generation, the version has the name, refused).
    let now = Bench::empty().now;
    for (generation, names_it, expected) in [
        (-1, true, None),
        (-1, false, None),
        (0, true, Some(Refusal::GroupIdNotFound)),
        (0, false, Some(Refusal::IllegalGeneration)),
        (7, false, Some(Refusal::IllegalGeneration)),
    ] {
        let made = commit_to_unknown(&claim(generation, "", ""), names_it, now);
        assert_eq!(made.as_ref().err().copied(), expected);
        if let Ok(group) = made {
            assert_eq!((group.state_name(), group.protocol_type()), ("Empty", ""), "O-652");
        }
    }
}

#[test]
#[rustfmt::skip] // a table is read by its lines
fn who_may_commit() {
    // (rule, state, claim, OffsetCommit by O-607, TxnOffsetCommit by T-244)
    let (empty, preparing, completing, stable) = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable");
    for (rule, state, claim, commit, stage) in [
        ("no generation, Empty", empty, claim(-1, "", ""), Ok(()), Ok(())),
        ("no generation, Empty, whatever the id", empty, claim(-1, "x", ""), Ok(()), Ok(())),
        ("no generation, Empty, whatever the instance", empty, claim(-1, "", "ix"), Ok(()), Ok(())),
        ("a generation, Empty", empty, claim(2, "a", ""), UNKNOWN, UNKNOWN),
        ("unmapped instance", stable, claim(1, "b", "ix"), UNKNOWN, UNKNOWN),
        ("instance alone, unmapped", stable, claim(-1, "", "ix"), UNKNOWN, UNKNOWN),
        ("instance alone, mapped", stable, claim(-1, "", "ib"), FENCED, FENCED),
        ("fenced", stable, claim(1, "a", "ib"), FENCED, FENCED),
        ("fenced before generation", stable, claim(0, "a", "ib"), FENCED, FENCED),
        ("unknown id", stable, claim(1, "x", ""), UNKNOWN, UNKNOWN),
        ("unknown id without generation", stable, claim(-1, "x", ""), UNKNOWN, UNKNOWN),
        ("no id", stable, claim(1, "", ""), UNKNOWN, UNKNOWN),
        ("older generation", stable, claim(0, "a", ""), GENERATION, GENERATION),
        ("later generation", stable, claim(2, "a", ""), GENERATION, GENERATION),
        ("member without generation", stable, claim(-1, "a", ""), GENERATION, GENERATION),
        ("older generation, Completing", completing, claim(0, "a", ""), GENERATION, GENERATION),
        ("older generation, Preparing", preparing, claim(0, "a", ""), GENERATION, GENERATION),
        ("nothing, Stable", stable, claim(-1, "", ""), UNKNOWN, Ok(())),
        ("nothing, Preparing", preparing, claim(-1, "", ""), UNKNOWN, Ok(())),
        ("nothing, Completing", completing, claim(-1, "", ""), UNKNOWN, Ok(())),
        ("member, Completing", completing, claim(1, "a", ""), REBALANCE, Ok(())),
        ("member, Preparing (G-459)", preparing, claim(1, "a", ""), Ok(()), Ok(())),
        ("member, Stable", stable, claim(1, "a", ""), Ok(()), Ok(())),
        ("static member, Stable", stable, claim(1, "b", "ib"), Ok(()), Ok(())),
        ("static member that names no instance", stable, claim(1, "b", ""), Ok(()), Ok(())),
    ] {
        let bench = Bench::in_state(state);
        assert_eq!(bench.group.may_commit(&claim), commit, "O-607 {rule}");
        assert_eq!(bench.group.may_stage(&claim), stage, "T-244 {rule}");
    }
}

#[test]
fn a_zombie_of_an_older_generation_is_out_from_the_join_answer_on() {
    let mut bench = Bench::in_state("PreparingRebalance");
    bench.join(&again("a"));
    bench.join(&again("b"));
    assert_eq!(bench.group.may_stage(&claim(1, "a", "")), GENERATION);
    assert_eq!(bench.group.may_stage(&claim(2, "a", "")), Ok(()));
}
