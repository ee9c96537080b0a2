use super::{Foreign, FrameLimits, Opening, length, opening};
use crate::wire::Api;

#[test]
fn a_length_is_judged_before_anything_is_allocated() {
    let limits = FrameLimits::default();
    let too_long = |length, limit| Err(Foreign::TooLong { length, limit });
    let table: [([u8; 4], Result<usize, Foreign>); 13] = [
        (10_i32.to_be_bytes(), Ok(10)),
        ((100_i32 << 20).to_be_bytes(), Ok(100 << 20)),
        (((100_i32 << 20) + 1).to_be_bytes(), too_long((100 << 20) + 1, 100 << 20)),
        (i32::MAX.to_be_bytes(), too_long(2_147_483_647, 100 << 20)),
        ((-1_i32).to_be_bytes(), Err(Foreign::Negative(-1))),
        (i32::MIN.to_be_bytes(), Err(Foreign::Negative(i32::MIN))),
        ([0; 4], Err(Foreign::TooShort(0))),
        (9_i32.to_be_bytes(), Err(Foreign::TooShort(9))),
        (*b"GET ", Err(Foreign::Http)),
        (*b"PRI ", Err(Foreign::Http)),
        ([0x16, 3, 1, 2], Err(Foreign::Tls)),
        (*b"PROX", Err(Foreign::Proxy)),
        (*b"\r\n\r\n", Err(Foreign::Proxy)),
    ];
    for (first, expected) in table {
        assert_eq!(length(first, &limits), expected, "{first:?}: V-101");
    }
}

#[test]
fn what_is_not_offered_is_told_from_its_first_bytes() {
    let limits = FrameLimits::default();
    let check = |key: i16, version: i16, length: usize, expected: Result<Opening, Foreign>, rule: &str| {
        let ([a, b], [c, d]) = (key.to_be_bytes(), version.to_be_bytes());
        assert_eq!(opening([a, b, c, d], length, &limits), expected, "{key} {version} {length}: {rule}");
    };
    let unsupported = |api, version| Err(Foreign::UnsupportedVersion { api, version });
    check(0, 9, 50 << 20, Ok(Opening::Request(Api::Produce, 9)), "V-101");
    check(0, 2, 100, unsupported(Api::Produce, 2), "V-104, T-001");
    check(0, 10, 100, unsupported(Api::Produce, 10), "V-104");
    check(1, -1, 100, unsupported(Api::Fetch, -1), "V-104");
    check(3, 9, (16 << 20) + 1, Err(Foreign::TooLong { length: (16 << 20) + 1, limit: 16 << 20 }), "R");
    check(18, 3, 100, Ok(Opening::Request(Api::ApiVersions, 3)), "V-120");
    check(18, 127, 100, Ok(Opening::UnknownApiVersions), "V-120, C-108");
    check(18, -1, 100, Ok(Opening::UnknownApiVersions), "V-120");
    check(9999, 0, 100, Err(Foreign::UnknownApi(9999)), "V-104, C-112");
    check(-1, 0, 100, Err(Foreign::UnknownApi(-1)), "V-104");
    check(7, 0, 100, Err(Foreign::UnknownApi(7)), "V-104");
}
