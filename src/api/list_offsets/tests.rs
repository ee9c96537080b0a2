use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{ListOffsetsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::{Wish, repeated, wish};
use crate::engine::Refusal;

#[test]
fn timestamps_mean_what_their_version_knows() {
    let unsupported = Err(Refusal::UnsupportedVersion);
    for (rule, timestamp, version, is_repeated, expected) in [
        ("T-520", -1, 1, false, Ok(Wish::Latest)),
        ("T-521", -2, 1, false, Ok(Wish::Earliest)),
        ("T-522", -3, 7, false, Ok(Wish::MaxTimestamp)),
        ("T-527", -3, 6, false, unsupported),
        ("T-523", -4, 8, false, Ok(Wish::Earliest)),
        ("T-527", -4, 7, false, unsupported),
        ("T-527", -5, 8, false, unsupported),
        ("T-527", i64::MIN, 8, false, unsupported),
        ("T-526", 0, 1, false, Ok(Wish::AtOrAfter(0))),
        ("T-528", -1, 8, true, Err(Refusal::InvalidRequest)),
        ("T-528 comes first", -9, 8, true, Err(Refusal::InvalidRequest)),
    ] {
        let partition = ListOffsetsPartition::default().with_timestamp(timestamp);
        assert_eq!(wish(&partition, version, is_repeated), expected, "{rule}");
    }
}

/// T-528, also when the topic itself is named twice.
#[test]
fn repeated_partitions_are_found() {
    let topic = |name: &'static str, indexes: &[i32]| {
        let partitions = indexes.iter().map(|index| ListOffsetsPartition::default().with_partition_index(*index));
        ListOffsetsTopic::default()
            .with_name(TopicName(StrBytes::from_static_str(name)))
            .with_partitions(partitions.collect())
    };
    let request = ListOffsetsRequest::default().with_topics(vec![
        topic("a", &[0, 1, 2, 1]),
        topic("b", &[0, 1]),
        topic("a", &[0]),
    ]);
    let found = repeated(&request);
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), ["a"]);
    assert_eq!(found["a"].iter().copied().collect::<Vec<_>>(), [0, 1]);
}
