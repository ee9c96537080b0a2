//! JoinGroup (G-411 to G-427).

use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::group::{Join, JoinAnswer, JoinVersion, JoinedMember};
use crate::engine::{GroupId, MemberId};

/// So much of the client's or the instance's name leads a member id. The whole of it could be longer than any version
/// can send with the rest behind it.
const FRONT_CHARS: usize = 255;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: JoinGroupRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let fresh_member = ctx.broker.fresh_member(&front(call, &request));
    let join = join(call, &request, fresh_member);
    let (group, member) = (GroupId::from(request.group_id.as_str()), join.member.clone());
    let joined = ctx.broker.join(group, join).await;
    let joined = joined.unwrap_or_else(|refusal| JoinAnswer::refused(refusal, member));
    let code = Codes::new(ctx, call).of(joined.refusal);
    call.encode(&show(&joined, call.version).with_error_code(code))
}

/// How an id drawn for this member would begin (G-414).
fn front(call: &Call, request: &JoinGroupRequest) -> String {
    let name = request.group_instance_id.as_deref().or(call.client_id.as_deref()).unwrap_or("");
    name.chars().take(FRONT_CHARS).collect()
}

fn join(call: &Call, request: &JoinGroupRequest, fresh_member: MemberId) -> Join {
    let protocols = request.protocols.iter();
    let protocols = protocols.map(|protocol| (protocol.name.to_string(), words::kept(&protocol.metadata))).collect();
    // Version 0 has no rebalance timeout (G-415).
    let rebalance_timeout_ms =
        if call.version == 0 { request.session_timeout_ms } else { request.rebalance_timeout_ms };
    Join {
        member: words::member(&request.member_id),
        instance: words::instance(request.group_instance_id.as_ref()),
        client_id: call.client_id.clone().unwrap_or_default(),
        client_host: format!("/{}", call.peer.address.ip().to_canonical()),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms,
        protocol_type: request.protocol_type.to_string(),
        protocols,
        version: JoinVersion::of(call.version),
        fresh_member,
    }
}

/// The answer but for its code (G-417, G-420).
fn show(joined: &JoinAnswer, version: i16) -> JoinGroupResponse {
    // Before version 7 the name cannot be absent.
    let protocol_name = joined.protocol.as_deref().map(words::text);
    let protocol_name = if version < 7 { protocol_name.or(Some(StrBytes::new())) } else { protocol_name };
    JoinGroupResponse::default()
        .with_generation_id(joined.generation)
        .with_protocol_type(joined.protocol_type.as_deref().map(words::text))
        .with_protocol_name(protocol_name)
        .with_leader(words::text(joined.leader.as_str()))
        .with_skip_assignment(joined.skip_assignment && version >= 9)
        .with_member_id(words::text(joined.member.as_str()))
        .with_members(joined.members.iter().map(show_member).collect())
}

fn show_member(member: &JoinedMember) -> JoinGroupResponseMember {
    JoinGroupResponseMember::default()
        .with_member_id(words::text(member.member.as_str()))
        .with_group_instance_id(words::instance_text(member.instance.as_ref()))
        .with_metadata(member.metadata.clone())
}

#[cfg(test)]
mod tests;
