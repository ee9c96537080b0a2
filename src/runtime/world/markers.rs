//! Markers that cannot be written: the decision stands, the tries grow rarer, and it completes by itself.

use super::World;
use super::ask::at;
use super::build::How;
use super::ordering::ready;
use crate::config::MarkerSync;
use crate::engine::ledger::offsets::Seen;
use crate::engine::{Outcome, PartId, Refusal};
use crate::store::faults::{Fault, Operation, Rule};

fn no_room(world: &World, part: PartId) {
    let dir = world.log_dir(part).display().to_string();
    world.disk.faults().add(Rule::always(Operation::Write, &format!("{dir}/"), Fault::NoSpace));
}

#[test]
fn a_marker_without_room_is_tried_again_with_doubling_pauses_and_completes_by_itself() {
    for marker_sync in [MarkerSync::Answer, MarkerSync::Redo] {
        let (mut world, p, q, a) = ready(How { marker_sync, ..How::default() });
        world.add("a", a, &[p, q]);
        world.produce("a", (a, 0), p);
        world.produce("a", (a, 0), q);
        world.stage("a", a, "g", (q, 4));
        no_room(&world, p);
        let ended = world.ask_end("a", a, Outcome::Commit);
        world.run_to_rest();
        assert!(!world.is_answered(ended), "it waits a bounded time");
        let before = world.ledger_turns;
        let marks = |world: &World| world.trace.iter().filter(|line| line.starts_with("mark at 0")).count();
        world.run_for(499);
        assert!(!world.is_answered(ended));
        world.run_for(2);
        assert_eq!(world.verdict(ended), Err(Refusal::ConcurrentTransactions));
        // 10, 20, 40, 80, 160, 320 ms: the seventh try begins at 630.
        assert_eq!(marks(&world), 6, "{marker_sync:?}");
        world.run_for(60_000);
        let tries = marks(&world);
        assert!((60..75).contains(&tries), "about one a second: {tries}");
        assert!(world.ledger_turns - before < 300, "{} turns in a minute", world.ledger_turns - before);
        assert_eq!(world.last_stable(p), 0, "nothing of it is shown where its marker is missing");
        assert_eq!(world.offset("g", q, false), Seen::Absent);
        assert_eq!(world.end("a", a, Outcome::Abort), Err(Refusal::ConcurrentTransactions), "the decision stands");
        world.disk.faults().lift();
        world.run_for(1_001);
        assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
        assert_eq!(world.read_committed(p).len(), 1);
        assert_eq!(world.markers(p).len(), 1, "written once");
        assert_eq!(world.offset("g", q, false), Seen::At(at(4)));
        world.run_for(2_000);
        assert!(world.fake().load().owed.is_empty());
    }
}

#[test]
fn a_decision_without_its_marker_survives_the_power_and_is_carried_out_by_the_next_start() {
    for outcome in [Outcome::Commit, Outcome::Abort] {
        let (mut world, p, q, a) = ready(How::default());
        world.add("a", a, &[p, q]);
        world.produce("a", (a, 0), p);
        world.produce("a", (a, 0), q);
        no_room(&world, p);
        world.ask_end("a", a, outcome);
        world.run_to_rest();
        world.cut_and_restart(crate::store::mem_disk::Cut::LoseAll, 0);
        assert_eq!(world.markers(p).len(), 1);
        assert_eq!(world.markers(q).len(), 1);
        assert_eq!(world.end("a", a, outcome), Ok(()), "told again");
        let committed = usize::from(outcome == Outcome::Commit);
        assert_eq!((world.read_committed(p).len(), world.read_committed(q).len()), (committed, committed));
    }
}

#[test]
fn one_partition_without_room_holds_up_no_other_id() {
    let (mut world, p, q, a) = ready(How::default());
    let b = world.init("b");
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.add("b", b, &[q]);
    world.produce("b", (b, 0), q);
    no_room(&world, p);
    let stuck = world.ask_end("a", a, Outcome::Commit);
    assert_eq!(world.end("b", b, Outcome::Commit), Ok(()));
    assert!(!world.is_answered(stuck));
}

#[test]
fn under_redo_a_marker_is_not_shown_unsynced_while_an_earlier_one_is_owed() {
    let (mut world, p, _, a) = ready(How { marker_sync: MarkerSync::Redo, ..How::default() });
    let b = world.init("b");
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.add("b", b, &[p]);
    world.produce("b", (b, 0), p);
    no_room(&world, p);
    let first = world.ask_end("a", a, Outcome::Commit);
    world.run_to_rest();
    world.disk.faults().lift();
    let second = world.ask_end("b", b, Outcome::Commit);
    while world.log_end(p) == 2 {
        assert!(world.step_anything());
    }
    assert_eq!(world.watermark(p), 2, "a restart writes the earlier marker there");
    world.turn_ledger();
    assert!(!world.is_answered(second), "nor answered");
    world.cut_and_restart(crate::store::mem_disk::Cut::LoseAll, 0);
    assert_eq!(world.markers(p).iter().map(|(producer, ..)| *producer).collect::<Vec<_>>(), [a, b]);
    assert!(!world.is_answered(first));
}
