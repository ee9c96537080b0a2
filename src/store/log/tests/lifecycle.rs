use super::*;
use crate::store::disk::Disk;
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::Cut;

fn names(disk: &MemDisk, dir: &str) -> Vec<String> {
    disk.list(Path::new(dir)).unwrap()
}

#[test]
fn a_new_log_is_durable_and_looks_like_kafkas() {
    let rig = Rig::new();
    let disk = rig.disk.crash(Cut::LoseAll);
    assert_eq!(names(&disk, DIR), ["00000000000000000000.log", "leader-epoch-checkpoint", "partition.metadata"]);
    assert_eq!(disk.content(Path::new("t-0/leader-epoch-checkpoint")).unwrap(), b"0\n1\n1 0\n");
    let metadata = disk.content(Path::new("t-0/partition.metadata")).unwrap();
    assert_eq!(metadata, b"version: 0\ntopic_id: BwcHBwcHBwcHBwcHBwcHBw");
    let (log, opened, _) = rig.reopened(&disk, 0).unwrap();
    assert_eq!((log.next_offset(), opened.next_offset, log.leader_epoch()), (0, 0, Some(1)));
}

#[test]
fn an_interrupted_creation_is_made_good() {
    for seed in 0..50 {
        let disk = MemDisk::default();
        disk.faults().add(Rule { after: (seed % 4) as u32, ..Rule::once(Operation::Sync, "", Fault::Io) });
        assert!(Log::create(Arc::new(disk.clone()), Path::new(DIR), TOPIC, 1, SETTINGS).is_err());
        let disk = disk.crash(Cut::Seed(seed));
        Log::create(Arc::new(disk.clone()), Path::new(DIR), TOPIC, 2, SETTINGS).unwrap();
        let (log, ..) =
            open(&disk, OpenHow { point: None, log_start: 0, clean: false, witness: 0, incarnation: i32::MAX })
                .unwrap();
        assert_eq!((log.next_offset(), log.leader_epoch()), (0, Some(2)), "seed {seed}");
    }
    let mut rig = Rig::new();
    rig.append_data(1, 1, None);
    let again = Log::create(Arc::new(rig.disk.clone()), Path::new(DIR), TOPIC, 1, SETTINGS);
    assert!(matches!(again, Err(StoreError::Damaged(_))), "a log is never made over another");
}

#[test]
fn a_clean_start_verifies_nothing_and_goes_on() {
    let mut rig = Rig::new();
    busy(&mut rig, 100, 2);
    let state = rig.state.0.snapshot();
    let (disk, batches, _, point) = rig.close();
    let how = OpenHow { point: Some(point), log_start: 0, clean: true, witness: 0, incarnation: i32::MAX };
    let (mut log, opened, replayed) = open(&disk, how).unwrap();
    assert_eq!((opened.scanned_bytes, opened.torn), (0, None), "2.7");
    assert_eq!(replayed.0.snapshot(), state);
    let end = log.next_offset();
    let mut bytes = batches[0].clone();
    crate::engine::batch::patch(&mut bytes, end, 3);
    let next = log.append(&[&bytes], 0).unwrap().next_offset;
    assert_eq!(split(&read_all(&log.reader(), next)).len(), batches.len() + 1);
    assert_eq!(log.reader().epoch_end(1, 3, next), (1, end), "F-752");
    // Less than the clean stop said is damage.
    let active = format!("{DIR}/{:020}.log", point.active_base);
    let short = disk.crash(Cut::LoseNothing);
    short.damage(Path::new(&active), |bytes| bytes.truncate(usize::try_from(point.synced_pos).unwrap() - 1)).unwrap();
    assert!(matches!(open(&short, how), Err(StoreError::Damaged(_))), "2.3 step 6");
    short.remove(Path::new(&active)).unwrap();
    assert!(matches!(open(&short, how), Err(StoreError::Damaged(_))), "2.3 step 6");
}

#[test]
fn a_clean_stop_that_did_not_touch_the_log_says_nothing_of_what_a_crash_before_it_left() {
    for (batches, seed) in [(1, 1), (3, 2), (60, 3)] {
        let mut rig = Rig::new();
        busy(&mut rig, 20, seed);
        let (disk, _, _, point) = rig.close();
        // A run that writes and is killed: no new point. The one after it stops in order and never opens the log.
        let how = OpenHow { point: Some(point), log_start: 0, clean: true, witness: 0, incarnation: i32::MAX };
        let (mut log, ..) = open(&disk, how).unwrap();
        for _ in 0..batches {
            let mut front = header(4);
            front.base_offset = log.next_offset();
            front.leader_epoch = 2;
            let payload =
                encode(&(0..4).map(|_| Entry { value: Some(vec![b'v'; 90]), ..Entry::default() }).collect::<Vec<_>>());
            log.append(&[seal(&front, &payload)], 0).unwrap();
        }
        log.take_unsynced().unwrap().run().unwrap();
        let end = log.next_offset();
        let (again, opened, _) = open(&disk.crash(Cut::LoseAll), how).unwrap();
        assert_eq!((again.next_offset(), opened.torn), (end, None), "{batches} batches behind the point");
        assert!(opened.scanned_bytes > 0);
    }
}

/// Drops and unlinks; gives the bytes.
fn remove_below(rig: &mut Rig, log_start: Offset) -> u64 {
    let segments = rig.log.extents();
    let below = segments.iter().skip(1).take_while(|next| next.base <= log_start).count();
    assert_eq!(rig.log.drops_below(log_start), below > 0);
    let dropped = rig.log.drop_below(log_start);
    assert_eq!(usize::try_from(dropped.segments).unwrap(), below);
    while rig.log.unlink(1).unwrap() == Left::More {}
    dropped.bytes
}

#[test]
fn retention_removes_whole_segments() {
    let mut rig = Rig::new();
    busy(&mut rig, 150, 8);
    rig.checkpoint();
    let segments = rig.log.extents();
    assert!(segments.len() >= 4);
    let reader = rig.log.reader();
    let log_start = segments[2].base + 1;
    assert_eq!(remove_below(&mut rig, segments[1].base - 1), 0);
    assert_eq!(remove_below(&mut rig, log_start), segments[0].bytes + segments[1].bytes);
    assert_eq!(reader.first_base(), segments[2].base);
    assert_eq!(reader.read(&wish(0, 1000)).unwrap(), ReadOutcome::Gone);
    assert_eq!(
        remove_below(&mut rig, Offset::MAX),
        segments[2..segments.len() - 1].iter().map(|s| s.bytes).sum::<u64>()
    );
    assert_eq!(rig.log.extents().len(), 1, "T-543: never the active one");
    // The names were not synced: any of the files may be back after a cut, and with a gap between them.
    let end = rig.log.next_offset();
    let log_start = rig.log.extents()[0].base;
    for seed in 0..50 {
        let disk = rig.disk.crash(Cut::Seed(seed));
        let how = OpenHow { point: rig.point, log_start, clean: seed % 2 == 0, witness: end, incarnation: i32::MAX };
        let (log, ..) = open(&disk, how).unwrap();
        assert_eq!((log.next_offset(), log.first_base()), (end, log_start), "6.1, seed {seed}");
        let logs = names(&disk, DIR).into_iter().filter(|name| name.ends_with("log") || name.ends_with("index"));
        assert!(logs.into_iter().all(|name| name.starts_with(&format!("{log_start:020}"))), "seed {seed}");
    }
}

#[test]
fn the_point_may_lie_in_a_segment_that_retention_took() {
    let mut rig = Rig::new();
    busy(&mut rig, 40, 9);
    rig.checkpoint();
    busy(&mut rig, 120, 10);
    rig.sync();
    let log_start = rig.log.extents().iter().find(|s| s.base > rig.point.unwrap().active_base).unwrap().base;
    remove_below(&mut rig, log_start);
    let end = rig.log.next_offset();
    let how = OpenHow { point: rig.point, log_start, clean: false, witness: end, incarnation: i32::MAX };
    let (log, ..) = open(&rig.disk, how).unwrap();
    assert_eq!((log.next_offset(), log.first_base()), (end, log_start));
    let missing = OpenHow { log_start: log_start - 1, ..how };
    assert!(matches!(open(&rig.disk, missing), Err(StoreError::Damaged(_))), "but not above the log start");
}

#[test]
fn a_deleted_directory_never_comes_back_under_its_name() {
    for seed in 0..20 {
        let mut rig = Rig::new();
        rig.append_data(1, 10, None);
        rig.sync();
        let reader = rig.log.reader();
        rig.disk.faults().add(Rule { after: 1, ..Rule::once(Operation::Remove, "-delete", Fault::Io) });
        assert!(delete_dir(&rig.disk, Path::new(DIR), 255).is_err());
        assert_eq!(read_all(&reader, 1), rig.batches.concat(), "6.4");
        let disk = rig.disk.crash(Cut::Seed(seed));
        assert_eq!(names(&disk, ""), ["t-0.000000000000000000000000000000ff-delete"], "seed {seed}");
        remove_condemned(&disk, Path::new("t-0.000000000000000000000000000000ff-delete")).unwrap();
        assert!(names(&disk, "").is_empty());
    }
}

#[test]
fn leader_epochs_survive_without_their_file() {
    let mut rig = Rig::new();
    for epoch in [1, 4, 6] {
        rig.epoch = epoch;
        rig.append_data(5, 10, None);
    }
    rig.checkpoint();
    let file = Path::new("t-0/leader-epoch-checkpoint");
    assert_eq!(rig.disk.content(file).unwrap(), b"0\n3\n1 0\n4 5\n6 10\n");
    for damage in [|bytes: &mut Vec<u8>| bytes.clear(), |bytes: &mut Vec<u8>| bytes.truncate(8)] {
        rig.disk.damage(file, damage).unwrap();
        let (log, ..) = rig.reopened(&rig.disk, 15).unwrap();
        assert_eq!(log.reader().epoch_end(4, 6, 15), (4, 10), "F-752");
        assert_eq!(log.reader().epoch_end(0, 6, 15), (0, 0), "F-752");
    }
}
