//! DeleteRecords (21): a partition's log start moves up (T-540 to T-542, M-246).

use std::collections::BTreeMap;

use kafka_protocol::messages::delete_records_request::DeleteRecordsTopic;
use kafka_protocol::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse, TopicName};

use super::codes::Codes;
use super::service::Reply;
use super::together::together;
use super::{Call, Ctx};
use crate::engine::catalog::{Catalog, Cleanup, is_internal};
use crate::engine::{Offset, PartId, Refusal};

#[cfg(test)]
mod tests;

/// Every partition is answered, whatever becomes of the others. The request's time-out plays no part: what is answered
/// is stored.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: DeleteRecordsRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let (catalog, asked) = (ctx.broker.catalog(), once(&request.topics));
    let partitions =
        asked.iter().flat_map(|(topic, partitions)| partitions.iter().map(move |(at, offset)| (*topic, *at, *offset)));
    let delete = |(topic, index, offset): (&TopicName, i32, Offset)| {
        let part = deletable(ctx, &catalog, (topic, index));
        async move { ctx.broker.delete_records(part?, offset).await }
    };
    let mut deleted = together(partitions.map(delete).collect()).await.into_iter();
    let mut codes = Codes::new(ctx, call);
    let mut shown = |index: &i32| {
        let deleted = deleted.next().unwrap_or(Err(Refusal::NotLeaderOrFollower));
        DeleteRecordsPartitionResult::default()
            .with_partition_index(*index)
            .with_low_watermark(deleted.unwrap_or(-1))
            .with_error_code(codes.of(deleted.err()))
    };
    let topics = asked.iter().map(|(topic, partitions)| {
        let partitions = partitions.keys().map(&mut shown).collect();
        DeleteRecordsTopicResult::default().with_name((*topic).clone()).with_partitions(partitions)
    });
    call.encode(&DeleteRecordsResponse::default().with_topics(topics.collect()))
}

/// Each partition once, with the offset that was named last.
fn once(topics: &[DeleteRecordsTopic]) -> BTreeMap<&TopicName, BTreeMap<i32, Offset>> {
    let mut asked: BTreeMap<&TopicName, BTreeMap<i32, Offset>> = BTreeMap::new();
    for topic in topics {
        let partitions = topic.partitions.iter().map(|partition| (partition.partition_index, partition.offset));
        asked.entry(&topic.name).or_default().extend(partitions);
    }
    asked
}

/// The partition, if a client may cut its log: not where records go by key alone (T-540).
fn deletable(ctx: &Ctx, catalog: &Catalog, (topic, index): (&str, i32)) -> Result<PartId, Refusal> {
    if is_internal(topic) {
        return Err(Refusal::InvalidTopic);
    }
    let topic = catalog.topic(topic).ok_or(Refusal::UnknownTopicOrPartition)?;
    let part = topic.part(index).ok_or(Refusal::UnknownTopicOrPartition)?;
    match ctx.broker.settings_of(topic).cleanup {
        Cleanup::Compact => Err(Refusal::PolicyViolation),
        Cleanup::Delete | Cleanup::CompactAndDelete | Cleanup::Never => Ok(part),
    }
}
