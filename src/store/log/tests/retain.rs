use super::*;
use crate::engine::log::{Extent, Retention};
use crate::store::disk::Disk;
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::Cut;

fn by_age(age_ms: i64) -> Retention {
    Retention { age_ms: Some(age_ms), bytes: None }
}

fn files(disk: &MemDisk, end: &str) -> Vec<String> {
    disk.list(Path::new(DIR)).unwrap().into_iter().filter(|name| name.ends_with(end)).collect()
}

fn path(base: Offset, end: &str) -> std::path::PathBuf {
    Path::new(DIR).join(format!("{base:020}{end}"))
}

/// Timestamps rise with offsets, from 1,000 on.
fn filled() -> Rig {
    let mut rig = Rig::new();
    for _ in 0..60 {
        rig.append_data(5, 60, None);
    }
    rig.checkpoint();
    assert!(rig.log.extents().len() >= 4);
    rig
}

#[test]
fn a_new_active_segment_is_durable_and_the_old_one_whole() {
    for seed in 0..30 {
        let mut rig = filled();
        let end = rig.log.next_offset();
        rig.log.roll(0).unwrap();
        assert_eq!(rig.log.active_base(), end);
        assert_eq!(rig.log.extents().last(), Some(&Extent { base: end, end, bytes: 0 }));
        let before = rig.log.extents().len();
        rig.log.roll(0).unwrap();
        assert_eq!(rig.log.extents().len(), before, "an empty one stays");
        let cut = rig.disk.crash(Cut::Seed(seed));
        let (log, opened, _) = rig.reopened(&cut, end).unwrap();
        assert_eq!((log.next_offset(), log.active_base(), opened.torn), (end, end, None), "6.3, seed {seed}");
        assert_eq!(read_all(&log.reader(), end), rig.batches.concat());
        // It goes on, and a recovery point may lie in it.
        rig.append_data(2, 10, None);
        rig.checkpoint();
        assert_eq!(rig.point.unwrap().active_base, end);
        let disk = rig.disk.crash(Cut::Seed(seed));
        let end = rig.log.next_offset();
        assert_eq!(rig.reopened(&disk, end).unwrap().0.next_offset(), end);
    }
}

#[test]
fn a_clean_start_trusts_an_empty_active_segment() {
    let mut rig = filled();
    rig.log.roll(0).unwrap();
    let end = rig.log.next_offset();
    let dropped = rig.log.drop_below(end);
    assert!(dropped.segments >= 4);
    assert_eq!(rig.log.unlink(usize::MAX).unwrap(), Left::Nothing);
    assert_eq!(files(&rig.disk, ".log"), [format!("{end:020}.log")]);
    let (disk, _, _, point) = rig.close();
    let how = OpenHow { point: Some(point), log_start: end, clean: true, witness: end, incarnation: i32::MAX };
    let (log, opened, _) = open(&disk, how).unwrap();
    assert_eq!((log.next_offset(), opened.scanned_bytes, opened.snapshot_at), (end, 0, Some(end)), "2.7");
}

#[test]
fn without_room_there_is_no_new_segment() {
    let mut rig = filled();
    let before = rig.log.extents();
    rig.disk.faults().add(Rule::once(Operation::Create, ".log", Fault::NoSpace));
    assert!(matches!(rig.log.roll(0), Err(StoreError::Full(_))));
    assert_eq!(rig.log.extents(), before);
    rig.append_data(1, 10, None);
    rig.log.roll(0).unwrap();
    rig.disk.faults().add(Rule::once(Operation::Sync, "", Fault::Io));
    rig.append_data(1, 10, None);
    assert!(matches!(rig.log.roll(0), Err(StoreError::Broken(_))), "P1");
}

#[test]
fn what_has_expired_is_told_from_time_indexes() {
    let mut rig = filled();
    let end = rig.log.next_offset();
    let extents = rig.log.extents();
    // The last record of a segment has the timestamp 999 + its end.
    let now = 1_000 + extents[1].end;
    for (log, what) in [(&rig.log, "in memory"), (&rig.reopened(&rig.disk, end).unwrap().0, "opened")] {
        assert_eq!(log.expired(&by_age(1), end, now).unwrap(), Some(extents[0].end), "T-543 {what}");
        assert_eq!(log.expired(&by_age(0), end, now).unwrap(), Some(extents[1].end), "T-543 {what}");
        assert_eq!(log.expired(&by_age(0), extents[1].end - 1, now).unwrap(), Some(extents[0].end), "T-543 R {what}");
        assert_eq!(log.expired(&by_age(5_000), end, now).unwrap(), None, "{what}");
        assert_eq!(log.expired(&by_age(0), end, now + end).unwrap(), Some(end), "all of it, {what}");
        let none = Retention { age_ms: None, bytes: Some(0) };
        assert_eq!(log.reader().expired(&none, (end, end), 0).unwrap(), Some(end), "past the owner, {what}");
    }
    rig.log.seal();
    rig.checkpoint();
    let look = |age_ms| may_expire(&rig.disk, Path::new(DIR), &by_age(age_ms), now).unwrap();
    assert!(look(0) && look(1) && !look(5_000), "from outside");
    assert!(!may_expire(&rig.disk, Path::new("no-0"), &by_age(0), now).unwrap(), "a log that was never made");
}

/// C-79: a record dated in the future, or none with a timestamp: the file says when it was written.
#[test]
fn a_date_in_the_future_does_not_keep_a_segment_for_ever() {
    for timestamp in [i64::MAX / 2, -1] {
        let mut rig = Rig::new();
        for _ in 0..30 {
            let mut bytes = rig.data(5, 60, 0, None);
            let mut front = Header::read(&bytes).unwrap();
            (front.base_timestamp, front.max_timestamp) = (timestamp, timestamp);
            bytes = seal(&front, &bytes[61..]);
            rig.append(bytes);
        }
        rig.checkpoint();
        let (end, extents) = (rig.log.next_offset(), rig.log.extents());
        assert_eq!(rig.log.expired(&by_age(100), end, 10_000).unwrap(), None, "written just now, {timestamp}");
        rig.disk.set_modified(&path(0, ".log"), 9_899).unwrap();
        assert_eq!(rig.log.expired(&by_age(100), end, 10_000).unwrap(), Some(extents[0].end), "C-79 {timestamp}");
        assert!(may_expire(&rig.disk, Path::new(DIR), &by_age(100), 10_000).unwrap(), "C-79 {timestamp}");
        rig.disk.set_modified(&path(0, ".log"), 9_900).unwrap();
        assert_eq!(rig.log.expired(&by_age(100), end, 10_000).unwrap(), None);
        assert!(!may_expire(&rig.disk, Path::new(DIR), &by_age(100), 10_000).unwrap());
        // A clock that is behind everything lets nothing go.
        rig.disk.set_modified(&path(0, ".log"), 20_000).unwrap();
        assert_eq!(rig.log.expired(&by_age(0), end, 10_000).unwrap(), None, "C-23");
    }
}

#[test]
fn a_file_that_cannot_be_removed_is_left_to_the_next_opening() {
    let mut rig = filled();
    let log_start = rig.log.extents()[3].base;
    rig.disk.faults().add(Rule::once(Operation::Remove, ".log", Fault::Io));
    assert_eq!(rig.log.drop_below(log_start).segments, 3);
    assert!(rig.log.unlink(2).is_err());
    assert_eq!(rig.log.unlink(1).unwrap(), Left::More, "the others go");
    assert_eq!(rig.log.unlink(1).unwrap(), Left::Nothing);
    assert_eq!(files(&rig.disk, ".log")[0], format!("{:020}.log", 0));
    let how =
        OpenHow { point: rig.point, log_start, clean: false, witness: rig.log.next_offset(), incarnation: i32::MAX };
    let (log, ..) = open(&rig.disk, how).unwrap();
    assert_eq!(log.first_base(), log_start);
    assert_eq!(files(&rig.disk, ".log")[0], format!("{log_start:020}.log"));
}
