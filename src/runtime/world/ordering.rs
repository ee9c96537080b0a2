//! What must be stored, delivered or shown before what: one test for each rule of order.

use super::World;
use super::ask::at;
use super::build::How;
use crate::config::MarkerSync;
use crate::engine::ledger::offsets::Seen;
use crate::engine::{Outcome, PartId, Producer, Refusal};

/// A world with a topic `t` of two partitions and an owner of the id `a`.
pub(super) fn ready(how: How) -> (World, PartId, PartId, Producer) {
    let mut world = World::new(how);
    let parts = world.topic("t", 2);
    world.warm(&parts);
    let producer = world.init("a");
    (world, parts[0], parts[1], producer)
}

#[test]
fn a_grant_is_delivered_before_its_add_is_answered() {
    let (mut world, p, _, a) = ready(How::default());
    let added = world.ask_add("a", a, &[p]);
    world.turn_ledger();
    assert_eq!(world.when("grant") + 1, world.when(&format!("answer {}", added.0)));
}

#[test]
fn an_add_is_answered_when_its_row_is_written_not_flushed_and_the_first_produce_when_row_and_log_are_on_disk() {
    for row_first in [false, true] {
        let (mut world, p, _, a) = ready(How::default());
        let flushed = world.rows.is_at();
        let added = world.ask_add("a", a, &[p]);
        world.turn_ledger();
        assert_eq!(world.verdict(added), Ok(()), "the row is written");
        assert!(world.written > flushed && world.rows.is_at() == flushed, "and not flushed");
        let produced = world.ask_produce("a", (a, 0), p);
        world.turn_part(p);
        assert!(!world.is_answered(produced));
        if row_first {
            world.flush_rows()
        } else {
            world.sync_part(p)
        }
        assert!(!world.is_answered(produced), "one of two is on disk, row first: {row_first}");
        if row_first {
            world.sync_part(p)
        } else {
            world.flush_rows()
        }
        assert!(world.produced(produced).is_ok());
    }
}

#[test]
fn a_staged_offset_is_answered_when_it_is_flushed() {
    let (mut world, p, _, a) = ready(How::default());
    let added = world.ask_add_group("a", a, "g");
    let staged = world.ask_stage("a", a, "g", (p, 5));
    world.turn_ledger();
    assert_eq!(world.verdict(added), Ok(()));
    assert!(!world.is_answered(staged), "the row is not on disk");
    world.flush_rows();
    assert_eq!(world.verdict(staged), Ok(()));
}

#[test]
fn a_refusal_waits_for_what_it_rests_on() {
    let (mut world, p, _, old) = ready(How::default());
    let taken = world.ask_init("a", 60_000);
    let fenced = world.ask_add("a", old, &[p]);
    world.turn_ledger();
    assert!(!world.is_answered(fenced), "a power cut could make the old owner the owner again");
    world.flush_rows();
    assert_eq!(world.verdict(fenced), Err(Refusal::ProducerFenced));
    let new = world.owner_answered(taken).expect("the owner");
    world.add("a", new, &[p]);
    // In a partition: out of order behind a batch that is not on disk.
    let first = world.ask_produce("a", (new, 0), p);
    let third = world.ask_produce("a", (new, 2), p);
    world.turn_part(p);
    assert!(!world.is_answered(third), "the batch that makes it wrong could be lost");
    world.sync_part(p);
    assert_eq!(world.produced(third), Err(Refusal::OutOfOrderSequence));
    assert!(world.produced(first).is_ok());
}

#[test]
fn a_commit_is_decided_when_all_that_was_sealed_is_on_disk_and_an_abort_without_waiting() {
    for outcome in [Outcome::Commit, Outcome::Abort] {
        let (mut world, p, q, a) = ready(How::default());
        world.add("a", a, &[p, q]);
        let data = [world.ask_produce("a", (a, 0), p), world.ask_produce("a", (a, 0), q)];
        world.turn_part(p);
        world.turn_part(q);
        world.ask_end("a", a, outcome);
        world.turn_ledger();
        let before = world.written;
        world.turn_part(p);
        world.turn_part(q);
        world.turn_ledger();
        let decided = |world: &World| world.written > before;
        assert_eq!(decided(&world), outcome == Outcome::Abort, "{outcome:?}: nothing is on disk");
        world.sync_part(p);
        world.turn_ledger();
        assert_eq!(decided(&world), outcome == Outcome::Abort, "{outcome:?}: one partition is on disk");
        world.sync_part(q);
        world.turn_ledger();
        assert!(decided(&world), "{outcome:?}: everything is on disk");
        world.run_to_rest();
        assert!(data.into_iter().all(|to| world.produced(to).is_ok()));
    }
}

#[test]
fn no_marker_is_asked_for_before_its_decision_is_flushed() {
    for outcome in [Outcome::Commit, Outcome::Abort] {
        let (mut world, p, _, a) = ready(How::default());
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        world.ask_end("a", a, outcome);
        world.turn_ledger();
        world.turn_part(p);
        world.turn_ledger();
        assert_eq!(world.fake().load().owed.len(), 1, "decided");
        assert!(!world.happened("mark at"));
        world.flush_rows();
        assert!(world.happened("mark at"));
    }
}

#[test]
fn readers_see_what_is_synced_and_see_it_before_the_answer() {
    let (mut world, p, _, a) = ready(How::default());
    let plain = world.ask_plain("x", p);
    world.turn_part(p);
    assert_eq!(world.watermark(p), 0, "written, not synced");
    world.sync_part(p);
    assert_eq!(world.watermark(p), 1);
    assert!(world.when(&format!("sync {}", p.0)) < world.when(&format!("answer {}", plain.0)));
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    assert_eq!((world.watermark(p), world.last_stable(p)), (2, 1));
    let ended = world.ask_end("a", a, Outcome::Commit);
    while !world.happened("mark at") {
        world.step_anything();
    }
    world.turn_part(p);
    assert_eq!(world.last_stable(p), 1, "the marker is written, not synced");
    world.sync_part(p);
    assert_eq!((world.watermark(p), world.last_stable(p)), (3, 3));
    assert!(!world.is_answered(ended));
    world.turn_ledger();
    assert_eq!(world.verdict(ended), Ok(()));
}

/// Runs until the markers' letters are out.
fn to_markers(world: &mut World) {
    while !world.happened("mark at") {
        assert!(world.step_anything());
    }
}

#[test]
fn end_txn_is_answered_when_every_marker_is_synced() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p, q]);
    world.produce("a", (a, 0), p);
    world.produce("a", (a, 0), q);
    let ended = world.ask_end("a", a, Outcome::Commit);
    to_markers(&mut world);
    world.turn_part(p);
    world.turn_part(q);
    world.sync_part(p);
    world.turn_ledger();
    assert!(!world.is_answered(ended), "a marker is not on disk");
    world.sync_part(q);
    world.turn_ledger();
    assert_eq!(world.verdict(ended), Ok(()));
}

#[test]
fn under_redo_end_txn_is_answered_when_every_marker_is_written_and_shown() {
    let (mut world, p, q, a) = ready(How { marker_sync: MarkerSync::Redo, ..How::default() });
    world.add("a", a, &[p, q]);
    world.produce("a", (a, 0), p);
    world.produce("a", (a, 0), q);
    let ended = world.ask_end("a", a, Outcome::Commit);
    to_markers(&mut world);
    world.turn_part(p);
    world.turn_ledger();
    assert!(!world.is_answered(ended), "a marker is not written");
    world.turn_part(q);
    assert_eq!((world.last_stable(p), world.last_stable(q)), (2, 2), "shown before the answer");
    world.turn_ledger();
    assert_eq!(world.verdict(ended), Ok(()));
    assert_eq!(world.fake().load().owed.len(), 1, "the debt stands until the markers are on disk");
}

#[test]
fn under_redo_a_marker_that_closes_nothing_waits_for_its_sync() {
    let (mut world, p, q, a) = ready(How { marker_sync: MarkerSync::Redo, ..How::default() });
    world.add("a", a, &[p, q]);
    world.produce("a", (a, 0), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    to_markers(&mut world);
    world.turn_part(p);
    world.turn_part(q);
    world.turn_ledger();
    assert_eq!(world.last_stable(p), 2);
    assert_eq!(world.watermark(q), 0, "redo would not write it again");
    assert!(!world.is_answered(ended));
    world.sync_part(q);
    world.turn_ledger();
    assert_eq!(world.verdict(ended), Ok(()));
}

#[test]
fn under_redo_nothing_unsynced_below_a_marker_is_shown_with_it() {
    let (mut world, p, _, a) = ready(How { marker_sync: MarkerSync::Redo, ..How::default() });
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.ask_end("a", a, Outcome::Commit);
    to_markers(&mut world);
    let plain = world.ask_plain("behind the marker", p);
    world.turn_part(p);
    assert_eq!(world.watermark(p), 1, "a plain batch is among the bytes");
    world.sync_part(p);
    assert_eq!(world.watermark(p), 3);
    assert!(world.produced(plain).is_ok());
}

#[test]
fn under_redo_a_marker_behind_unsynced_bytes_waits_for_them() {
    let (mut world, p, _, a) = ready(How { marker_sync: MarkerSync::Redo, ..How::default() });
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    to_markers(&mut world);
    let letter = world.parts.get_mut(&p).unwrap().mail.pop_back().unwrap();
    world.ask_plain("written in a turn of its own", p);
    world.turn_part(p);
    world.parts.get_mut(&p).unwrap().mail.push_back(letter);
    world.turn_part(p);
    world.turn_ledger();
    assert_eq!((world.watermark(p), world.last_stable(p)), (1, 0), "a power cut could take the bytes below");
    assert!(!world.is_answered(ended));
    world.run_to_rest();
    assert_eq!((world.watermark(p), world.last_stable(p)), (3, 3));
}

#[test]
fn offsets_of_a_commit_are_seen_when_its_markers_are_written_and_before_end_txn_is_answered() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.stage("a", a, "g", (q, 9));
    assert_eq!(world.offset("g", q, false), Seen::Absent, "T-247: staged is not committed");
    assert_eq!(world.offset("g", q, true), Seen::Unstable, "T-821");
    let ended = world.ask_end("a", a, Outcome::Commit);
    to_markers(&mut world);
    let command = |world: &mut World| {
        let to = world.ask(crate::runtime::post::Command::FetchOffsets {
            group: super::ask::group("g"),
            parts: Some(vec![q]),
            require_stable: false,
        });
        world.turn_ledger();
        world.flush_rows();
        let crate::runtime::post::Answer::Offsets(offsets) = world.answer(to) else { panic!("not offsets") };
        offsets[0].1.clone()
    };
    assert_eq!(command(&mut world), Seen::Absent, "decided and stored, its marker is not written");
    world.turn_part(p);
    world.sync_part(p);
    // In the very turn that answers EndTxn the offset is there.
    assert_eq!(command(&mut world), Seen::At(at(9)));
    assert_eq!(world.verdict(ended), Ok(()));
    assert_eq!(world.offset("g", q, true), Seen::At(at(9)));
}

#[test]
fn a_debt_is_forgotten_when_every_partition_is_synced_beyond_its_marker() {
    for marker_sync in [MarkerSync::Answer, MarkerSync::Redo] {
        let (mut world, p, q, a) = ready(How { marker_sync, ..How::default() });
        world.add("a", a, &[p, q]);
        world.produce("a", (a, 0), p);
        world.produce("a", (a, 0), q);
        world.ask_end("a", a, Outcome::Commit);
        to_markers(&mut world);
        world.turn_part(p);
        world.turn_part(q);
        world.sync_part(p);
        for _ in 0..5 {
            world.turn_ledger();
            world.flush_rows();
            world.advance(1_000);
        }
        assert_eq!(world.fake().load().owed.len(), 1, "{marker_sync:?}: a marker is not on disk");
        world.sync_part(q);
        world.run_for(2_000);
        assert_eq!(world.fake().load().owed.len(), 0, "{marker_sync:?}");
    }
}

#[test]
fn transactions_back_to_back_never_meet_concurrent_transactions() {
    for marker_sync in [MarkerSync::Answer, MarkerSync::Redo] {
        let (mut world, p, q, a) = ready(How { marker_sync, ..How::default() });
        let mut answers = Vec::new();
        for n in 0..20 {
            // Each request leaves when the one before is answered, and nothing else has come to rest by then.
            let added = world.ask_add("a", a, &[p, q]);
            answers.push(world.until_answered(added));
            let produced = world.ask_produce("a", (a, n), p);
            while !world.is_answered(produced) {
                world.step_anything();
            }
            assert!(world.produced(produced).is_ok(), "{n}");
            let ended = world.ask_end("a", a, if n % 3 == 0 { Outcome::Abort } else { Outcome::Commit });
            answers.push(world.until_answered(ended));
        }
        assert!(answers.iter().all(Result::is_ok), "{marker_sync:?}: {answers:?}");
    }
}

#[test]
fn a_topic_is_made_known_when_it_is_on_disk() {
    let (mut world, _, _, _) = ready(How::default());
    let spec = crate::engine::catalog::CreateTopic::by_defaults("later");
    world.ask(crate::runtime::post::Command::CreateTopics(vec![(spec, crate::engine::TopicId([9; 16]))]));
    world.turn_ledger();
    assert!(world.catalog.topic("later").is_none());
    world.flush_rows();
    assert!(world.catalog.topic("later").is_some());
}

#[test]
fn topics_of_one_turn_are_made_known_with_all_their_partitions() {
    use crate::engine::catalog::CreateTopic;
    use crate::runtime::post::{Command, TopicKey};
    let (mut world, _, _, _) = ready(How::default());
    let make =
        |name: &str, n| Command::CreateTopics(vec![(CreateTopic::by_defaults(name), crate::engine::TopicId([n; 16]))]);
    let delete = |name: &str| Command::DeleteTopics(vec![TopicKey::Name(name.into())]);
    for command in [make("one", 1), make("two", 2), make("gone", 3), delete("gone"), delete("one"), make("one", 4)] {
        world.ask(command);
    }
    world.turn_ledger();
    world.flush_rows();
    let ids = ["one", "two"].map(|name| world.catalog.topic(name).map(|topic| topic.id.0[0]));
    assert_eq!((ids, world.catalog.topic("gone")), ([Some(4), Some(2)], None));
    world.run_to_rest();
    let part = world.catalog.topic("one").expect("made anew").parts[0];
    assert!(world.plain("x", part).is_ok());
}

#[test]
fn an_add_that_is_repeated_is_answered_behind_the_permission_it_repeats() {
    let (mut world, _, _, a) = ready(How::default());
    let p = world.topic("unused", 1)[0];
    let first = world.ask_add("a", a, &[p]);
    world.turn_ledger();
    let again = world.ask_add("a", a, &[p]);
    world.turn_ledger();
    assert!(!world.is_answered(again), "the permission is not in the partition's hands");
    world.flush_rows();
    assert!(world.is_answered(first) && world.is_answered(again));
    assert!(world.parts[&p].mail.iter().any(|letter| matches!(letter, crate::runtime::post::PartLetter::Grant(_))));
}
