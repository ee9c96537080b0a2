use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::protocol::StrBytes;

use super::{asked, topics};
use crate::api::words::tests::catalog;
use crate::engine::PartId;

#[test]
fn each_partition_that_exists_is_asked_for_once() {
    let topic = |(name, indexes): &(&'static str, &[i32])| {
        DescribableLogDirTopic::default()
            .with_topic(StrBytes::from_static_str(name).into())
            .with_partitions(indexes.to_vec())
    };
    let check = |topics: Option<&[(&'static str, &[i32])]>, expected: &[i64]| {
        let topics: Option<Vec<_>> = topics.map(|topics| topics.iter().map(topic).collect());
        let found: Vec<i64> = asked(&catalog(), topics.as_deref()).into_iter().map(|part| part.0).collect();
        assert_eq!(found, expected, "M-243: {topics:?}");
    };
    check(None, &[1, 2, 7]);
    check(Some(&[]), &[]);
    check(Some(&[("b", &[0, 1, -1]), ("none", &[0]), ("a", &[1]), ("a", &[1, 0])]), &[1, 2, 7]);
}

#[test]
fn a_deleted_topic_is_left_out() {
    let shown = topics(&catalog(), vec![(PartId(7), u64::MAX), (PartId(99), 1), (PartId(2), 5)]);
    let shown: Vec<_> = shown.iter().map(|topic| (topic.name.as_str(), topic.partitions[0].partition_size)).collect();
    assert_eq!(shown, [("a", 5), ("b", i64::MAX)]);
}
