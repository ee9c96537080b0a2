//! The gather before a decision: seals, and what may come between them and the decision.

use super::build::How;
use super::invariants::nothing_hangs;
use super::ordering::ready;
use super::store::Mood;
use crate::engine::{Outcome, Refusal};

#[test]
fn a_seal_closes_at_its_place_of_the_mailbox_also_where_the_partition_is_open_already() {
    // what is ahead of the seal belongs to the transaction, what is behind does not.
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let ahead = world.ask_produce("a", (a, 1), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    world.turn_ledger();
    let behind = world.ask_produce("a", (a, 2), p);
    world.turn_part(p);
    assert_eq!(world.produced(behind), Err(Refusal::ConcurrentTransactions), "T-373");
    world.run_to_rest();
    assert!(world.produced(ahead).is_ok());
    assert_eq!(world.verdict(ended), Ok(()));
    assert_eq!(world.read_committed(p).len(), 2);
    assert_eq!(world.last_stable(p), 3, "nothing is left open");
}

#[test]
fn an_add_behind_an_end_in_the_same_turn_is_not_let_into_the_transaction_that_ends() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    let added = world.ask_add("a", a, &[q]);
    let staged = world.ask_stage("a", a, "g", (q, 1));
    let verified = world.ask_verify("a", a, p);
    world.turn_ledger();
    assert!(!world.happened(&format!("seal 1 at {}", q.0)) && !world.happened(&format!("grant 1 to {}", q.0)));
    world.run_to_rest();
    assert_eq!(world.verdict(ended), Ok(()));
    assert_eq!(world.verdict(verified), Err(Refusal::ConcurrentTransactions));
    assert_eq!(world.verdict(added), Ok(()), "judged anew: it begins the next one");
    assert_eq!(world.verdict(staged), Err(Refusal::InvalidTxnState), "the group is not in the next one");
    world.produce("a", (a, 0), q);
    assert_eq!(world.last_stable(q), 0, "the next transaction is open");
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
    assert_eq!(world.last_stable(q), 2);
}

#[test]
fn an_add_behind_a_new_owner_in_the_same_turn_is_not_let_in() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p]);
    let taken = world.ask_init("a", 60_000);
    let added = world.ask_add("a", a, &[q]);
    world.run_to_rest();
    assert_eq!(world.owner_answered(taken), Err(Refusal::ConcurrentTransactions));
    assert_eq!(world.verdict(added), Err(Refusal::ProducerFenced));
}

#[test]
fn the_two_letters_of_a_seal_may_overtake_each_other() {
    for outcome in [Outcome::Commit, Outcome::Abort] {
        let (mut world, p, _, a) = ready(How::default());
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        let ended = world.ask_end("a", a, outcome);
        world.turn_ledger();
        world.turn_part(p);
        assert_eq!(world.inbox.len(), 2, "closed, and on disk");
        world.inbox.make_contiguous().reverse();
        world.turn_ledger_with(1);
        world.turn_ledger_with(1);
        world.run_to_rest();
        assert_eq!(world.verdict(ended), Ok(()), "{outcome:?}");
    }
}

#[test]
fn the_earlier_letter_of_a_seal_takes_nothing_back_when_it_comes_later() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p, q]);
    world.produce("a", (a, 0), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    world.turn_ledger();
    world.turn_part(p);
    world.inbox.make_contiguous().reverse();
    world.turn_ledger();
    world.run_to_rest();
    assert_eq!(world.verdict(ended), Ok(()));
}

#[test]
fn a_gather_does_not_stop_the_clock() {
    let (mut world, p, _, _) = ready(How::default());
    let a = world.init_with("a", 10_000);
    world.add("a", a, &[p]);
    let data = world.ask_produce("a", (a, 0), p);
    world.turn_part(p);
    // The sync does not come back, so the commit cannot be decided.
    let ended = world.ask_end("a", a, Outcome::Commit);
    world.turn_ledger();
    world.turn_part(p);
    world.turn_ledger();
    world.advance(10_000);
    world.turn_ledger();
    world.turn_ledger();
    world.run_to_rest();
    assert!(world.produced(data).is_ok());
    assert_eq!(world.verdict(ended), Err(Refusal::ProducerFenced), "the timeout won, T-607d");
    assert_eq!(world.read_committed(p).len(), 0);
    assert_eq!(world.markers(p)[0].0.epoch, a.epoch + 1, "T-603");
}

#[test]
fn a_new_owner_during_a_gather_wins() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.ask_produce("a", (a, 0), p);
    world.turn_part(p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    world.turn_ledger();
    world.turn_part(p);
    world.turn_ledger();
    let taken = world.ask_init("a", 60_000);
    world.run_to_rest();
    assert_eq!(world.owner_answered(taken), Err(Refusal::ConcurrentTransactions), "T-147");
    assert_eq!(world.verdict(ended), Err(Refusal::ProducerFenced));
    assert_eq!(world.markers(p), [(crate::engine::Producer { epoch: 1, ..a }, Outcome::Abort, 1)]);
    assert_eq!(world.init("a").epoch, 2);
}

#[test]
fn a_decision_stored_first_wins_over_a_new_owner_of_the_same_turn() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    world.turn_ledger();
    let taken = world.ask_init("a", 60_000);
    world.turn_part(p);
    // Read in this order: the new owner's wish, then the seals that make the commit possible.
    world.run_to_rest();
    assert_eq!(world.owner_answered(taken), Err(Refusal::ConcurrentTransactions));
    let ended = world.verdict(ended);
    let committed = world.markers(p)[0].1 == Outcome::Commit;
    assert_eq!(ended.is_ok(), committed, "told and done agree: {ended:?}");
}

#[test]
fn the_other_decision_during_a_gather_is_concurrent_and_the_same_one_joins() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let first = world.ask_end("a", a, Outcome::Commit);
    let same = world.ask_end("a", a, Outcome::Commit);
    let other = world.ask_end("a", a, Outcome::Abort);
    world.run_to_rest();
    assert_eq!(world.verdict(first), Ok(()));
    assert_eq!(world.verdict(same), Ok(()));
    assert_eq!(world.verdict(other), Err(Refusal::ConcurrentTransactions));
    assert_eq!(world.end("a", a, Outcome::Abort), Err(Refusal::InvalidTxnState), "T-253: it is over");
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()), "T-253: a repeat");
}

#[test]
fn deleted_partitions_count_as_sealed_and_owe_no_marker() {
    // Before the end, and between the seal and the marker.
    for before_end in [true, false] {
        let (mut world, p, _, a) = ready(How::default());
        let gone = world.topic("gone", 1)[0];
        world.add("a", a, &[p, gone]);
        world.produce("a", (a, 0), p);
        world.produce("a", (a, 0), gone);
        let ended = if before_end {
            world.ask_delete("gone");
            world.run_to_rest();
            world.ask_end("a", a, Outcome::Commit)
        } else {
            let ended = world.ask_end("a", a, Outcome::Commit);
            world.turn_ledger();
            world.turn_part(p);
            world.turn_part(gone);
            world.ask_delete("gone");
            ended
        };
        world.run_to_rest();
        assert_eq!(world.verdict(ended), Ok(()), "before the end: {before_end}");
        assert_eq!(world.read_committed(p).len(), 1);
        world.run_for(2_000);
        assert_eq!(world.fake().load().owed.len(), 0);
    }
}

#[test]
fn a_transaction_of_offsets_alone_needs_no_seal_and_no_marker() {
    for outcome in [Outcome::Commit, Outcome::Abort] {
        let (mut world, _, q, a) = ready(How::default());
        world.stage("a", a, "g", (q, 3));
        let ended = world.ask_end("a", a, outcome);
        // Reads its end and the next begin in one turn.
        world.turn_ledger();
        let added = world.ask_add("a", a, &[q]);
        world.run_to_rest();
        assert_eq!(world.verdict(ended), Ok(()));
        assert_eq!(world.verdict(added), Ok(()));
        let seen = world.offset("g", q, true);
        assert_eq!(seen != crate::engine::ledger::offsets::Seen::Absent, outcome == Outcome::Commit);
    }
}

#[test]
fn a_permission_that_is_given_back_is_not_opened_behind_the_next_seal() {
    use crate::runtime::post::PartLetter;
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.fake().set(Mood::Full);
    world.ask_end("a", a, Outcome::Commit);
    world.turn_ledger();
    // It asks again while the seal is on its way back: both are judged in one turn, and there is room for neither.
    world.ask_end("a", a, Outcome::Commit);
    world.turn_part(p);
    world.turn_ledger();
    let mail = &world.parts[&p].mail;
    let at = |wanted: fn(&PartLetter) -> bool| mail.iter().position(wanted);
    let opened = at(|letter| matches!(letter, PartLetter::Unseal { .. })).expect("given back");
    let sealed = at(|letter| matches!(letter, PartLetter::Seal { .. })).expect("asked for again");
    assert!(opened < sealed, "{mail:?}");
    world.fake().set(Mood::Well);
    world.run_to_rest();
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
    nothing_hangs(&world);
}
