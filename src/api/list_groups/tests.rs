use super::{keeps, listed};
use crate::engine::group::GroupListing;
use bytes::BytesMut;
use kafka_protocol::messages::{ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

fn group(state: &'static str, protocol_type: &str) -> GroupListing {
    GroupListing { state, protocol_type: protocol_type.to_owned() }
}

/// `kept`: which of a stable, a simple and a rebalancing group pass.
fn check(states: &[&'static str], types: &[&'static str], kept: &[&str]) {
    let texts = |all: &[&'static str]| all.iter().map(|text| StrBytes::from_static_str(text)).collect();
    let request = ListGroupsRequest::default().with_states_filter(texts(states)).with_types_filter(texts(types));
    let all = [group("Stable", "consumer"), group("Empty", ""), group("CompletingRebalance", "connect")];
    let passed: Vec<_> = all.iter().filter(|group| keeps(&request, group)).map(|group| group.state).collect();
    assert_eq!(passed, kept, "G-463: {states:?} {types:?}");
}

#[test]
fn filters_are_joined_by_and() {
    let all = &["Stable", "Empty", "CompletingRebalance"];
    check(&[], &[], all);
    check(&["stable"], &[], &["Stable"]);
    check(&[" Stable ", "EMPTY"], &[], &["Stable", "Empty"]);
    check(&["completingrebalance"], &[], &["CompletingRebalance"]);
    check(&["completing_rebalance"], &[], &[]);
    check(&["Dead"], &[], &[]);
    check(&["no such", "Empty"], &[], &["Empty"]);
    check(&[""], &[], &[]);
    check(&[], &["classic"], all);
    check(&[], &["Classic", "no such"], all);
    check(&[], &["CLASSIC "], &[]);
    check(&[], &["consumer", "share", "streams"], &[]);
    check(&["Stable"], &["Classic"], &["Stable"]);
    check(&["Stable"], &["Consumer"], &[]);
}

/// C-113: what a version has no field for is left out, not refused by the codec.
#[test]
fn answers_in_every_version() {
    for version in 0..=5 {
        let response = ListGroupsResponse::default().with_groups(vec![listed(&"g".into(), group("Empty", ""))]);
        let mut bytes = BytesMut::new();
        response.encode(&mut bytes, version).unwrap();
        let decoded = ListGroupsResponse::decode(&mut bytes.freeze(), version).unwrap();
        let group = &decoded.groups[0];
        assert_eq!((group.group_id.as_str(), group.protocol_type.as_str()), ("g", ""), "G-464");
        assert_eq!(group.group_state.as_str(), if version >= 4 { "Empty" } else { "" }, "version {version}");
        assert_eq!(group.group_type.as_str(), if version >= 5 { "classic" } else { "" }, "version {version}");
    }
}
