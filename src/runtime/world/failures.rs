//! A disk that says no, and partitions that are damaged.

use super::World;
use super::ask::id;
use super::build::How;
use super::ordering::ready;
use super::store::Mood;
use crate::engine::ledger::show::Shown;
use crate::engine::{Outcome, PartId, Refusal};
use crate::runtime::partition::published::Availability;
use crate::runtime::post::{PartLetter, Post};
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::Cut;

fn strike(world: &World, operation: Operation, part: PartId, fault: Fault) {
    let dir = world.log_dir(part).display().to_string();
    world.disk.faults().add(Rule::always(operation, &format!("{dir}/"), fault));
}

#[test]
fn an_append_without_room_is_refused_and_the_partition_keeps_its_permissions() {
    for fault in [Fault::NoSpace, Fault::Short(40)] {
        let (mut world, p, q, a) = ready(How::default());
        let b = world.init("b");
        world.add("a", a, &[p]);
        world.add("b", b, &[p]);
        world.produce("a", (a, 0), p);
        world.produce("b", (b, 0), p);
        // b's permission is sealed, and the decision is held up.
        world.add("b", b, &[q]);
        world.ask_produce("b", (b, 0), q);
        world.turn_part(q);
        let ended = world.ask_end("b", b, Outcome::Commit);
        world.turn_ledger();
        world.turn_part(p);
        strike(&world, Operation::Write, p, fault);
        let refused = [world.ask_produce("a", (a, 1), p), world.ask_plain("x", p)];
        let described = world.reply();
        world.deliver(Post::Part(p, PartLetter::Describe(described)));
        world.turn_part(p);
        world.sync_part(p);
        for to in refused {
            assert_eq!(world.produced(to), Err(Refusal::KafkaStorageError), "{fault:?}");
        }
        assert!(world.is_answered(described));
        assert_eq!(world.watermark(p), 2, "nothing moved");
        let sealed = world.ask_produce("b", (b, 1), p);
        world.turn_part(p);
        world.sync_part(p);
        assert_eq!(world.produced(sealed), Err(Refusal::ConcurrentTransactions), "the seal holds, {fault:?}");
        world.disk.faults().lift();
        assert_eq!(world.produce("a", (a, 1), p), 2, "the grant holds, and the sequence is free, {fault:?}");
        world.run_to_rest();
        assert_eq!(world.verdict(ended), Ok(()));
        assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
        assert_eq!(world.read_committed(p).len(), 3);
    }
}

#[test]
fn a_seal_in_a_turn_that_found_no_room_notes_where_the_log_ends() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let lost = world.ask_produce("a", (a, 1), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    world.turn_ledger();
    strike(&world, Operation::Write, p, Fault::NoSpace);
    world.turn_part(p);
    world.disk.faults().lift();
    world.run_to_rest();
    assert_eq!(world.produced(lost), Err(Refusal::KafkaStorageError));
    assert_eq!(world.verdict(ended), Ok(()));
    assert!(world.happened(&format!("sealed at {} Closed(1)", p.0)), "{:#?}", world.trace);
    assert!(!world.happened(&format!("sealed at {} Closed(2)", p.0)));
}

#[test]
fn a_failed_sync_ends_the_process_and_answers_nobody() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    let produced = world.ask_produce("a", (a, 0), p);
    strike(&world, Operation::Sync, p, Fault::Io);
    world.run_to_rest();
    assert!(world.broken.is_some());
    assert!(!world.is_answered(produced));
    assert_eq!(world.watermark(p), 0, "nothing of it was shown");
    world.cut_and_restart(Cut::LoseAll, usize::MAX);
    assert_eq!(world.read(p, false).len(), 0);
    world.produce("a", (a, 0), p);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
}

#[test]
fn a_failed_sync_of_a_marker_ends_the_process_and_the_next_one_writes_it() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    while !world.happened("mark at") {
        world.step_anything();
    }
    strike(&world, Operation::Sync, p, Fault::Io);
    world.run_to_rest();
    assert!(world.broken.is_some() && !world.is_answered(ended));
    world.cut_and_restart(Cut::LoseAll, 0);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
    assert_eq!(world.read_committed(p).len(), 1);
}

/// Damages the log of a partition below what is synced, so that its next load finds it.
fn damage(world: &World, part: PartId) {
    let path = world.log_dir(part).join("00000000000000000000.log");
    world.disk.damage(&path, |bytes| bytes[20] ^= 0xff).unwrap();
}

#[test]
fn a_marker_owed_to_a_damaged_partition_is_parked_and_the_id_is_free_after_five_seconds() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p, q]);
    world.produce("a", (a, 0), p);
    world.produce("a", (a, 1), p);
    world.produce("a", (a, 0), q);
    world.stage("a", a, "g", (q, 1));
    let ended = world.ask_end("a", a, Outcome::Commit);
    while !world.happened("mark at") {
        world.step_anything();
    }
    // The partition is read anew after a write that failed, and that shows the damage.
    damage(&world, p);
    strike(&world, Operation::Write, p, Fault::NoSpace);
    let refused = world.ask_plain("x", p);
    world.run_to_rest();
    assert_eq!(world.produced(refused), Err(Refusal::KafkaStorageError));
    assert_eq!(world.published(p).availability, Availability::Damaged);
    world.run_for(501);
    assert_eq!(world.verdict(ended), Err(Refusal::ConcurrentTransactions));
    assert_eq!(world.described("a").state, Shown::PrepareCommit);
    let turns = world.ledger_turns;
    world.run_for(4_500);
    assert!(world.ledger_turns - turns < 50, "{} turns", world.ledger_turns - turns);
    assert_eq!(world.described("a").state, Shown::CompleteCommit);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
    assert_eq!(world.read_committed(q).len(), 1);
    world.add("a", a, &[q]);
    world.produce("a", (a, 1), q);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()), "the id goes on");
    world.run_for(10_000);
    assert_eq!(world.fake().load().owed.len(), 1, "the marker stays owed");
    // And so over a restart: the id is busy for a while, then free again; nothing spins.
    world.disk.faults().lift();
    world.kill_and_restart();
    assert_eq!(world.published(p).availability, Availability::Damaged);
    world.run_for(10_000);
    assert_eq!(world.fake().load().owed.len(), 1);
    world.add("a", a, &[q]);
}

#[test]
fn a_damage_found_in_the_turn_of_the_seal_or_of_the_marker_leaves_nobody_waiting() {
    for at_marker in [false, true] {
        let (mut world, p, _, a) = ready(How::default());
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        let ended = world.ask_end("a", a, Outcome::Commit);
        world.turn_ledger();
        if at_marker {
            while !world.happened("mark at") {
                world.step_anything();
            }
        }
        damage(&world, p);
        strike(&world, Operation::Write, p, Fault::NoSpace);
        let refused = world.ask_plain("x", p);
        world.run_to_rest();
        assert_eq!(world.produced(refused), Err(Refusal::KafkaStorageError), "at the marker: {at_marker}");
        world.run_for(6_000);
        assert_eq!(world.verdict(ended), Err(Refusal::ConcurrentTransactions));
        assert_eq!(world.described("a").state, Shown::CompleteCommit);
    }
}

#[test]
fn a_parked_marker_and_one_that_is_tried_again_do_not_make_the_ledger_spin() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p, q]);
    world.produce("a", (a, 0), p);
    world.produce("a", (a, 0), q);
    damage(&world, p);
    strike(&world, Operation::Write, p, Fault::NoSpace);
    world.ask_plain("x", p);
    world.run_to_rest();
    strike(&world, Operation::Write, q, Fault::NoSpace);
    world.ask_end("a", a, Outcome::Commit);
    let turns = world.ledger_turns;
    world.run_for(20_000);
    assert!(world.ledger_turns - turns < 100, "{} turns", world.ledger_turns - turns);
    world.disk.faults().lift();
    world.run_for(1_001);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()), "both are over");
}

#[test]
fn a_topic_deleted_while_its_end_is_gathered_does_not_stop_the_clock_or_spin() {
    let (mut world, p, q, _) = ready(How::default());
    let gone = world.topic("gone", 1)[0];
    let a = world.init_with("a", 2_000);
    world.add("a", a, &[p]);
    world.stage("a", a, "g", (gone, 1));
    world.stage("a", a, "g", (q, 1));
    world.fake().set(Mood::Well);
    // Fenced, and the seal is not answered: the staged offset's removal touches the id meanwhile.
    let taken = world.ask_init("a", 2_000);
    world.turn_ledger();
    world.ask_delete("gone");
    world.turn_ledger();
    world.advance(2_500);
    world.turn_ledger();
    let deadline = world.owner.as_ref().unwrap().deadline_mono_ms().unwrap();
    assert!(deadline > world.now.mono_ms, "deadline {deadline} stays in the past");
    world.run_to_rest();
    assert_eq!(world.owner_answered(taken), Err(Refusal::ConcurrentTransactions));
    assert_eq!(world.described("a").id, id("a"));
    assert_eq!(world.described("a").state, Shown::CompleteAbort);
}

#[test]
fn a_clean_stop_asks_again_for_its_recovery_point_until_everything_is_on_disk() {
    let (mut world, p, _, _) = ready(How::default());
    let first = world.ask_plain("x", p);
    world.deliver(Post::Part(p, PartLetter::Close));
    world.turn_part(p);
    assert!(!world.is_answered(first), "not on disk");
    assert_eq!(world.watermark(p), 0);
    assert!(!world.happened("to ledger Checkpoint"));
    world.run_to_rest();
    assert!(world.produced(first).is_ok());
    assert!(world.happened("to ledger Checkpoint"));
}

#[test]
fn a_partition_whose_creation_found_no_room_is_durable_when_it_is_opened_later() {
    for after in 0..4 {
        let mut world = World::new(How::default());
        let p = world.topic("t", 1)[0];
        for operation in [Operation::Create, Operation::Write, Operation::Rename] {
            world.disk.faults().add(Rule { after, ..Rule::once(operation, "t-0", Fault::NoSpace) });
        }
        let mut answered = Vec::new();
        for n in 0..8 {
            let to = world.ask_plain(&n.to_string(), p);
            world.run_to_rest();
            match world.produced(to) {
                Ok(produced) => answered.push(produced.base_offset),
                Err(refusal) => assert_eq!(refusal, Refusal::KafkaStorageError),
            }
        }
        assert!(!answered.is_empty());
        world.cut_and_restart(Cut::LoseAll, usize::MAX);
        world.load(p);
        assert_eq!(world.read(p, false).len(), answered.len(), "P1, after {after}");
    }
}
