//! SyncGroup (G-441 to G-447).

use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::group::{Sync, SyncAnswer};
use crate::engine::{GroupId, Refusal};

/// First version that names the protocol it believes in.
const NAMES_PROTOCOL: i16 = 5;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: SyncGroupRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let synced = if is_complete(&request, call.version) {
        let group = GroupId::from(request.group_id.as_str());
        ctx.broker.sync(group, sync(&request)).await.unwrap_or_else(SyncAnswer::refused)
    } else {
        SyncAnswer::refused(Refusal::InconsistentGroupProtocol)
    };
    let response = SyncGroupResponse::default()
        .with_error_code(Codes::new(ctx, call).of(synced.refusal))
        .with_protocol_type(synced.protocol_type.as_deref().map(words::text))
        .with_protocol_name(synced.protocol.as_deref().map(words::text))
        .with_assignment(synced.assignment);
    call.encode(&response)
}

/// G-441, before anything is looked at.
fn is_complete(request: &SyncGroupRequest, version: i16) -> bool {
    version < NAMES_PROTOCOL || request.protocol_type.is_some() && request.protocol_name.is_some()
}

fn sync(request: &SyncGroupRequest) -> Sync {
    let share = |share: &kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment| {
        (words::member(&share.member_id), words::kept(&share.assignment))
    };
    Sync {
        claim: words::claim(request.generation_id, &request.member_id, request.group_instance_id.as_ref()),
        protocol_type: request.protocol_type.as_ref().map(ToString::to_string),
        protocol: request.protocol_name.as_ref().map(ToString::to_string),
        assignments: request.assignments.iter().map(share).collect(),
    }
}

#[cfg(test)]
mod tests;
