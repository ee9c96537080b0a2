//! Readers who took a view, and come to the files when these have changed behind it.

use std::sync::Arc;

use super::World;
use super::damaged::aborting;
use super::retention::small;
use crate::engine::{Offset, PartId, Refusal, TopicId};
use crate::runtime::readable::{Readable, Unread};
use crate::store::StoreError;
use crate::store::disk::Disk;
use crate::store::log::{ReadHow, ReadOutcome, ReadWish};

impl World {
    fn readable(&self, part: PartId) -> Readable {
        Readable::of(part, Arc::clone(&self.parts[&part].shared))
    }
}

impl Readable {
    fn refused<T: std::fmt::Debug>(&self, from: Offset, done: Result<T, StoreError>) -> Refusal {
        match self.judge(from, done) {
            Err(Unread::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn whoever_reads_what_retention_takes_finds_nothing_wrong_with_the_partition_t_526() {
    let (mut world, p) = aborting();
    let then = world.readable(p);
    let (from, end) = (then.published.log_start, then.published.watermark);
    let reader = then.reader().unwrap();
    assert_eq!(reader.aborted(from, end, ReadHow::Block).unwrap().unwrap().len(), 8);
    // A reader has looked up the first segment, and finds its files gone when it comes to them.
    let dir = world.log_dir(p);
    for name in world.disk.list(&dir).unwrap().iter().filter(|name| name.starts_with("00000000000000000000.")) {
        world.disk.remove(&dir.join(name)).unwrap();
    }
    let aborted = || reader.aborted(from, end, ReadHow::Block);
    let first = aborted();
    assert!(matches!(first, Err(StoreError::Damaged(_))), "the index is gone: {first:?}");
    let second = aborted();
    assert!(matches!(then.judge(from, first), Err(Unread::Failed(_))), "and nobody has said that it goes");
    assert_eq!(world.delete_records(p, end - 1), Ok(end - 1));
    assert_eq!(then.refused(from, second), Refusal::OffsetOutOfRange);
    let here: Result<(), _> = Err(StoreError::Damaged("bits".to_owned()));
    assert!(matches!(then.judge(end - 1, here), Err(Unread::Failed(_))), "what still is to be there");
}

#[test]
fn whoever_reads_a_deleted_topic_is_shown_nothing_of_its_successor() {
    let mut world = World::new(small());
    let p = world.topic("t", 1)[0];
    for value in ["a", "b", "c", "d"] {
        assert!(world.plain(value, p).is_ok());
    }
    world.close(p);
    world.load(p);
    let then = world.readable(p);
    world.delete("t");
    let successor = world.topic_as(TopicId([7; 16]), "t", 1)[0];
    for value in ["A", "B", "C", "D"] {
        assert!(world.plain(value, successor).is_ok());
    }
    let wish = ReadWish {
        from: 0,
        limit: then.published.watermark,
        max_bytes: 10_000,
        at_least_one: true,
        how: ReadHow::Block,
    };
    let read = then.reader().unwrap().read(&wish);
    assert!(matches!(read, Ok(ReadOutcome::Bytes { .. })), "the place is taken: {read:?}");
    assert_eq!(then.refused(0, read), Refusal::UnknownTopicOrPartition);
}
