//! OffsetCommit (O-601 to O-617).

use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestTopic;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition as PartitionResult, OffsetCommitResponseTopic as TopicResult,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::positions::{Named, Positions};
use super::service::Reply;
use super::words;
use crate::engine::txn::Position;
use crate::engine::{GroupId, PartId};
use crate::runtime::post::CommitOffsets;

/// A retention that says nothing: the broker's own holds. All that versions outside 2 to 4 can say (O-617).
const NO_RETENTION: i64 = -1;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: OffsetCommitRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let mut positions = Positions::of(&ctx.broker.catalog(), named(&request.topics));
    let verdict = match positions.take_asked() {
        None => Ok(()),
        Some(offsets) => ctx.broker.commit_offsets(commit(&request, offsets)).await,
    };
    let (mut codes, mut verdicts) = (Codes::new(ctx, call), positions.verdicts(verdict));
    let results = request.topics.into_iter().map(|topic| {
        let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
        let result = |(index, verdict)| {
            PartitionResult::default().with_partition_index(index).with_error_code(codes.of(verdict))
        };
        let partitions = indexes.zip(verdicts.by_ref()).map(result).collect();
        TopicResult::default().with_name(topic.name).with_partitions(partitions)
    });
    call.encode(&OffsetCommitResponse::default().with_topics(results.collect()))
}

fn named(topics: &[OffsetCommitRequestTopic]) -> impl Iterator<Item = Named<'_>> {
    topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| Named {
            topic: topic.name.as_str(),
            index: partition.partition_index,
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: partition.committed_metadata.as_deref(),
        })
    })
}

fn commit(request: &OffsetCommitRequest, offsets: Vec<(PartId, Position)>) -> CommitOffsets {
    let generation = request.generation_id_or_member_epoch;
    CommitOffsets {
        group: GroupId::from(request.group_id.as_str()),
        claim: words::claim(generation, &request.member_id, request.group_instance_id.as_ref()),
        offsets,
        retention_ms: Some(request.retention_time_ms).filter(|retention| *retention != NO_RETENTION),
    }
}
