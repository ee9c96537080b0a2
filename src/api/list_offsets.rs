//! ListOffsets (key 2, versions 1 to 8).

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};

use super::codes::Codes;
use super::service::Reply;
use super::together::together;
use super::{Call, Ctx};
use crate::engine::fetch::{Bounds, Isolation, check_leader_epoch};
use crate::engine::{Offset, PartId, Refusal};
use crate::runtime::readable::{Readable, bounds, whole_bounds};
use crate::runtime::reading::Found;

/// Answers one request.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: ListOffsetsRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let isolation = Isolation::of(request.isolation_level);
    let repeated = repeated(&request);
    let catalog = ctx.broker.catalog();
    let wishes = request.topics.iter().flat_map(|topic| {
        let (known, repeated) = (catalog.topic(&topic.name), repeated.get(topic.name.as_str()));
        topic.partitions.iter().map(move |partition| {
            let index = partition.partition_index;
            let is_repeated = repeated.is_some_and(|repeated| repeated.contains(&index));
            (known.and_then(|topic| topic.part(index)), partition, is_repeated)
        })
    });
    let found = wishes.map(async |(part, partition, is_repeated)| {
        let wish = wish(partition, call.version, is_repeated)?;
        let part = part.ok_or(Refusal::UnknownTopicOrPartition)?;
        Asked { ctx, part, isolation: isolation?, leader_epoch: partition.current_leader_epoch }.find(wish).await
    });
    let found = together(found.collect()).await;
    call.encode(&response(ctx, call, request, found))
}

/// Partitions named more than once, by topic (T-528).
fn repeated(request: &ListOffsetsRequest) -> BTreeMap<&str, BTreeSet<i32>> {
    let mut seen: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
    let mut repeated: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
    for topic in &request.topics {
        let seen = seen.entry(topic.name.as_str()).or_default();
        let again = topic.partitions.iter().map(|partition| partition.partition_index);
        let again: BTreeSet<i32> = again.filter(|index| !seen.insert(*index)).collect();
        if !again.is_empty() {
            repeated.entry(topic.name.as_str()).or_default().extend(again);
        }
    }
    repeated
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// The end of what this reader may have (T-520).
    Latest,
    /// The first offset; without tiers it is the first one here, too (T-521, T-523).
    Earliest,
    /// The largest timestamp (T-522).
    MaxTimestamp,
    /// The first record no earlier than this (T-526).
    AtOrAfter(i64),
}

fn wish(partition: &ListOffsetsPartition, version: i16, is_repeated: bool) -> Result<Wish, Refusal> {
    match partition.timestamp {
        _ if is_repeated => Err(Refusal::InvalidRequest),
        -1 => Ok(Wish::Latest),
        -2 => Ok(Wish::Earliest),
        -3 if version >= 7 => Ok(Wish::MaxTimestamp),
        -4 if version >= 8 => Ok(Wish::Earliest),
        timestamp if timestamp >= 0 => Ok(Wish::AtOrAfter(timestamp)),
        _ => Err(Refusal::UnsupportedVersion),
    }
}

/// An offset, its timestamp and its leader epoch; -1 for what there is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    offset: Offset,
    timestamp: i64,
    leader_epoch: i32,
}

impl From<Found> for Answer {
    fn from(found: Found) -> Self {
        match found {
            Some(found) => Self { offset: found.offset, timestamp: found.timestamp, leader_epoch: found.leader_epoch },
            None => Self { offset: -1, timestamp: -1, leader_epoch: -1 },
        }
    }
}

/// One partition of the request.
struct Asked<'a> {
    ctx: &'a Ctx,
    part: PartId,
    isolation: Isolation,
    leader_epoch: i32,
}

/// How often it is looked again when the log start moves beyond what was just read.
const MOVED_AGAIN: u32 = 3;

impl Asked<'_> {
    async fn find(&self, wish: Wish) -> Result<Answer, Refusal> {
        for _ in 0..MOVED_AGAIN {
            match self.look(wish).await {
                Err(Refusal::OffsetOutOfRange) => {}
                looked => return looked,
            }
        }
        // No client expects to be out of the range that it asks for, and this code has it come again.
        Err(Refusal::KafkaStorageError)
    }

    async fn look(&self, wish: Wish) -> Result<Answer, Refusal> {
        let broker = &self.ctx.broker;
        let readable = broker.readable(self.part).await?;
        check_leader_epoch(self.leader_epoch, broker.identity().incarnation)?;
        let view = &readable.published;
        let bounds = match wish {
            Wish::Latest | Wish::MaxTimestamp => whole_bounds(view)?,
            Wish::Earliest | Wish::AtOrAfter(_) => bounds(view)?,
        };
        let within = bounds.log_start..bounds.limit(self.isolation);
        match wish {
            Wish::Latest => {
                Ok(Answer { offset: within.end, timestamp: -1, leader_epoch: self.latest_epoch(&readable, &bounds) })
            }
            Wish::Earliest => {
                let epoch = if bounds.log_start < bounds.watermark {
                    broker.epoch_at(&readable, bounds.log_start).await?
                } else {
                    Some(self.latest_epoch(&readable, &bounds))
                };
                Ok(Answer { offset: bounds.log_start, timestamp: -1, leader_epoch: epoch.unwrap_or(-1) })
            }
            Wish::MaxTimestamp => broker.find_latest_time(&readable, within).await.map(Answer::from),
            Wish::AtOrAfter(timestamp) => {
                let found = broker.find_time(&readable, timestamp, within).await?;
                if found.is_none() {
                    // Of a damaged partition it is not known whether there is a later one.
                    whole_bounds(view)?;
                }
                Ok(Answer::from(found))
            }
        }
    }

    /// The epoch of the last record; ours while there is none. Not ours in any case: a client that comes back with an
    /// epoch in which nothing was written would be told that its log has parted from this one (F-731).
    fn latest_epoch(&self, readable: &Readable, bounds: &Bounds) -> i32 {
        readable.epoch_end(self.ctx.broker.identity().incarnation, i32::MAX, bounds.watermark).0
    }
}

fn response(
    ctx: &Ctx,
    call: &Call,
    request: ListOffsetsRequest,
    found: Vec<Result<Answer, Refusal>>,
) -> ListOffsetsResponse {
    let mut codes = Codes::new(ctx, call);
    let mut found = found.into_iter();
    let topics = request.topics.into_iter().map(|topic| {
        let asked = topic.partitions.iter().zip(&mut found);
        let partitions = asked.map(|(asked, found)| {
            let answer = ListOffsetsPartitionResponse::default().with_partition_index(asked.partition_index);
            match found {
                // Versions before 4 have no field for the epoch.
                Ok(found) => answer
                    .with_offset(found.offset)
                    .with_timestamp(found.timestamp)
                    .with_leader_epoch(if call.version >= 4 { found.leader_epoch } else { -1 }),
                Err(refusal) => answer.with_error_code(codes.of(Some(refusal))),
            }
        });
        ListOffsetsTopicResponse::default().with_partitions(partitions.collect()).with_name(topic.name)
    });
    ListOffsetsResponse::default().with_topics(topics.collect())
}

#[cfg(test)]
mod tests;
