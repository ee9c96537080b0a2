//! Produce (key 0, versions 3 to 9).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::ProduceResponse;
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::service::Reply;
use super::together::together;
use super::traces::Fact;
use super::{Call, Ctx};
use crate::engine::batch::Header;
use crate::engine::batch::check::{self, Keys, Rejection, Rules, Times, check};
use crate::engine::catalog::{Catalog, LogSettings, TimestampType, Topic, is_internal};
use crate::engine::{Offset, PartId, Producer, Refusal, TransactionalId};
use crate::runtime::broker::{Batch, NotProduced};
use crate::runtime::post::Produced;
use crate::wire::codes;

/// The only client that may write to internal topics (T-309).
const ADMIN_CLIENT: &str = "__admin_client";

/// Answers one request. All batches are in their partitions' mailboxes before the first wait.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: ProduceRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let judged = Judge::of(ctx, call, &request).all(&request);
    let stored = judged.into_iter().map(async |judged| match judged {
        Judged::Accepted(part, batch) => ctx.broker.produce(part, batch).await.map_err(Refused::from),
        Judged::Refused(refused) => Err(refused),
    });
    let stored = together(stored.collect()).await;
    if request.acks == 0 {
        return unanswered(ctx, call, &stored);
    }
    call.encode(&response(ctx, call, request, stored))
}

/// What becomes of one partition's records before anything is stored.
enum Judged {
    Accepted(PartId, Batch),
    Refused(Refused),
}

/// Why a partition's records are not stored, as the answer shows it (T-318).
struct Refused {
    refusal: Refusal,
    log_start: Offset,
    message: Option<String>,
    bad_records: Vec<(i32, Option<String>)>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, log_start: -1, message: None, bad_records: Vec::new() }
    }
}

impl From<NotProduced> for Refused {
    fn from(NotProduced { refusal, log_start }: NotProduced) -> Self {
        Self { log_start: log_start.unwrap_or(-1), ..Self::from(refusal) }
    }
}

/// What a request's partitions are judged by.
struct Judge<'a> {
    ctx: &'a Ctx,
    call: &'a Call,
    catalog: Arc<Catalog>,
    id: Option<TransactionalId>,
    acks: i16,
    now_wall_ms: i64,
}

impl<'a> Judge<'a> {
    fn of(ctx: &'a Ctx, call: &'a Call, request: &ProduceRequest) -> Self {
        Self {
            ctx,
            call,
            catalog: ctx.broker.catalog(),
            id: request.transactional_id.as_ref().map(|id| TransactionalId::from(id.as_str())),
            acks: request.acks,
            now_wall_ms: ctx.broker.clock().now().wall_ms,
        }
    }

    /// Judges all partitions, in the order of the request.
    fn all(&self, request: &ProduceRequest) -> Vec<Judged> {
        let partitions = || request.topic_data.iter().flat_map(|topic| &topic.partition_data);
        if let Some(id) = &self.id {
            self.call.note(Fact::Transaction(id.as_str()));
        }
        self.call.note_places(
            request
                .topic_data
                .iter()
                .flat_map(|topic| topic.partition_data.iter().map(|partition| (topic.name.as_str(), partition.index))),
        );
        if self.id.is_none() && partitions().any(is_transactional) {
            let refused = |_| Judged::Refused(Refusal::TransactionalIdAuthorizationFailed.into());
            return partitions().map(refused).collect();
        }
        let repeated = self.repeated(request);
        let mut judged = Vec::with_capacity(partitions().count());
        for data in &request.topic_data {
            let topic = self.catalog.topic(&data.name);
            let settings = topic.map(|topic| self.ctx.broker.settings_of(topic));
            for partition in &data.partition_data {
                let known = topic.zip(settings.as_deref());
                let one = known.ok_or_else(|| unknown(&data.name).into());
                let one = one.and_then(|(topic, settings)| self.one(topic, settings, partition, &repeated));
                judged.push(one.map_or_else(Judged::Refused, |(part, batch)| Judged::Accepted(part, batch)));
            }
        }
        one_producer(judged)
    }

    /// Partitions that are named more than once: neither time is meant, for the order of two batches is not said
    /// (T-317).
    fn repeated(&self, request: &ProduceRequest) -> BTreeSet<PartId> {
        let mut seen = BTreeSet::new();
        let mut repeated = BTreeSet::new();
        for data in &request.topic_data {
            let Some(topic) = self.catalog.topic(&data.name) else { continue };
            let parts = data.partition_data.iter().filter_map(|partition| topic.part(partition.index));
            repeated.extend(parts.filter(|part| !seen.insert(*part)));
        }
        repeated
    }

    fn one(
        &self,
        topic: &Topic,
        settings: &LogSettings,
        partition: &PartitionProduceData,
        repeated: &BTreeSet<PartId>,
    ) -> Result<(PartId, Batch), Refused> {
        let part = topic.part(partition.index).ok_or(Refusal::UnknownTopicOrPartition)?;
        if repeated.contains(&part) {
            return Err(Refusal::InvalidRequest.into());
        }
        if !matches!(self.acks, -1..=1) {
            return Err(Refusal::InvalidRequiredAcks.into());
        }
        if topic.is_internal() && self.call.client_id.as_deref() != Some(ADMIN_CLIENT) {
            return Err(Refusal::InvalidTopic.into());
        }
        let rules = rules(settings, self.call.version, self.now_wall_ms);
        let header = check(partition.records.as_deref(), &rules).map_err(|why| self.rejected(part, why))?;
        let (header, bytes) = settled(partition.records.as_ref(), header);
        self.call.note(Fact::Batch { header: &header, bytes: &bytes });
        let batch = Batch {
            header,
            bytes,
            id: self.id.clone().filter(|_| header.is_transactional()),
            durable: self.acks == -1,
            times: rules.times,
        };
        Ok((part, batch))
    }

    fn rejected(&self, part: PartId, why: Rejection) -> Refused {
        let Rejection { refusal, message, bad_records, show_log_start } = why;
        let log_start = if show_log_start { self.ctx.broker.log_start(part) } else { -1 };
        Refused { refusal, log_start, message, bad_records }
    }
}

/// Whether the first batch says that it belongs to a transaction (T-301).
fn is_transactional(partition: &PartitionProduceData) -> bool {
    let header = partition.records.as_deref().and_then(Header::read);
    header.is_some_and(|header| header.magic == 2 && header.is_transactional())
}

/// What is said of a topic that there is not: the broker's own are no client's to write to, whether they are made or not (T-309).
fn unknown(name: &str) -> Refusal {
    if is_internal(name) { Refusal::InvalidTopic } else { Refusal::UnknownTopicOrPartition }
}

/// One request writes for one transactional producer (T-306).
fn one_producer(judged: Vec<Judged>) -> Vec<Judged> {
    let producer = |judged: &Judged| match judged {
        Judged::Accepted(_, batch) if batch.header.is_transactional() => batch.header.producer(),
        Judged::Accepted(..) | Judged::Refused(_) => None,
    };
    let mut producers = judged.iter().filter_map(producer);
    let first: Option<Producer> = producers.next();
    if producers.all(|other| Some(other) == first) {
        return judged;
    }
    let refuse = |judged| match judged {
        Judged::Accepted(..) => Judged::Refused(Refusal::InvalidProducerIdMapping.into()),
        Judged::Refused(_) => judged,
    };
    judged.into_iter().map(refuse).collect()
}

fn rules(settings: &LogSettings, produce_version: i16, now_wall_ms: i64) -> Rules {
    Rules {
        max_message_bytes: u32::try_from(settings.max_message_bytes).unwrap_or(0),
        segment_bytes: u32::try_from(settings.segment_bytes).unwrap_or(0),
        keys: if settings.cleanup.compacts() { Keys::Needed } else { Keys::Optional },
        times: match settings.timestamp_type {
            TimestampType::CreateTime => Times::CreateTime,
            TimestampType::LogAppendTime => Times::LogAppendTime,
        },
        before_max_ms: settings.timestamp_before_max_ms,
        after_max_ms: settings.timestamp_after_max_ms,
        now_wall_ms,
        produce_version,
    }
}

/// The one batch at the front of the records, without being copied unless its largest timestamp is put right.
fn settled(records: Option<&Bytes>, header: Header) -> (Header, Bytes) {
    let records = records.cloned().unwrap_or_default();
    let size = header.size().unwrap_or(0).min(records.len());
    let batch = records.slice(..size);
    if Header::read(&batch).is_some_and(|written| written.max_timestamp == header.max_timestamp) {
        return (header, batch);
    }
    let mut copy = BytesMut::from(&*batch);
    check::settle(&mut copy, &header);
    let header = Header::read(&copy).unwrap_or(header);
    (header, copy.freeze())
}

/// With acks=0 there is no answer; what went wrong closes the connection (T-312).
fn unanswered(ctx: &Ctx, call: &Call, stored: &[Result<Produced, Refused>]) -> Reply {
    let mut codes = Codes::new(ctx, call);
    let mut worst = None;
    for refused in stored.iter().filter_map(|stored| stored.as_ref().err()) {
        codes.of(Some(refused.refusal));
        worst = worst.or(Some(refused.refusal));
    }
    worst.map_or(Reply::Nothing, |refusal| Reply::Close(format!("acks=0, and it was refused: {refusal}").into()))
}

fn response(
    ctx: &Ctx,
    call: &Call,
    request: ProduceRequest,
    stored: Vec<Result<Produced, Refused>>,
) -> ProduceResponse {
    let mut codes = Codes::new(ctx, call);
    let mut stored = stored.into_iter();
    let topics = request.topic_data.into_iter().map(|topic| {
        let indexes = topic.partition_data.iter().map(|partition| partition.index);
        let partitions = indexes.zip(&mut stored).map(|(index, stored)| partition(index, stored, &mut codes));
        TopicProduceResponse::default().with_partition_responses(partitions.collect()).with_name(topic.name)
    });
    ProduceResponse::default().with_responses(topics.collect())
}

fn partition(index: i32, stored: Result<Produced, Refused>, codes: &mut Codes<'_>) -> PartitionProduceResponse {
    let answer = PartitionProduceResponse::default().with_index(index);
    match stored {
        Ok(produced) => answer
            .with_error_code(codes::NONE)
            .with_base_offset(produced.base_offset)
            .with_log_append_time_ms(produced.append_time_ms)
            .with_log_start_offset(produced.log_start),
        Err(refused) => answer
            .with_error_code(codes.of(Some(refused.refusal)))
            .with_base_offset(-1)
            .with_log_append_time_ms(-1)
            .with_log_start_offset(refused.log_start)
            .with_error_message(refused.message.map(StrBytes::from_string))
            .with_record_errors(refused.bad_records.into_iter().map(bad_record).collect()),
    }
}

fn bad_record((index, message): (i32, Option<String>)) -> BatchIndexAndErrorMessage {
    let message = message.map(StrBytes::from_string);
    BatchIndexAndErrorMessage::default().with_batch_index(index).with_batch_index_error_message(message)
}

#[cfg(test)]
mod tests;
