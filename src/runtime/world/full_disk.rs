//! A disk without room below the partitions: markers get what was set aside, debts are kept, nothing ends the process.

use super::World;
use super::build::How;
use super::ordering::ready;
use super::retention::{ALL_OLD, small};
use super::store::Mood;
use crate::config::MarkerSync;
use crate::engine::ledger::show::Shown;
use crate::engine::{Outcome, PartId, Producer, Refusal};
use crate::runtime::partition::published::Availability;
use crate::store::disk::Disk;
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::Cut;
use crate::store::space::{Limits, Renewed};

const MODES: [MarkerSync; 2] = [MarkerSync::Answer, MarkerSync::Redo];

/// A world that sets aside room for markers.
fn spared(marker_sync: MarkerSync) -> (World, PartId, PartId, Producer) {
    let limits = Limits { reserve_bytes: 4096, ..Limits::OFF };
    ready(How { marker_sync, limits, ..How::default() })
}

impl World {
    /// The disk holds no byte more than it does.
    fn fill_disk(&self) {
        self.disk.set_capacity(self.disk.used_bytes());
    }

    fn make_room(&self) {
        self.disk.set_capacity(u64::MAX);
    }

    fn set_aside(&self) {
        self.part_settings.space.measure().unwrap();
        assert!(matches!(self.part_settings.space.renew_reserve(), Ok(Renewed::Made)));
    }

    /// Until markers are asked for, and no further.
    fn until_marked(&mut self) {
        while !self.happened("mark at") {
            self.step_anything();
        }
    }
}

#[test]
fn a_marker_gets_what_was_set_aside_and_records_do_not_c_66() {
    for mode in MODES {
        let (mut world, p, q, a) = spared(mode);
        world.add("a", a, &[p, q]);
        world.produce("a", (a, 0), p);
        world.produce("a", (a, 0), q);
        world.set_aside();
        world.fill_disk();
        assert_eq!(world.plain("x", p), Err(Refusal::KafkaStorageError), "{mode:?}");
        assert_eq!(world.part_settings.space.times_spent(), 0, "8.2: not for records");
        assert_eq!(world.end("a", a, Outcome::Commit), Ok(()), "{mode:?}");
        assert_eq!((world.part_settings.space.times_spent(), world.markers(p).len()), (1, 1));
        assert_eq!(world.read_committed(q).len(), 1);
        world.make_room();
        assert_eq!(world.plain("x", p), Ok(2));
    }
}

#[test]
fn a_marker_without_any_room_is_written_when_there_is_some_c_66() {
    for mode in MODES {
        let (mut world, p, _, a) = ready(How { marker_sync: mode, ..How::default() });
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        world.fill_disk();
        let ended = world.ask_end("a", a, Outcome::Commit);
        world.run_for(20_000);
        assert_eq!(world.verdict(ended), Err(Refusal::ConcurrentTransactions));
        assert_eq!(world.described("a").state, Shown::PrepareCommit);
        assert!(world.read_committed(p).is_empty() && world.broken.is_none());
        world.make_room();
        world.run_for(2_000);
        assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
        assert_eq!(world.read_committed(p).len(), 1);
    }
}

#[test]
fn a_start_that_has_no_room_for_a_marker_keeps_the_debt_and_serves_nobody_there_before_it_is_paid_c_66() {
    for mode in MODES {
        for cut in [Cut::LoseAll, Cut::LoseNothing] {
            let (mut world, p, q, a) = ready(How { marker_sync: mode, ..How::default() });
            world.plain("other", q).unwrap();
            world.add("a", a, &[p]);
            world.produce("a", (a, 0), p);
            world.stage("a", a, "g", (q, 1));
            world.ask_end("a", a, Outcome::Commit);
            world.until_marked();
            world.fill_disk();
            world.cut_and_restart(cut, usize::MAX);
            let what = format!("{mode:?} {cut:?}");
            for _ in 0..3 {
                assert_eq!(world.published(p).availability, Availability::Unloaded, "storage rule O: {what}");
                assert_eq!(world.plain("x", p), Err(Refusal::KafkaStorageError), "{what}");
                world.load(p);
                world.run_for(3_000);
            }
            assert_eq!(world.fake().load().owed.len(), 1, "{what}");
            assert_eq!(world.described("a").state, Shown::PrepareCommit, "{what}");
            // A restart over a full disk again keeps it, too.
            world.cut_and_restart(cut, usize::MAX);
            assert_eq!(world.published(p).availability, Availability::Unloaded, "{what}");
            world.make_room();
            let to = world.ask_plain("x", p);
            world.run_to_rest();
            assert_eq!(world.produced(to).map(|produced| produced.base_offset), Ok(2), "behind the marker: {what}");
            world.run_for(3_000);
            assert_eq!(world.markers(p), [(a, Outcome::Commit, 1)], "once: {what}");
            assert_eq!(world.end("a", a, Outcome::Commit), Ok(()), "{what}");
            assert!(world.fake().load().owed.is_empty(), "{what}");
            assert_eq!(world.read_committed(p).len(), 2, "{what}");
        }
    }
}

#[test]
fn a_start_on_a_full_disk_gives_up_what_was_set_aside_for_what_is_owed() {
    for mode in MODES {
        let (mut world, p, _, a) = spared(mode);
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        world.set_aside();
        world.ask_end("a", a, Outcome::Abort);
        world.until_marked();
        world.fill_disk();
        world.cut_and_restart(Cut::LoseNothing, usize::MAX);
        assert_eq!(world.published(p).availability, Availability::Open, "{mode:?}");
        assert_eq!(world.markers(p), [(a, Outcome::Abort, 1)], "{mode:?}");
        assert_eq!(world.part_settings.space.times_spent(), 1, "{mode:?}");
    }
}

#[test]
fn an_orphan_that_a_start_had_no_room_to_close_is_closed_before_anybody_is_served() {
    let (mut world, p, _, _) = ready(How::default());
    let b = world.init("b");
    world.add("b", b, &[p]);
    assert_eq!(world.end("b", b, Outcome::Abort), Ok(()));
    world.run_for(2_000);
    let older = world.fake().after_cut(world.fake().may_keep().1);
    let c = world.init("c");
    world.add("c", c, &[p]);
    world.produce("c", (c, 0), p);
    world.db = super::Db::Fake(older);
    world.fill_disk();
    world.kill_and_restart();
    assert_eq!(world.published(p).availability, Availability::Unloaded);
    world.make_room();
    world.load(p);
    assert_eq!(world.published(p).availability, Availability::Open);
    assert_eq!(world.last_stable(p), world.watermark(p));
    assert_eq!(world.read_committed(p).len(), 0);
}

#[test]
fn no_room_to_read_a_partition_anew_ends_nothing_and_forgets_no_permission_c_66() {
    for outcome in [Outcome::Commit, Outcome::Abort] {
        let (mut world, p, _, a) = ready(How::default());
        let b = world.init("b");
        world.add("a", a, &[p]);
        world.add("b", b, &[p]);
        world.produce("a", (a, 0), p);
        world.produce("b", (b, 0), p);
        world.close(p);
        world.plain("2", p).unwrap();
        let dir = world.log_dir(p).display().to_string();
        // The write fails, and so does whatever a reading anew would have to write.
        world.disk.faults().add(Rule::always(Operation::Write, &format!("{dir}/"), Fault::NoSpace));
        world.disk.remove(&world.log_dir(p).join("partition.metadata")).unwrap();
        assert_eq!(world.plain("x", p), Err(Refusal::KafkaStorageError));
        assert!(world.broken.is_none() && world.parts[&p].place.waits_for_room());
        // Letters of every kind meanwhile.
        let ended = world.ask_end("a", a, outcome);
        let produced = world.ask_produce("b", (b, 1), p);
        world.run_for(2_000);
        assert_eq!(world.produced(produced), Err(Refusal::KafkaStorageError));
        assert!(world.is_answered(ended));
        assert_eq!(world.watermark(p), 3, "readers keep what they had");
        world.disk.faults().lift();
        world.load(p);
        world.run_for(2_000);
        assert_eq!(world.end("a", a, outcome), Ok(()), "{outcome:?}");
        assert_eq!(world.produce("b", (b, 1), p), 4, "the permission holds");
        assert_eq!(world.end("b", b, Outcome::Commit), Ok(()));
    }
}

#[test]
fn the_ledger_is_no_longer_said_to_refuse_when_all_steps_found_room_one_by_one() {
    let (mut world, p, q, _) = ready(How::default());
    world.fake().set(Mood::FullAbove(2));
    let commits = [world.ask_commit("g", p, 3), world.ask_commit("g", q, 4)];
    world.run_to_rest();
    for to in commits {
        assert_eq!(world.verdict(to), Ok(()));
    }
    assert_eq!(world.owner.as_ref().unwrap().refuses(), None);
    world.fake().set(Mood::Full);
    let refused = world.ask_commit("g", p, 5);
    world.run_to_rest();
    assert_eq!(world.verdict(refused), Err(Refusal::NotCoordinator));
    assert!(world.owner.as_ref().unwrap().refuses().is_some());
    world.deliver(crate::runtime::post::Post::Ledger(crate::runtime::post::LedgerLetter::Room));
    world.run_to_rest();
    assert_eq!(world.owner.as_ref().unwrap().refuses(), None, "there is room by measure");
}

#[test]
fn an_orphan_in_a_partition_that_a_start_had_no_room_to_open_is_closed_when_it_is_opened() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.close(p);
    let older = world.fake().after_cut(world.fake().may_keep().1);
    let c = world.init("c");
    world.add("c", c, &[p]);
    world.produce("c", (c, 0), p);
    world.db = super::Db::Fake(older);
    let dir = world.log_dir(p);
    let disk = world.disk.killed();
    // What an opening has to write finds no room.
    disk.remove(&dir.join("partition.metadata")).unwrap();
    disk.faults().add(Rule::always(Operation::Write, &format!("{}/", dir.display()), Fault::NoSpace));
    world.restart(disk, usize::MAX);
    assert_eq!(world.published(p).availability, Availability::Unloaded, "no room");
    world.disk.faults().lift();
    world.load(p);
    assert_eq!(world.published(p).availability, Availability::Open);
    assert_eq!(world.markers(p), [(c, Outcome::Abort, 2)], "and not the one that the ledger knows");
    // Its permission is given anew when it is asked for.
    let verified = world.ask_verify("a", a, p);
    world.run_to_rest();
    assert_eq!(world.verdict(verified), Ok(()));
    world.produce("a", (a, 1), p);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
    assert_eq!((world.last_stable(p), world.read_committed(p).len()), (world.watermark(p), 2));
}

#[test]
fn what_has_expired_goes_though_the_disk_is_full() {
    for reserve_bytes in [0, 4096] {
        let limits = Limits { reserve_bytes, ..Limits::OFF };
        let (mut world, p, ..) = ready(How { limits, ..small() });
        world.fill(p, 12);
        if reserve_bytes > 0 {
            world.set_aside();
        }
        world.fill_disk();
        world.retain(p, ALL_OLD);
        world.run_to_rest();
        let gone = world.log_start(p) > 0;
        assert_eq!(gone, reserve_bytes > 0, "its snapshot needs room, and is what frees some");
        assert!(world.broken.is_none());
        world.make_room();
        world.retain(p, ALL_OLD);
        world.run_to_rest();
        assert_eq!(world.log_start(p), 12, "with room all of it goes");
    }
}
