use super::{WireName, refused, shown, sort_out};
use bytes::BytesMut;
use kafka_protocol::messages::DeleteTopicsResponse;
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

fn names(names: &[&'static str]) -> Vec<WireName> {
    names.iter().map(|name| StrBytes::from_static_str(name).into()).collect()
}

/// M-231: a name that stands there twice is deleted not even once.
#[test]
fn repeated_names() {
    let check = |asked: &[&'static str], once: &[&'static str], repeated: &[&'static str]| {
        assert_eq!(sort_out(&names(asked)), (names(once), names(repeated)), "{asked:?}");
    };
    check(&[], &[], &[]);
    check(&["b", "a"], &["b", "a"], &[]);
    check(&["b", "a", "b", "c", "b"], &["a", "c"], &["b"]);
    check(&["b", "a", "a", "b"], &[], &["a", "b"]);
}

/// C-113: what a version has no field for is left out, not refused by the codec.
#[test]
fn answers_in_every_version() {
    let [name, other] = names(&["orders", "none"]).try_into().unwrap();
    let responses = vec![shown(name.clone()), refused(other, 3, "There is no such topic.")];
    let response = DeleteTopicsResponse::default().with_responses(responses);
    for version in 1..=5 {
        let mut bytes = BytesMut::new();
        response.encode(&mut bytes, version).unwrap();
        let decoded = DeleteTopicsResponse::decode(&mut bytes.freeze(), version).unwrap();
        assert_eq!(decoded.responses[0].name.as_ref(), Some(&name), "version {version}");
        assert_eq!((decoded.responses[0].error_code, decoded.responses[1].error_code), (0, 3));
        assert_eq!(decoded.responses[1].error_message.is_some(), version >= 5, "version {version}");
    }
}
