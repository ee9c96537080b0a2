//! AddOffsetsToTxn (T-231, T-232). The group is not looked up: any name will do.

use kafka_protocol::messages::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::traces::Fact;
use super::words;
use crate::engine::txn::Addition;
use crate::engine::{GroupId, TransactionalId};

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: AddOffsetsToTxnRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let id = TransactionalId::from(request.transactional_id.as_str());
    let producer = words::producer(request.producer_id, request.producer_epoch);
    let group = GroupId::from(request.group_id.as_str());
    call.note(Fact::Transaction(&request.transactional_id));
    call.note(Fact::Producer(producer));
    let verdict = ctx.broker.add_to_txn(id.clone(), producer, Addition::Group(group)).await;
    call.spoke_for(ctx, &id, verdict.is_ok());
    let code = Codes::new(ctx, call).of(verdict.err());
    call.encode(&AddOffsetsToTxnResponse::default().with_error_code(code))
}
