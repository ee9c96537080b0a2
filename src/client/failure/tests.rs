use super::*;

#[test]
fn codes_have_the_names_of_kafkas_documentation() {
    for (code, want) in [
        (90, "PRODUCER_FENCED (90)"),
        (47, "INVALID_PRODUCER_EPOCH (47)"),
        (-1, "UNKNOWN_SERVER_ERROR (-1)"),
        (9999, "UNKNOWN (9999)"),
    ] {
        assert_eq!(name(code), want);
    }
    let failure = Failure::Refused { what: "EndTxn", code: 90 };
    assert_eq!((failure.to_string().as_str(), failure.code()), ("EndTxn: refused with PRODUCER_FENCED (90)", Some(90)));
}
