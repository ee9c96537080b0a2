//! AddPartitionsToTxn (T-210 to T-215).

use std::collections::BTreeSet;

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult as PartitionResult, AddPartitionsToTxnTopicResult as TopicResult,
};
use kafka_protocol::messages::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::traces::Fact;
use super::words;
use crate::engine::catalog::{Catalog, is_internal};
use crate::engine::txn::Addition;
use crate::engine::{PartId, Refusal, TransactionalId};

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: AddPartitionsToTxnRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let topics = request.v3_and_below_topics;
    let id = TransactionalId::from(request.v3_and_below_transactional_id.as_str());
    let producer = words::producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch);
    call.note(Fact::Transaction(id.as_str()));
    call.note(Fact::Producer(producer));
    call.note_places(named(&topics));
    let verdicts = match sort_out(&ctx.broker.catalog(), named(&topics)) {
        Err(verdicts) => verdicts,
        Ok(found) => {
            let parts = found.iter().copied().collect();
            let verdict = ctx.broker.add_to_txn(id.clone(), producer, Addition::Parts(parts)).await;
            call.spoke_for(ctx, &id, verdict.is_ok());
            vec![verdict.err(); found.len()]
        }
    };
    let (mut codes, mut verdicts) = (Codes::new(ctx, call), verdicts.into_iter());
    let results = topics.into_iter().map(|topic| {
        let result = |(index, verdict)| {
            PartitionResult::default().with_partition_index(index).with_partition_error_code(codes.of(verdict))
        };
        let partitions = topic.partitions.into_iter().zip(verdicts.by_ref()).map(result).collect();
        TopicResult::default().with_name(topic.name).with_results_by_partition(partitions)
    });
    call.encode(&AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(results.collect()))
}

fn named(topics: &[AddPartitionsToTxnTopic]) -> impl Iterator<Item = (&str, i32)> {
    topics.iter().flat_map(|topic| topic.partitions.iter().map(|index| (topic.name.as_str(), *index)))
}

/// All partitions, or why each is not added: one that cannot be keeps all others out (T-211). The broker's own topics
/// are closed to producers, whether they exist or not.
fn sort_out<'a>(
    catalog: &Catalog,
    named: impl Iterator<Item = (&'a str, i32)>,
) -> Result<Vec<PartId>, Vec<Option<Refusal>>> {
    let find = |(topic, index)| {
        if is_internal(topic) {
            return Err(Refusal::TopicAuthorizationFailed);
        }
        catalog.part_id(topic, index).ok_or(Refusal::UnknownTopicOrPartition)
    };
    let found: Vec<Result<PartId, Refusal>> = named.map(find).collect();
    let distinct: BTreeSet<Refusal> = found.iter().filter_map(|found| found.err()).collect();
    if distinct.is_empty() {
        return Ok(found.into_iter().flatten().collect());
    }
    Err(found.into_iter().map(|found| Some(found.err().unwrap_or(Refusal::OperationNotAttempted))).collect())
}

#[cfg(test)]
mod tests;
