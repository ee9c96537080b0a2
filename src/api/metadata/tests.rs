use super::{Asked, asked, complete};
use crate::engine::catalog::{Topic, TopicSettings};
use crate::engine::{PartId, TopicId, TopicName};
use bytes::BytesMut;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

fn request(names: Option<&[&'static str]>) -> MetadataRequest {
    let topic =
        |name: &&'static str| MetadataRequestTopic::default().with_name(Some(StrBytes::from_static_str(name).into()));
    MetadataRequest::default().with_topics(names.map(|names| names.iter().map(topic).collect()))
}

#[test]
fn which_topics() {
    let check = |rule: &str, version, names: Option<&[&'static str]>, expected: Option<&[&'static str]>| {
        let expected = match expected {
            None => Asked::All,
            Some(names) => Asked::Named(names.iter().map(|name| StrBytes::from_static_str(name)).collect()),
        };
        assert_eq!(asked(&request(names), version), Some(expected), "{rule}, version {version}");
    };
    check("M-204", 0, Some(&[]), None);
    for version in 1..=9 {
        check("M-204", version, Some(&[]), Some(&[]));
        check("M-204", version, None, None);
        check("M-207", version, Some(&["b", "a", "b", "", "b"]), Some(&["b", "a", ""]));
    }
    let nameless = MetadataRequest::default().with_topics(Some(vec![MetadataRequestTopic::default().with_name(None)]));
    assert_eq!(asked(&nameless, 9), None);
}

/// M-208, and C-113: what a version has no field for is left out, not refused by the codec.
#[test]
fn a_topic_is_complete_in_every_version() {
    let topic = Topic {
        id: TopicId([7; 16]),
        name: TopicName::from("orders"),
        parts: vec![PartId(4), PartId(5)],
        settings: TopicSettings::default(),
    };
    let response = MetadataResponse::default().with_topics(vec![complete(&topic, BrokerId(1), 3)]);
    for version in 0..=9 {
        let mut bytes = BytesMut::new();
        response.encode(&mut bytes, version).unwrap();
        let decoded = MetadataResponse::decode(&mut bytes.freeze(), version).unwrap();
        let partitions = &decoded.topics[0].partitions;
        assert_eq!(partitions.len(), 2, "version {version}");
        assert_eq!(partitions[1].partition_index, 1);
        assert_eq!(partitions[1].leader_epoch, if version >= 7 { 3 } else { -1 }, "version {version}");
        assert_eq!((partitions[1].leader_id, &partitions[1].isr_nodes), (BrokerId(1), &vec![BrokerId(1)]));
    }
}
