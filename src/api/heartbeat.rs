//! Heartbeat (G-451).

use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::GroupId;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: HeartbeatRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let claim = words::claim(request.generation_id, &request.member_id, request.group_instance_id.as_ref());
    let verdict = ctx.broker.heartbeat(GroupId::from(request.group_id.as_str()), claim).await;
    let code = Codes::new(ctx, call).of(verdict.err());
    call.encode(&HeartbeatResponse::default().with_error_code(code))
}
