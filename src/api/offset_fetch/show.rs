//! The answer's two shapes: one group up to version 7, many from version 8 on.

use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup as GroupResult, OffsetFetchResponsePartition as OnePartition,
    OffsetFetchResponsePartitions as PartitionOfMany, OffsetFetchResponseTopic as OneTopic,
    OffsetFetchResponseTopics as TopicOfMany,
};
use kafka_protocol::messages::{GroupId, OffsetFetchResponse};
use kafka_protocol::protocol::StrBytes;

use super::{BATCHED, Found, Refused, Topic};
use crate::api::codes::Codes;
use crate::api::ctx::{Call, Ctx};
use crate::api::service::Reply;
use crate::engine::Refusal;
use crate::engine::ledger::offsets::Seen;

/// A partition's line of the answer, whatever its shape.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) index: i32,
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) metadata: String,
    pub(super) refusal: Option<Refusal>,
}

impl Line {
    /// What is known of a partition (O-622, T-821).
    pub(super) fn of(index: i32, seen: Seen) -> Self {
        match seen {
            Seen::Absent => Self::without_offset(index, None),
            Seen::Unstable => Self::without_offset(index, Some(Refusal::UnstableOffsetCommit)),
            Seen::At(position) => Self {
                index,
                offset: position.offset,
                leader_epoch: position.leader_epoch,
                metadata: position.metadata,
                refusal: None,
            },
        }
    }

    fn without_offset(index: i32, refusal: Option<Refusal>) -> Self {
        Self { index, offset: -1, leader_epoch: -1, metadata: String::new(), refusal }
    }
}

pub(super) fn show(ctx: &Ctx, call: &Call, found: Vec<Found>) -> Reply {
    let mut codes = Codes::new(ctx, call);
    let response = if call.version < BATCHED {
        // There is exactly one.
        found
            .into_iter()
            .next()
            .map_or_else(OffsetFetchResponse::default, |one| show_one(call.version, one, &mut codes))
    } else {
        let groups = found.into_iter().map(|one| show_of_many(one, &mut codes)).collect();
        OffsetFetchResponse::default().with_groups(groups)
    };
    call.encode(&response)
}

fn show_one(version: i16, found: Found, codes: &mut Codes<'_>) -> OffsetFetchResponse {
    let (topics, refusal) = lines(version, found.topics);
    let topics = topics.into_iter().map(|topic| {
        let line = |line: Line| {
            OnePartition::default()
                .with_partition_index(line.index)
                .with_committed_offset(line.offset)
                .with_committed_leader_epoch(line.leader_epoch)
                .with_metadata(Some(StrBytes::from_string(line.metadata)))
                .with_error_code(codes.of(line.refusal))
        };
        OneTopic::default().with_name(topic.name).with_partitions(topic.parts.into_iter().map(line).collect())
    });
    let response = OffsetFetchResponse::default().with_topics(topics.collect());
    response.with_error_code(codes.of(refusal))
}

fn show_of_many(found: Found, codes: &mut Codes<'_>) -> GroupResult {
    let (topics, refusal) = lines(BATCHED, found.topics);
    let topics = topics.into_iter().map(|topic| {
        let line = |line: Line| {
            PartitionOfMany::default()
                .with_partition_index(line.index)
                .with_committed_offset(line.offset)
                .with_committed_leader_epoch(line.leader_epoch)
                .with_metadata(Some(StrBytes::from_string(line.metadata)))
                .with_error_code(codes.of(line.refusal))
        };
        TopicOfMany::default().with_name(topic.name).with_partitions(topic.parts.into_iter().map(line).collect())
    });
    let result = GroupResult::default().with_group_id(GroupId(found.group)).with_topics(topics.collect());
    result.with_error_code(codes.of(refusal))
}

/// The lines of one group, and what the group as a whole is refused with. Version 1 says that on each partition,
/// later ones say it once, with nothing beside it (O-621).
pub(super) fn lines(
    version: i16,
    topics: Result<Vec<Topic<(i32, Seen)>>, Refused>,
) -> (Vec<Topic<Line>>, Option<Refusal>) {
    match topics {
        Ok(topics) => (each(topics, |(index, seen)| Line::of(index, seen)), None),
        Err(Refused { refusal, asked }) if version < 2 => {
            (each(asked, |index| Line::without_offset(index, Some(refusal))), None)
        }
        Err(Refused { refusal, .. }) => (Vec::new(), Some(refusal)),
    }
}

fn each<T>(topics: Vec<Topic<T>>, line: impl Fn(T) -> Line) -> Vec<Topic<Line>> {
    let topic = |topic: Topic<T>| Topic { name: topic.name, parts: topic.parts.into_iter().map(&line).collect() };
    topics.into_iter().map(topic).collect()
}
