//! Damage in what was synced: told, read up to, never cut; and what is missing is not passed over.

use super::*;
use crate::store::disk::Disk;
use crate::store::mem_disk::Cut;

fn crashed(rig: &Rig) -> MemDisk {
    rig.disk.crash(Cut::LoseNothing)
}

fn files(disk: &MemDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list(Path::new(DIR)).unwrap();
    names.into_iter().map(|name| (name.clone(), disk.content(&Path::new(DIR).join(&name)).unwrap())).collect()
}

fn log_name(base: Offset) -> String {
    format!("{DIR}/{base:020}.log")
}

fn salvage(disk: &MemDisk, how: OpenHow) -> Result<(Salvaged, State), StoreError> {
    let mut state = State::new();
    let salvaged = Log::open_damaged(Arc::new(disk.clone()), Path::new(DIR), SETTINGS, how, &mut state)?;
    Ok((salvaged, state))
}

/// Transactions over several segments, half of them behind the recovery point.
fn grown(seed: u64) -> Rig {
    let mut rig = Rig::new();
    busy(&mut rig, 80, seed);
    rig.checkpoint();
    busy(&mut rig, 80, seed + 1);
    rig.sync();
    rig
}

/// The front of the log up to `end` reads as it was appended, and its producers and aborted transactions are as they
/// were at that place.
fn check_front(rig: &Rig, (salvaged, state): &(Salvaged, State), end: Offset, what: &str) {
    assert_eq!(salvaged.end, end, "{what}");
    let kept: Vec<Vec<u8>> =
        rig.batches.iter().take_while(|batch| Header::read(batch).unwrap().base_offset < end).cloned().collect();
    assert_eq!(split(&read_all(&salvaged.reader, end)), kept, "{what}");
    let mut right = State::new();
    let aborted: Vec<_> =
        kept.iter().filter_map(|batch| right.batch(&Header::read(batch).unwrap(), Some(batch))).collect();
    assert_eq!(state.0.snapshot(), right.0.snapshot(), "T-714: {what}");
    assert_eq!(state.0.first_unstable(), right.0.first_unstable(), "T-501: {what}");
    for from in (0..end).step_by(13) {
        let list = salvaged.reader.aborted(from, end, ReadHow::Block).unwrap().unwrap();
        assert_eq!(list, aborted_oracle(&aborted, from, end), "T-513: {what}, from {from}");
    }
}

#[test]
fn every_batch_may_be_the_damaged_one_c_70_d() {
    let rig = grown(21);
    let last = rig.batches.len() - 1;
    let how =
        OpenHow { point: rig.point, log_start: 0, clean: false, witness: rig.log.next_offset(), incarnation: i32::MAX };
    let segments = rig.log.extents();
    for (at, batch) in rig.batches.iter().enumerate().take(last) {
        let offset = Header::read(batch).unwrap().base_offset;
        let base = segments.iter().rev().find(|segment| segment.base <= offset).unwrap().base;
        let position: usize = (rig.batches.iter().take(at))
            .filter(|before| Header::read(before).unwrap().base_offset >= base)
            .map(Vec::len)
            .sum();
        // In the header, which any walk sees; and in the payload, which only the checksum tells.
        for byte in [16, 40] {
            let disk = crashed(&rig);
            disk.damage(Path::new(&log_name(base)), |bytes| bytes[position + byte] ^= 0x10).unwrap();
            let what = format!("batch {at} at offset {offset}, byte {byte}");
            let Err(error) = rig.reopened(&disk, rig.log.next_offset()) else {
                // Below the recovery point nothing is read again at a start.
                assert!(offset < rig.point.unwrap().synced_offset, "{what}");
                continue;
            };
            let text = error.to_string();
            assert!(matches!(error, StoreError::Damaged(_)) && text.contains(".log at byte"), "{what}: {text}");
            let before = files(&disk);
            check_front(&rig, &salvage(&disk, how).unwrap(), offset, &what);
            assert_eq!(files(&disk), before, "nothing is changed: {what}");
            // Put right, and opened again.
            disk.damage(Path::new(&log_name(base)), |bytes| bytes[position + byte] ^= 0x10).unwrap();
            let (log, opened, _) = rig.reopened(&disk, rig.log.next_offset()).unwrap();
            assert_eq!((opened.next_offset, opened.torn), (rig.log.next_offset(), None), "{what}");
            assert_eq!(read_all(&log.reader(), opened.next_offset), rig.batches.concat(), "{what}");
        }
    }
}

/// The batches that begin below an offset.
fn bytes_below(rig: &Rig, end: Offset) -> Vec<u8> {
    let below = rig.batches.iter().take_while(|batch| Header::read(batch).unwrap().base_offset < end);
    below.flatten().copied().collect()
}

#[test]
fn a_segment_that_is_missing_or_short_is_damage_below_the_recovery_point_too_c_70() {
    let mut rig = grown(22);
    busy(&mut rig, 120, 5);
    rig.checkpoint();
    let end = rig.log.next_offset();
    let segments = rig.log.extents();
    assert!(segments.len() > 6);
    for clean in [true, false] {
        let how = OpenHow { point: rig.point, log_start: 0, clean, witness: 0, incarnation: i32::MAX };
        for (at, segment) in segments.iter().enumerate() {
            let path = log_name(segment.base);
            let last_batch = rig.batches.iter().rfind(|batch| Header::read(batch).unwrap().base_offset < segment.end);
            let last_bytes = last_batch.unwrap().len();
            for (what, take) in [("missing", usize::MAX), ("one byte short", 1), ("one batch short", last_bytes)] {
                let disk = crashed(&rig);
                let whole = disk.content(Path::new(&path)).unwrap();
                if take == usize::MAX {
                    disk.remove(Path::new(&path)).unwrap();
                } else {
                    disk.damage(Path::new(&path), |bytes| bytes.truncate(bytes.len().saturating_sub(take))).unwrap();
                }
                let what = format!("segment {at} of {} at {}: {what}, clean {clean}", segments.len(), segment.base);
                let error = open(&disk, how).err();
                assert!(matches!(&error, Some(StoreError::Damaged(text)) if text.contains(DIR)), "{what}: {error:?}");
                let readable = salvage(&disk, how);
                if at == 0 && take == usize::MAX {
                    assert!(readable.is_err(), "{what}");
                } else {
                    let before = segments.get(at).unwrap();
                    let front = readable.unwrap().0;
                    assert!(front.end >= before.base && front.end < before.end, "{what}: {}", front.end);
                    assert_eq!(read_all(&front.reader, front.end), bytes_below(&rig, front.end), "{what}");
                }
                disk.create(Path::new(&path)).unwrap();
                disk.damage(Path::new(&path), |bytes| *bytes = whole).unwrap();
                let (log, ..) = open(&disk, how).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(read_all(&log.reader(), end), rig.batches.concat(), "put back: {what}");
                let list = log.reader().aborted(0, end, ReadHow::Block).unwrap().unwrap();
                assert_eq!(list, aborted_oracle(&rig.aborted, 0, end), "put back: {what}");
            }
        }
    }
}
