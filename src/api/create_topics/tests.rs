use super::{failure, spec, success};
use crate::engine::catalog::{BrokerLevels, CreateTopic, Defaults, Maker, Replication};
use crate::engine::{TopicId, TopicName};
use crate::runtime::post::CreatedTopic;
use bytes::BytesMut;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::{BrokerId, CreateTopicsResponse};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

fn text(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

#[test]
fn what_is_asked_for() {
    let topic = CreatableTopic::default()
        .with_name(text("orders").into())
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_assignments(vec![
            CreatableReplicaAssignment::default().with_partition_index(3).with_broker_ids(vec![BrokerId(1)]),
        ])
        .with_configs(vec![
            CreatableTopicConfig::default().with_name(text("a")).with_value(None),
            CreatableTopicConfig::default().with_name(text("b")).with_value(Some(text(""))),
        ]);
    let expected = CreateTopic {
        name: "orders".to_owned(),
        partitions: Some(-1),
        replication_factor: -1,
        assignments: vec![(3, vec![1])],
        configs: vec![("a".to_owned(), None), ("b".to_owned(), Some(String::new()))],
        validate_only: true,
        by: Maker::Client,
    };
    assert_eq!(spec(&topic, true), expected);
}

/// M-226 in every version, and C-113: what a version has no field for is left out, not refused by the codec.
#[test]
fn answers_in_every_version() {
    let defaults =
        Defaults { partitions: 1, node_id: 1, replication: Replication::Refuse, levels: BrokerLevels::default() };
    let created = CreatedTopic { name: TopicName::from("orders"), id: TopicId([7; 16]), partitions: 6 };
    let given = [("cleanup.policy".to_owned(), Some("compact".to_owned()))];
    let topics = vec![success(created, &given, &defaults), failure("x".to_owned(), 36, "There is one.".to_owned())];
    let response = CreateTopicsResponse::default().with_topics(topics);
    for version in 2..=7 {
        let mut bytes = BytesMut::new();
        response.encode(&mut bytes, version).unwrap();
        let decoded = CreateTopicsResponse::decode(&mut bytes.freeze(), version).unwrap();
        let [made, refused] = decoded.topics.as_slice() else { panic!("two topics") };
        assert_eq!((made.error_code, &made.error_message), (0, &None), "version {version}");
        assert_eq!((refused.error_code, refused.num_partitions, refused.replication_factor), (36, -1, -1));
        assert_eq!(refused.topic_id.as_bytes(), &[0; 16]);
        assert_eq!(made.topic_id.as_bytes(), if version >= 7 { &[7; 16] } else { &[0; 16] }, "version {version}");
        if version < 5 {
            continue;
        }
        assert_eq!((made.num_partitions, made.replication_factor), (6, 1), "version {version}");
        let configs = made.configs.as_ref().unwrap();
        assert!(configs.is_sorted_by_key(|config| config.name.to_string()), "M-226: sorted by name");
        let policy = configs.iter().find(|config| config.name.as_str() == "cleanup.policy").unwrap();
        assert_eq!((policy.value.as_deref(), policy.config_source), (Some("compact"), 1), "M-226");
    }
}
