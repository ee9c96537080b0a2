use super::{ALL_GROUP_OPERATIONS, dead, distinct, known};
use crate::engine::group::{GroupDescription, MemberDescription};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::DescribeGroupsResponse;
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

#[test]
fn each_group_once() {
    let asked = ["b", "a", "b", "", "a", ""].map(|id| StrBytes::from_static_str(id).into());
    let ids = distinct(&asked);
    assert_eq!(ids.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["b", "a", ""]);
}

/// G-461 in every version, and C-113: what a version has no field for is left out, not refused by the codec.
#[test]
fn answers_in_every_version() {
    let member = MemberDescription {
        member: "m-1".into(),
        instance: Some("i".into()),
        client_id: "c".to_owned(),
        client_host: "/10.0.0.1".to_owned(),
        metadata: Bytes::from_static(b"meta"),
        assignment: Bytes::from_static(b"share"),
    };
    let group = GroupDescription {
        state: "Stable",
        protocol_type: "consumer".to_owned(),
        protocol: "range".to_owned(),
        members: vec![member],
    };
    for version in 0..=6 {
        let mut groups = vec![known(group.clone()), dead()];
        if version >= 3 {
            groups[0].authorized_operations = ALL_GROUP_OPERATIONS;
        }
        let mut bytes = BytesMut::new();
        DescribeGroupsResponse::default().with_groups(groups).encode(&mut bytes, version).unwrap();
        let decoded = DescribeGroupsResponse::decode(&mut bytes.freeze(), version).unwrap();
        let [group, dead] = decoded.groups.as_slice() else { panic!("two groups") };
        let shown = (group.group_state.as_str(), group.protocol_type.as_str(), group.protocol_data.as_str());
        assert_eq!(shown, ("Stable", "consumer", "range"), "G-461, version {version}");
        let member = &group.members[0];
        assert_eq!((member.member_id.as_str(), member.client_host.as_str()), ("m-1", "/10.0.0.1"));
        assert_eq!((&member.member_metadata[..], &member.member_assignment[..]), (&b"meta"[..], &b"share"[..]));
        assert_eq!(member.group_instance_id.as_deref(), (version >= 4).then_some("i"), "version {version}");
        assert_eq!(group.authorized_operations, if version >= 3 { 3400 } else { i32::MIN }, "M-215");
        assert_eq!((dead.group_state.as_str(), dead.members.len()), ("Dead", 0), "G-462");
    }
}
