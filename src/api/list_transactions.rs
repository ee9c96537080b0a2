//! ListTransactions (T-811, T-812, T-814).

use kafka_protocol::messages::list_transactions_response::TransactionState;
use kafka_protocol::messages::{ListTransactionsRequest, ListTransactionsResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::ledger::show::{Described, Shown};

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: ListTransactionsRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let (filter, unknown) = Filter::of(request);
    let (listed, refusal) = match ctx.broker.list_txns().await {
        Ok(listed) => (listed, None),
        Err(refusal) => (Vec::new(), Some(refusal)),
    };
    let states = listed.iter().filter(|described| filter.keeps(described)).map(|described| {
        TransactionState::default()
            .with_transactional_id(words::text(described.id.as_str()).into())
            .with_producer_id(described.producer.id.into())
            .with_transaction_state(described.state.name().into())
    });
    let response = ListTransactionsResponse::default()
        .with_error_code(Codes::new(ctx, call).of(refusal))
        .with_unknown_state_filters(unknown)
        .with_transaction_states(states.collect());
    call.encode(&response)
}

/// Names of states that a filter may hold, though no id is ever shown in them (T-011).
const NEVER_SHOWN: [&str; 2] = ["Dead", "PrepareEpochFence"];

/// Which ids are listed: those that pass both.
#[derive(Debug, PartialEq, Eq)]
struct Filter {
    /// `None` lets every state pass; an empty list, left by names that no state has, lets none.
    states: Option<Vec<Shown>>,
    /// `None` lets every producer id pass.
    producer_ids: Option<Vec<i64>>,
}

impl Filter {
    /// The filter, and the names that no state has.
    fn of(request: ListTransactionsRequest) -> (Self, Vec<StrBytes>) {
        let named = |name: &str| Shown::ALL.into_iter().find(|state| state.name() == name);
        let states = request.state_filters.iter().filter_map(|name| named(name)).collect();
        let mut producer_ids: Vec<i64> = request.producer_id_filters.iter().map(|id| id.0).collect();
        producer_ids.sort_unstable();
        let filter = Self {
            states: Some(states).filter(|_| !request.state_filters.is_empty()),
            producer_ids: Some(producer_ids).filter(|ids| !ids.is_empty()),
        };
        let is_unknown = |name: &StrBytes| named(name).is_none() && !NEVER_SHOWN.contains(&name.as_str());
        let unknown = request.state_filters.into_iter().filter(is_unknown).collect();
        (filter, unknown)
    }

    fn keeps(&self, described: &Described) -> bool {
        let has_state = self.states.as_ref().is_none_or(|states| states.contains(&described.state));
        let has_id = self.producer_ids.as_ref().is_none_or(|ids| ids.binary_search(&described.producer.id).is_ok());
        has_state && has_id
    }
}

#[cfg(test)]
mod tests;
