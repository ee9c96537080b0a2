use super::{shown, spec};
use crate::engine::catalog::GrowTopic;
use bytes::BytesMut;
use kafka_protocol::messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use kafka_protocol::messages::{BrokerId, CreatePartitionsResponse};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

#[test]
fn what_is_asked_for() {
    let topic = CreatePartitionsTopic::default().with_name(StrBytes::from_static_str("t").into()).with_count(3);
    let expected = GrowTopic { name: "t".to_owned(), count: 3, assignments: None };
    assert_eq!(spec(&topic.clone().with_assignments(None)), expected);
    let one = CreatePartitionsAssignment::default().with_broker_ids(vec![BrokerId(1), BrokerId(2)]);
    let assigned = topic.clone().with_assignments(Some(vec![one, CreatePartitionsAssignment::default()]));
    let expected = GrowTopic { assignments: Some(vec![vec![1, 2], Vec::new()]), ..expected };
    assert_eq!(spec(&assigned), expected, "M-234");
    let nowhere = GrowTopic { assignments: Some(Vec::new()), ..expected };
    assert_eq!(spec(&topic.with_assignments(Some(Vec::new()))), nowhere, "M-234: an empty list is one");
}

/// C-113.
#[test]
fn answers_in_every_version() {
    let refused = shown("u".to_owned()).with_error_code(37).with_error_message(Some(StrBytes::from_static_str("no")));
    let response = CreatePartitionsResponse::default().with_results(vec![shown("t".to_owned()), refused]);
    for version in 0..=3 {
        let mut bytes = BytesMut::new();
        response.encode(&mut bytes, version).unwrap();
        let decoded = CreatePartitionsResponse::decode(&mut bytes.freeze(), version).unwrap();
        let results: Vec<_> = (decoded.results.iter())
            .map(|result| (result.name.as_str(), result.error_code, result.error_message.as_deref()))
            .collect();
        assert_eq!(results, [("t", 0, None), ("u", 37, Some("no"))], "version {version}");
    }
}
