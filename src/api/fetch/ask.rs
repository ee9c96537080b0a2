//! What a Fetch names, in our words.

use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::FetchPartition;

use crate::engine::TopicName;
use crate::engine::fetch::Position;
use crate::engine::fetch::session::Wanted;

/// Every partition that the request names, in its order.
pub(super) fn wanted(request: &FetchRequest) -> Vec<Wanted> {
    let mut all = Vec::with_capacity(request.topics.iter().map(|topic| topic.partitions.len()).sum());
    for topic in &request.topics {
        let name = TopicName::from(topic.topic.as_str());
        all.extend(topic.partitions.iter().map(|partition| of(&name, partition)));
    }
    all
}

fn of(topic: &TopicName, partition: &FetchPartition) -> Wanted {
    Wanted {
        topic: topic.clone(),
        index: partition.partition,
        position: Position {
            offset: partition.fetch_offset,
            leader_epoch: partition.current_leader_epoch,
            last_epoch: partition.last_fetched_epoch,
        },
        max_bytes: usize::try_from(partition.partition_max_bytes).unwrap_or(0),
    }
}

/// The partitions that are wanted no more (v7+).
pub(super) fn forgotten(request: &FetchRequest) -> impl Iterator<Item = (TopicName, i32)> {
    request.forgotten_topics_data.iter().flat_map(|topic| {
        let name = TopicName::from(topic.topic.as_str());
        topic.partitions.iter().map(move |index| (name.clone(), *index))
    })
}
