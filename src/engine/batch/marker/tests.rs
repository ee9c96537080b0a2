use super::*;
use crate::engine::batch::samples;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

const COMMIT: &str = "000000000000002a0000004200000000020e5f75350030000000000000018bcfe568000000018bcfe568
    0000000000000003e80005ffffffff000000012000000008000000010c00000000000300";
const ABORT: &str = "000000000000002a000000420000000002fa61a37d0030000000000000018bcfe568000000018bcfe568
    0000000000000003e80005ffffffff000000012000000008000000000c00000000000300";

fn marker(outcome: Outcome) -> Marker {
    Marker { producer: Producer { id: 1000, epoch: 5 }, outcome, coordinator_epoch: 3 }
}

/// T-401, T-402: byte for byte.
#[test]
fn golden() {
    for (outcome, vector) in [(Outcome::Commit, COMMIT), (Outcome::Abort, ABORT)] {
        let bytes = write(&marker(outcome), 42, 0, 1_700_000_000_000, false);
        assert_eq!(bytes.to_vec(), hex(vector), "{outcome:?}");
        assert_eq!(read(&bytes), Some(ReadMarker { outcome: Some(outcome), coordinator_epoch: 3 }));
        let header = Header::read(&bytes).unwrap();
        assert_eq!(header.size(), Some(MARKER_BYTES));
        assert!(header.is_control() && header.is_transactional() && !header.is_log_append_time());
    }
    let stamped = write(&marker(Outcome::Commit), 42, 0, 1, true);
    let header = Header::read(&stamped).unwrap();
    assert!(header.is_log_append_time());
    assert_eq!(header.crc, checksum(&stamped));
}

const VALUE: &[u8] = &[0, 0, 0, 0, 0, 9];
const COMMITS: Option<ReadMarker> = Some(ReadMarker { outcome: Some(Outcome::Commit), coordinator_epoch: 9 });

type Line = (&'static str, &'static [u8], &'static [u8], i64, Option<ReadMarker>);

/// T-403: key, value, timestamp delta, and what they say.
#[rustfmt::skip]
const CONTROL: &[Line] = &[
    ("plain", &[0, 0, 0, 1], VALUE, 0, COMMITS),
    ("cleaned: timestamp far from the horizon", &[0, 0, 0, 1], VALUE, -86_400_000, COMMITS),
    ("higher versions, longer", &[0, 7, 0, 1, 5], &[0, 8, 0, 0, 0, 9, 1, 2], 0, COMMITS),
    ("unknown type", &[0, 0, 0, 2], VALUE, 0, Some(ReadMarker { outcome: None, coordinator_epoch: 9 })),
    ("short key", &[0, 0, 0], VALUE, 0, None),
    ("negative key version", &[0xff, 0xff, 0, 1], VALUE, 0, None),
    ("negative value version", &[0, 0, 0, 1], &[0xff, 0xff, 0, 0, 0, 9], 0, None),
    ("short value", &[0, 0, 0, 1], &[0, 0, 0], 0, None),
];

fn control(records: &[samples::Entry]) -> Vec<u8> {
    let header = samples::header(i32::try_from(records.len()).unwrap());
    samples::seal(&Header { attributes: 0x30, ..header }, &samples::encode(records))
}

#[test]
fn reading() {
    for (name, key, value, delta_ms, wanted) in CONTROL {
        let (key, value) = (Some(key.to_vec()), Some(value.to_vec()));
        let record = samples::Entry { delta_ms: *delta_ms, key, value, headers: Vec::new() };
        assert_eq!(read(&control(&[record])), *wanted, "{name}");
    }
    assert_eq!(read(&control(&[])), None, "no record");
    let data = samples::seal(&samples::header(1), &samples::encode(&[samples::Entry::default()]));
    assert_eq!(read(&data), None, "a data batch");
    let whole = write(&marker(Outcome::Abort), 0, 0, 0, false);
    for end in 0..whole.len() {
        assert_eq!(read(&whole[..end]), None, "cut at {end}");
    }
}
