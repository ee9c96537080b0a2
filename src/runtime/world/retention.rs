//! Records that leave: by age, by size, because a client asked; and what must outlive them.

#![expect(clippy::wildcard_enum_match_arm, reason = "any other answer fails the test")]

use std::collections::BTreeSet;

use super::World;
use super::build::{How, keeping};
use super::ordering::ready;
use crate::engine::batch::Header;
use crate::engine::batch::samples::header;
use crate::engine::log::Retention;
use crate::engine::log::segments::{FileKind, parse_file_name};
use crate::engine::{Offset, Outcome, PartId, Producer, Refusal, ReplyTo};
use crate::runtime::partition::published::Availability;
use crate::runtime::post::{Answer, PartLetter, Post};
use crate::store::disk::Disk;
use crate::store::mem_disk::Cut;

/// A producer without a transactional id.
const PLAIN: Producer = Producer { id: 4_000, epoch: 0 };
/// Every record is older.
pub(super) const ALL_OLD: Retention = Retention { age_ms: Some(10), bytes: None };
/// Nothing is kept for its size.
const NO_BYTES: Retention = Retention { age_ms: None, bytes: Some(0) };

/// Two batches a segment, or three.
pub(super) fn small() -> How {
    How { segment_bytes: 200, ..How::default() }
}

impl World {
    pub(super) fn ask_idempotent(&mut self, sequence: i32, part: PartId) -> ReplyTo {
        let Producer { id, epoch } = PLAIN;
        let header = Header { producer_id: id, producer_epoch: epoch, base_sequence: sequence, ..header(1) };
        self.ask_append(header, None, (&format!("plain {sequence}"), part))
    }

    pub(super) fn idempotent(&mut self, sequence: i32, part: PartId) -> Result<Offset, Refusal> {
        let to = self.ask_idempotent(sequence, part);
        self.run_to_rest();
        self.produced(to).map(|produced| produced.base_offset)
    }

    /// Sequences and offsets from 0 to `count`, and then they are old.
    pub(super) fn fill(&mut self, part: PartId, count: i32) {
        for sequence in 0..count {
            assert_eq!(self.idempotent(sequence, part), Ok(Offset::from(sequence)));
        }
        self.advance(1_000);
    }

    /// A sweep has found something expired; before it is told, the topic is set otherwise.
    fn retain_behind(&mut self, part: PartId, retention: Option<Retention>) {
        let keeping = keeping(&self.how, retention);
        self.deliver(Post::Part(part, PartLetter::Keep(keeping)));
        self.deliver(Post::Part(part, PartLetter::Retain));
        self.run_to_rest();
        self.load(part);
    }

    pub(super) fn ask_delete_records(&mut self, part: PartId, offset: Offset) -> ReplyTo {
        let to = self.reply();
        self.deliver(Post::Part(part, PartLetter::DeleteRecords { offset, to }));
        to
    }

    pub(super) fn log_started(&mut self, to: ReplyTo) -> Result<Offset, Refusal> {
        match self.answer(to) {
            Answer::LogStart(log_start) => Ok(log_start),
            Answer::Refused(refusal) => Err(refusal),
            other => panic!("{to:?}: {other:?}"),
        }
    }

    pub(super) fn delete_records(&mut self, part: PartId, offset: Offset) -> Result<Offset, Refusal> {
        let to = self.ask_delete_records(part, offset);
        self.run_to_rest();
        self.log_started(to)
    }

    pub(super) fn log_start(&self, part: PartId) -> Offset {
        self.published(part).log_start
    }

    pub(super) fn offsets(&self, part: PartId) -> Vec<Offset> {
        self.read(part, false).iter().map(|found| found.header.base_offset).collect()
    }

    /// First offsets of the segments that have files of this kind.
    pub(super) fn bases(&self, part: PartId, wanted: impl Fn(FileKind) -> bool) -> BTreeSet<Offset> {
        let names = self.disk.list(&self.log_dir(part)).unwrap_or_default();
        let named = names.iter().filter_map(|name| parse_file_name(name));
        named.filter(|(_, kind)| wanted(*kind)).map(|(base, _)| base).collect()
    }

    pub(super) fn stored_log_start(&self, part: PartId) -> Offset {
        let loaded = self.fake().load();
        loaded.parts.iter().find(|(id, _)| *id == part).map(|(_, row)| row.log_start).expect("a row")
    }

    /// Nothing is left of segments below the log start, and the log has one that holds it.
    pub(super) fn check_files(&self, part: PartId, what: &str) {
        let logs = self.bases(part, |kind| kind == FileKind::Log);
        let indexes = self.bases(part, |kind| !matches!(kind, FileKind::Log | FileKind::Snapshot));
        let first = *logs.first().expect("a segment");
        let log_start = self.log_start(part);
        assert!(first <= log_start, "{what}: {logs:?}, {log_start}");
        assert!(logs.range(first + 1..).next().is_none_or(|next| *next > log_start), "{what}: {logs:?}, {log_start}");
        assert!(indexes.is_subset(&logs), "{what}: orphans {indexes:?} beside {logs:?}");
        assert!(first == 0 || self.bases(part, |kind| kind == FileKind::Snapshot).last() >= Some(&first), "{what}");
    }
}

#[test]
fn nothing_goes_before_the_new_log_start_is_on_disk() {
    let (mut world, p, ..) = ready(small());
    world.fill(p, 10);
    let before = world.bases(p, |_| true);
    assert!(before.len() >= 4, "{before:?}");
    let stands = |world: &World, step: &str| {
        assert_eq!((world.log_start(p), world.offsets(p).len()), (0, 10), "{step}");
        assert!(world.bases(p, |_| true).is_superset(&before), "{step}");
    };
    world.retain(p, NO_BYTES);
    world.turn_part(p);
    stands(&world, "decided");
    assert!(
        world.bases(p, |kind| kind == FileKind::Log).contains(&10),
        "T-543: all of it has expired, so a new segment"
    );
    world.turn_part(p);
    stands(&world, "the snapshot is written");
    assert!(world.bases(p, |kind| kind == FileKind::Snapshot).contains(&10), "T-542");
    world.turn_ledger();
    stands(&world, "the row is written");
    world.flush_rows();
    stands(&world, "the row is on disk");
    world.turn_part(p);
    assert_eq!((world.log_start(p), world.stored_log_start(p)), (10, 10));
    assert!(world.offsets(p).is_empty());
    world.run_to_rest();
    assert_eq!(world.bases(p, |kind| kind == FileKind::Log), BTreeSet::from([10]));
    world.check_files(p, "in the end");
    assert_eq!(world.idempotent(10, p), Ok(10), "and it goes on");
}

#[test]
fn what_goes_is_decided_by_age_and_size() {
    let (mut world, p, ..) = ready(small());
    world.fill(p, 9);
    let young = Retention { age_ms: Some(1_000), bytes: None };
    world.retain(p, young);
    world.run_to_rest();
    assert_eq!(world.log_start(p), 0, "T-543: not above the limit");
    world.retain(p, Retention { age_ms: None, bytes: Some(250) });
    world.run_to_rest();
    let kept = world.log_start(p);
    assert!(kept > 0 && kept < 9, "{kept}");
    assert_eq!(world.offsets(p), (kept..9).collect::<Vec<_>>());
    world.check_files(p, "by size");
    world.retain(p, Retention { age_ms: None, bytes: Some(250) });
    world.run_to_rest();
    assert_eq!(world.log_start(p), kept, "once");
    world.advance(1);
    world.retain(p, young);
    world.run_to_rest();
    assert_eq!((world.log_start(p), world.offsets(p)), (9, vec![]), "by age");
    world.check_files(p, "by age");
    let turns = world.trace.len();
    world.retain(p, young);
    world.run_to_rest();
    assert!(world.trace.len() < turns + 4, "T-543: an empty segment stays as it is");
    world.kill_and_restart();
    world.load(p);
    assert_eq!((world.log_start(p), world.watermark(p)), (9, 9));
    assert_eq!(world.idempotent(9, p), Ok(9));
}

#[test]
fn batches_on_their_way_keep_their_segment() {
    let (mut world, p, ..) = ready(small());
    world.fill(p, 7);
    let produced = world.ask_idempotent(7, p);
    world.retain(p, NO_BYTES);
    world.run_to_rest();
    assert_eq!(world.produced(produced).map(|produced| produced.base_offset), Ok(7));
    let kept = world.log_start(p);
    assert!(kept > 0 && kept < 7, "T-543: the active one is not rolled under a batch: {kept}");
    world.check_files(p, "beside a batch");
    // And between the decision and the row.
    world.advance(1_000);
    world.retain(p, NO_BYTES);
    world.turn_part(p);
    let produced = world.ask_idempotent(8, p);
    world.run_to_rest();
    assert_eq!(world.produced(produced).map(|produced| produced.base_offset), Ok(8));
    assert_eq!((world.log_start(p), world.offsets(p)), (8, vec![8]));
    world.check_files(p, "behind the decision");
}

#[test]
fn an_open_transaction_holds_its_segments() {
    let (mut world, p, _, a) = ready(small());
    world.fill(p, 4);
    world.add("a", a, &[p]);
    let first = world.produce("a", (a, 0), p);
    for sequence in 4..9 {
        world.idempotent(sequence, p).expect("stored");
    }
    world.advance(1_000);
    for retention in [ALL_OLD, NO_BYTES] {
        world.retain(p, retention);
        world.run_to_rest();
        assert!(world.log_start(p) > 0 && world.log_start(p) <= first, "T-543 R: {}", world.log_start(p));
        assert!(world.offsets(p).contains(&first));
        world.check_files(p, "open");
    }
    // Over a restart, too: it is not known from the files alone.
    world.cut_and_restart(Cut::LoseAll, usize::MAX);
    world.retain(p, NO_BYTES);
    world.run_to_rest();
    assert!(world.offsets(p).contains(&first), "T-543 R");
    // A marker that is not on disk decides nothing.
    let ended = world.ask_end("a", a, Outcome::Commit);
    while !world.happened("mark at") {
        world.step_anything();
    }
    world.turn_part(p);
    world.retain(p, NO_BYTES);
    world.turn_part(p);
    world.turn_part(p);
    assert!(world.log_start(p) <= first && !world.happened("to ledger MoveLogStart(MoveLogStart { log_start: 1"));
    world.run_to_rest();
    assert_eq!(world.verdict(ended), Ok(()));
    assert_eq!(world.read_committed(p).iter().filter(|found| found.header.is_transactional()).count(), 1);
    world.retain(p, NO_BYTES);
    world.run_to_rest();
    assert_eq!(world.log_start(p), world.watermark(p), "decided, and old");
    world.check_files(p, "ended");
}

#[test]
fn a_resend_of_records_that_are_gone_is_a_duplicate() {
    for by_client in [false, true] {
        let (mut world, p, ..) = ready(small());
        world.fill(p, 10);
        if by_client {
            assert_eq!(world.delete_records(p, -1), Ok(10), "T-540");
        } else {
            world.retain(p, ALL_OLD);
            world.run_to_rest();
        }
        let check = |world: &mut World, when: &str| {
            assert_eq!((world.log_start(p), world.offsets(p)), (10, vec![]), "{when}");
            for sequence in 5..10 {
                assert_eq!(world.idempotent(sequence, p), Ok(Offset::from(sequence)), "C-64: the offset then, {when}");
            }
            assert_eq!(world.idempotent(11, p), Err(Refusal::OutOfOrderSequence), "C-64 {when}");
            world.check_files(p, when);
        };
        check(&mut world, "at once");
        world.kill_and_restart();
        world.load(p);
        check(&mut world, "after a kill");
        world.cut_and_restart(Cut::LoseAll, 0);
        world.load(p);
        check(&mut world, "after a cut");
        world.deliver(Post::Part(p, PartLetter::Close));
        world.run_to_rest();
        world.start(true);
        world.load(p);
        check(&mut world, "after a stop in order");
        assert_eq!(world.idempotent(10, p), Ok(10), "C-64: and then it goes on");
        assert_eq!(world.offsets(p), [10]);
    }
}

#[test]
fn a_producer_that_is_forgotten_may_come_back_with_any_sequence() {
    for by_client in [false, true] {
        let (mut world, p, ..) = ready(small());
        world.fill(p, 7);
        if by_client {
            assert_eq!(world.delete_records(p, 7), Ok(7));
        } else {
            world.retain(p, ALL_OLD);
            world.run_to_rest();
        }
        assert_eq!(world.idempotent(8, p), Err(Refusal::OutOfOrderSequence), "its records are gone, it is not");
        world.advance(86_400_001);
        assert_eq!(world.idempotent(8, p), Ok(7), "C-63");
        world.kill_and_restart();
        assert_eq!(world.idempotent(9, p), Ok(8), "C-63");
    }
}

#[test]
fn a_fence_holds_when_nothing_but_its_marker_is_left() {
    for outcome in [Outcome::Commit, Outcome::Abort] {
        let (mut world, p, _, a) = ready(small());
        world.fill(p, 5);
        world.add("a", a, &[p]);
        world.produce("a", (a, 0), p);
        assert_eq!(world.end("a", a, outcome), Ok(()));
        let marker = world.watermark(p) - 1;
        assert_eq!(world.delete_records(p, marker), Ok(marker));
        for restart in 0..2 {
            world.cut_and_restart(Cut::LoseAll, usize::MAX);
            world.load(p);
            assert_eq!(world.published(p).availability, Availability::Open, "C-73 restart {restart}");
            assert_eq!(world.markers(p), [(a, outcome, marker)]);
            world.check_files(p, "C-73");
        }
        let next = world.init("a");
        assert_eq!(next, Producer { epoch: a.epoch + 1, ..a });
        world.add("a", next, &[p]);
        world.produce("a", (next, 0), p);
        let old = world.ask_produce("a", (a, 1), p);
        world.run_to_rest();
        assert_eq!(world.produced(old), Err(Refusal::InvalidProducerEpoch), "C-73: the fence holds");
        assert_eq!(world.end("a", next, Outcome::Commit), Ok(()));
        // And when the marker is gone as well.
        world.advance(1_000);
        world.retain(p, ALL_OLD);
        world.run_to_rest();
        world.kill_and_restart();
        world.load(p);
        assert_eq!(world.log_start(p), world.watermark(p));
        let old = world.ask_produce("a", (a, 1), p);
        world.run_to_rest();
        assert_eq!(world.produced(old), Err(Refusal::InvalidProducerEpoch), "C-73, {outcome:?}");
    }
}

#[test]
fn a_client_says_where_the_log_starts() {
    let (mut world, p, _, a) = ready(small());
    world.fill(p, 10);
    assert_eq!(world.delete_records(p, 11), Err(Refusal::OffsetOutOfRange), "T-540");
    assert_eq!(world.delete_records(p, -2), Err(Refusal::OffsetOutOfRange), "T-540");
    assert_eq!(world.delete_records(p, 0), Ok(0));
    assert_eq!(world.delete_records(p, 1), Ok(1), "within a segment");
    assert_eq!((world.stored_log_start(p), world.offsets(p)), (1, (1..10).collect()));
    assert!(world.bases(p, |kind| kind == FileKind::Snapshot).is_empty(), "nothing but the row was written");
    assert_eq!(world.delete_records(p, 7), Ok(7));
    assert_eq!(world.delete_records(p, 3), Ok(7), "it does not go back");
    world.check_files(p, "asked");
    world.cut_and_restart(Cut::LoseAll, 0);
    world.load(p);
    assert_eq!((world.log_start(p), world.offsets(p)), (7, (7..10).collect()));
    // Into an open transaction.
    world.add("a", a, &[p]);
    let first = world.produce("a", (a, 0), p);
    for sequence in 10..16 {
        world.idempotent(sequence, p).expect("stored");
    }
    assert_eq!(world.last_stable(p), first);
    let into = first + 4;
    assert_eq!(world.delete_records(p, into), Ok(into), "T-540");
    assert_eq!((world.log_start(p), world.last_stable(p)), (into, into), "T-541 R: never below the log start");
    assert_eq!(world.read(p, true).len(), 0);
    world.check_files(p, "into a transaction");
    world.cut_and_restart(Cut::LoseAll, 0);
    assert_eq!((world.log_start(p), world.last_stable(p)), (into, into), "T-541: it stays open");
    world.produce("a", (a, 1), p);
    assert_eq!(world.end("a", a, Outcome::Abort), Ok(()));
    let committed = world.read_committed(p);
    assert!(committed.iter().all(|found| !found.header.is_transactional()), "T-541: its entry begins below");
    assert_eq!(world.last_stable(p), world.watermark(p));
}

#[test]
fn a_checkpoint_from_before_does_not_take_the_log_start_back() {
    let (mut world, p, ..) = ready(small());
    world.fill(p, 10);
    world.retain(p, ALL_OLD);
    world.turn_part(p);
    world.turn_part(p);
    // The move is on its way to the ledger; a point of the old start comes behind it, in the same turn and in a later one.
    world.deliver(Post::Part(p, PartLetter::Close));
    world.turn_part(p);
    world.run_to_rest();
    assert!(world.happened("to ledger Checkpoint"));
    assert_eq!((world.stored_log_start(p), world.log_start(p)), (10, 10));
    world.cut_and_restart(Cut::LoseAll, usize::MAX);
    world.load(p);
    assert_eq!((world.published(p).availability, world.log_start(p)), (Availability::Open, 10));
}

#[test]
fn many_segments_go_a_few_at_a_time() {
    let (mut world, p, ..) = ready(How { segment_bytes: 100, ..How::default() });
    world.fill(p, 30);
    assert!(world.bases(p, |kind| kind == FileKind::Log).len() > 20);
    world.retain(p, ALL_OLD);
    while world.log_start(p) == 0 {
        assert!(world.step_anything());
    }
    assert!(world.bases(p, |kind| kind == FileKind::Log).len() > 20, "files go after the new start is shown");
    let produced = world.ask_idempotent(30, p);
    world.turn_part(p);
    world.sync_part(p);
    assert!(world.produced(produced).is_ok());
    assert!(world.bases(p, |kind| kind == FileKind::Log).len() > 10, "and others have their turn in between");
    world.run_to_rest();
    assert_eq!(world.bases(p, |kind| kind == FileKind::Log), BTreeSet::from([30]));
}

#[test]
fn a_sweep_that_looked_before_a_change_takes_by_what_is_wanted_now() {
    for is_open in [true, false] {
        let (mut world, p, ..) = ready(small());
        world.fill(p, 10);
        if !is_open {
            world.close(p);
        }
        world.retain_behind(p, None);
        assert_eq!(world.log_start(p), 0, "open: {is_open}");
        world.retain_behind(p, Some(ALL_OLD));
        assert_eq!(world.log_start(p), 10, "open: {is_open}");
    }
}
