//! Requests that meet a decision that is being carried out, and timeouts.

use super::World;
use super::build::How;
use super::ordering::ready;
use crate::engine::ledger::show::Shown;
use crate::engine::{Outcome, PartId, Producer, Refusal};
use crate::runtime::post::{LedgerLetter, Post};

/// A transaction of `a` on `p` whose decision is stored and whose marker is asked for and not written.
fn owing(outcome: Outcome) -> (World, PartId, Producer, crate::engine::ReplyTo) {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let ended = world.ask_end("a", a, outcome);
    while !world.happened("mark at") {
        world.step_anything();
    }
    (world, p, a, ended)
}

/// The ledger alone goes on: partitions do nothing.
fn ledger_for(world: &mut World, ms: i64) {
    for _ in 0..ms {
        world.advance(1);
        world.turn_ledger();
        world.flush_rows();
    }
}

#[test]
fn waiting_is_bounded() {
    let (mut world, p, a, ended) = owing(Outcome::Commit);
    let waiting = [
        world.ask_add("a", a, &[p]),
        world.ask_add_group("a", a, "g"),
        world.ask_stage("a", a, "g", (p, 1)),
        world.ask_init("a", 60_000),
        world.ask_end("a", a, Outcome::Commit),
        ended,
    ];
    world.turn_ledger();
    ledger_for(&mut world, 499);
    assert!(waiting.iter().all(|to| !world.is_answered(*to)), "they wait");
    ledger_for(&mut world, 1);
    for to in waiting {
        let answer = world.verdict(to);
        assert_eq!(answer, Err(Refusal::ConcurrentTransactions), "{to:?}");
    }
    world.run_to_rest();
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()), "it completes all the same");
}

#[test]
fn who_waits_is_judged_anew_when_it_is_over() {
    let (mut world, p, a, ended) = owing(Outcome::Commit);
    let added = world.ask_add("a", a, &[p]);
    let taken = world.ask_init("a", 60_000);
    world.run_to_rest();
    assert_eq!(world.verdict(ended), Ok(()));
    assert_eq!(world.verdict(added), Ok(()), "the next transaction");
    assert_eq!(world.owner_answered(taken), Err(Refusal::ConcurrentTransactions), "T-147: it met an open one");
}

#[test]
fn a_new_owner_that_comes_while_markers_are_written_waits_for_them() {
    let (mut world, _, a, _) = owing(Outcome::Abort);
    let taken = world.ask_init("a", 60_000);
    world.run_to_rest();
    assert_eq!(world.owner_answered(taken), Ok(Producer { epoch: a.epoch + 1, ..a }));
}

#[test]
fn the_other_decision_is_concurrent_while_one_is_carried_out_and_invalid_when_it_is_over() {
    for (outcome, other) in [(Outcome::Commit, Outcome::Abort), (Outcome::Abort, Outcome::Commit)] {
        let (mut world, _, a, ended) = owing(outcome);
        let wrong = world.ask_end("a", a, other);
        let right = world.ask_end("a", a, outcome);
        world.turn_ledger();
        world.flush_rows();
        assert_eq!(world.verdict(wrong), Err(Refusal::ConcurrentTransactions));
        world.run_to_rest();
        assert_eq!((world.verdict(ended), world.verdict(right)), (Ok(()), Ok(())));
        assert_eq!(world.end("a", a, other), Err(Refusal::InvalidTxnState));
        assert_eq!(world.end("a", a, outcome), Ok(()));
    }
}

#[test]
fn a_new_owner_that_meets_an_open_transaction_is_told_at_once_and_raises_the_epoch_by_two() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let taken = world.ask_init("a", 60_000);
    world.turn_ledger();
    world.flush_rows();
    assert_eq!(world.owner_answered(taken), Err(Refusal::ConcurrentTransactions), "T-147");
    world.run_to_rest();
    assert_eq!(world.init("a"), Producer { epoch: 2, ..a });
    assert_eq!(world.markers(p), [(Producer { epoch: 1, ..a }, Outcome::Abort, 1)], "T-141");
    let zombie = world.ask_produce("a", (a, 1), p);
    world.run_to_rest();
    assert_eq!(world.produced(zombie), Err(Refusal::InvalidProducerEpoch), "T-607a");
}

#[test]
fn a_wrong_pair_disturbs_nothing() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    let expected = Some(Producer { epoch: a.epoch + 3, ..a });
    let command =
        crate::runtime::post::Command::InitProducer { id: Some(super::ask::id("a")), timeout_ms: 60_000, expected };
    let to = world.ask(command);
    world.run_to_rest();
    assert_eq!(world.owner_answered(to), Err(Refusal::ProducerFenced), "T-145 R");
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
}

#[test]
fn a_timeout_aborts_and_fences() {
    let (mut world, p, q, _) = ready(How::default());
    let a = world.init_with("a", 1_000);
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.run_for(500);
    world.add("a", a, &[q]);
    world.run_for(499);
    assert_eq!(world.described("a").state, Shown::Ongoing, "T-602: nothing prolongs it");
    world.run_for(2);
    assert_eq!(world.described("a").state, Shown::CompleteAbort);
    assert_eq!(world.markers(p), [(Producer { epoch: a.epoch + 1, ..a }, Outcome::Abort, 1)], "T-603");
    for (what, answer) in [
        ("EndTxn", world.ask_end("a", a, Outcome::Commit)),
        ("AddPartitionsToTxn", world.ask_add("a", a, &[p])),
        ("AddOffsetsToTxn", world.ask_add_group("a", a, "g")),
        ("TxnOffsetCommit", world.ask_stage("a", a, "g", (p, 1))),
    ] {
        world.run_to_rest();
        assert_eq!(world.verdict(answer), Err(Refusal::ProducerFenced), "T-607 {what}");
    }
}

#[test]
fn states_are_shown_by_kafkas_names() {
    let (mut world, p, a, _) = owing(Outcome::Commit);
    let to = world.ask(crate::runtime::post::Command::Show(crate::runtime::post::Show::AllTxns));
    world.turn_ledger();
    world.flush_rows();
    let crate::runtime::post::Answer::Txns(txns) = world.answer(to) else { panic!("not transactions") };
    let shown = txns[0].as_ref().unwrap();
    assert_eq!((shown.state, shown.parts.as_slice()), (Shown::PrepareCommit, [p].as_slice()), "T-802");
    world.run_to_rest();
    let shown = world.described("a");
    assert_eq!((shown.state, shown.parts.as_slice()), (Shown::CompleteCommit, [].as_slice()));
    world.add("a", a, &[p]);
    assert_eq!(world.described("a").state, Shown::Ongoing);
    assert_eq!(world.init("b"), world.described("b").producer);
    assert_eq!((world.described("b").state, world.described("b").started_wall_ms), (Shown::Empty, -1), "T-803");
}

#[test]
fn nobody_waits_for_a_process_that_stops_g_484() {
    let (mut world, _, _, _) = ready(How::default());
    world.member("g", "first");
    let before = world.ask_join("g", "second");
    world.turn_ledger();
    assert!(!world.is_answered(before), "the first member is to come again");
    world.deliver(Post::Ledger(LedgerLetter::Settle));
    let after = world.ask_join("g", "third");
    world.turn_ledger();
    let later = world.ask_join("g", "fourth");
    world.turn_ledger();
    world.flush_rows();
    assert!([before, after, later].iter().all(|to| world.is_answered(*to)));
}
