use super::*;
use crate::engine::log::scan::Verdict;
use crate::store::disk::Disk;

type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

fn last_log(rig: &Rig) -> String {
    format!("{DIR}/{:020}.log", rig.log.extents().last().unwrap().base)
}

/// A log with a checkpoint in the middle and its last batch in the active segment, all of it on the disk.
fn grown(seed: u64) -> Rig {
    let mut rig = Rig::new();
    busy(&mut rig, 60, seed);
    rig.checkpoint();
    busy(&mut rig, 40, seed + 1);
    rig.sync();
    rig
}

/// Opens what is left, which must be all but the last batch.
fn check_cut(rig: &Rig, disk: &MemDisk, what: &str) {
    let kept = &rig.batches[..rig.batches.len() - 1];
    let end = Header::read(&rig.batches[kept.len()]).unwrap().base_offset;
    let (log, opened, _) = rig.reopened(disk, 0).unwrap();
    assert_eq!(opened.next_offset, end, "{what}");
    assert_eq!(read_all(&log.reader(), end), kept.concat(), "{what}");
    assert!(!opened.cache_kept);
    let (_, again, _) = rig.reopened(disk, 0).unwrap();
    assert_eq!((again.next_offset, again.torn), (end, None), "7.2.11: {what}");
}

#[test]
fn a_torn_tail_at_every_cut() {
    let rig = grown(3);
    let path = last_log(&rig);
    let whole = rig.disk.content(Path::new(&path)).unwrap();
    let last = rig.batches.last().unwrap();
    let end = Header::read(last).unwrap().base_offset;
    for missing in 1..=last.len() {
        let disk = rig.disk.crash(crate::store::mem_disk::Cut::LoseNothing);
        disk.damage(Path::new(&path), |bytes| bytes.truncate(whole.len() - missing)).unwrap();
        let (_, opened, _) = rig.reopened(&disk, 0).unwrap();
        assert_eq!(opened.next_offset, end);
        match opened.torn {
            None => assert_eq!(missing, last.len()),
            Some(torn) => {
                assert_eq!((torn.verdict, torn.bytes), (Verdict::TornTail, (last.len() - missing) as u64), "2.4");
                let kept = disk.content(&torn.kept.unwrap()).unwrap();
                assert_eq!(kept, last[..last.len() - missing]);
            }
        }
        check_cut(&rig, &disk, &format!("{missing} bytes missing"));
        let disk = rig.disk.crash(crate::store::mem_disk::Cut::LoseNothing);
        disk.damage(Path::new(&path), |bytes| bytes.truncate(whole.len() - missing)).unwrap();
        let error = rig.reopened(&disk, end + 1).err().unwrap();
        assert!(
            matches!(&error, StoreError::Damaged(text) if text.contains(&path) && text.contains("byte")),
            "{error}"
        );
        assert_eq!(disk.size(Path::new(&path)).unwrap(), (whole.len() - missing) as u64, "2.4: never cut");
    }
}

#[test]
fn every_flipped_bit_of_the_last_batch() {
    let rig = grown(4);
    let path = last_log(&rig);
    let last = rig.batches.last().unwrap();
    let start = rig.disk.content(Path::new(&path)).unwrap().len() - last.len();
    for bit in 0..last.len() * 8 {
        let disk = rig.disk.crash(crate::store::mem_disk::Cut::LoseNothing);
        disk.damage(Path::new(&path), |bytes| bytes[start + bit / 8] ^= 1 << (bit % 8)).unwrap();
        // A leader epoch that rises is not to be told from the truth.
        if (12..16).contains(&(bit / 8)) && bit / 8 * 8 + 7 - bit % 8 != 15 * 8 + 7 {
            continue;
        }
        check_cut(&rig, &disk, &format!("bit {bit}"));
    }
}

#[test]
fn a_hole_is_cut_and_told() {
    let mut rig = Rig::new();
    for _ in 0..6 {
        rig.append_data(1, 100, None);
    }
    rig.sync();
    let size = rig.batches[0].len();
    rig.disk.damage(Path::new(&last_log(&rig)), |bytes| bytes[2 * size..3 * size].fill(0)).unwrap();
    let (log, opened, _) = rig.reopened(&rig.disk, 2).unwrap();
    let torn = opened.torn.unwrap();
    assert_eq!((torn.verdict, torn.position, opened.next_offset), (Verdict::Hole, 2 * size as u64, 2), "2.4");
    assert_eq!(read_all(&log.reader(), 2), rig.batches[..2].concat());
}

#[test]
fn what_was_known_to_be_there_is_damage() {
    let rig = grown(5);
    let point = rig.point.unwrap();
    let point_log = format!("{DIR}/{:020}.log", point.active_base);
    let first_sealed = rig.log.extents().iter().find(|s| s.base > point.active_base).unwrap().base;
    let sealed = format!("{DIR}/{first_sealed:020}.log");
    let cases: [(&str, &str, Change<'_>); 3] = [
        ("below the synced position", &point_log, &|bytes| {
            bytes.truncate(usize::try_from(point.synced_pos).unwrap() - 1)
        }),
        ("in a sealed segment", &sealed, &|bytes| bytes[100] ^= 1),
        ("at the end of a sealed segment", &sealed, &|bytes| bytes.truncate(bytes.len() - 1)),
    ];
    for (what, path, change) in cases {
        let disk = rig.disk.crash(crate::store::mem_disk::Cut::LoseNothing);
        disk.damage(Path::new(path), change).unwrap();
        let error = rig.reopened(&disk, 0).err();
        assert!(matches!(&error, Some(StoreError::Damaged(text)) if text.contains(path)), "2.4: {what}: {error:?}");
    }
    let disk = rig.disk.crash(crate::store::mem_disk::Cut::LoseNothing);
    disk.remove(Path::new(&sealed)).unwrap();
    assert!(matches!(rig.reopened(&disk, 0), Err(StoreError::Damaged(_))), "a segment is missing");
    disk.remove(Path::new(&point_log)).unwrap();
    assert!(matches!(rig.reopened(&disk, 0), Err(StoreError::Damaged(_))), "the point's segment is missing");
}

#[test]
fn a_snapshot_that_is_not_valid_costs_a_longer_replay_only() {
    let mut rig = grown(6);
    rig.checkpoint();
    let whole = rig.state.0.snapshot();
    for spoiled in [1, 2] {
        let disk = rig.disk.crash(crate::store::mem_disk::Cut::LoseNothing);
        let snapshots: Vec<String> =
            disk.list(Path::new(DIR)).unwrap().into_iter().filter(|name| name.ends_with(".snapshot")).collect();
        assert_eq!(snapshots.len(), 2);
        for name in snapshots.iter().rev().take(spoiled) {
            disk.damage(&Path::new(DIR).join(name), |bytes| bytes.push(0)).unwrap();
        }
        let (log, opened, state) = rig.reopened(&disk, 0).unwrap();
        assert_eq!(opened.rejected_snapshots, u32::try_from(spoiled).unwrap(), "T-713");
        assert_eq!(state.0.snapshot(), whole, "T-714");
        let end = log.next_offset();
        let list = log.reader().aborted(0, end, ReadHow::Block).unwrap().unwrap();
        assert_eq!(list, aborted_oracle(&rig.aborted, 0, end), "T-715");
    }
}

#[test]
fn the_cache_is_not_believed() {
    use crate::store::faults::{Fault, Operation, Rule};
    let mut rig = Rig::new();
    rig.append_data(1, 1000, None);
    rig.sync();
    rig.append_data(1, 1000, None);
    let job = rig.log.take_unsynced().unwrap();
    rig.disk.faults().add(Rule::once(Operation::Sync, ".log", Fault::Io));
    assert!(job.run().is_err());
    // The process starts over; the machine does not. The file still reads back as written.
    let (log, opened, _) = rig.reopened(&rig.disk, 1).unwrap();
    assert_eq!(opened.next_offset, 1, "3.5.2");
    assert_eq!(read_all(&log.reader(), 1), rig.batches[0]);
}

/// The checksum does not cover the leader epoch, so a flipped bit may make it any other. One that no start has had is a torn
/// tail, unless the batch behind it has one as well: then the rows are older than the log, which is for others to judge.
#[test]
fn an_epoch_of_no_start_is_a_torn_tail_and_two_are_not() {
    for (epochs, kept) in
        [([1, 9], 1), ([9, 1], 0), ([9, 9], 2), ([3, 9], 2), ([9, 8], 0), ([1, 2], 2), ([2, 3], 1), ([1, 1], 2)]
    {
        let mut rig = Rig::new();
        rig.append_data(1, 10, None);
        rig.checkpoint();
        epochs.iter().for_each(|_| rig.append_data(1, 10, None));
        let size = rig.batches[0].len();
        rig.disk
            .damage(Path::new(&last_log(&rig)), |bytes| {
                for (at, epoch) in epochs.iter().enumerate() {
                    let from = (at + 1) * size + 12;
                    bytes[from..from + 4].copy_from_slice(&i32::to_be_bytes(*epoch));
                }
            })
            .unwrap();
        let how = OpenHow { point: rig.point, log_start: 0, clean: false, witness: 1, incarnation: 2 };
        let (log, opened, _) = open(&rig.disk, how).unwrap();
        assert_eq!((opened.next_offset, opened.torn.is_some()), (1 + kept, kept < 2), "{epochs:?}");
        let highest = epochs.iter().take(usize::try_from(kept).unwrap()).max().copied().unwrap_or(1);
        assert_eq!(log.leader_epoch(), Some(highest), "{epochs:?}");
    }
}
