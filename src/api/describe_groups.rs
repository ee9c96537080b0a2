//! DescribeGroups (15).

use std::collections::BTreeSet;

use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId as WireGroup};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::group::{GroupDescription, MemberDescription};
use crate::engine::{GroupId, Refusal};

#[cfg(test)]
mod tests;

/// Every operation on a group that there is, as bits (M-215).
const ALL_GROUP_OPERATIONS: i32 = 0xd48;

/// The first version that says of a group that there is none; before it the state says so (G-462).
const TELLS_UNKNOWN_SINCE: i16 = 6;

/// What a group is called that there is not.
const DEAD: &str = "Dead";

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: DescribeGroupsRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let ids = distinct(&request.groups);
    let described = match ctx.broker.describe_groups(ids.clone()).await {
        Ok(described) => described.into_iter().map(|(id, group)| (id, Ok(group))).collect(),
        Err(refusal) => ids.into_iter().map(|id| (id, Err(refusal))).collect::<Vec<_>>(),
    };
    let mut codes = Codes::new(ctx, call);
    let groups = described.into_iter().map(|(id, described)| {
        let mut group = match described {
            Ok(Some(group)) => known(group),
            Ok(None) if call.version >= TELLS_UNKNOWN_SINCE => {
                let message = StrBytes::from_string(format!("Group {} not found.", id.as_str()));
                let code = codes.of(Some(Refusal::GroupIdNotFound));
                dead().with_error_code(code).with_error_message(Some(message))
            }
            Ok(None) => dead(),
            Err(refusal) => DescribedGroup::default().with_error_code(codes.of(Some(refusal))),
        };
        // Before version 3 there is no such field, and the codec takes nothing but its default.
        if request.include_authorized_operations && group.error_code == 0 {
            group.authorized_operations = ALL_GROUP_OPERATIONS;
        }
        group.with_group_id(words::text(id.as_str()).into())
    });
    call.encode(&DescribeGroupsResponse::default().with_groups(groups.collect()))
}

/// Each group once, in the order they first appear: a name of a few bytes leads to an answer of many thousand.
fn distinct(groups: &[WireGroup]) -> Vec<GroupId> {
    let mut seen = BTreeSet::new();
    groups.iter().filter(|id| seen.insert(id.as_str())).map(|id| GroupId::from(id.as_str())).collect()
}

fn known(group: GroupDescription) -> DescribedGroup {
    DescribedGroup::default()
        .with_error_message(None)
        .with_group_state(StrBytes::from_static_str(group.state))
        .with_protocol_type(StrBytes::from_string(group.protocol_type))
        .with_protocol_data(StrBytes::from_string(group.protocol))
        .with_members(group.members.into_iter().map(member).collect())
}

fn dead() -> DescribedGroup {
    DescribedGroup::default().with_group_state(StrBytes::from_static_str(DEAD))
}

/// An instance id has a field since version 4.
fn member(member: MemberDescription) -> DescribedGroupMember {
    DescribedGroupMember::default()
        .with_member_id(words::text(member.member.as_str()))
        .with_group_instance_id(words::instance_text(member.instance.as_ref()))
        .with_client_id(StrBytes::from_string(member.client_id))
        .with_client_host(StrBytes::from_string(member.client_host))
        .with_member_metadata(member.metadata)
        .with_member_assignment(member.assignment)
}
