//! A recovery that is itself cut short, at every point; and what is done a second time, which changes nothing.

use super::*;
use crate::store::disk::Disk;
use crate::store::mem_disk::Cut;

/// What a start finds of a log, whatever happened before.
#[derive(Debug, PartialEq, Eq)]
struct Recovered {
    next_offset: Offset,
    bytes: Vec<u8>,
    producers: Vec<u8>,
    aborted: Vec<(i64, Offset)>,
    epochs: (i32, Offset),
}

fn recovered(log: &Log, state: &State) -> Recovered {
    let (reader, end) = (log.reader(), log.next_offset());
    Recovered {
        next_offset: end,
        bytes: read_all(&reader, end),
        producers: state.0.snapshot(),
        aborted: reader.aborted(0, end, ReadHow::Block).unwrap().unwrap(),
        epochs: reader.epoch_end(1, 9, end),
    }
}

/// A log as a power cut left it: a point in the middle, a torn tail, an index with entries too many, a snapshot that is
/// not whole, leftovers of replaced files.
fn torn(seed: u64) -> (Rig, MemDisk) {
    let mut rig = Rig::new();
    busy(&mut rig, 60, seed);
    rig.checkpoint();
    busy(&mut rig, 60, seed + 1);
    rig.sync();
    let disk = rig.disk.crash(Cut::LoseNothing);
    let in_dir = |name: &str| Path::new(DIR).join(name);
    let names = disk.list(Path::new(DIR)).unwrap();
    let last = |kind: &str| names.iter().rfind(|name| name.ends_with(kind)).unwrap().clone();
    disk.damage(&in_dir(&last(".log")), |bytes| {
        let half = bytes.len() - rig.batches.last().unwrap().len() / 2;
        bytes.truncate(half);
    })
    .unwrap();
    disk.damage(&in_dir(&last(".timeindex")), |bytes| bytes.extend([1; 25])).unwrap();
    disk.damage(&in_dir(&last(".snapshot")), |bytes| bytes.push(0)).unwrap();
    disk.create(&in_dir("leader-epoch-checkpoint.tmp")).unwrap();
    (rig, disk)
}

#[test]
fn a_recovery_cut_short_at_every_point_is_done_again_with_the_same_end_c_71() {
    for seed in [41, 42, 43] {
        let (rig, disk) = torn(seed);
        let (log, opened, state) = rig.reopened(&disk.crash(Cut::LoseNothing), 0).unwrap();
        let right = recovered(&log, &state);
        assert!(opened.torn.is_some() && opened.rejected_snapshots == 1);
        let whole = disk.crash(Cut::LoseNothing);
        rig.reopened(&whole, 0).unwrap();
        let changes = whole.power().spent();
        assert!(changes > 3, "{changes} changes");
        for at in 1..=changes + 1 {
            for cut in [Cut::LoseAll, Cut::LoseNothing, Cut::Seed(seed * 1000 + at)] {
                let cut_short = disk.crash(Cut::LoseNothing);
                cut_short.power().off_after(at);
                let first = rig.reopened(&cut_short, 0);
                assert_eq!(first.is_ok(), at > changes, "after {at} of {changes}");
                let after = cut_short.crash(cut);
                let (log, _, state) = rig.reopened(&after, 0).unwrap_or_else(|error| panic!("{at} {cut:?}: {error}"));
                assert_eq!(recovered(&log, &state), right, "7.2.11: seed {seed}, after {at} of {changes}, {cut:?}");
                // Once more: nothing is left to be done.
                let again = after.crash(cut);
                let (log, opened, state) = rig.reopened(&again, right.next_offset).unwrap();
                assert_eq!(opened.torn, None, "7.2.12: seed {seed}, after {at}, {cut:?}");
                assert_eq!(recovered(&log, &state), right, "7.2.12: seed {seed}, after {at}, {cut:?}");
            }
        }
    }
}

#[test]
fn a_fence_outlives_the_data_it_came_with_c_73() {
    use crate::engine::partition::NotAdmitted;
    use crate::engine::{Producer, Refusal};
    let mut rig = Rig::new();
    rig.append_data(2, 100, Some(3));
    // The marker raises the epoch, as for a producer that was fenced; it lies in a later segment than the data.
    while rig.log.extents().len() < 2 {
        rig.append_data(1, 500, None);
    }
    let fenced =
        marker::Marker { producer: Producer { id: 3, epoch: 1 }, outcome: Outcome::Abort, coordinator_epoch: 1 };
    let bytes = marker::write(&fenced, rig.log.next_offset(), rig.epoch, 5_000, false).to_vec();
    rig.append(bytes);
    rig.sync();
    let start = rig.log.extents().last().unwrap().base;
    rig.log.drop_below(start);
    while rig.log.unlink(1).unwrap() == crate::store::log::Left::More {}
    let mut disk = rig.disk.crash(Cut::LoseNothing);
    let mut how = OpenHow { point: None, log_start: start, clean: false, witness: 0, incarnation: i32::MAX };
    for life in 0..3 {
        let (log, _, mut state) = open(&disk, how).unwrap_or_else(|error| panic!("life {life}: {error}"));
        let mut late = header(1);
        (late.producer_id, late.producer_epoch, late.base_sequence, late.attributes) = (3, 0, 2, 1 << 4);
        let refused = state.0.admit(&late, None, Now::default());
        assert_eq!(refused.err(), Some(NotAdmitted::Refused(Refusal::InvalidProducerEpoch)), "life {life}");
        assert_eq!(state.0.first_unstable(), None, "life {life}");
        how.point = Some(log.close(&state.0.snapshot()).unwrap());
        disk = disk.crash(Cut::LoseAll);
    }
}
