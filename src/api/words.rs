//! The codec's words in ours, and back. What becomes ours is copied: a slice would keep its whole frame alive.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages;
use kafka_protocol::protocol::StrBytes;

use crate::engine::catalog::Catalog;
use crate::engine::{Claim, InstanceId, MemberId, PartId, Producer, TopicName};

/// Text for an answer.
pub(super) fn text(ours: &str) -> StrBytes {
    StrBytes::from_string(ours.to_owned())
}

/// A topic's name for an answer.
pub(super) fn topic(name: &TopicName) -> messages::TopicName {
    messages::TopicName(text(name.as_str()))
}

/// Bytes that outlive their request.
pub(super) fn kept(slice: &Bytes) -> Bytes {
    Bytes::copy_from_slice(slice)
}

/// A member's id.
pub(super) fn member(id: &StrBytes) -> MemberId {
    MemberId::from(id.as_str())
}

/// A static member's instance id.
pub(super) fn instance(id: Option<&StrBytes>) -> Option<InstanceId> {
    id.map(|id| InstanceId::from(id.as_str()))
}

/// An instance id for an answer.
pub(super) fn instance_text(id: Option<&InstanceId>) -> Option<StrBytes> {
    id.map(|id| text(id.as_str()))
}

/// A member's place in its group.
pub(super) fn claim(generation: i32, member_id: &StrBytes, instance_id: Option<&StrBytes>) -> Claim {
    Claim { generation, member: member(member_id), instance: instance(instance_id) }
}

/// Who writes.
pub(super) fn producer(id: messages::ProducerId, epoch: i16) -> Producer {
    Producer { id: id.0, epoch }
}

/// What is known of partitions, by topic and number. Partitions whose topic is deleted are left out.
pub(super) fn by_topic<T>(
    catalog: &Catalog,
    parts: impl IntoIterator<Item = (PartId, T)>,
) -> BTreeMap<TopicName, BTreeMap<i32, T>> {
    let mut topics: BTreeMap<TopicName, BTreeMap<i32, T>> = BTreeMap::new();
    for (part, known) in parts {
        if let Some((topic, index)) = catalog.part(part) {
            topics.entry(topic.name.clone()).or_default().insert(index, known);
        }
    }
    topics
}

#[cfg(test)]
pub(super) mod tests;
