//! Members of a consumer group of the classic protocol.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::consumer_protocol_assignment::TopicPartition;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
    SyncGroupRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use super::cluster::{Whom, text};
use super::{Cluster, Failure, Part};

const ILLEGAL_GENERATION: i16 = 22;
const UNKNOWN_MEMBER_ID: i16 = 25;
const REBALANCE_IN_PROGRESS: i16 = 27;
const MEMBER_ID_REQUIRED: i16 = 79;

/// The only way in which partitions are shared out.
const PROTOCOL: &str = "roundrobin";

/// How often a member joins again because another one came in between.
const MOST_ROUNDS: usize = 10;

/// A member that is gone without a word is given up after so long.
const SESSION: Duration = Duration::from_secs(10);

/// A place in a group, for one generation of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    group: String,
    generation: i32,
    id: StrBytes,
    /// The partitions that are this member's.
    pub assigned: Vec<Part>,
}

impl Member {
    /// Generation and member id.
    #[must_use]
    pub fn membership(&self) -> (i32, &str) {
        (self.generation, self.id.as_str())
    }
}

/// Whether a refusal means that the member has to join again.
#[must_use]
pub fn is_over(failure: &Failure) -> bool {
    matches!(failure.code(), Some(ILLEGAL_GENERATION | UNKNOWN_MEMBER_ID | REBALANCE_IN_PROGRESS))
}

impl Cluster {
    /// Joins a group whose members all read the same partitions. `earlier` is the place in an earlier generation.
    ///
    /// # Errors
    /// As [`Cluster::insist`]; [`is_over`] says whether to try again.
    pub async fn join(&mut self, group: &str, parts: &[Part], earlier: Option<&Member>) -> Result<Member, Failure> {
        let whom = Whom::Group(group.to_owned());
        let mut id = earlier.map(|member| member.id.clone()).unwrap_or_default();
        let mut over = Failure::foreign("JoinGroup", "the group does not come to rest");
        for _ in 0..MOST_ROUNDS {
            let answer = self.ask(&whom, 2..=5, &join_request(group, &id, parts)?).await?;
            // A member that is known by its id is not waited for as somebody else when it joins again.
            id = answer.member_id.clone();
            match answer.error_code {
                0 => {}
                MEMBER_ID_REQUIRED => continue,
                code => {
                    self.forget(&whom);
                    return Err(Failure::Refused { what: "JoinGroup", code });
                }
            }
            match self.sync(group, &answer, parts).await {
                Ok(assigned) => {
                    return Ok(Member { group: group.to_owned(), generation: answer.generation_id, id, assigned });
                }
                Err(failure) if failure.code() == Some(REBALANCE_IN_PROGRESS) => over = failure,
                Err(failure) => return Err(failure),
            }
        }
        Err(over)
    }

    async fn sync(&mut self, group: &str, joined: &JoinGroupResponse, parts: &[Part]) -> Result<Vec<Part>, Failure> {
        let leads = joined.leader == joined.member_id;
        let request = SyncGroupRequest::default()
            .with_group_id(text(group).into())
            .with_generation_id(joined.generation_id)
            .with_member_id(joined.member_id.clone())
            .with_assignments(if leads { share_out(joined, parts)? } else { Vec::new() });
        let whom = Whom::Group(group.to_owned());
        assigned(self.insist(&whom, (0..=3, &request), |answer| answer.error_code).await?.assignment)
    }

    /// Says that the member is there.
    ///
    /// # Errors
    /// As [`Cluster::insist`]; [`is_over`] says whether to join again.
    pub async fn heartbeat(&mut self, member: &Member) -> Result<(), Failure> {
        let request = HeartbeatRequest::default()
            .with_group_id(text(&member.group).into())
            .with_generation_id(member.generation)
            .with_member_id(member.id.clone());
        self.insist(&Whom::Group(member.group.clone()), (0..=3, &request), |answer| answer.error_code).await.map(drop)
    }

    /// Gives the place up.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn leave(&mut self, member: &Member) -> Result<(), Failure> {
        let request =
            LeaveGroupRequest::default().with_group_id(text(&member.group).into()).with_member_id(member.id.clone());
        self.insist(&Whom::Group(member.group.clone()), (0..=2, &request), |answer| answer.error_code).await.map(drop)
    }

    /// Stores how far the member has come.
    ///
    /// # Errors
    /// As [`Cluster::insist`]; [`is_over`] says whether to join again.
    pub async fn commit(&mut self, member: &Member, offsets: &BTreeMap<Part, i64>) -> Result<(), Failure> {
        let topic = |(part, offset): (&Part, &i64)| {
            let own = OffsetCommitRequestPartition::default().with_partition_index(part.index);
            let own = own.with_committed_offset(*offset).with_committed_metadata(Some(text("")));
            OffsetCommitRequestTopic::default().with_name(text(&part.topic).into()).with_partitions(vec![own])
        };
        let request = OffsetCommitRequest::default()
            .with_group_id(text(&member.group).into())
            .with_generation_id_or_member_epoch(member.generation)
            .with_member_id(member.id.clone())
            .with_topics(offsets.iter().map(topic).collect());
        let code = |answer: &OffsetCommitResponse| {
            let codes = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|own| own.error_code);
            codes.into_iter().find(|code| *code != 0).unwrap_or(0)
        };
        self.insist(&Whom::Group(member.group.clone()), (2..=7, &request), code).await.map(drop)
    }

    /// How far a group has come in a partition, when no transaction holds its offset back any more (KIP-447); `None`
    /// if it has no offset there.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn committed(&mut self, group: &str, part: &Part) -> Result<Option<i64>, Failure> {
        let topic = OffsetFetchRequestTopic::default().with_name(text(&part.topic).into());
        let topic = topic.with_partition_indexes(vec![part.index]);
        let request = OffsetFetchRequest::default()
            .with_group_id(text(group).into())
            .with_topics(Some(vec![topic]))
            .with_require_stable(true);
        let result = |answer: &OffsetFetchResponse| {
            let own = answer.topics.first().and_then(|topic| topic.partitions.first());
            let own = own.map_or((-1, -1), |own| (own.error_code, own.committed_offset));
            if answer.error_code == 0 { own } else { (answer.error_code, -1) }
        };
        let whom = Whom::Group(group.to_owned());
        let answer = self.insist(&whom, (7..=7, &request), |answer| result(answer).0).await?;
        Ok(Some(result(&answer).1).filter(|offset| *offset >= 0))
    }
}

fn join_request(group: &str, id: &StrBytes, parts: &[Part]) -> Result<JoinGroupRequest, Failure> {
    let mut topics: Vec<StrBytes> = parts.iter().map(|part| text(&part.topic)).collect();
    topics.dedup();
    let metadata = versioned(&ConsumerProtocolSubscription::default().with_topics(topics))?;
    let session_ms = i32::try_from(SESSION.as_millis()).unwrap_or(i32::MAX);
    Ok(JoinGroupRequest::default()
        .with_group_id(text(group).into())
        .with_session_timeout_ms(session_ms)
        .with_rebalance_timeout_ms(session_ms)
        .with_member_id(id.clone())
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![JoinGroupRequestProtocol::default().with_name(text(PROTOCOL)).with_metadata(metadata)]))
}

/// One partition after the other to one member after the other.
fn share_out(answer: &JoinGroupResponse, parts: &[Part]) -> Result<Vec<SyncGroupRequestAssignment>, Failure> {
    let count = answer.members.len().max(1);
    let mut assignments = Vec::new();
    for (place, member) in answer.members.iter().enumerate() {
        let own = parts.iter().enumerate().filter(|(n, _)| n % count == place).map(|(_, part)| part);
        let own = own.map(|part| {
            TopicPartition::default().with_topic(text(&part.topic).into()).with_partitions(vec![part.index])
        });
        let assignment = versioned(&ConsumerProtocolAssignment::default().with_assigned_partitions(own.collect()))?;
        let assignment = SyncGroupRequestAssignment::default().with_assignment(assignment);
        assignments.push(assignment.with_member_id(member.member_id.clone()));
    }
    Ok(assignments)
}

/// What members tell each other, in version 0, which stands before it.
fn versioned(message: &impl Encodable) -> Result<Bytes, Failure> {
    let mut bytes = BytesMut::new();
    bytes.put_i16(0);
    message.encode(&mut bytes, 0).map_err(|error| Failure::foreign("JoinGroup", error.to_string()))?;
    Ok(bytes.freeze())
}

fn assigned(mut bytes: Bytes) -> Result<Vec<Part>, Failure> {
    let strange = |why: String| Failure::foreign("SyncGroup", why);
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    bytes.try_get_i16().map_err(|error| strange(error.to_string()))?;
    let decoded = ConsumerProtocolAssignment::decode(&mut bytes, 0).map_err(|error| strange(error.to_string()))?;
    let parts = decoded
        .assigned_partitions
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|index| Part::new(topic.topic.as_str(), *index)));
    Ok(parts.collect())
}
