//! Records leave, and something goes wrong on the way: the power, the disk, the topic.

use std::collections::BTreeSet;
use std::path::Path;

use super::World;
use super::build::How;
use super::ordering::ready;
use super::retention::{ALL_OLD, small};
use super::store::Mood;
use crate::config::{Durability, MarkerSync};
use crate::engine::log::segments::FileKind;
use crate::engine::{Outcome, PartId, Refusal, TopicId};
use crate::runtime::partition::published::Availability;
use crate::store::disk::Disk;
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::Cut;

/// What holds after any crash: one start or the other, all records from there on, the producer's sequence.
fn check_after_a_crash(world: &mut World, p: PartId, what: &str) {
    world.load(p);
    assert_eq!(world.published(p).availability, Availability::Open, "C-76 {what}: no damage: {:#?}", world.tail());
    let log_start = world.log_start(p);
    // 8 begins the active segment, which stays where there is no room for a new one.
    assert!([0, 8, 10].contains(&log_start), "{what}: {log_start}");
    assert_eq!(world.offsets(p), (log_start..10).collect::<Vec<_>>(), "{what}");
    world.check_files(p, &format!("C-76 {what}"));
    assert_eq!(world.idempotent(7, p), Ok(7), "C-64 {what}");
    world.retain(p, ALL_OLD);
    world.run_to_rest();
    assert_eq!((world.log_start(p), world.offsets(p)), (10, vec![]), "{what}");
    world.check_files(p, what);
    assert_eq!(world.idempotent(7, p), Ok(7), "C-64 {what}");
    assert_eq!(world.idempotent(10, p), Ok(10), "{what}");
}

#[test]
fn a_crash_between_any_two_steps_loses_nothing_and_damages_nothing() {
    let cuts = [Cut::LoseAll, Cut::LoseNothing].into_iter().chain((0..12).map(Cut::Seed));
    let mut moved = BTreeSet::new();
    for cut in cuts {
        for steps in 0..9 {
            for extra in [0, usize::MAX] {
                let (mut world, p, ..) = ready(small());
                world.fill(p, 10);
                world.retain(p, ALL_OLD);
                for _ in 0..steps {
                    world.step_anything();
                }
                let shown = world.log_start(p);
                world.cut_and_restart(cut, extra);
                world.load(p);
                assert!(world.log_start(p) >= shown, "what was shown is on disk");
                moved.insert((steps, world.log_start(p)));
                check_after_a_crash(&mut world, p, &format!("{cut:?} after {steps} steps, commits kept {extra}"));
            }
        }
    }
    assert!(moved.contains(&(0, 0)) && moved.contains(&(8, 10)), "{moved:?}");
}

#[test]
fn a_fault_at_any_write_of_it_loses_nothing_and_damages_nothing() {
    let operations = [Operation::Write, Operation::Sync, Operation::Create, Operation::Rename, Operation::Remove];
    let mut broke = 0;
    for (operation, fault) in operations.iter().flat_map(|o| [Fault::NoSpace, Fault::Io].map(|fault| (*o, fault))) {
        for after in 0..12 {
            let (mut world, p, ..) = ready(small());
            world.fill(p, 10);
            let dir = world.log_dir(p).display().to_string();
            world.disk.faults().add(Rule { after, ..Rule::once(operation, &dir, fault) });
            world.retain(p, ALL_OLD);
            world.run_to_rest();
            let what = format!("{fault:?} at {operation:?} {after}");
            if world.broken.is_some() {
                broke += 1;
                assert!(fault == Fault::Io || operation == Operation::Sync, "{what}");
            } else {
                world.disk.faults().lift();
                assert_eq!(world.idempotent(7, p), Ok(7), "C-64 {what}");
                assert_eq!(world.published(p).availability, Availability::Open, "{what}");
            }
            world.cut_and_restart(if after % 2 == 0 { Cut::LoseAll } else { Cut::LoseNothing }, 0);
            check_after_a_crash(&mut world, p, &what);
        }
    }
    assert!(broke > 3, "{broke}");
}

#[test]
fn whoever_asks_too_often_is_not_heard_twice() {
    let (mut world, p, ..) = ready(small());
    world.fill(p, 10);
    for _ in 0..5 {
        world.retain(p, ALL_OLD);
        world.turn_part(p);
        world.retain(p, ALL_OLD);
    }
    world.run_to_rest();
    let moves = world.trace.iter().filter(|line| line.starts_with("to ledger MoveLogStart")).count();
    assert_eq!((moves, world.log_start(p)), (1, 10));
    assert_eq!(world.idempotent(10, p), Ok(10));
    world.advance(1_000);
    world.retain(p, ALL_OLD);
    world.run_to_rest();
    assert_eq!(world.log_start(p), 11, "and heard again afterwards");
    // A log start at the end of the active segment, which is to go only now.
    assert_eq!(world.idempotent(11, p), Ok(11));
    assert_eq!(world.delete_records(p, -1), Ok(12));
    world.advance(1_000);
    world.retain(p, ALL_OLD);
    world.run_to_rest();
    assert_eq!(world.bases(p, |kind| kind == FileKind::Log), BTreeSet::from([12]));
    world.check_files(p, "in the end");
}

#[test]
fn a_row_that_finds_no_room_moves_nothing() {
    let (mut world, p, ..) = ready(small());
    world.fill(p, 10);
    let files = world.bases(p, |kind| kind == FileKind::Log);
    world.fake().set(Mood::Full);
    world.retain(p, ALL_OLD);
    world.run_to_rest();
    assert_eq!(world.delete_records(p, 8), Err(Refusal::KafkaStorageError));
    assert_eq!((world.log_start(p), world.stored_log_start(p)), (0, 0));
    assert!(world.bases(p, |kind| kind == FileKind::Log).is_superset(&files));
    world.fake().set(Mood::Well);
    assert_eq!(world.delete_records(p, 8), Ok(8));
    world.retain(p, ALL_OLD);
    world.run_to_rest();
    assert_eq!(world.log_start(p), 10);
    world.check_files(p, "with room");
}

#[test]
fn a_turn_that_finds_no_room_moves_nothing() {
    let (mut world, p, ..) = ready(small());
    world.fill(p, 10);
    let asked = world.ask_delete_records(p, 8);
    let refused = world.ask_idempotent(10, p);
    let dir = world.log_dir(p).display().to_string();
    world.disk.faults().add(Rule::once(Operation::Write, &dir, Fault::NoSpace));
    world.run_to_rest();
    assert_eq!(world.produced(refused), Err(Refusal::KafkaStorageError));
    assert_eq!(world.log_started(asked), Err(Refusal::KafkaStorageError), "its snapshot spoke of the batch");
    assert_eq!((world.log_start(p), world.offsets(p).len()), (0, 10));
    assert_eq!(world.idempotent(10, p), Ok(10), "the sequence is free");
    assert_eq!(world.delete_records(p, 8), Ok(8));
    assert_eq!(world.offsets(p), (8..11).collect::<Vec<_>>());
}

#[test]
fn a_topic_deleted_on_the_way_takes_everything_along() {
    for steps in 0..9 {
        let mut world = World::new(small());
        let p = world.topic("t", 1)[0];
        world.fill(p, 10);
        world.retain(p, ALL_OLD);
        let asked = world.ask_delete_records(p, 9);
        for _ in 0..steps {
            world.step_anything();
        }
        world.ask_delete("t");
        // A topic that is made again at once has the directory's name, and nothing of the old one's steps touches it.
        let again = world.topic_as(TopicId([9; 16]), "t", 1)[0];
        world.fill(again, 10);
        world.run_to_rest();
        assert!(world.broken.is_none(), "C-76 after {steps} steps: {:?}", world.broken);
        let answered = world.log_started(asked);
        assert!([Ok(9), Ok(10), Err(Refusal::UnknownTopicOrPartition)].contains(&answered), "{steps}: {answered:?}");
        assert_eq!(world.offsets(again), (0..10).collect::<Vec<_>>(), "C-76 after {steps} steps");
        world.kill_and_restart();
        world.load(again);
        assert_eq!(world.offsets(again), (0..10).collect::<Vec<_>>(), "C-76 after {steps} steps");
        let left = world.disk.list(Path::new("")).unwrap();
        assert_eq!(left, ["t-0"], "C-76: no files of the old one");
    }
}

/// A log start inside the last segment needs no snapshot. When more follows, that segment lies wholly below it, and its
/// producers are still in no snapshot: it stays until there is one.
#[test]
fn a_segment_below_the_log_start_stays_until_a_snapshot_stands_for_its_producers() {
    for early in [false, true] {
        let (mut world, p, ..) = ready(small());
        assert_eq!(world.idempotent(0, p), Ok(0));
        world.ask_plain("fills the segment", p);
        world.run_to_rest();
        let to = world.ask_delete_records(p, 2);
        if early {
            world.turn_part(p);
        } else {
            world.run_to_rest();
        }
        // Another segment, before or after the start has been stored.
        for n in 0..6 {
            world.ask_plain(&format!("plain {n}"), p);
            world.turn_part(p);
        }
        world.run_to_rest();
        assert_eq!(world.log_started(to), Ok(2));
        assert!(world.bases(p, |kind| kind == FileKind::Log).contains(&2), "the next segment begins at the start");
        for life in 0..2 {
            assert_eq!(world.idempotent(0, p), Ok(0), "C-64: a duplicate, life {life}, early {early}");
            assert_eq!(world.idempotent(2, p), Err(Refusal::OutOfOrderSequence), "C-64 life {life}, early {early}");
            world.cut_and_restart(Cut::LoseAll, usize::MAX);
            world.load(p);
            assert_eq!(world.log_start(p), 2);
        }
        assert_eq!(world.idempotent(1, p), Ok(8), "C-64: and it goes on, early {early}");
    }
}

/// Readers are shown more than is on disk in these modes. A log start stored above that would be above the log's end
/// after a power cut: damage, or a log that takes nothing any more.
#[test]
fn a_log_start_is_not_stored_above_what_is_on_disk() {
    let (mut world, p, ..) = ready(How { durability: Durability::Relaxed, ..How::default() });
    for n in 0..3 {
        assert_eq!(world.plain(&format!("{n}"), p), Ok(n));
    }
    assert_eq!(world.delete_records(p, -1), Ok(3));
    world.cut_and_restart(Cut::LoseAll, usize::MAX);
    world.load(p);
    assert_eq!((world.log_start(p), world.watermark(p)), (3, 3), "relaxed");
    assert_eq!(world.plain("after", p), Ok(3), "relaxed");

    let (mut world, p, _, a) = ready(How { marker_sync: MarkerSync::Redo, ..How::default() });
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.ask_end("a", a, Outcome::Commit);
    while world.watermark(p) < 2 {
        world.turn_ledger();
        world.flush_rows();
        world.turn_part(p);
    }
    world.ask_delete_records(p, -1);
    for _ in 0..3 {
        world.turn_part(p);
        world.turn_ledger();
        world.flush_rows();
    }
    assert_eq!(world.stored_log_start(p), 0, "redo: the marker is shown, and not on disk");
    world.cut_and_restart(Cut::LoseAll, usize::MAX);
    world.load(p);
    assert_eq!(world.published(p).availability, Availability::Open, "redo");
    assert_eq!(world.plain("after", p), Ok(2), "redo");

    // Once the marker is on disk, it is stored.
    assert_eq!(world.delete_records(p, -1), Ok(3));
}
