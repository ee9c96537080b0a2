use super::*;

/// Reads at every offset by the list of what was appended.
fn oracle(batches: &[Vec<u8>], from: Offset, limit: Offset) -> Option<&Vec<u8>> {
    batches
        .iter()
        .find(|batch| Header::read(batch).unwrap().last_offset() >= from)
        .filter(|batch| from < limit && Header::read(batch).unwrap().last_offset() < limit)
}

fn check_every_offset(log: &Log, batches: &[Vec<u8>], how: ReadHow) -> usize {
    let (reader, end) = (log.reader(), log.next_offset());
    let mut would_block = 0;
    for from in 0..=end {
        let wish = ReadWish { max_bytes: 0, how, ..wish(from, end) };
        match reader.read(&wish).unwrap() {
            ReadOutcome::Bytes { bytes, next_offset } => {
                let wanted = oracle(batches, from, end).cloned().unwrap_or_default();
                assert_eq!(bytes, wanted, "7.2.9: at {from}");
                let next = Header::read(&wanted).map_or(from, |header| header.next_offset());
                assert_eq!(next_offset, next, "at {from}");
            }
            ReadOutcome::WouldBlock if how == ReadHow::NoWait => would_block += 1,
            other @ (ReadOutcome::WouldBlock | ReadOutcome::Gone) => panic!("at {from}: {other:?}"),
        }
    }
    would_block
}

#[test]
fn every_offset_with_and_without_indexes() {
    let mut rig = Rig::new();
    busy(&mut rig, 200, 1);
    assert!(rig.log.extents().len() > 3);
    assert_eq!(check_every_offset(&rig.log, &rig.batches, ReadHow::NoWait), 0, "all indexes are in memory");
    rig.checkpoint();
    check_every_offset(&rig.log, &rig.batches, ReadHow::Block);
    let (disk, batches, aborted, point) = rig.close();
    let how = OpenHow { point: Some(point), log_start: 0, clean: true, witness: 0, incarnation: i32::MAX };
    let (log, opened, _) = open(&disk, how).unwrap();
    assert_eq!((opened.scanned_bytes, opened.snapshot_at), (0, Some(log.next_offset())));
    let blocked = check_every_offset(&log, &batches, ReadHow::NoWait);
    assert!(blocked > 0, "nothing is open yet");
    check_every_offset(&log, &batches, ReadHow::Block);
    check_aborted(&log, &aborted);
    // Indexes that are wrong or gone only cost time.
    for damage in [
        |bytes: &mut Vec<u8>| bytes.clear(),
        |bytes: &mut Vec<u8>| bytes.fill(0),
        |bytes: &mut Vec<u8>| {
            bytes.chunks_exact_mut(8).for_each(|entry| entry[7] ^= 5);
        },
    ] {
        let disk = disk.clone();
        for segment in log.extents() {
            let place = format!("{DIR}/{:020}.index", segment.base);
            if disk.content(Path::new(&place)).is_ok() {
                disk.damage(Path::new(&place), damage).unwrap();
            }
        }
        let (log, _, _) = open(&disk, how).unwrap();
        check_every_offset(&log, &batches, ReadHow::Block);
    }
}

fn check_aborted(log: &Log, aborted: &[Aborted]) {
    let (reader, end) = (log.reader(), log.next_offset());
    for from in 0..end {
        for upper in [from + 1, from + 7, from + 50, end] {
            let list = reader.aborted(from, upper, ReadHow::Block).unwrap().unwrap();
            assert_eq!(list, aborted_oracle(aborted, from, upper), "T-513: {from}..{upper}");
        }
    }
}

#[test]
fn aborted_lists_are_exact_wherever_the_entries_are() {
    for seed in 0..4 {
        let mut rig = Rig::new();
        busy(&mut rig, 150, seed);
        assert!(rig.aborted.len() > 5, "seed {seed}");
        check_aborted(&rig.log, &rig.aborted);
        rig.checkpoint();
        check_aborted(&rig.log, &rig.aborted);
        busy(&mut rig, 60, seed + 100);
        check_aborted(&rig.log, &rig.aborted);
        let (disk, _, aborted, point) = rig.close();
        let (log, _, _) =
            open(&disk, OpenHow { point: Some(point), log_start: 0, clean: true, witness: 0, incarnation: i32::MAX })
                .unwrap();
        check_aborted(&log, &aborted);
    }
}

#[test]
fn an_abort_without_data_is_not_listed() {
    let mut rig = Rig::new();
    let marker = rig.end(1, Outcome::Abort);
    rig.append(marker);
    rig.append_data(1, 10, Some(1));
    let marker = rig.end(1, Outcome::Commit);
    rig.append(marker);
    assert_eq!(rig.log.reader().aborted(0, 3, ReadHow::NoWait).unwrap(), Some(vec![]), "C-07");
}

#[test]
fn limits_hold() {
    let mut rig = Rig::new();
    for _ in 0..5 {
        rig.append_data(2, 100, None);
    }
    let one = rig.batches[0].len();
    let reader = rig.log.reader();
    let got = |wish: ReadWish| match reader.read(&wish).unwrap() {
        ReadOutcome::Bytes { bytes, next_offset } => (bytes.len() / one, next_offset),
        other @ (ReadOutcome::WouldBlock | ReadOutcome::Gone) => panic!("{other:?}"),
    };
    for (from, limit, max_bytes, at_least_one, answer) in [
        (0, 10, usize::MAX, false, (5, 10)),
        (1, 10, usize::MAX, false, (5, 10)),
        (2, 10, usize::MAX, false, (4, 10)),
        (0, 4, usize::MAX, false, (2, 4)),
        (0, 5, usize::MAX, false, (2, 4)),
        (4, 5, usize::MAX, true, (0, 4)),
        (4, 4, usize::MAX, true, (0, 4)),
        (10, 10, usize::MAX, true, (0, 10)),
        (12, 10, usize::MAX, true, (0, 12)),
        (0, 10, one, false, (1, 2)),
        (0, 10, one - 1, false, (0, 0)),
        (0, 10, one - 1, true, (1, 2)),
        (0, 10, 0, true, (1, 2)),
        (0, 10, 0, false, (0, 0)),
        (0, 10, 3 * one - 1, false, (2, 4)),
    ] {
        let how = ReadHow::Block;
        let wish = ReadWish { from, limit, max_bytes, at_least_one, how };
        assert_eq!(got(wish), answer, "T-510, T-512: {wish:?}");
        assert_eq!(got(ReadWish { how: ReadHow::NoWait, ..wish }), answer, "{wish:?}");
    }
    assert_eq!(reader.read(&wish(-1, 10)).unwrap(), ReadOutcome::Gone);
}

#[test]
fn timestamps_find_the_first_record_in_order_of_offsets() {
    let mut rig = Rig::new();
    let mut stamps: Vec<i64> = Vec::new();
    let mut seed = 5_u64;
    for _ in 0..120 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (records, at_ms) = (i32::try_from(seed >> 60).unwrap() % 4 + 1, i64::try_from(seed >> 50).unwrap() % 500);
        let bytes = rig.data(records, 60, at_ms, None);
        rig.append(bytes);
        stamps.extend((0..i64::from(records)).map(|at| at_ms + at));
    }
    let end = rig.log.next_offset();
    let check = |log: &Log| {
        let reader = log.reader();
        for (start, limit) in [(0, end), (0, end / 2), (end / 3, end)] {
            for wanted in -1..510 {
                let found = reader.offset_for_timestamp(wanted, start..limit).unwrap();
                let mut first = stamps.iter().enumerate().map(|(at, stamp)| (i64::try_from(at).unwrap(), *stamp));
                let right = first.find(|(at, stamp)| *at >= start && *stamp >= wanted);
                let right = right.filter(|(at, _)| *at < limit);
                assert_eq!(found.map(|f| (f.offset, f.timestamp)), right, "T-526, F-763: {wanted} in {start}..{limit}");
            }
        }
        let largest = *stamps.iter().max().unwrap();
        let at = i64::try_from(stamps.iter().position(|stamp| *stamp == largest).unwrap()).unwrap();
        let found = reader.max_timestamp(0..end).unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp, found.leader_epoch), (at, largest, 1), "T-522");
        assert_eq!(reader.max_timestamp(0..at).unwrap(), None, "T-522");
    };
    check(&rig.log);
    rig.checkpoint();
    check(&rig.log);
    let (log, ..) = rig.reopened(&rig.disk, 0).unwrap();
    check(&log);
}
