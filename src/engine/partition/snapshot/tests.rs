use super::*;
use crate::engine::partition::tests::now;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

const TWO: &str = "0001f4cf7ee7000000020000
    0000000003e900020000000a0000000000000014000000040000018bcfe5680c00000003ffffffffffffffff
    00000000000003e90002000000130000000000000021000000080000018bcfe5681e000000030000000000000019";

/// T-711, T-712 R: two batches of one producer, byte for byte, there and back.
#[test]
fn golden() {
    assert_eq!(Partition::new(0, 0).snapshot(), hex("0001 48674bc7 00000000"));
    assert_eq!(Partition::new(0, 0).snapshot().len(), EMPTY_SNAPSHOT_BYTES);
    let mut partition = Partition::new(0, 34);
    let bytes = hex(TWO);
    if decode(&bytes).is_err() {
        panic!("the sample has {} bytes: {:?}", bytes.len(), decode(&bytes));
    }
    partition.restore(&bytes, now(0)).unwrap();
    assert_eq!(partition.snapshot(), bytes);
    assert_eq!(partition.first_unstable(), Some(25));
}

#[test]
fn invalid() {
    let whole = hex(TWO);
    let sealed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        let crc = crc32c::crc32c(&bytes[6..]);
        bytes[2..6].copy_from_slice(&crc.to_be_bytes());
        bytes
    };
    let lines: &[(&str, Vec<u8>, Result<(), Invalid>)] = &[
        ("whole", whole.clone(), Ok(())),
        ("own bytes after the entries", sealed(&|bytes| bytes.extend_from_slice(b"tail")), Ok(())),
        ("empty file", Vec::new(), Err(Invalid::Short)),
        ("version", sealed(&|bytes| bytes[1] = 2), Err(Invalid::Version(2))),
        ("flipped", [&whole[..40], &[7], &whole[41..]].concat(), Err(Invalid::Checksum)),
        ("cut", whole[..80].to_vec(), Err(Invalid::Checksum)),
        ("count too high", sealed(&|bytes| bytes[9] = 3), Err(Invalid::Short)),
        ("count enormous", sealed(&|bytes| bytes[6] = 0x7f), Err(Invalid::Short)),
        ("count negative", sealed(&|bytes| bytes[6] = 0xff), Err(Invalid::Contents)),
        ("producer negative", sealed(&|bytes| bytes[10] = 0xff), Err(Invalid::Contents)),
        (
            "two transactions at one offset",
            sealed(&|bytes| {
                bytes[48..56].copy_from_slice(&25_i64.to_be_bytes());
                bytes[17] = 1;
            }),
            Err(Invalid::Contents),
        ),
    ];
    for (name, bytes, wanted) in lines {
        let mut partition = Partition::new(0, 0);
        let before = partition.snapshot();
        assert_eq!(partition.restore(bytes, now(0)), *wanted, "{name}");
        assert!(wanted.is_ok() || partition.snapshot() == before, "{name}");
    }
}

proptest::proptest! {
    #[test]
    fn hostile(mut bytes in proptest::collection::vec(0_u8.., 0..300), count in 0_u8..8) {
        if bytes.len() >= 10 {
            bytes[..10].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0, 0, count]);
            let crc = crc32c::crc32c(&bytes[6..]);
            bytes[2..6].copy_from_slice(&crc.to_be_bytes());
        }
        let mut partition = Partition::new(0, 0);
        if partition.restore(&bytes, now(0)).is_ok() {
            let once = partition.snapshot();
            partition.restore(&once, now(0)).unwrap();
            proptest::prop_assert_eq!(partition.snapshot(), once);
        }
    }
}
