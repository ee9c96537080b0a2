//! Records: produced, fetched, looked for.

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::AbortedTransaction;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    BrokerId, FetchRequest, FetchResponse, ListOffsetsRequest, ProduceRequest, ProduceResponse,
};

use super::batch::{self, Batch, Stored};
use super::{Client, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadUncommitted = 0,
    ReadCommitted = 1,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) code: i16,
    pub(crate) base_offset: i64,
    pub(crate) log_append_time: i64,
    pub(crate) log_start: i64,
}

/// What a Fetch of one partition was given.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    pub(crate) code: i16,
    pub(crate) high_watermark: i64,
    pub(crate) last_stable: i64,
    pub(crate) log_start: i64,
    /// Producer ids and first offsets of aborted transactions.
    pub(crate) aborted: Option<Vec<(i64, i64)>>,
    pub(crate) records: Bytes,
}

/// The beginning of a partition, for [`Client::list_offsets`].
pub(crate) const EARLIEST: i64 = -2;
/// Its end.
pub(crate) const LATEST: i64 = -1;

/// A Produce of one batch, for whoever changes it or sends it without waiting; version 9.
pub(crate) fn produce_request(topic: &str, part: i32, txn: Option<&str>, records: Vec<u8>) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(part).with_records(Some(Bytes::from(records)));
    let topic = TopicProduceData::default().with_name(text(topic).into()).with_partition_data(vec![data]);
    ProduceRequest::default()
        .with_transactional_id(txn.map(|id| text(id).into()))
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic])
}

/// A Fetch of one partition without a session; version 12. Answered at once with what there is.
pub(crate) fn fetch_request(topic: &str, part: i32, offset: i64, isolation: Isolation) -> FetchRequest {
    let part =
        FetchPartition::default().with_partition(part).with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_topic(text(topic).into()).with_partitions(vec![part]);
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(0)
        .with_min_bytes(0)
        .with_max_bytes(8 << 20)
        .with_isolation_level(isolation as i8)
        .with_session_id(0)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

/// A ListOffsets of one partition; version 8.
pub(crate) fn list_offsets_request(topic: &str, part: i32, timestamp: i64, isolation: Isolation) -> ListOffsetsRequest {
    let part = ListOffsetsPartition::default().with_partition_index(part).with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default().with_name(text(topic).into()).with_partitions(vec![part]);
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_isolation_level(isolation as i8)
        .with_topics(vec![topic])
}

impl Appended {
    /// The only partition of an answer.
    pub(crate) fn of(answer: &ProduceResponse) -> Self {
        let result = &answer.responses[0].partition_responses[0];
        Self {
            code: result.error_code,
            base_offset: result.base_offset,
            log_append_time: result.log_append_time_ms,
            log_start: result.log_start_offset,
        }
    }
}

impl Client {
    /// Produce with acks=all.
    pub(crate) fn produce(&mut self, topic: &str, part: i32, txn: Option<&str>, batch: &Batch) -> Appended {
        self.produce_bytes(topic, part, txn, batch.bytes())
    }

    /// The same with records of whatever bytes.
    pub(crate) fn produce_bytes(&mut self, topic: &str, part: i32, txn: Option<&str>, records: Vec<u8>) -> Appended {
        Appended::of(&self.call(9, &produce_request(topic, part, txn, records)))
    }

    /// Fetch of what there is from this offset on.
    pub(crate) fn fetch(&mut self, topic: &str, part: i32, offset: i64, isolation: Isolation) -> Fetched {
        Fetched::of(&self.call(12, &fetch_request(topic, part, offset, isolation)))
    }

    /// Every record a consumer of this isolation is shown, with offsets, from this offset to where it must stop.
    pub(crate) fn read_from(
        &mut self,
        (topic, part): (&str, i32),
        mut offset: i64,
        isolation: Isolation,
    ) -> Vec<(i64, String)> {
        let mut records = Vec::new();
        loop {
            let fetched = self.fetch(topic, part, offset, isolation);
            assert_eq!(fetched.code, 0, "Fetch of {topic}-{part} at {offset}");
            let Some(last) = fetched.batches().last().map(|batch| batch.last_offset) else {
                return records;
            };
            records.extend(fetched.shown(isolation).into_iter().filter(|(at, _)| *at >= offset));
            offset = last + 1;
        }
    }

    /// The values of all records from the partition's beginning on.
    pub(crate) fn read_all(&mut self, topic: &str, part: i32, isolation: Isolation) -> Vec<String> {
        let (code, start, _) = self.list_offsets(topic, part, EARLIEST, Isolation::ReadUncommitted);
        assert_eq!(code, 0, "ListOffsets of {topic}-{part}");
        self.read_from((topic, part), start, isolation).into_iter().map(|(_, value)| value).collect()
    }

    /// ListOffsets: code, offset, timestamp.
    pub(crate) fn list_offsets(
        &mut self,
        topic: &str,
        part: i32,
        timestamp: i64,
        isolation: Isolation,
    ) -> (i16, i64, i64) {
        let answer = self.call(8, &list_offsets_request(topic, part, timestamp, isolation));
        let result = &answer.topics[0].partitions[0];
        (result.error_code, result.offset, result.timestamp)
    }
}

impl Fetched {
    /// The only partition of an answer.
    pub(crate) fn of(answer: &FetchResponse) -> Self {
        assert_eq!(answer.error_code, 0, "Fetch");
        let result = &answer.responses[0].partitions[0];
        let pairs =
            |list: &Vec<AbortedTransaction>| list.iter().map(|txn| (txn.producer_id.0, txn.first_offset)).collect();
        Self {
            code: result.error_code,
            high_watermark: result.high_watermark,
            last_stable: result.last_stable_offset,
            log_start: result.log_start_offset,
            aborted: result.aborted_transactions.as_ref().map(pairs),
            records: result.records.clone().unwrap_or_default(),
        }
    }

    /// The batches as they are stored.
    pub(crate) fn batches(&self) -> Vec<Stored> {
        batch::read(self.records.clone())
    }

    /// What a consumer passes on: never markers, and of aborted transactions nothing when it reads committed.
    pub(crate) fn shown(&self, isolation: Isolation) -> Vec<(i64, String)> {
        let mut begins = self.aborted.clone().unwrap_or_default();
        begins.sort_by_key(|(_, first)| *first);
        let mut begins = begins.into_iter().peekable();
        let mut aborting = std::collections::BTreeSet::new();
        let mut records = Vec::new();
        for batch in self.batches() {
            while let Some((id, _)) = begins.next_if(|(_, first)| *first <= batch.last_offset) {
                aborting.insert(id);
            }
            match batch.marker {
                Some(commits) => {
                    if !commits {
                        aborting.remove(&batch.producer.id);
                    }
                }
                None if isolation == Isolation::ReadCommitted
                    && batch.transactional
                    && aborting.contains(&batch.producer.id) => {}
                None => records.extend(batch.records),
            }
        }
        records
    }
}
