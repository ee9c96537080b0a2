//! A ledger store without room: nothing changes, everyone is told to ask again, and nothing spins.

use super::World;
use super::build::How;
use super::ordering::ready;
use super::store::Mood;
use crate::engine::ledger::offsets::Seen;
use crate::engine::ledger::show::Shown;
use crate::engine::{Outcome, Refusal};
use crate::runtime::post::Answer;

#[test]
fn without_room_every_request_is_refused_and_repeats_as_if_never_asked() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.fake().set(Mood::Full);
    let refused = [
        ("InitProducerId", world.ask_init("new", 1_000)),
        ("InitProducerId of an idle id", world.ask_init("b", 1_000)),
        ("AddPartitionsToTxn", world.ask_add("a", a, &[q])),
        ("AddOffsetsToTxn", world.ask_add_group("a", a, "g")),
        ("OffsetCommit", world.ask_commit("g", p, 3)),
        ("DeleteTopics", world.ask_delete("t")),
    ];
    let tried = world.fake().tried();
    world.run_to_rest();
    assert_eq!(world.fake().tried() - tried, 1 + refused.len(), "together, then each once alone");
    for (what, to) in refused {
        let answer = world.answer(to);
        assert!(matches!(answer, Answer::Refused(Refusal::NotCoordinator)), "{what}: {answer:?}");
    }
    assert!(world.owner.as_ref().unwrap().refuses().is_some());
    world.fake().set(Mood::Well);
    assert_eq!(world.described("a").parts, [p], "nothing changed");
    assert!(!world.happened(&format!("grant 1 to {}", q.0)));
    assert_eq!(world.offset("g", p, false), Seen::Absent);
    world.add("a", a, &[q]);
    assert_eq!(world.described("a").parts, [p, q]);
    let new = world.init("new");
    assert_eq!((new.id, new.epoch), (a.id + 1, 0), "no producer id was lost and none is given twice");
    assert!(world.owner.as_ref().unwrap().refuses().is_none());
    world.produce("a", (a, 0), q);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
}

#[test]
fn what_fits_alone_is_stored_and_what_does_not_is_refused() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p, q]);
    world.fake().set(Mood::FullAbove(2));
    let small = world.ask_commit("g", p, 3);
    let large = world.ask_delete("t");
    world.run_to_rest();
    assert_eq!(world.verdict(small), Ok(()));
    assert!(matches!(world.answer(large), Answer::Refused(Refusal::NotCoordinator)));
}

#[test]
fn a_decision_without_room_leaves_the_transaction_open_and_writable() {
    for outcome in [Outcome::Commit, Outcome::Abort] {
        let (mut world, p, _, a) = ready(How::default());
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        world.fake().set(Mood::Full);
        let ended = world.ask_end("a", a, outcome);
        world.turn_ledger();
        let waits = world.ask_add("a", a, &[p]);
        world.run_to_rest();
        assert_eq!(world.verdict(ended), Err(Refusal::NotCoordinator));
        assert_eq!(world.verdict(waits), Ok(()), "judged anew at once: it is in already");
        assert!(world.happened("unseal"));
        assert_eq!(world.described("a").state, Shown::Ongoing);
        world.produce("a", (a, 1), p);
        world.fake().set(Mood::Well);
        assert_eq!(world.end("a", a, outcome), Ok(()));
        assert_eq!(world.read_committed(p).len(), if outcome == Outcome::Commit { 2 } else { 0 });
        world.run_for(120_000);
        assert_eq!(world.markers(p).len(), 1);
    }
}

#[test]
fn a_transaction_whose_end_found_no_room_still_times_out() {
    let (mut world, p, _, _) = ready(How::default());
    let a = world.init_with("a", 5_000);
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.fake().set(Mood::Full);
    assert_eq!(world.end("a", a, Outcome::Commit), Err(Refusal::NotCoordinator));
    let (turns, tried) = (world.ledger_turns, world.fake().tried());
    world.run_for(65_000);
    assert!(world.ledger_turns - turns < 400, "{} turns in a minute", world.ledger_turns - turns);
    assert!(world.fake().tried() - tried < 250, "{} tries in a minute", world.fake().tried() - tried);
    assert_eq!(world.described("a").state, Shown::Ongoing);
    let late = world.ask_produce("a", (a, 1), p);
    world.run_to_rest();
    assert_eq!(world.produced(late), Err(Refusal::ConcurrentTransactions), "who fences keeps its seal");
    world.fake().set(Mood::Well);
    world.run_for(1_001);
    assert_eq!(world.described("a").state, Shown::CompleteAbort);
    assert_eq!(world.end("a", a, Outcome::Commit), Err(Refusal::ProducerFenced));
}

#[test]
fn a_groups_timer_without_room_does_not_spin() {
    let mut world = World::new(How::default());
    world.member("g", "m-1");
    world.fake().set(Mood::Full);
    let turns = world.ledger_turns;
    world.run_for(70_000);
    assert!(world.ledger_turns - turns < 300, "{} turns", world.ledger_turns - turns);
}

#[test]
fn a_broken_store_ends_the_process_and_answers_nobody() {
    let (mut world, p, _, a) = ready(How::default());
    world.fake().set(Mood::Broken);
    let to = world.ask_add("a", a, &[p]);
    world.run_to_rest();
    assert!(world.broken.is_some() && !world.is_answered(to));
}
