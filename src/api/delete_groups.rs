//! DeleteGroups (42).

use std::collections::BTreeSet;

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse, GroupId as WireGroup};

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use crate::engine::GroupId;

#[cfg(test)]
mod tests;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: DeleteGroupsRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let names = distinct(request.groups_names);
    let ids: Vec<GroupId> = names.iter().map(|name| GroupId::from(name.as_str())).collect();
    let deleted = match ctx.broker.delete_groups(ids).await {
        Ok(deleted) => deleted,
        Err(refusal) => vec![Err(refusal); names.len()],
    };
    let mut codes = Codes::new(ctx, call);
    let results = names.into_iter().zip(deleted).map(|(name, deleted)| {
        DeletableGroupResult::default().with_group_id(name).with_error_code(codes.of(deleted.err()))
    });
    call.encode(&DeleteGroupsResponse::default().with_results(results.collect()))
}

/// Each group once, in the order they first appear: who is named twice is deleted and answered once (G-465).
fn distinct(names: Vec<WireGroup>) -> Vec<WireGroup> {
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}
