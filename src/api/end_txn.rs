//! EndTxn, classic (T-251 to T-254).

use kafka_protocol::messages::{EndTxnRequest, EndTxnResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::traces::Fact;
use super::words;
use crate::engine::{Outcome, TransactionalId};

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: EndTxnRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let id = TransactionalId::from(request.transactional_id.as_str());
    let producer = words::producer(request.producer_id, request.producer_epoch);
    let outcome = if request.committed { Outcome::Commit } else { Outcome::Abort };
    call.note(Fact::Transaction(&request.transactional_id));
    call.note(Fact::Producer(producer));
    let verdict = ctx.broker.end_txn(id, producer, outcome).await;
    let code = Codes::new(ctx, call).of(verdict.err());
    call.encode(&EndTxnResponse::default().with_error_code(code))
}
