//! ListGroups (16).

use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::GroupId;
use crate::engine::group::GroupListing;

#[cfg(test)]
mod tests;

/// The one type of group that there is, as Kafka writes it.
const CLASSIC: &str = "classic";

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: ListGroupsRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let (groups, refusal) = match ctx.broker.list_groups().await {
        Ok(groups) => (groups, None),
        Err(refusal) => (Vec::new(), Some(refusal)),
    };
    let kept = groups.into_iter().filter(|(_, group)| keeps(&request, group)).map(|(id, group)| listed(&id, group));
    let response =
        ListGroupsResponse::default().with_error_code(Codes::new(ctx, call).of(refusal)).with_groups(kept.collect());
    call.encode(&response)
}

/// G-463. An empty list lets everything pass; a word that is no state or type matches nothing. Blanks around a state do
/// not count, those around a type do.
fn keeps(request: &ListGroupsRequest, group: &GroupListing) -> bool {
    let state = |asked: &StrBytes| asked.trim().eq_ignore_ascii_case(group.state);
    let kind = |asked: &StrBytes| asked.eq_ignore_ascii_case(CLASSIC);
    (request.states_filter.is_empty() || request.states_filter.iter().any(state))
        && (request.types_filter.is_empty() || request.types_filter.iter().any(kind))
}

/// A state or a type that has no field in the version is left out by the codec.
fn listed(id: &GroupId, group: GroupListing) -> ListedGroup {
    ListedGroup::default()
        .with_group_id(words::text(id.as_str()).into())
        .with_protocol_type(StrBytes::from_string(group.protocol_type))
        .with_group_state(StrBytes::from_static_str(group.state))
        .with_group_type(StrBytes::from_static_str(CLASSIC))
}
