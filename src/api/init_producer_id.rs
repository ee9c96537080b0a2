//! InitProducerId (T-101 to T-149).

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::traces::Fact;
use crate::engine::txn::init::expected;
use crate::engine::{Producer, Refusal, TransactionalId};

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: InitProducerIdRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let id = request.transactional_id.as_ref().map(|id| TransactionalId::from(id.as_str()));
    if let Some(id) = &id {
        call.note(Fact::Transaction(id.as_str()));
    }
    let outcome = own(ctx, &request, id.as_ref()).await;
    if let Some(id) = &id {
        call.spoke_for(ctx, id, outcome.is_ok());
    }
    if let Ok(producer) = outcome {
        call.note(Fact::Producer(producer));
    }
    let held = outcome.unwrap_or(Producer { id: -1, epoch: -1 });
    let code = Codes::new(ctx, call).of(outcome.err());
    let response = InitProducerIdResponse::default()
        .with_error_code(code)
        .with_producer_id(held.id.into())
        .with_producer_epoch(held.epoch);
    call.encode(&response)
}

async fn own(ctx: &Ctx, request: &InitProducerIdRequest, id: Option<&TransactionalId>) -> Result<Producer, Refusal> {
    let pair = expected(request.producer_id.0, request.producer_epoch)?;
    let timeout_ms = request.transaction_timeout_ms;
    match id {
        None => ctx.broker.init_producer(None, timeout_ms, None).await.map_err(without_coordinator),
        Some(id) if id.is_empty() => Err(Refusal::InvalidRequest),
        Some(id) => ctx.broker.init_producer(Some(id.clone()), timeout_ms, pair).await,
    }
}

/// An idempotent producer has no coordinator: told that it asked the wrong one, some clients look one up for an id they
/// do not have. It is told to come again (T-105).
fn without_coordinator(refusal: Refusal) -> Refusal {
    if refusal == Refusal::NotCoordinator { Refusal::CoordinatorLoadInProgress } else { refusal }
}
