//! OffsetFetch (O-621 to O-632, T-821, T-822).

mod show;

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::{OffsetFetchRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::catalog::Catalog;
use crate::engine::ledger::offsets::Seen;
use crate::engine::{GroupId, PartId, Refusal};

/// First version that asks for many groups at once (O-631).
const BATCHED: i16 = 8;

/// What is asked of one group; `None` for every partition it has an offset of (O-625).
struct Question {
    group: StrBytes,
    topics: Option<Vec<Topic<i32>>>,
}

/// What one group is answered.
struct Found {
    group: StrBytes,
    topics: Result<Vec<Topic<(i32, Seen)>>, Refused>,
}

/// A group that is refused, and what was asked of it: version 1 has no other place for the code than the partitions
/// (O-621).
struct Refused {
    refusal: Refusal,
    asked: Vec<Topic<i32>>,
}

/// A topic, and what is asked or known of its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Topic<T> {
    name: TopicName,
    parts: Vec<T>,
}

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: OffsetFetchRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let require_stable = request.require_stable;
    let mut asked = BTreeSet::new();
    let mut found = Vec::new();
    for question in questions(call.version, request) {
        let first = asked.insert(question.group.clone());
        found.push(if first { look_up(ctx, question, require_stable).await } else { named_twice(question) });
    }
    show::show(ctx, call, found)
}

/// A group's second entry would tell its offsets once more, and a thousandth a thousand times: refused.
fn named_twice(question: Question) -> Found {
    let asked = question.topics.unwrap_or_default();
    Found { group: question.group, topics: Err(Refused { refusal: Refusal::InvalidRequest, asked }) }
}

fn questions(version: i16, request: OffsetFetchRequest) -> Vec<Question> {
    if version < BATCHED {
        let topic = |topic: kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic| Topic {
            name: topic.name,
            parts: topic.partition_indexes,
        };
        let topics = request.topics.map(|topics| distinct(topics.into_iter().map(topic)));
        return vec![Question { group: request.group_id.0, topics }];
    }
    let topic = |topic: kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopics| Topic {
        name: topic.name,
        parts: topic.partition_indexes,
    };
    let group = |group: kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup| Question {
        group: group.group_id.0,
        topics: group.topics.map(|topics| distinct(topics.into_iter().map(topic))),
    };
    request.groups.into_iter().map(group).collect()
}

/// Each partition once: four bytes of a request could else be answered with all its metadata, again and again.
fn distinct(topics: impl Iterator<Item = Topic<i32>>) -> Vec<Topic<i32>> {
    let mut seen = BTreeSet::new();
    let once = |mut topic: Topic<i32>| {
        topic.parts.retain(|index| seen.insert((topic.name.clone(), *index)));
        topic
    };
    topics.map(once).collect()
}

async fn look_up(ctx: &Ctx, question: Question, require_stable: bool) -> Found {
    let Question { group, topics } = question;
    let id = GroupId::from(group.as_str());
    let topics = match topics {
        None => {
            let seen = ctx.broker.fetch_offsets(id, None, require_stable).await;
            seen.map(|seen| all(&ctx.broker.catalog(), seen)).map_err(|refusal| Refused { refusal, asked: Vec::new() })
        }
        Some(asked) => {
            let ids = resolve(&ctx.broker.catalog(), &asked);
            let known = ids.iter().flat_map(|topic| topic.parts.iter().filter_map(|(_, part)| *part)).collect();
            match ctx.broker.fetch_offsets(id, Some(known), require_stable).await {
                Ok(seen) => Ok(put_back(ids, seen)),
                Err(refusal) => Err(Refused { refusal, asked }),
            }
        }
    };
    Found { group, topics }
}

/// Every partition with an offset, by topic. One that has none is there because a transaction carries its first: told
/// as unstable to those who ask for that, not at all to others (T-822 R).
fn all(catalog: &Catalog, seen: Vec<(PartId, Seen)>) -> Vec<Topic<(i32, Seen)>> {
    let seen = seen.into_iter().filter(|(_, seen)| *seen != Seen::Absent);
    let topics = words::by_topic(catalog, seen).into_iter();
    topics.map(|(name, parts)| Topic { name: words::topic(&name), parts: parts.into_iter().collect() }).collect()
}

/// The partitions that exist.
fn resolve(catalog: &Catalog, asked: &[Topic<i32>]) -> Vec<Topic<(i32, Option<PartId>)>> {
    let topic = |topic: &Topic<i32>| {
        let find = |index: &i32| (*index, catalog.part_id(&topic.name, *index));
        Topic { name: topic.name.clone(), parts: topic.parts.iter().map(find).collect() }
    };
    asked.iter().map(topic).collect()
}

/// What is known of each partition, in the order of the request; of one that does not exist, nothing (O-622).
fn put_back(asked: Vec<Topic<(i32, Option<PartId>)>>, seen: Vec<(PartId, Seen)>) -> Vec<Topic<(i32, Seen)>> {
    let mut seen: BTreeMap<PartId, Seen> = seen.into_iter().collect();
    let mut topic = |topic: Topic<(i32, Option<PartId>)>| {
        let mut known = |part: Option<PartId>| part.and_then(|part| seen.remove(&part)).unwrap_or(Seen::Absent);
        let parts = topic.parts.into_iter().map(|(index, part)| (index, known(part))).collect();
        Topic { name: topic.name, parts }
    };
    asked.into_iter().map(&mut topic).collect()
}

#[cfg(test)]
mod tests;
