//! Markers that a tool asks for: whatever they meet, the logs say afterwards what the ledger says.

use super::World;
use super::build::How;
use super::invariants::{all_at_rest, nothing_hangs};
use super::ordering::ready;
use super::store::Mood;
use crate::config::{Durability, MarkerSync};
use crate::engine::ledger::offsets::Seen;
use crate::engine::ledger::show::Shown;
use crate::engine::partition::{AdminMark, Grant, MarkOrder, Protocol};
use crate::engine::{Offset, Outcome, PartId, Producer, Refusal, ReplyTo};
use crate::runtime::post::{Command, LedgerLetter, PartLetter, Post};
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::Cut;

impl World {
    fn ask_tool(&mut self, producer: Producer, parts: &[PartId]) -> Vec<ReplyTo> {
        let mark = AdminMark { producer, outcome: Outcome::Abort, coordinator_epoch: 9, protocol: Protocol::Classic };
        let parts: Vec<(PartId, ReplyTo)> = parts.iter().map(|part| (*part, self.reply())).collect();
        let waiting: Vec<ReplyTo> = parts.iter().map(|(_, to)| *to).collect();
        self.deliver(Post::Ledger(LedgerLetter::Ask(waiting[0], Command::WriteMarkers { mark, parts })));
        waiting
    }

    fn tool(&mut self, producer: Producer, parts: &[PartId]) -> Vec<Result<(), Refusal>> {
        let waiting = self.ask_tool(producer, parts);
        self.run_to_rest();
        waiting.into_iter().map(|to| self.verdict(to)).collect()
    }

    fn operator_abort(&mut self, id: &str) -> Result<(), Refusal> {
        let asked = self.ask(Command::AbortTxn { id: id.into() });
        self.run_to_rest();
        self.verdict(asked)
    }

    /// Leaves a transaction open in a log that no coordinator knows of: one record, which must be the producer's next.
    fn hang(&mut self, (producer, sequence): (Producer, i32), part: PartId) -> Offset {
        let grant = Grant { txn: "lost".into(), producer, txn_no: 1 << 40, row: 0 };
        let number = grant.txn_no;
        self.deliver(Post::Part(part, PartLetter::Grant(grant)));
        let first = self.produce("lost", (producer, sequence), part);
        // An order about what lies below: nothing is written for it, and the permission is gone.
        let order = MarkOrder {
            producer,
            outcome: Outcome::Abort,
            coordinator_epoch: 0,
            sealed_end: 0,
            txn_no: Some(number),
            redo: true,
        };
        self.deliver(Post::Part(part, PartLetter::Mark(vec![(1 << 41, order)])));
        self.run_to_rest();
        assert_eq!(self.last_stable(part), first, "it hangs");
        first
    }
}

#[test]
fn a_transaction_that_the_ledger_knows_is_aborted_as_a_whole() {
    for marker_sync in [MarkerSync::Answer, MarkerSync::Redo] {
        let (mut world, p, q, a) = ready(How { marker_sync, ..How::default() });
        world.add("a", a, &[p, q]);
        world.produce("a", (a, 0), p);
        world.produce("a", (a, 0), q);
        world.stage("a", a, "g", (q, 7));
        let asked = world.ask_tool(a, &[p])[0];
        while !world.happened("mark at") {
            world.step_anything();
        }
        world.turn_part(p);
        world.turn_part(q);
        if marker_sync == MarkerSync::Answer {
            assert!(!world.is_answered(asked), "T-409: its markers are not on disk");
        }
        world.run_to_rest();
        assert_eq!(world.verdict(asked), Ok(()), "T-846 R");
        let fence = Producer { epoch: a.epoch + 1, ..a };
        for part in [p, q] {
            assert_eq!(world.markers(part), [(fence, Outcome::Abort, 1)], "T-846 R");
            assert_eq!((world.read_committed(part).len(), world.last_stable(part)), (0, 2));
        }
        assert_eq!(world.offset("g", q, true), Seen::Absent);
        assert_eq!(world.described("a").state, Shown::CompleteAbort);
        assert_eq!(world.end("a", a, Outcome::Commit), Err(Refusal::ProducerFenced), "its producer is told");
        assert_eq!(world.tool(a, &[p]), [Err(Refusal::InvalidProducerEpoch)], "T-406: there is a newer epoch");
        let next = world.init("a");
        world.add("a", next, &[p]);
        world.produce("a", (next, 0), p);
        assert_eq!(world.end("a", next, Outcome::Commit), Ok(()));
        assert_eq!(world.read_committed(p).len(), 1);
        nothing_hangs(&world);
        world.run_for(2_000);
        all_at_rest(&world);
    }
}

#[test]
fn many_partitions_of_one_request_are_judged_on_one_state() {
    let (mut world, p, q, a) = ready(How::default());
    let gone = PartId(99);
    world.add("a", a, &[p, q]);
    world.produce("a", (a, 0), p);
    assert_eq!(world.tool(a, &[q, p, gone, q]), [Ok(()), Ok(()), Err(Refusal::UnknownTopicOrPartition), Ok(())]);
    assert_eq!((world.markers(p).len(), world.markers(q).len()), (1, 1));
}

/// A commit and a tool's abort meet after any number of steps, and the power goes after any number of more: both
/// partitions show the transaction or neither does, and who was told something was told the truth.
#[test]
fn a_tool_tears_no_transaction_whenever_it_comes() {
    let mut met = std::collections::BTreeSet::new();
    for marker_sync in [MarkerSync::Answer, MarkerSync::Redo] {
        for (before, after) in (0..14).flat_map(|before| [1, 2, 3, 5, 8, 13, 99].map(|after| (before, after))) {
            for cut in [None, Some(Cut::LoseAll), Some(Cut::LoseNothing), Some(Cut::Seed(before + 31 * after))] {
                let (mut world, p, q, a) = ready(How { marker_sync, ..How::default() });
                world.add("a", a, &[p, q]);
                world.ask_produce("a", (a, 0), p);
                world.ask_produce("a", (a, 0), q);
                let committed = world.ask_end("a", a, Outcome::Commit);
                for _ in 0..before {
                    world.step_anything();
                }
                let aborted = world.ask_tool(a, &[q])[0];
                for _ in 0..after {
                    world.step_anything();
                }
                let told = |world: &mut World, to| world.is_answered(to).then(|| world.verdict(to));
                let told = (told(&mut world, committed), told(&mut world, aborted));
                let line = format!("{marker_sync:?} {before} {after} {cut:?}: {told:?}");
                if let Some(cut) = cut {
                    world.cut_and_restart(cut, 0);
                    world.load(p);
                    world.load(q);
                }
                nothing_hangs(&world);
                world.run_for(120_000);
                let seen = (world.read_committed(p).len(), world.read_committed(q).len());
                assert!(seen == (0, 0) || seen == (1, 1), "P2, {line}: {seen:?}");
                match told.0 {
                    Some(Ok(())) => assert_eq!(seen, (1, 1), "P1, {line}"),
                    Some(Err(Refusal::ProducerFenced)) => assert_eq!(seen, (0, 0), "{line}"),
                    Some(Err(other)) => panic!("{line}: {other:?}"),
                    None => {}
                }
                // Told that it was done, a tool that came when all was over has ended nothing.
                let over = world.markers(q).len() > 1;
                assert!(told.1 != Some(Ok(())) || over || seen == (0, 0), "{line}");
                assert!(told.1 != Some(Err(Refusal::InvalidTxnState)) || seen == (1, 1), "{line}");
                met.insert((told, seen));
                all_at_rest(&world);
            }
        }
    }
    let fenced = Some(Err(Refusal::ProducerFenced));
    for outcome in
        [(fenced, Some(Ok(()))), (Some(Ok(())), Some(Err(Refusal::InvalidTxnState))), (Some(Ok(())), Some(Ok(())))]
    {
        assert!(met.iter().any(|(told, _)| *told == outcome), "never met: {outcome:?} in {met:?}");
    }
}

#[test]
fn what_hangs_in_a_log_is_ended_there_alone() {
    for durability in [Durability::Strict, Durability::Relaxed] {
        let (mut world, p, q, a) = ready(How { durability, ..How::default() });
        world.add("a", a, &[q]);
        world.produce("a", (a, 0), q);
        let first = world.hang((a, 0), p);
        world.plain("behind", p).expect("stored");
        let asked = world.ask_tool(a, &[p])[0];
        world.turn_ledger();
        world.turn_part(p);
        if durability == Durability::Strict {
            assert!(!world.is_answered(asked) && world.last_stable(p) == first, "T-409: it is not on disk");
        }
        world.run_to_rest();
        assert_eq!(world.verdict(asked), Ok(()));
        assert_eq!(world.markers(p), [(a, Outcome::Abort, 2)], "T-404: the epoch is the tool's");
        assert_eq!((world.last_stable(p), world.read_committed(p).len()), (3, 1), "T-505");
        assert_eq!(world.last_stable(q), 0, "what the ledger knows stays as it is");
        let again = world.ask_tool(a, &[p])[0];
        world.run_to_rest();
        assert_eq!(world.verdict(again), Ok(()), "T-408: nothing is open, and it is written all the same");
        assert_eq!(world.markers(p).len(), 2);
        if durability == Durability::Strict {
            world.cut_and_restart(Cut::LoseAll, usize::MAX);
            world.load(p);
            assert_eq!((world.markers(p).len(), world.read_committed(p).len()), (2, 1), "P1");
        }
        assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
        assert_eq!(world.read_committed(q).len(), 1);
        nothing_hangs(&world);
    }
}

/// The permission of a transaction that begins behind the tool's request comes behind its marker.
#[test]
fn a_transaction_that_begins_behind_a_tool_is_not_ended_by_it() {
    for together in [false, true] {
        let (mut world, p, _, a) = ready(How::default());
        let first = world.hang((a, 0), p);
        let asked = world.ask_tool(a, &[p])[0];
        if !together {
            world.turn_ledger();
        }
        let added = world.ask_add("a", a, &[p]);
        world.turn_ledger();
        assert_eq!(world.verdict(added), Ok(()));
        let produced = world.ask_produce("a", (a, 1), p);
        world.run_to_rest();
        assert_eq!(world.verdict(asked), Ok(()));
        assert_eq!(world.produced(produced).map(|produced| produced.base_offset), Ok(first + 2));
        assert_eq!(world.last_stable(p), first + 2, "the next transaction is open, together: {together}");
        assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
        assert_eq!(world.read_committed(p).len(), 1);
        // And one that had begun before it ends as a whole.
        world.add("a", a, &[p]);
        world.produce("a", (a, 2), p);
        assert_eq!(world.tool(a, &[p]), [Ok(())]);
        assert_eq!(world.described("a").state, Shown::CompleteAbort);
    }
}

#[test]
fn without_room_for_the_decision_a_tool_is_told_to_come_again_and_it_is_taken_later() {
    let (mut world, p, q, a) = ready(How::default());
    world.add("a", a, &[p, q]);
    world.produce("a", (a, 0), p);
    world.fake().set(Mood::Full);
    let committed = world.ask_end("a", a, Outcome::Commit);
    let aborted = world.ask_tool(a, &[p])[0];
    world.run_to_rest();
    assert_eq!(world.verdict(aborted), Err(Refusal::NotCoordinator));
    assert_eq!(world.verdict(committed), Err(Refusal::NotCoordinator));
    assert_eq!(world.last_stable(p), 0);
    world.fake().set(Mood::Well);
    world.run_for(2_000);
    assert_eq!(world.described("a").state, Shown::CompleteAbort);
    assert_eq!((world.last_stable(p), world.markers(q).len()), (2, 1));
    nothing_hangs(&world);
}

#[test]
fn a_tool_waits_for_the_abort_that_is_being_carried_out_and_longer_than_a_client() {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    let dir = world.log_dir(p).display().to_string();
    world.disk.faults().add(Rule::always(Operation::Write, &format!("{dir}/"), Fault::NoSpace));
    let ended = world.ask_end("a", a, Outcome::Abort);
    world.run_to_rest();
    let asked = world.ask_tool(a, &[p])[0];
    world.run_for(10_000);
    assert_eq!(world.verdict(ended), Err(Refusal::ConcurrentTransactions));
    assert!(!world.is_answered(asked));
    world.disk.faults().lift();
    world.run_for(2_000);
    assert_eq!(world.verdict(asked), Ok(()));
    assert_eq!(world.markers(p).len(), 1, "one marker, the decision's");
}

#[test]
fn where_nothing_can_be_written_a_tool_is_told_so() {
    let (mut world, p, q, a) = ready(How::default());
    let first = world.hang((a, 0), p);
    let dir = world.log_dir(p).display().to_string();
    world.disk.faults().add(Rule::always(Operation::Write, &format!("{dir}/"), Fault::NoSpace));
    assert_eq!(world.tool(a, &[p]), [Err(Refusal::KafkaStorageError)]);
    assert_eq!((world.last_stable(p), world.markers(p).len()), (first, 0), "it hangs as before");
    world.disk.faults().lift();
    assert_eq!(world.tool(Producer { id: a.id, epoch: a.epoch + 1 }, &[p]), [Err(Refusal::InvalidProducerEpoch)]);
    assert_eq!(world.tool(a, &[p, q]), [Ok(()), Ok(())]);
    assert_eq!(world.last_stable(p), 2);
    world.ask_delete("t");
    world.run_to_rest();
    assert_eq!(world.tool(a, &[p]), [Err(Refusal::UnknownTopicOrPartition)]);
}

#[test]
fn an_operators_abort_is_answered_when_the_markers_are_on_disk() {
    for marker_sync in [MarkerSync::Answer, MarkerSync::Redo] {
        let (mut world, p, _, a) = ready(How { marker_sync, ..How::default() });
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        let asked = world.ask(Command::AbortTxn { id: "a".into() });
        while !world.happened("mark at") {
            assert!(!world.is_answered(asked), "nothing is decided");
            world.step_anything();
        }
        world.turn_part(p);
        if marker_sync == MarkerSync::Answer {
            assert!(!world.is_answered(asked), "its marker is not on disk");
        }
        world.run_to_rest();
        assert_eq!(world.verdict(asked), Ok(()));
        assert_eq!(world.markers(p), [(Producer { epoch: a.epoch + 1, ..a }, Outcome::Abort, 1)]);
        assert_eq!(world.end("a", a, Outcome::Commit), Err(Refusal::ProducerFenced));
        assert_eq!(world.operator_abort("a"), Err(Refusal::InvalidTxnState), "nothing is open");
        assert_eq!(world.operator_abort("b"), Err(Refusal::TransactionalIdNotFound));
    }
}

/// A transaction of `a` on `p`, whose abort an operator asked for in vain.
fn refused_for_want_of_room() -> (World, PartId, Producer) {
    let (mut world, p, _, a) = ready(How::default());
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    world.fake().set(Mood::Full);
    assert_eq!(world.operator_abort("a"), Err(Refusal::NotCoordinator));
    world.fake().set(Mood::Well);
    (world, p, a)
}

#[test]
fn an_operator_who_was_refused_for_want_of_room_has_changed_nothing() {
    let (mut world, p, a) = refused_for_want_of_room();
    world.run_for(10_000);
    assert_eq!((world.described("a").state, world.markers(p)), (Shown::Ongoing, vec![]), "nor later");
    world.produce("a", (a, 1), p);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
    assert_eq!(world.read_committed(p).len(), 2);
}

#[test]
fn a_transaction_still_times_out_after_an_operator_was_refused() {
    let (mut world, p, _) = refused_for_want_of_room();
    let timeout_ms = world.described("a").timeout_ms;
    world.run_for(i64::from(timeout_ms) + 1_000);
    assert_eq!(world.described("a").state, Shown::CompleteAbort);
    assert_eq!(world.last_stable(p), 2);
    nothing_hangs(&world);
}
