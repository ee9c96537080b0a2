use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::JoinGroupResponse;
use kafka_protocol::protocol::{Decodable, Encodable};

use super::show;
use crate::engine::group::{JoinAnswer, JoinedMember};
use crate::engine::{InstanceId, MemberId, Refusal};

fn over_the_wire(joined: &JoinAnswer, version: i16) -> JoinGroupResponse {
    let mut bytes = BytesMut::new();
    show(joined, version).encode(&mut bytes, version).unwrap();
    let mut bytes = bytes.freeze();
    let read = JoinGroupResponse::decode(&mut bytes, version).unwrap();
    assert!(bytes.is_empty(), "version {version}");
    read
}

#[test]
fn a_leader_is_told_of_everyone_in_every_version() {
    let member = JoinedMember {
        member: MemberId::from("m"),
        instance: Some(InstanceId::from("i")),
        metadata: Bytes::from_static(b"x"),
    };
    let joined = JoinAnswer {
        refusal: None,
        generation: 3,
        protocol_type: Some("consumer".into()),
        protocol: Some("range".into()),
        leader: MemberId::from("m"),
        member: MemberId::from("m"),
        members: vec![member],
        skip_assignment: true,
    };
    for version in 0..=9 {
        let read = over_the_wire(&joined, version);
        assert_eq!(read.generation_id, 3, "G-420 version {version}");
        assert_eq!(read.protocol_name.as_deref(), Some("range"), "G-420 version {version}");
        assert_eq!(read.protocol_type.as_deref(), (version >= 7).then_some("consumer"), "G-420 version {version}");
        assert_eq!((&*read.leader, &*read.member_id), ("m", "m"), "G-420 version {version}");
        assert_eq!(read.skip_assignment, version >= 9, "G-426 version {version}");
        let instance = read.members[0].group_instance_id.as_deref();
        assert_eq!(instance, (version >= 5).then_some("i"), "G-420 version {version}");
        assert_eq!(&read.members[0].metadata[..], b"x", "G-420 version {version}");
    }
}

#[test]
fn a_refused_join_names_no_protocol() {
    let refused = JoinAnswer::refused(Refusal::MemberIdRequired, MemberId::from("given"));
    for version in 0..=9 {
        let read = over_the_wire(&refused, version);
        assert_eq!(read.generation_id, -1, "G-417 version {version}");
        assert_eq!(read.protocol_name.as_deref(), (version < 7).then_some(""), "G-417 version {version}");
        assert_eq!((&*read.leader, &*read.member_id), ("", "given"), "G-417 version {version}");
        assert!(read.protocol_type.is_none() && read.members.is_empty(), "G-417 version {version}");
    }
}
