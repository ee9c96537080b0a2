#![expect(clippy::arithmetic_side_effects, reason = "a test may count freely: an overflow fails it")]

use super::*;

fn sealed(base_offset: Offset, leader_epoch: i32, records: i32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(base_offset.to_be_bytes());
    bytes.extend(i32::try_from(49 + payload.len()).unwrap().to_be_bytes());
    bytes.extend(leader_epoch.to_be_bytes());
    bytes.push(2);
    bytes.extend([0; 4]);
    bytes.extend(0_i16.to_be_bytes());
    bytes.extend((records - 1).to_be_bytes());
    bytes.extend([0; 16]);
    bytes.extend((-1_i64).to_be_bytes());
    bytes.extend((-1_i16).to_be_bytes());
    bytes.extend((-1_i32).to_be_bytes());
    bytes.extend(records.to_be_bytes());
    bytes.extend(payload);
    let crc = batch::checksum(&bytes);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

const START: Expected = Expected { next_offset: 7, leader_epoch: 3 };

#[test]
fn a_torn_tail_at_every_cut() {
    let first = sealed(7, 3, 2, b"first");
    let whole = [first.clone(), sealed(9, 4, 1, b"second")].concat();
    for cut in 0..=whole.len() {
        let found = scan(&whole[..cut], START, 0);
        let (sound, next) = match cut {
            _ if cut == whole.len() => (whole.len(), 10),
            _ if cut >= first.len() => (first.len(), 9),
            _ => (0, 7),
        };
        assert_eq!((found.sound_bytes, found.next_offset), (sound, next), "cut at {cut}");
        let verdict = if sound == cut { Verdict::Sound } else { Verdict::TornTail };
        assert_eq!(found.verdict, verdict, "2.4: cut at {cut}");
        if next < 10 {
            assert_eq!(scan(&whole[..cut], START, 10).verdict, Verdict::Damage, "2.4 witness: cut at {cut}");
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let first = sealed(7, 3, 2, b"first");
    let whole = [first.clone(), sealed(9, 4, 1, b"second")].concat();
    for bit in first.len() * 8..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let found = scan(&bytes, START, 0);
        // A leader epoch that rises is the one change no reader can tell from the truth.
        let in_epoch = (first.len() + 12..first.len() + 16).contains(&(bit / 8));
        let raised = i32::from_be_bytes(bytes[first.len() + 12..first.len() + 16].try_into().unwrap()) >= 3;
        if in_epoch && raised {
            assert_eq!(found.verdict, Verdict::Sound, "bit {bit}");
        } else {
            assert_eq!((found.sound_bytes, found.verdict), (first.len(), Verdict::TornTail), "bit {bit}");
        }
    }
}

#[test]
fn what_is_not_accepted() {
    let good = sealed(7, 3, 2, b"payload");
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    for (bytes, flaw) in [
        (good[..60].to_vec(), Flaw::ShortHeader),
        (good[..61].to_vec(), Flaw::ShortBatch),
        (changed(8, 0x80), Flaw::BadLength),
        (changed(11, 48), Flaw::BadLength),
        (changed(16, 1), Flaw::BadMagic),
        (sealed(8, 3, 2, b""), Flaw::WrongOffset),
        (sealed(6, 3, 2, b""), Flaw::WrongOffset),
        (sealed(7, 2, 2, b""), Flaw::FallingEpoch),
        (sealed(7, 3, 0, b""), Flaw::BadCount),
        (changed(61, 0), Flaw::BadChecksum),
        (vec![0; 100], Flaw::BadLength),
    ] {
        assert_eq!(scan(&bytes, START, 0).flaw, Some(flaw));
    }
}

#[test]
fn sound_batches_after_a_flaw_are_a_hole() {
    let lost = vec![0; 80];
    let later = sealed(20, 3, 2, b"later");
    let old = sealed(3, 3, 2, b"from an earlier life");
    for (rest, verdict) in [(&later, Verdict::Hole), (&old, Verdict::TornTail)] {
        let bytes = [sealed(7, 3, 2, b""), lost.clone(), rest.clone()].concat();
        let found = scan(&bytes, START, 0);
        assert_eq!((found.sound_bytes, found.verdict), (61, verdict), "2.4");
    }
}

#[test]
fn hostile_bytes_end_the_search() {
    let mut fake = sealed(20, 3, 2, b"");
    fake[17] ^= 1;
    let bytes = [vec![0; 61], fake.repeat(2000), sealed(30, 3, 1, b"")].concat();
    assert_eq!(scan(&bytes, START, 0).verdict, Verdict::TornTail, "after {MAX_CANDIDATES} candidates");
}
