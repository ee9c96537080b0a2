//! LeaveGroup (G-455 to G-457).

use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::group::{LeaveAnswer, LeavingMember};
use crate::engine::{GroupId, Refusal};

/// First version in which many leave at once, each with its own code.
const BATCHED: i16 = 3;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: LeaveGroupRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let mut codes = Codes::new(ctx, call);
    let response = match leave(ctx, call.version, &request).await {
        Err(refusal) => LeaveGroupResponse::default().with_error_code(codes.of(Some(refusal))),
        Ok(left) if call.version < BATCHED => {
            let refusal = left.first().and_then(|left| left.refusal);
            LeaveGroupResponse::default().with_error_code(codes.of(refusal))
        }
        Ok(left) => {
            let member = |left: &LeaveAnswer| {
                MemberResponse::default()
                    .with_member_id(words::text(left.leaving.member.as_str()))
                    .with_group_instance_id(words::instance_text(left.leaving.instance.as_ref()))
                    .with_error_code(codes.of(left.refusal))
            };
            LeaveGroupResponse::default().with_members(left.iter().map(member).collect())
        }
    };
    call.encode(&response)
}

async fn leave(ctx: &Ctx, version: i16, request: &LeaveGroupRequest) -> Result<Vec<LeaveAnswer>, Refusal> {
    if request.group_id.is_empty() {
        return Err(Refusal::InvalidGroupId);
    }
    ctx.broker.leave(GroupId::from(request.group_id.as_str()), leaving(version, request)).await
}

fn leaving(version: i16, request: &LeaveGroupRequest) -> Vec<LeavingMember> {
    if version < BATCHED {
        return vec![LeavingMember { member: words::member(&request.member_id), instance: None }];
    }
    let one = |member: &kafka_protocol::messages::leave_group_request::MemberIdentity| LeavingMember {
        member: words::member(&member.member_id),
        instance: words::instance(member.group_instance_id.as_ref()),
    };
    request.members.iter().map(one).collect()
}
