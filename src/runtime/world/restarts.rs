//! Starts: what is owed is written first, what logs hold open is taken up again or closed, timeouts count anew.

use super::World;
use super::ask::{at, group};
use super::build::How;
use super::ordering::ready;
use crate::config::{Durability, MarkerSync};
use crate::engine::group::GroupAnswer;
use crate::engine::ledger::offsets::Seen;
use crate::engine::ledger::show::Shown;
use crate::engine::{Claim, Outcome, Producer, Refusal};
use crate::runtime::post::{Command, CommitOffsets};
use crate::store::mem_disk::Cut;

#[test]
fn owed_markers_are_there_before_anybody_is_served() {
    for marker_sync in [MarkerSync::Answer, MarkerSync::Redo] {
        let (mut world, p, q, a) = ready(How { marker_sync, ..How::default() });
        world.add("a", a, &[p, q]);
        world.produce("a", (a, 0), p);
        world.produce("a", (a, 0), q);
        world.stage("a", a, "g", (q, 7));
        world.ask_end("a", a, Outcome::Commit);
        while !world.happened("mark at") {
            world.step_anything();
        }
        world.turn_part(p);
        world.cut_and_restart(Cut::LoseAll, 0);
        let committed = [(a, Outcome::Commit, 1)];
        assert_eq!((world.markers(p), world.markers(q)), (committed.to_vec(), committed.to_vec()));
        assert!(world.fake().load().owed.is_empty(), "forgotten in the same commit");
        assert_eq!(world.offset("g", q, true), Seen::At(at(7)));
        assert_eq!(world.end("a", a, Outcome::Commit), Ok(()), "the repeat succeeds");
    }
}

#[test]
fn a_marker_published_under_redo_comes_back_at_its_offset() {
    let (mut world, p, _, a) = ready(How { marker_sync: MarkerSync::Redo, ..How::default() });
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    while !world.is_answered(ended) {
        // Everything but the sync of the marker.
        if !world.happened("mark at") {
            world.step_anything();
        } else {
            world.turn_part(p);
            world.turn_ledger();
            world.flush_rows();
        }
    }
    let seen = world.read(p, true);
    world.cut_and_restart(Cut::LoseAll, 0);
    let again = world.read(p, true);
    assert_eq!(seen.len(), again.len());
    assert_eq!((seen[1].header.base_offset, seen[1].marker), (again[1].header.base_offset, again[1].marker));
}

#[test]
fn the_trap_of_the_equal_epoch() {
    // Transaction n is decided and its marker written; n+1, of the same epoch, has data; n's debt is not yet
    // forgotten. n's marker must not close n+1 (storage 4.3).
    for first in [Outcome::Commit, Outcome::Abort] {
        let (mut world, p, _, a) = ready(How::default());
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        let ended = world.ask_end("a", a, first);
        world.until_answered(ended).expect("ended");
        let added = world.ask_add("a", a, &[p]);
        world.turn_ledger_with(1);
        world.verdict(added).expect("added");
        let produced = world.ask_produce("a", (a, 1), p);
        world.turn_part(p);
        world.sync_part(p);
        let owed = world.fake().load().owed.len();
        // Of the rows nothing more than what was flushed at the first answer.
        world.cut_and_restart(Cut::LoseNothing, 0);
        assert_eq!(owed, 0, "the add took the debt along, unflushed");
        let _ = produced;
        assert_eq!(world.markers(p).len(), 1, "{first:?}");
        assert_eq!(world.last_stable(p), 2, "n+1 is open");
        assert_eq!(world.described("a").state, Shown::Ongoing, "and taken up again, its row was lost");
        assert_eq!(world.end("a", a, Outcome::Abort), Ok(()));
        let visible = usize::from(first == Outcome::Commit);
        assert_eq!(world.read_committed(p).len(), visible, "n as decided, n+1 aborted");
    }
}

#[test]
fn a_transaction_whose_row_was_lost_is_taken_up_again() {
    let (mut world, p, q, a) = ready(How::default());
    let added = world.ask_add("a", a, &[p, q]);
    world.turn_ledger();
    world.verdict(added).expect("added");
    let produced = [world.ask_produce("a", (a, 0), p), world.ask_produce("a", (a, 0), q)];
    world.turn_part(p);
    world.turn_part(q);
    world.sync_part(p);
    world.sync_part(q);
    assert!(produced.iter().all(|to| !world.is_answered(*to)), "the row is not flushed");
    world.cut_and_restart(Cut::LoseAll, 0);
    let described = world.described("a");
    assert_eq!((described.state, described.parts), (Shown::Ongoing, vec![p, q]));
    world.produce("a", (a, 1), p);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
    assert_eq!((world.read_committed(p).len(), world.read_committed(q).len()), (2, 1));
}

#[test]
fn the_first_permission_ever_of_a_partition_waits_until_a_start_would_look_there() {
    let (mut world, _, _, a) = ready(How::default());
    let p = world.topic("new", 1)[0];
    let added = world.ask_add("a", a, &[p]);
    let ended = world.ask_end("a", a, Outcome::Abort);
    world.turn_ledger();
    assert!(!world.is_answered(added) && !world.happened(&format!("grant 1 to {}", p.0)));
    // The grant comes behind the seal, and opens nothing.
    world.flush_rows();
    let late = world.ask_produce("a", (a, 0), p);
    world.turn_part(p);
    assert_eq!(world.produced(late), Err(Refusal::ConcurrentTransactions));
    world.run_to_rest();
    assert_eq!((world.verdict(added), world.verdict(ended)), (Ok(()), Ok(())));
    assert_eq!(world.last_stable(p), world.watermark(p));
}

#[test]
fn nobody_writes_to_a_partition_before_its_first_permission_is_on_disk() {
    for same_turn in [false, true] {
        let (mut world, _, _, a) = ready(How::default());
        let (b, c) = (world.init("b"), world.init("c"));
        let p = world.topic("new", 1)[0];
        let first = world.ask_add("a", a, &[p]);
        if !same_turn {
            world.turn_ledger();
        }
        let second = world.ask_add("b", b, &[p]);
        let verified = world.ask_verify("b", b, p);
        world.turn_ledger();
        let waiting = [first, second, verified];
        assert!(waiting.iter().all(|to| !world.is_answered(*to)), "same turn: {same_turn}");
        world.flush_rows();
        assert!(waiting.iter().all(|to| world.verdict(*to) == Ok(())), "same turn: {same_turn}");
        let later = world.ask_add("c", c, &[p]);
        world.turn_ledger();
        assert_eq!(world.verdict(later), Ok(()), "written, and the first one is on disk");
    }
}

#[test]
fn timeouts_count_anew_after_a_restart() {
    let (mut world, p, _, _) = ready(How::default());
    let a = world.init_with("a", 10_000);
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.run_for(9_000);
    world.kill_and_restart();
    world.run_for(9_999);
    assert_eq!(world.described("a").state, Shown::Ongoing);
    world.run_for(2);
    assert_eq!(world.described("a").state, Shown::CompleteAbort);
}

#[test]
fn an_open_transaction_goes_on_after_a_restart() {
    for sqlite in [false, true] {
        let how = How::default();
        let mut world = if sqlite { World::on_sqlite(how) } else { World::new(how) };
        let p = world.topic("t", 1)[0];
        let a = world.init("a");
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        world.stage("a", a, "g", (p, 4));
        world.member("h", "m-1");
        world.kill_and_restart();
        assert_eq!(world.produce("a", (a, 0), p), 0, "a batch sent again is stored once");
        world.produce("a", (a, 1), p);
        assert_eq!(world.offset("g", p, true), Seen::Unstable);
        assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
        assert_eq!(world.read_committed(p).len(), 2);
        assert_eq!(world.offset("g", p, true), Seen::At(at(4)));
        world.kill_and_restart();
        assert_eq!(world.end("a", a, Outcome::Commit), Ok(()), "the repeat, over one more restart");
        assert_eq!(world.init("a"), Producer { epoch: 1, ..a });
        assert_ne!(world.init("b").id, a.id);
    }
}

#[test]
fn who_was_fenced_stays_fenced_over_a_restart() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let taken = world.ask_init("a", 60_000);
    world.run_to_rest();
    world.answer(taken);
    let b = world.init("a");
    world.cut_and_restart(Cut::LoseAll, 0);
    let zombie = world.ask_produce("a", (a, 1), p);
    let ended = world.ask_end("a", a, Outcome::Commit);
    world.run_to_rest();
    assert_eq!(world.produced(zombie), Err(Refusal::InvalidProducerEpoch));
    assert_eq!(world.verdict(ended), Err(Refusal::ProducerFenced));
    world.add("a", b, &[p]);
}

#[test]
fn an_orphan_is_closed_so_that_no_last_stable_offset_hangs_on_it() {
    // A log with an open transaction of which the rows know nothing: rows older than the log.
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
    world.kill_and_restart();
    assert_eq!(world.last_stable(p), world.watermark(p));
    let closed = *world.markers(p).last().unwrap();
    assert_eq!((closed.0, closed.1), (Producer { epoch: c.epoch + 1, ..c }, Outcome::Abort));
    assert_eq!(world.read_committed(p).len(), 0);
}

#[test]
fn a_relaxed_broker_survives_a_kill() {
    let (mut world, p, _, a) = ready(How { durability: Durability::Relaxed, ..How::default() });
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
    world.kill_and_restart();
    assert_eq!(world.read_committed(p).len(), 1);
}

#[test]
fn a_group_is_as_it_was_after_a_restart_c_75() {
    for sqlite in [false, true] {
        let how = How::default();
        let mut world = if sqlite { World::on_sqlite(how) } else { World::new(how) };
        let p = world.topic("t", 1)[0];
        let claim = world.member("g", "m-1");
        let old = Claim { generation: claim.generation - 1, ..claim.clone() };
        let commit = |world: &mut World, claim: &Claim, offset| {
            let (group, claim, offsets) = (group("g"), claim.clone(), vec![(p, at(offset))]);
            let to = world.ask(Command::CommitOffsets(CommitOffsets { group, claim, offsets, retention_ms: None }));
            world.run_to_rest();
            world.verdict(to)
        };
        assert_eq!(commit(&mut world, &claim, 7), Ok(()));
        world.kill_and_restart();
        assert_eq!(world.offset("g", p, true), Seen::At(at(7)));
        let beat = world.ask(Command::Heartbeat(group("g"), claim.clone()));
        world.run_to_rest();
        let GroupAnswer::Heartbeat(beat) = world.grouped(beat) else { panic!("not a heartbeat") };
        assert!(commit(&mut world, &old, 3).is_err(), "the old generation, sqlite {sqlite}");
        match beat {
            // Either the member goes on, or it is sent to join again and may not write meanwhile.
            Ok(()) => assert_eq!(commit(&mut world, &claim, 8), Ok(())),
            Err(refusal) => {
                assert!(matches!(refusal, Refusal::UnknownMemberId | Refusal::RebalanceInProgress), "{refusal:?}");
                assert!(commit(&mut world, &claim, 8).is_err());
                let again = world.member("g", "m-2");
                assert!(again.generation > claim.generation);
                assert_eq!(commit(&mut world, &again, 8), Ok(()));
            }
        }
        assert!(commit(&mut world, &old, 3).is_err());
        assert_eq!(world.offset("g", p, true), Seen::At(at(8)), "sqlite {sqlite}");
    }
}
