//! DescribeProducers (T-830).

use std::collections::BTreeSet;

use kafka_protocol::messages::describe_producers_response::{PartitionResponse, ProducerState as Shown, TopicResponse};
use kafka_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use crate::engine::Refusal;
use crate::engine::catalog::check_name;
use crate::engine::partition::ProducerState;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: DescribeProducersRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    // Each partition once: one named a thousand times would be a thousand lists of producers.
    let (mut codes, mut seen) = (Codes::new(ctx, call), BTreeSet::new());
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::new();
        for index in topic.partition_indexes {
            if seen.insert((topic.name.clone(), index)) {
                let described = describe(ctx, &topic.name, index).await;
                let code = codes.of(described.as_ref().err().copied());
                let producers = described.unwrap_or_default().iter().map(show).collect();
                let partition = PartitionResponse::default().with_partition_index(index).with_error_code(code);
                partitions.push(partition.with_active_producers(producers));
            }
        }
        topics.push(TopicResponse::default().with_name(topic.name).with_partitions(partitions));
    }
    call.encode(&DescribeProducersResponse::default().with_topics(topics))
}

async fn describe(ctx: &Ctx, topic: &str, index: i32) -> Result<Vec<ProducerState>, Refusal> {
    if check_name(topic).is_err() {
        return Err(Refusal::InvalidTopic);
    }
    let part = ctx.broker.catalog().part_id(topic, index).ok_or(Refusal::UnknownTopicOrPartition)?;
    ctx.broker.describe_producers(part).await
}

fn show(producer: &ProducerState) -> Shown {
    Shown::default()
        .with_producer_id(producer.id.into())
        .with_producer_epoch(i32::from(producer.epoch))
        .with_last_sequence(producer.last_sequence)
        .with_last_timestamp(producer.last_timestamp)
        .with_coordinator_epoch(producer.coordinator_epoch)
        .with_current_txn_start_offset(producer.current_txn_start.unwrap_or(-1))
}
