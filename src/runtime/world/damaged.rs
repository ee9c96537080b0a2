//! A partition with damage in what was synced: read up to it, and nothing else happens there; all others serve.

use std::path::PathBuf;
use std::sync::Arc;

use super::World;
use super::build::How;
use super::ordering::ready;
use super::retention::small;
use crate::engine::batch::Header;
use crate::engine::fetch::Isolation::{ReadCommitted, ReadUncommitted};
use crate::engine::{Offset, Outcome, PartId, Refusal};
use crate::runtime::partition::published::Availability;
use crate::runtime::readable::{Readable, bounds, bounds_at, whole_bounds};
use crate::store::disk::Disk;
use crate::store::log::{LogReader, ReadHow};

impl World {
    fn log_of(&self, part: PartId) -> PathBuf {
        self.log_dir(part).join("00000000000000000000.log")
    }

    /// Flips a bit in the length of the batch at `offset`, which any walk over the headers meets. Again: puts it right.
    fn flip(&self, part: PartId, offset: Offset) {
        let flip = |bytes: &mut Vec<u8>| {
            let mut at = 0;
            while let Some(header) = Header::read(&bytes[at..])
                && header.base_offset < offset
            {
                at += header.size().unwrap();
            }
            bytes[at + 8] ^= 0x40;
        };
        self.disk.damage(&self.log_of(part), flip).unwrap();
    }
}

/// One committed, one aborted and one open transaction at offsets 0-1, 2-3 and 5, with plain records between and behind.
fn filled() -> (World, PartId, PartId) {
    let (mut world, p, q, a) = ready(How::default());
    let (b, c) = (world.init("b"), world.init("c"));
    world.add("a", a, &[p]);
    world.produce("a", (a, 0), p);
    assert_eq!(world.end("a", a, Outcome::Commit), Ok(()));
    world.add("b", b, &[p]);
    world.produce("b", (b, 0), p);
    assert_eq!(world.end("b", b, Outcome::Abort), Ok(()));
    assert_eq!(world.plain("4", p), Ok(4));
    world.add("c", c, &[p, q]);
    world.produce("c", (c, 0), p);
    world.produce("c", (c, 0), q);
    for n in 6..9 {
        assert_eq!(world.plain(&n.to_string(), p), Ok(n));
    }
    world.close(p);
    (world, p, q)
}

/// What readers of either isolation get: everything below their limit, and a refusal at it and above.
fn check(world: &World, part: PartId, damage: Offset, last_stable: Offset, delivered: usize) {
    let view = world.published(part);
    assert_eq!((view.availability, view.watermark, view.last_stable), (Availability::Damaged, damage, last_stable));
    let refused = Err(Refusal::KafkaStorageError);
    for (isolation, limit) in [(ReadUncommitted, damage), (ReadCommitted, last_stable)] {
        for from in 0..damage + 3 {
            let found = bounds_at(&view, from, isolation);
            assert_eq!(found, if from < limit { bounds(&view) } else { refused }, "{isolation:?} from {from}");
        }
    }
    assert_eq!(whole_bounds(&view), refused, "its end is not known");
    assert_eq!(world.read(part, false).last().map_or(0, |last| last.header.next_offset()), damage);
    assert_eq!(world.read_committed(part).len(), delivered, "below {damage}");
}

#[test]
fn readable_up_to_the_damage_whatever_lies_there_c_70_d() {
    // Where the damage is, the last stable offset there, and the records that a read_committed reader is given.
    let cases = [(1, 0, 0), (2, 2, 1), (3, 2, 1), (4, 4, 1), (5, 5, 2), (6, 5, 2), (8, 5, 2)];
    for (damage, last_stable, delivered) in cases {
        let (mut world, p, q) = filled();
        let whole = world.disk.content(&world.log_of(p)).unwrap();
        world.flip(p, damage);
        world.kill_and_restart();
        check(&world, p, damage, last_stable, delivered);
        for _ in 0..2 {
            let refused = world.ask_plain("x", p);
            world.run_to_rest();
            assert_eq!(world.produced(refused), Err(Refusal::KafkaStorageError), "at {damage}");
        }
        let why = world.parts[&p].place.why_damaged().unwrap();
        assert!(why.contains("0000.log at byte") && why.contains(&format!("offset {damage}")), "{why}");
        assert_eq!(world.disk.size(&world.log_of(p)).unwrap(), whole.len() as u64, "never cut");
        // The other partition serves, its transaction goes on, and its id is not stuck.
        assert!(world.plain("y", q).is_ok());
        let ended = world.ask_init("c", 60_000);
        world.run_for(10_000);
        world.answer(ended);
        assert_eq!(world.last_stable(q), world.watermark(q), "aborted by its new owner");
        // Another start finds the same; and one after the file was put right serves everything, the marker too.
        world.kill_and_restart();
        check(&world, p, damage, last_stable, delivered);
        world.flip(p, damage);
        world.kill_and_restart();
        assert_eq!(world.published(p).availability, Availability::Open);
        assert_eq!(world.last_stable(p), world.watermark(p));
        assert_eq!(world.read_committed(p).len(), 5, "what c wrote was aborted");
        assert_eq!(world.disk.content(&world.log_of(p)).unwrap()[..whole.len()], whole);
        assert!(world.plain("z", p).is_ok());
    }
}

#[test]
fn a_damage_at_the_first_byte_leaves_nothing_to_read() {
    let (mut world, p, _) = filled();
    world.flip(p, 0);
    world.kill_and_restart();
    let view = world.published(p);
    assert_eq!(bounds(&view), Err(Refusal::KafkaStorageError));
    assert_eq!(bounds_at(&view, 0, ReadUncommitted), Err(Refusal::KafkaStorageError));
    assert!(world.read(p, false).is_empty());
}

#[test]
fn a_damage_found_while_it_serves_takes_back_what_lies_behind_it_only() {
    use crate::store::faults::{Fault, Operation, Rule};
    let (mut world, p, _) = filled();
    assert_eq!(world.watermark(p), 9);
    world.flip(p, 7);
    let dir = format!("{}/", world.log_dir(p).display());
    world.disk.faults().add(Rule::once(Operation::Write, &dir, Fault::NoSpace));
    assert_eq!(world.plain("x", p), Err(Refusal::KafkaStorageError));
    check(&world, p, 7, 5, 2);
}

#[test]
fn rows_older_than_the_log_vouch_for_nothing_of_it() {
    let (mut world, p, _) = filled();
    world.flip(p, 6);
    // As many starts too few as make the log's own epoch one of the future.
    world.incarnation = -2;
    world.kill_and_restart();
    assert_eq!(world.published(p).watermark, -1);
    let why = world.parts[&p].place.why_damaged().unwrap();
    assert!(why.contains("nothing of it is served"), "{why}");
}

/// Aborted transactions in several segments, four of them since the last snapshot, and one record that is not.
pub(super) fn aborting() -> (World, PartId) {
    let (mut world, p, _, a) = ready(small());
    for sequence in 0..8 {
        if sequence == 4 {
            world.close(p);
        }
        world.add("a", a, &[p]);
        world.produce("a", (a, sequence), p);
        assert_eq!(world.end("a", a, Outcome::Abort), Ok(()));
    }
    assert!(world.plain("committed", p).is_ok());
    (world, p)
}

#[test]
fn a_partition_read_anew_without_room_shows_nothing_that_was_aborted_t_513() {
    use crate::store::faults::{Fault, Operation, Rule};
    let (mut world, p) = aborting();
    world.disk.faults().add(Rule::always(Operation::Create, ".snapshot", Fault::NoSpace));
    world.close(p);
    world.disk.faults().lift();
    world.disk.faults().add(Rule::always(Operation::Write, ".log", Fault::NoSpace));
    assert!(world.plain("x", p).is_err());
    let then = Readable::of(p, Arc::clone(&world.parts[&p].shared));
    for after in 0..4 {
        world.disk.faults().add(Rule { after, ..Rule::always(Operation::Create, ".txnindex", Fault::NoSpace) });
        assert!(world.plain("x", p).is_err());
        assert_eq!(world.read_committed(p).len(), 1);
        for from in [0, 2, 4] {
            assert_eq!(world.committed_span(p, from, from + 2).len(), 0, "from {from}");
        }
    }
    assert!(then.is_replaced(), "whoever still has the files of before is told to ask again");
    world.disk.faults().lift();
    world.advance(60_000);
    assert!(world.plain("x", p).is_ok());
    assert_eq!(world.read_committed(p).len(), 2);
}

#[test]
fn a_reader_that_a_quarantine_overtakes_is_told_to_ask_again_t_513() {
    use crate::store::faults::{Fault, Operation, Rule};
    let (mut world, p, _) = filled();
    let shared = Arc::clone(&world.parts[&p].shared);
    let then = Readable::of(p, Arc::clone(&shared));
    assert!(!then.is_replaced() && then.published.last_stable > 3);
    // The marker of what b wrote at offset 2 is where the damage is.
    world.flip(p, 3);
    let dir = format!("{}/", world.log_dir(p).display());
    world.disk.faults().add(Rule::once(Operation::Write, &dir, Fault::NoSpace));
    assert_eq!(world.plain("x", p), Err(Refusal::KafkaStorageError));
    assert_eq!(world.published(p).last_stable, 2);
    let aborted = |reader: &LogReader| reader.aborted(2, 3, ReadHow::Block).unwrap().unwrap().len();
    assert_eq!(aborted(&shared.reader().unwrap()), 0, "nothing of the damage is known");
    assert_eq!(aborted(&then.reader().unwrap()), 1, "the files of the view that was taken");
    assert!(then.is_replaced());
    let now = Readable::of(p, shared);
    assert!(!now.is_replaced() && now.published == world.published(p));
}
