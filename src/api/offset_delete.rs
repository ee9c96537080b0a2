//! OffsetDelete (47).

use kafka_protocol::messages::offset_delete_request::OffsetDeleteRequestTopic;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition as PartitionResult, OffsetDeleteResponseTopic as TopicResult,
};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use crate::engine::catalog::Catalog;
use crate::engine::{GroupId, PartId, Refusal};

#[cfg(test)]
mod tests;

/// The group is judged also where no partition is left to ask for (G-466).
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: OffsetDeleteRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let parts = known(&ctx.broker.catalog(), &request.topics);
    let group = GroupId::from(request.group_id.as_str());
    let deleted = ctx.broker.delete_offsets(group, parts.iter().copied().flatten().collect()).await;
    let mut codes = Codes::new(ctx, call);
    let response = match deleted {
        Ok(deleted) => {
            let mut verdicts = verdicts(&parts, deleted).into_iter();
            let results = request.topics.into_iter().map(|topic| {
                let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
                let result = |(index, verdict)| {
                    PartitionResult::default().with_partition_index(index).with_error_code(codes.of(verdict))
                };
                let partitions = indexes.zip(verdicts.by_ref()).map(result).collect();
                TopicResult::default().with_name(topic.name).with_partitions(partitions)
            });
            OffsetDeleteResponse::default().with_topics(results.collect())
        }
        Err(refusal) => OffsetDeleteResponse::default().with_error_code(codes.of(Some(refusal))),
    };
    call.encode(&response)
}

/// Every partition of the request in its order; none for one that there is not.
fn known(catalog: &Catalog, topics: &[OffsetDeleteRequestTopic]) -> Vec<Option<PartId>> {
    let named = topics.iter().flat_map(|topic| topic.partitions.iter().map(move |partition| (topic, partition)));
    named.map(|(topic, partition)| catalog.part_id(&topic.name, partition.partition_index)).collect()
}

/// What became of every partition of the request; `deleted` has those that there are.
fn verdicts(parts: &[Option<PartId>], deleted: Vec<Result<(), Refusal>>) -> Vec<Option<Refusal>> {
    let mut deleted = deleted.into_iter();
    let verdict = |part: &Option<PartId>| match part {
        None => Some(Refusal::UnknownTopicOrPartition),
        Some(_) => deleted.next().and_then(Result::err),
    };
    parts.iter().map(verdict).collect()
}
