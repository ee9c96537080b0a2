//! Everything beside the batches may be lost or wrong: what readers are told stays the same.

use super::*;
use crate::engine::log::Entry as EntryBytes;
use crate::engine::log::segments::{FileKind, file_name};
use crate::store::disk::Disk;
use crate::store::mem_disk::Cut;

type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

/// What readers can learn of a log.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    bytes: Vec<u8>,
    single: Vec<usize>,
    aborted: Vec<Vec<(i64, Offset)>>,
    times: Vec<Option<Offset>>,
    latest: Option<(Offset, i64)>,
    producers: Vec<u8>,
    epochs: (i32, Offset),
}

fn answers(log: &Log, state: &State) -> Answers {
    let (reader, end) = (log.reader(), log.next_offset());
    let read = |from| match reader.read(&ReadWish { max_bytes: 1, ..wish(from, end) }).unwrap() {
        ReadOutcome::Bytes { bytes, .. } => bytes.len(),
        ReadOutcome::WouldBlock | ReadOutcome::Gone => panic!("nothing at {from}"),
    };
    let time = |at| reader.offset_for_timestamp(at, 0..end).unwrap().map(|found| found.offset);
    Answers {
        bytes: read_all(&reader, end),
        single: (0..end).map(read).collect(),
        aborted: (0..end).step_by(7).map(|from| reader.aborted(from, end, ReadHow::Block).unwrap().unwrap()).collect(),
        times: (900..1000 + end + 20).step_by(5).map(time).collect(),
        latest: reader.max_timestamp(0..end).unwrap().map(|found| (found.offset, found.timestamp)),
        producers: state.0.snapshot(),
        epochs: reader.epoch_end(1, 9, end),
    }
}

#[test]
fn each_file_beside_the_batches_may_be_lost_or_wrong_c_70_e_f() {
    let mut rig = Rig::new();
    busy(&mut rig, 250, 31);
    rig.checkpoint();
    // What is in the active segment behind the point is found again by scanning; behind a clean stop there is nothing.
    let (disk, _, aborted, point) = rig.close();
    assert!(aborted.len() > 8);
    let names = disk.list(Path::new(DIR)).unwrap();
    let foreign = |kind: &str| {
        let of = names.iter().filter(|name| name.ends_with(kind)).nth(1).unwrap();
        disk.content(&Path::new(DIR).join(of)).unwrap()
    };
    for clean in [true, false] {
        let how = OpenHow { point: Some(point), log_start: 0, clean, witness: 0, incarnation: i32::MAX };
        let fresh = || disk.crash(Cut::LoseNothing);
        let (log, opened, state) = open(&fresh(), how).unwrap();
        assert_eq!(opened.aborted, AbortedLists::Whole, "nothing is wrong yet");
        let right = answers(&log, &state);
        for kind in [".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", "txnindex-checkpoint"]
        {
            let foreign = if kind.starts_with('.') && kind != ".snapshot" { foreign(kind) } else { vec![1, 2, 3] };
            let zeros = |bytes: &mut Vec<u8>| bytes.fill(0);
            let empty = |bytes: &mut Vec<u8>| bytes.clear();
            let long = |bytes: &mut Vec<u8>| bytes.extend([0; 4096]);
            let odd = |bytes: &mut Vec<u8>| bytes.extend([7; 5]);
            let other = |bytes: &mut Vec<u8>| bytes.clone_from(&foreign);
            let changes: [(&str, Option<Change<'_>>); 6] = [
                ("deleted", None),
                ("zeroed", Some(&zeros)),
                ("empty", Some(&empty)),
                ("too long", Some(&long)),
                ("too long by a piece", Some(&odd)),
                ("another one's", Some(&other)),
            ];
            for (what, change) in changes {
                let disk = fresh();
                for name in names.iter().filter(|name| name.ends_with(kind)) {
                    let path = Path::new(DIR).join(name);
                    match change {
                        Some(change) => disk.damage(&path, change).unwrap(),
                        None => disk.remove(&path).unwrap(),
                    }
                }
                let what = format!("{kind} {what}, clean {clean}");
                let (log, _, state) = open(&disk, how).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(answers(&log, &state), right, "{what}");
                // And so after another start, with what was made anew on disk.
                let point = log.close(&state.0.snapshot()).unwrap();
                let (log, opened, state) = open(&disk, OpenHow { point: Some(point), ..how }).unwrap();
                assert_eq!(answers(&log, &state), right, "again: {what}");
                assert_eq!(opened.aborted, AbortedLists::Whole, "once: {what}");
            }
        }
    }
}

#[test]
fn five_batches_of_a_producer_survive_without_any_snapshot_c_60_c_61() {
    use crate::engine::partition::Admission;
    for keep_snapshots in [true, false] {
        let mut rig = Rig::new();
        for _ in 0..9 {
            rig.append_data(2, 10, Some(5));
            rig.append_data(1, 10, None);
        }
        rig.checkpoint();
        let disk = rig.disk.crash(Cut::LoseAll);
        if !keep_snapshots {
            for name in disk.list(Path::new(DIR)).unwrap().iter().filter(|name| name.ends_with(".snapshot")) {
                disk.remove(&Path::new(DIR).join(name)).unwrap();
            }
        }
        let (_, _, mut state) = rig.reopened(&disk, 0).unwrap();
        let sent: Vec<Header> = rig.batches.iter().map(|batch| Header::read(batch).unwrap()).collect();
        let own: Vec<&Header> = sent.iter().filter(|header| header.producer_id == 5).collect();
        for (at, header) in own.iter().enumerate() {
            let again = Header { attributes: header.attributes & !(1 << 4), ..**header };
            let admitted = state.0.admit(&again, None, Now::default());
            if at + 5 >= own.len() {
                let original = matches!(admitted, Ok(Admission::Duplicate { base_offset, .. }) if base_offset == header.base_offset);
                assert!(original, "T-357, snapshots {keep_snapshots}, batch {at}: {admitted:?}");
            } else {
                assert!(admitted.is_err(), "C-61: older than the last five: {admitted:?}");
            }
        }
    }
}

/// A log with two segments behind its last snapshot but one, whose point speaks of a snapshot older than its end.
fn behind_its_snapshot(seed: u64) -> (Rig, OpenHow) {
    let mut rig = Rig::new();
    busy(&mut rig, 200, seed);
    rig.checkpoint();
    busy(&mut rig, 20, seed + 100);
    let segments = rig.log.extents().len();
    while rig.log.extents().len() == segments {
        rig.append_data(1, 90, None);
    }
    let (snapshot, at) = (rig.state.0.snapshot(), rig.log.next_offset());
    busy(&mut rig, 40, seed + 200);
    rig.sync();
    let point = rig.log.checkpoint(&snapshot, at).unwrap();
    let how = OpenHow { point, log_start: 0, clean: false, witness: rig.log.next_offset(), incarnation: i32::MAX };
    (rig, how)
}

#[test]
fn reading_a_log_anew_changes_nothing_under_the_readers_it_has_t_513() {
    for seed in 1..40 {
        // The newest snapshot is lost, so an opening has entries in its files that come again from their markers.
        let (mut rig, how) = behind_its_snapshot(seed);
        let end = rig.log.next_offset();
        rig.checkpoint();
        rig.disk.remove(&Path::new(DIR).join(file_name(end, FileKind::Snapshot))).unwrap();
        let spans = [(0, end), (0, 40), (how.point.unwrap().snapshot_at, end)];
        let mut readers = vec![rig.log.reader()];
        for turn in 0..3 {
            let (log, opened, _) = open(&rig.disk, how).unwrap();
            assert_eq!(opened.aborted, AbortedLists::Whole, "seed {seed}, turn {turn}: nothing is short");
            readers.push(log.reader());
            for (at, reader) in readers.iter().enumerate() {
                for (from, upper) in spans {
                    let found = reader.aborted(from, upper, ReadHow::Block).unwrap().unwrap();
                    let want = aborted_oracle(&rig.aborted, from, upper);
                    assert_eq!(found, want, "seed {seed}, turn {turn}, reader {at}, {from}..{upper}");
                }
            }
        }
    }
}

#[test]
fn lists_made_anew_are_changed_by_the_next_checkpoint_only_t_513() {
    let names = |disk: &MemDisk| -> Vec<String> {
        let names = disk.list(Path::new(DIR)).unwrap();
        names.into_iter().filter(|name| name.ends_with(".txnindex")).collect()
    };
    for seed in 1..20 {
        let (rig, how) = behind_its_snapshot(seed);
        let (disk, end) = (rig.disk.clone(), rig.log.next_offset());
        let path = Path::new(DIR).join(names(&disk).remove(0));
        disk.damage(&path, |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - <Aborted as EntryBytes>::BYTES)).unwrap();
        let before: Vec<_> =
            names(&disk).iter().map(|name| disk.content(&Path::new(DIR).join(name)).unwrap()).collect();
        let (mut log, opened, state) = open(&disk, how).unwrap();
        assert_eq!(opened.aborted, AbortedLists::MadeAnew, "seed {seed}");
        let after: Vec<_> = names(&disk).iter().map(|name| disk.content(&Path::new(DIR).join(name)).unwrap()).collect();
        assert_eq!(before, after, "seed {seed}: not a byte of a list");
        let want = aborted_oracle(&rig.aborted, 0, end);
        let found = |log: &Log| log.reader().aborted(0, end, ReadHow::Block).unwrap().unwrap();
        assert_eq!(found(&log), want, "seed {seed}");
        let point = log.checkpoint(&state.0.snapshot(), end).unwrap();
        assert_eq!(found(&log), want, "seed {seed}: written");
        let (log, opened, _) = open(&disk, OpenHow { point, ..how }).unwrap();
        assert_eq!((opened.aborted, found(&log)), (AbortedLists::Whole, want), "seed {seed}: once only");
    }
}

#[test]
fn a_damaged_log_whose_lists_are_short_shows_nothing_that_was_aborted_c_70_t_513() {
    let mut shown = 0;
    for seed in 1..40_u64 {
        let mut rig = Rig::new();
        busy(&mut rig, 200, seed);
        rig.checkpoint();
        rig.append_data(1, 90, None);
        rig.append_data(1, 90, None);
        rig.sync();
        let disk = rig.disk.crash(Cut::LoseNothing);
        let names = disk.list(Path::new(DIR)).unwrap();
        let list = names.iter().rfind(|name| name.ends_with(".txnindex")).unwrap();
        let log = names.iter().rfind(|name| name.ends_with(".log")).unwrap();
        // The last list is lost, and the last batch's bytes are wrong below the witness.
        disk.remove(&Path::new(DIR).join(list)).unwrap();
        let flip = |bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() ^= 1;
        disk.damage(&Path::new(DIR).join(log), flip).unwrap();
        let how = OpenHow {
            point: rig.point,
            log_start: 0,
            clean: false,
            witness: rig.log.next_offset(),
            incarnation: i32::MAX,
        };
        assert!(open(&disk, how).is_err());
        let mut state = State::new();
        let salvaged = Log::open_damaged(Arc::new(disk.clone()), Path::new(DIR), SETTINGS, how, &mut state).unwrap();
        let below: Vec<_> = rig.aborted.iter().copied().filter(|entry| entry.last_offset < salvaged.end).collect();
        for (from, upper) in [(0, salvaged.end), (0, 40), (salvaged.end - 20, salvaged.end)] {
            let found = salvaged.reader.aborted(from, upper, ReadHow::Block).unwrap().unwrap();
            assert_eq!(found, aborted_oracle(&below, from, upper), "seed {seed}, {from}..{upper}");
            shown += found.len();
        }
    }
    assert!(shown > 0);
}

#[test]
fn an_opening_leaves_no_file_of_a_sealed_segment_open() {
    let mut rig = Rig::new();
    busy(&mut rig, 250, 31);
    rig.checkpoint();
    let (disk, _, _, point) = rig.close();
    for lost in [false, true] {
        if lost {
            disk.remove(&Path::new(DIR).join("00000000000000000000.txnindex")).unwrap();
        }
        let how = OpenHow { point: Some(point), log_start: 0, clean: true, witness: 0, incarnation: i32::MAX };
        let (log, opened, _) = open(&disk, how).unwrap();
        assert_eq!(opened.aborted == AbortedLists::MadeAnew, lost);
        let segments = log.shared.segments();
        assert!(segments.len() > 5 && segments.iter().rev().skip(1).all(|segment| !segment.is_open()), "lost {lost}");
    }
}

#[test]
fn what_is_shown_of_a_damaged_log_outlives_a_power_cut_c_70() {
    let mut rig = Rig::new();
    busy(&mut rig, 5, 3);
    rig.checkpoint();
    let synced = rig.log.next_offset();
    for _ in 0..3 {
        rig.append_data(1, 90, None);
    }
    let how =
        OpenHow { point: rig.point, log_start: 0, clean: false, witness: rig.log.next_offset(), incarnation: i32::MAX };
    let names = rig.disk.list(Path::new(DIR)).unwrap();
    let log = names.iter().rfind(|name| name.ends_with(".log")).unwrap();
    let flip = |bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() ^= 1;
    rig.disk.damage(&Path::new(DIR).join(log), flip).unwrap();
    let salvage = |disk: &MemDisk| {
        let disk = Arc::new(disk.clone());
        Log::open_damaged(disk, Path::new(DIR), SETTINGS, how, &mut State::new()).unwrap().end
    };
    let shown = salvage(&rig.disk);
    assert!(shown > synced);
    assert_eq!(salvage(&rig.disk.crash(Cut::LoseAll)), shown);
}
