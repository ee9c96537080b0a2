//! Members of groups, and what administrators ask of groups.

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, DescribeGroupsResponse, JoinGroupRequest, LeaveGroupRequest,
    ListGroupsRequest, OffsetDeleteRequest, SyncGroupRequest,
};

use super::txn::Member;
use super::{Client, text};

/// Consumer metadata of version 0 that names one topic.
pub(crate) fn reads(topic: &str) -> Vec<u8> {
    let length = i16::try_from(topic.len()).unwrap();
    [&[0, 0, 0, 0, 0, 1][..], &length.to_be_bytes(), topic.as_bytes(), &[0xff; 4]].concat()
}

/// What OffsetDelete answers: the code of the whole, and of each topic its partitions with their codes.
pub(crate) type OffsetsDeleted = (i16, Vec<(String, Vec<(i32, i16)>)>);

impl Client {
    /// Joins a group as its only member so far, in a version that asks for no second request.
    pub(crate) fn join(&mut self, group: &str, kind: &str, metadata: &[u8]) -> Member {
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(text("range"))
            .with_metadata(Bytes::copy_from_slice(metadata));
        let request = JoinGroupRequest::default()
            .with_group_id(text(group).into())
            .with_session_timeout_ms(30_000)
            .with_rebalance_timeout_ms(30_000)
            .with_protocol_type(text(kind))
            .with_protocols(vec![protocol]);
        let answer = self.call(3, &request);
        assert_eq!(answer.error_code, 0, "JoinGroup of {group}");
        Member { generation: answer.generation_id, id: answer.member_id.to_string(), instance: None }
    }

    /// SyncGroup of a leader who gives all to itself.
    pub(crate) fn sync(&mut self, group: &str, member: &Member, assignment: &[u8]) -> i16 {
        let own = SyncGroupRequestAssignment::default()
            .with_member_id(text(&member.id))
            .with_assignment(Bytes::copy_from_slice(assignment));
        let request = SyncGroupRequest::default()
            .with_group_id(text(group).into())
            .with_generation_id(member.generation)
            .with_member_id(text(&member.id))
            .with_assignments(vec![own]);
        self.call(2, &request).error_code
    }

    /// LeaveGroup of one member.
    pub(crate) fn leave(&mut self, group: &str, member: &Member) -> i16 {
        let request = LeaveGroupRequest::default().with_group_id(text(group).into()).with_member_id(text(&member.id));
        self.call(2, &request).error_code
    }

    /// DescribeGroups, operations included where the version has them.
    pub(crate) fn describe_groups(&mut self, version: i16, groups: &[&str]) -> DescribeGroupsResponse {
        let request = DescribeGroupsRequest::default()
            .with_groups(groups.iter().map(|id| text(id).into()).collect())
            .with_include_authorized_operations(version >= 3);
        self.call(version, &request)
    }

    /// ListGroups: of each group its id, protocol type, state and type.
    pub(crate) fn list_groups(&mut self, version: i16, states: &[&str], types: &[&str]) -> Vec<[String; 4]> {
        let request = ListGroupsRequest::default()
            .with_states_filter(states.iter().map(|state| text(state)).collect())
            .with_types_filter(types.iter().map(|kind| text(kind)).collect());
        let answer = self.call(version, &request);
        assert_eq!(answer.error_code, 0, "ListGroups {version}");
        let shown = answer.groups.into_iter().map(|group| {
            let texts = [group.group_id.0, group.protocol_type, group.group_state, group.group_type];
            texts.map(|text| text.to_string())
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort();
        shown
    }

    /// DeleteGroups: the codes, by group.
    pub(crate) fn delete_groups(&mut self, version: i16, groups: &[&str]) -> Vec<(String, i16)> {
        let names = groups.iter().map(|id| text(id).into()).collect();
        let answer = self.call(version, &DeleteGroupsRequest::default().with_groups_names(names));
        let mut results: Vec<_> =
            answer.results.iter().map(|result| (result.group_id.to_string(), result.error_code)).collect();
        results.sort();
        results
    }

    /// OffsetDelete.
    pub(crate) fn offset_delete(&mut self, group: &str, topics: &[(&str, &[i32])]) -> OffsetsDeleted {
        let partition = |index: &i32| OffsetDeleteRequestPartition::default().with_partition_index(*index);
        let topic = |(name, parts): &(&str, &[i32])| {
            let partitions = parts.iter().map(partition).collect();
            OffsetDeleteRequestTopic::default().with_name(text(name).into()).with_partitions(partitions)
        };
        let request = OffsetDeleteRequest::default()
            .with_group_id(text(group).into())
            .with_topics(topics.iter().map(topic).collect());
        let answer = self.call(0, &request);
        let topics = answer.topics.into_iter().map(|topic| {
            let parts = topic.partitions.iter().map(|part| (part.partition_index, part.error_code)).collect();
            (topic.name.to_string(), parts)
        });
        (answer.error_code, topics.collect())
    }
}
