use std::path::PathBuf;

use super::*;
use crate::store::faults::{Fault, Operation, Rule};

fn files(disk: &MemDisk) -> Vec<(String, Vec<u8>)> {
    use crate::store::disk::Disk;
    let names = disk.list(Path::new(DIR)).unwrap();
    names.into_iter().map(|name| (name.clone(), disk.content(&PathBuf::from(DIR).join(name)).unwrap())).collect()
}

#[test]
fn a_failed_append_changes_nothing() {
    // The second append needs three segments; whatever fails on the way, it is as if it had not been.
    for (operation, after, fault, full) in [
        (Operation::Write, 0, Fault::NoSpace, true),
        (Operation::Write, 0, Fault::Short(100), true),
        (Operation::Write, 1, Fault::NoSpace, true),
        (Operation::Write, 2, Fault::Short(7), true),
        (Operation::Create, 0, Fault::NoSpace, true),
        (Operation::Create, 1, Fault::NoSpace, true),
        (Operation::Write, 1, Fault::Io, false),
        (Operation::Sync, 0, Fault::Io, false),
        (Operation::Sync, 0, Fault::NoSpace, false),
    ] {
        let mut rig = Rig::new();
        rig.append_data(3, 100, None);
        let before = files(&rig.disk);
        let wanted: Vec<Vec<u8>> = (0..6)
            .map(|at| {
                let mut bytes = rig.data(1, 1500, 2000, None);
                crate::engine::batch::patch(&mut bytes, 3 + at, 1);
                bytes
            })
            .collect();
        rig.disk.faults().add(Rule { after, ..Rule::once(operation, ".log", fault) });
        let error = rig.log.append(&wanted, 0).unwrap_err();
        assert_eq!(matches!(error, StoreError::Full(_)), full, "{operation:?} {after} {fault:?}: {error}");
        assert_eq!(rig.log.next_offset(), 3);
        assert_eq!(files(&rig.disk), before, "{operation:?} {after} {fault:?}");
        if full {
            let appended = rig.log.append(&wanted, 0).unwrap();
            assert_eq!((appended.next_offset, appended.rolled), (9, true));
            wanted.into_iter().for_each(|bytes| rig.took(bytes));
            assert_eq!(read_all(&rig.log.reader(), 9), rig.batches.concat());
            assert_eq!(rig.log.extents().len(), 3, "3.5.5");
        } else {
            assert!(matches!(error, StoreError::Broken(_)), "3.5.5: {error}");
        }
    }
}

#[test]
fn what_cannot_be_taken_back_is_broken() {
    let mut rig = Rig::new();
    let bytes = rig.data(1, 10, 0, None);
    rig.disk.faults().add(Rule::once(Operation::Write, ".log", Fault::NoSpace));
    rig.disk.faults().add(Rule::once(Operation::Truncate, ".log", Fault::Io));
    assert!(matches!(rig.log.append(&[bytes], 0), Err(StoreError::Broken(_))));
}

#[test]
fn batches_that_do_not_continue_the_log_are_refused() {
    let mut rig = Rig::new();
    rig.append_data(2, 10, None);
    let good = rig.data(1, 10, 0, None);
    for (base, epoch) in [(1, 1), (3, 1), (2, 0)] {
        let mut bytes = good.clone();
        crate::engine::batch::patch(&mut bytes, base, epoch);
        assert!(matches!(rig.log.append(&[bytes], 0), Err(StoreError::Damaged(_))), "{base} {epoch}");
    }
    assert!(rig.log.append(&[good.repeat(2)], 0).is_err(), "two in one piece");
    assert!(rig.log.append(&[&good[..60]], 0).is_err());
    assert_eq!(rig.log.append::<&[u8]>(&[], 0).unwrap().bytes, 0);
    rig.append(good);
    assert_eq!(read_all(&rig.log.reader(), 3), rig.batches.concat());
}

#[test]
fn a_sync_that_failed_is_never_asked_again() {
    let mut rig = Rig::new();
    rig.append_data(1, 10, None);
    let job = rig.log.take_unsynced().unwrap();
    rig.disk.faults().add(Rule::once(Operation::Sync, ".log", Fault::NoSpace));
    assert!(matches!(job.run(), Err(StoreError::Broken(_))), "3.5.1");
    assert!(matches!(job.run(), Err(StoreError::Broken(_))), "3.5.1: the disk would say yes");
    rig.append_data(1, 10, None);
    let later = rig.log.take_unsynced().unwrap();
    assert!(matches!(later.run(), Err(StoreError::Broken(_))));
    assert_eq!(rig.log.synced_offset(), 0);
}

#[test]
fn jobs_say_how_far_they_reach() {
    let mut rig = Rig::new();
    assert!(rig.log.take_unsynced().is_none());
    rig.append_data(2, 10, None);
    let first = rig.log.take_unsynced().unwrap();
    assert!(rig.log.take_unsynced().is_none());
    rig.append_data(3, 10, None);
    let second = rig.log.take_unsynced().unwrap();
    assert_eq!((first.end(), second.end()), (2, 5));
    second.run().unwrap();
    rig.log.note_synced(2);
    assert_eq!(rig.log.synced_offset(), 2);
    let snapshot = rig.state.0.snapshot();
    assert_eq!(rig.log.checkpoint(&snapshot, 5).unwrap(), None, "2.2: only over synced bytes");
    rig.log.note_synced(5);
    let point = rig.log.checkpoint(&snapshot, 5).unwrap().unwrap();
    assert_eq!((point.active_base, point.synced_offset, point.snapshot_at), (0, 5, 5));
    assert_eq!(rig.log.debt(), 0);
}
