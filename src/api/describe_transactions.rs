//! DescribeTransactions (T-801 to T-803).

use std::collections::BTreeSet;

use kafka_protocol::messages::describe_transactions_response::{TopicData, TransactionState};
use kafka_protocol::messages::{DescribeTransactionsRequest, DescribeTransactionsResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::TransactionalId;
use crate::engine::catalog::Catalog;
use crate::engine::ledger::show::Described;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: DescribeTransactionsRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let ids = distinct(request.transactional_ids.iter().map(|id| id.as_str()));
    let described = match ctx.broker.describe_txns(ids.clone()).await {
        Ok(described) => described,
        Err(refusal) => ids.into_iter().map(|id| Err((id, refusal))).collect(),
    };
    let (catalog, mut codes) = (ctx.broker.catalog(), Codes::new(ctx, call));
    let states = described.into_iter().map(|described| match described {
        Ok(described) => show(&catalog, described),
        Err((id, refusal)) => TransactionState::default()
            .with_error_code(codes.of(Some(refusal)))
            .with_transactional_id(words::text(id.as_str()).into()),
    });
    call.encode(&DescribeTransactionsResponse::default().with_transaction_states(states.collect()))
}

/// Each id once, in the order of the request: an id named a thousand times would be a thousand lists of partitions.
fn distinct<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<TransactionalId> {
    let mut seen = BTreeSet::new();
    ids.filter(|id| seen.insert(*id)).map(TransactionalId::from).collect()
}

fn show(catalog: &Catalog, described: Described) -> TransactionState {
    let topics = words::by_topic(catalog, described.parts.into_iter().map(|part| (part, ())));
    let topics = topics.into_iter().map(|(name, parts)| {
        TopicData::default().with_topic(words::topic(&name)).with_partitions(parts.into_keys().collect())
    });
    TransactionState::default()
        .with_transactional_id(words::text(described.id.as_str()).into())
        .with_transaction_state(described.state.name().into())
        .with_transaction_timeout_ms(described.timeout_ms)
        .with_transaction_start_time_ms(described.started_wall_ms)
        .with_producer_id(described.producer.id.into())
        .with_producer_epoch(described.producer.epoch)
        .with_topics(topics.collect())
}

#[cfg(test)]
mod tests;
