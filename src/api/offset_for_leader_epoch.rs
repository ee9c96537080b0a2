//! OffsetForLeaderEpoch (key 23, versions 2 to 4).

use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use super::codes::Codes;
use super::service::Reply;
use super::together::together;
use super::{Call, Ctx};
use crate::engine::fetch::check_leader_epoch;
use crate::engine::{Offset, PartId, Refusal};
use crate::runtime::readable::whole_bounds;

/// Answers one request.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: OffsetForLeaderEpochRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let catalog = ctx.broker.catalog();
    let asked = request.topics.iter().flat_map(|topic| {
        let known = catalog.topic(&topic.topic);
        topic.partitions.iter().map(move |asked| (known.and_then(|topic| topic.part(asked.partition)), asked))
    });
    let ends = together(asked.map(|(part, asked)| end(ctx, part, asked)).collect()).await;
    let mut codes = Codes::new(ctx, call);
    let mut ends = ends.into_iter();
    let topics = request.topics.into_iter().map(|topic| {
        let asked = topic.partitions.iter().zip(&mut ends);
        let partitions = asked.map(|(asked, end)| {
            let answer = EpochEndOffset::default().with_partition(asked.partition);
            match end {
                Ok((epoch, end)) => answer.with_leader_epoch(epoch).with_end_offset(end),
                Err(refusal) => {
                    answer.with_error_code(codes.of(Some(refusal))).with_leader_epoch(-1).with_end_offset(-1)
                }
            }
        });
        OffsetForLeaderTopicResult::default().with_partitions(partitions.collect()).with_topic(topic.topic)
    });
    let response = OffsetForLeaderEpochResponse::default().with_topics(topics.collect());
    call.encode(&response)
}

/// The end of an epoch: that of our own is the end of what is on disk, for no reader was shown more (F-752, T-530).
async fn end(ctx: &Ctx, part: Option<PartId>, asked: &OffsetForLeaderPartition) -> Result<(i32, Offset), Refusal> {
    let readable = ctx.broker.readable(part.ok_or(Refusal::UnknownTopicOrPartition)?).await?;
    let current = ctx.broker.identity().incarnation;
    check_leader_epoch(asked.current_leader_epoch, current)?;
    let bounds = whole_bounds(&readable.published)?;
    Ok(readable.epoch_end(asked.leader_epoch, current, bounds.watermark))
}
