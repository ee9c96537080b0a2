//! Everything beside the batches may be lost or wrong: what readers are told stays the same.

use super::*;
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
        let how = OpenHow { point: Some(point), log_start: 0, clean, witness: 0 };
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
