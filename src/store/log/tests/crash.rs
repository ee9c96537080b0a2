use super::*;
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::Cut;

/// The point does not reach the ledger's disk; the earlier one must still do.
fn checkpoint_without_point(rig: &mut Rig) {
    let stored = rig.point;
    rig.checkpoint();
    rig.point = stored;
}

/// The power goes in the middle of a checkpoint.
fn fail_checkpoint(rig: &mut Rig, seed: u64) {
    rig.sync();
    let after = u32::try_from(seed / 3 % 9).unwrap();
    rig.disk.faults().add(Rule { after, ..Rule::once(Operation::Sync, "", Fault::Io) });
    let snapshot = rig.state.0.snapshot();
    if let Ok(point) = rig.log.checkpoint(&snapshot, rig.log.next_offset()) {
        rig.point = point;
    }
}

/// One life of a log up to a power cut, then what is found. Returns what the next life starts from.
fn live_and_crash(seed: u64) {
    let mut rig = Rig::new();
    let steps = seed % 7 + 3;
    for step in 0..steps {
        busy(&mut rig, 15, seed * 31 + step);
        match (seed + step * 5) % 6 {
            0 => rig.checkpoint(),
            1 | 2 => rig.sync(),
            3 => checkpoint_without_point(&mut rig),
            _ => {}
        }
    }
    if seed.is_multiple_of(3) {
        fail_checkpoint(&mut rig, seed);
    }
    let synced = rig.log.synced_offset();
    let cut = match seed % 10 {
        0 => Cut::LoseAll,
        1 => Cut::LoseNothing,
        _ => Cut::Seed(seed),
    };
    let disk = rig.disk.crash(cut);
    let (log, opened, state) = match rig.reopened(&disk, synced) {
        Ok(found) => found,
        Err(error) => panic!("seed {seed}: {error}"),
    };
    let end = opened.next_offset;
    assert!(end >= synced, "P1, seed {seed}: {end} < {synced}");
    let kept: Vec<_> =
        rig.batches.iter().take_while(|batch| Header::read(batch).unwrap().base_offset < end).cloned().collect();
    assert_eq!(split(&read_all(&log.reader(), end)), kept, "7.2.2, seed {seed}");
    let mut right = State::new();
    let aborted: Vec<_> =
        kept.iter().filter_map(|batch| right.batch(&Header::read(batch).unwrap(), Some(batch))).collect();
    assert_eq!(state.0.snapshot(), right.0.snapshot(), "7.2.8, seed {seed}");
    for from in (0..end).step_by(11) {
        let list = log.reader().aborted(from, end, ReadHow::Block).unwrap().unwrap();
        assert_eq!(list, aborted_oracle(&aborted, from, end), "T-513, seed {seed}, from {from}");
    }
    live_on(Rig { state: right, batches: kept, aborted, epoch: 2, ..rig }, &disk, seed);
}

/// A second cut right after loses nothing of what was accepted (rule S); and life goes on.
fn live_on(rig: Rig, disk: &MemDisk, seed: u64) {
    let disk = disk.crash(Cut::Seed(seed + 1));
    let end = rig.batches.last().map_or(0, |batch| Header::read(batch).unwrap().next_offset());
    let (log, again, _) = rig.reopened(&disk, end).unwrap();
    assert_eq!(again.next_offset, end, "7.2.12, seed {seed}");
    let mut rig = Rig { disk, log, ..rig };
    busy(&mut rig, 30, seed + 7);
    rig.checkpoint();
    let end = rig.log.next_offset();
    assert_eq!(split(&read_all(&rig.log.reader(), end)), rig.batches, "seed {seed}");
    let (log, ..) = rig.reopened(&rig.disk.crash(Cut::LoseAll), end).unwrap();
    assert_eq!(split(&read_all(&log.reader(), end)), rig.batches, "seed {seed}");
    let list = log.reader().aborted(0, end, ReadHow::Block).unwrap().unwrap();
    assert_eq!(list, aborted_oracle(&rig.aborted, 0, end), "seed {seed}");
}

/// C-72, and C-76 for the roll: the segments are so small that many a cut falls into one.
#[test]
fn nothing_synced_is_lost() {
    let seeds = std::env::var("ONCELOG_TEST_SEEDS").map_or(300, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        live_and_crash(seed);
    }
}
