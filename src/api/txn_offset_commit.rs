//! TxnOffsetCommit (T-241 to T-244).

use kafka_protocol::messages::txn_offset_commit_request::TxnOffsetCommitRequestTopic;
use kafka_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition as PartitionResult, TxnOffsetCommitResponseTopic as TopicResult,
};
use kafka_protocol::messages::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::positions::{Named, Positions};
use super::service::Reply;
use super::traces::Fact;
use super::words;
use crate::engine::txn::Position;
use crate::engine::{GroupId, PartId, Refusal, TransactionalId};
use crate::runtime::post::StageOffsets;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: TxnOffsetCommitRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    call.note(Fact::Transaction(&request.transactional_id));
    call.note(Fact::Producer(words::producer(request.producer_id, request.producer_epoch)));
    call.note_places(named(&request.topics).map(|named| (named.topic, named.index)));
    let mut positions = Positions::of(&ctx.broker.catalog(), named(&request.topics));
    let verdict = match positions.take_asked() {
        None => Ok(()),
        Some(_) if request.group_id.is_empty() => Err(Refusal::InvalidGroupId),
        Some(offsets) => ctx.broker.stage_offsets(stage(&request, offsets)).await,
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
    call.encode(&TxnOffsetCommitResponse::default().with_topics(results.collect()))
}

fn named(topics: &[TxnOffsetCommitRequestTopic]) -> impl Iterator<Item = Named<'_>> {
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

/// Versions 0 to 2 name no member: the claim is then the empty one, which no group fences (T-244).
fn stage(request: &TxnOffsetCommitRequest, offsets: Vec<(PartId, Position)>) -> StageOffsets {
    StageOffsets {
        id: TransactionalId::from(request.transactional_id.as_str()),
        producer: words::producer(request.producer_id, request.producer_epoch),
        group: GroupId::from(request.group_id.as_str()),
        claim: words::claim(request.generation_id, &request.member_id, request.group_instance_id.as_ref()),
        offsets,
    }
}
