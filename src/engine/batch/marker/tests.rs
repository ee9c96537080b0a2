use super::*;
use crate::engine::batch::samples;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

const COMMIT: &str = "000000000000002a0000004200000000020e5f75350030000000000000018bcfe568000000018bcfe568
    0000000000000003e80005ffffffff000000012000000008000000010c00000000000300";
const ABORT: &str = "000000000000002a000000420000000002fa61a37d0030000000000000018bcfe568000000018bcfe568
    0000000000000003e80005ffffffff000000012000000008000000000c00000000000300";

fn marker(outcome: Outcome) -> Marker {
    Marker {
        producer: Producer { id: 1000, epoch: 5 },
        outcome,
        coordinator_epoch: 3,
    }
}

/// T-401, T-402: byte for byte.
#[test]
fn golden() {
    for (outcome, vector) in [(Outcome::Commit, COMMIT), (Outcome::Abort, ABORT)] {
        let bytes = write(&marker(outcome), 42, 0, 1_700_000_000_000, false);
        assert_eq!(bytes.to_vec(), hex(vector), "{outcome:?}");
        assert_eq!(
            read(&bytes),
            Some(ReadMarker {
                outcome: Some(outcome),
                coordinator_epoch: 3
            })
        );
        let header = Header::read(&bytes).unwrap();
        assert_eq!(header.size(), Some(MARKER_BYTES));
        assert!(header.is_control() && header.is_transactional() && !header.is_log_append_time());
    }
    let stamped = write(&marker(Outcome::Commit), 42, 0, 1, true);
    let header = Header::read(&stamped).unwrap();
    assert!(header.is_log_append_time());
    assert_eq!(header.crc, checksum(&stamped));
}

/// T-403: what may stand in a control batch.
#[test]
fn reading() {
    let control = |key: &[u8], value: &[u8], delta_ms| {
        let entry = samples::Entry {
            delta_ms,
            key: Some(key.to_vec()),
            value: Some(value.to_vec()),
            headers: Vec::new(),
        };
        samples::seal(
            &Header {
                attributes: 0x30,
                ..samples::header(1)
            },
            &samples::encode(&[entry]),
        )
    };
    let commit = |coordinator_epoch| {
        Some(ReadMarker {
            outcome: Some(Outcome::Commit),
            coordinator_epoch,
        })
    };
    let lines: &[(&str, Vec<u8>, Option<ReadMarker>)] = &[
        ("plain", control(&[0, 0, 0, 1], &[0, 0, 0, 0, 0, 9], 0), commit(9)),
        (
            "cleaned: timestamp far from the horizon",
            control(&[0, 0, 0, 1], &[0, 0, 0, 0, 0, 9], -86_400_000),
            commit(9),
        ),
        (
            "higher versions, longer",
            control(&[0, 7, 0, 1, 5], &[0, 8, 0, 0, 0, 9, 1, 2], 0),
            commit(9),
        ),
        (
            "unknown type",
            control(&[0, 0, 0, 2], &[0, 0, 0, 0, 0, 9], 0),
            Some(ReadMarker {
                outcome: None,
                coordinator_epoch: 9,
            }),
        ),
        ("short key", control(&[0, 0, 0], &[0, 0, 0, 0, 0, 9], 0), None),
        (
            "negative key version",
            control(&[0xff, 0xff, 0, 1], &[0, 0, 0, 0, 0, 9], 0),
            None,
        ),
        (
            "negative value version",
            control(&[0, 0, 0, 1], &[0xff, 0xff, 0, 0, 0, 9], 0),
            None,
        ),
        ("short value", control(&[0, 0, 0, 1], &[0, 0, 0], 0), None),
        (
            "no record",
            samples::seal(
                &Header {
                    attributes: 0x30,
                    ..samples::header(0)
                },
                &[],
            ),
            None,
        ),
        (
            "data batch",
            samples::seal(&samples::header(1), &samples::encode(&[samples::Entry::default()])),
            None,
        ),
        ("nothing", Vec::new(), None),
    ];
    for (name, bytes, wanted) in lines {
        assert_eq!(read(bytes), *wanted, "{name}");
    }
    let whole = write(&marker(Outcome::Abort), 0, 0, 0, false);
    for end in 0..whole.len() {
        assert_eq!(read(&whole[..end]), None, "cut at {end}");
    }
}
