use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::protocol::StrBytes;

use super::once;

/// A partition that stands there twice is cut once, as Kafka does it: at the offset named last.
#[test]
fn repeated_partitions() {
    let topic = |name: &'static str, partitions: &[(i32, i64)]| {
        let partition = |(index, offset): &(i32, i64)| {
            DeleteRecordsPartition::default().with_partition_index(*index).with_offset(*offset)
        };
        DeleteRecordsTopic::default()
            .with_name(StrBytes::from_static_str(name).into())
            .with_partitions(partitions.iter().map(partition).collect())
    };
    let asked = [topic("b", &[(1, 5), (0, 9), (1, 4)]), topic("a", &[]), topic("b", &[(0, 3), (2, -1)])];
    let found: Vec<(&str, Vec<(i32, i64)>)> =
        once(&asked).into_iter().map(|(name, partitions)| (name.as_str(), partitions.into_iter().collect())).collect();
    assert_eq!(found, [("a", vec![]), ("b", vec![(0, 3), (1, 4), (2, -1)])], "M-246");
}
