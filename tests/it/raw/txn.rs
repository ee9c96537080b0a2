//! The requests of a transactional producer, in the versions that are offered by default.

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProducerId,
    TxnOffsetCommitRequest, WriteTxnMarkersRequest,
};

use super::batch::Pid;
use super::{Client, text};

/// Who commits offsets, as a member of which generation. The default claims no membership.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) generation: i32,
    pub(crate) id: String,
    pub(crate) instance: Option<String>,
}

impl Default for Member {
    fn default() -> Self {
        Self { generation: -1, id: String::new(), instance: None }
    }
}

/// How long transactions may stay open when a test does not care, in milliseconds.
const TIMEOUT_MS: i32 = 60_000;

const CONCURRENT_TRANSACTIONS: i16 = 51;

/// An InitProducerId by who already is someone; version 4.
pub(crate) fn init_producer_request(id: Option<&str>, timeout_ms: i32, now: Pid) -> InitProducerIdRequest {
    InitProducerIdRequest::default()
        .with_transactional_id(id.map(|id| text(id).into()))
        .with_transaction_timeout_ms(timeout_ms)
        .with_producer_id(ProducerId(now.id))
        .with_producer_epoch(now.epoch)
}

/// An AddPartitionsToTxn; version 3.
pub(crate) fn add_partitions_request(id: &str, producer: Pid, parts: &[(&str, i32)]) -> AddPartitionsToTxnRequest {
    let topic = |(name, part): &(&str, i32)| {
        AddPartitionsToTxnTopic::default().with_name(text(name).into()).with_partitions(vec![*part])
    };
    AddPartitionsToTxnRequest::default()
        .with_v3_and_below_transactional_id(text(id).into())
        .with_v3_and_below_producer_id(ProducerId(producer.id))
        .with_v3_and_below_producer_epoch(producer.epoch)
        .with_v3_and_below_topics(parts.iter().map(topic).collect())
}

/// An AddOffsetsToTxn; version 3.
pub(crate) fn add_offsets_request(id: &str, producer: Pid, group: &str) -> AddOffsetsToTxnRequest {
    AddOffsetsToTxnRequest::default()
        .with_transactional_id(text(id).into())
        .with_producer_id(ProducerId(producer.id))
        .with_producer_epoch(producer.epoch)
        .with_group_id(text(group).into())
}

/// A TxnOffsetCommit of one offset; version 3.
pub(crate) fn txn_offset_commit_request(
    (id, producer): (&str, Pid),
    (group, member): (&str, &Member),
    (topic, part, offset): (&str, i32, i64),
) -> TxnOffsetCommitRequest {
    let offset = TxnOffsetCommitRequestPartition::default().with_partition_index(part).with_committed_offset(offset);
    let topic = TxnOffsetCommitRequestTopic::default().with_name(text(topic).into()).with_partitions(vec![offset]);
    TxnOffsetCommitRequest::default()
        .with_transactional_id(text(id).into())
        .with_group_id(text(group).into())
        .with_producer_id(ProducerId(producer.id))
        .with_producer_epoch(producer.epoch)
        .with_generation_id(member.generation)
        .with_member_id(text(&member.id))
        .with_group_instance_id(member.instance.as_deref().map(text))
        .with_topics(vec![topic])
}

/// An EndTxn; version 3.
pub(crate) fn end_txn_request(id: &str, producer: Pid, commit: bool) -> EndTxnRequest {
    EndTxnRequest::default()
        .with_transactional_id(text(id).into())
        .with_producer_id(ProducerId(producer.id))
        .with_producer_epoch(producer.epoch)
        .with_committed(commit)
}

impl Client {
    /// InitProducerId: the code, and who one is then.
    pub(crate) fn init_producer(&mut self, id: Option<&str>, timeout_ms: i32) -> (i16, Pid) {
        self.init_producer_as(id, timeout_ms, Pid { id: -1, epoch: -1 })
    }

    /// InitProducerId by who already is someone (KIP-360).
    pub(crate) fn init_producer_as(&mut self, id: Option<&str>, timeout_ms: i32, now: Pid) -> (i16, Pid) {
        let answer = self.call(4, &init_producer_request(id, timeout_ms, now));
        (answer.error_code, Pid { id: answer.producer_id.0, epoch: answer.producer_epoch })
    }

    /// InitProducerId as clients do it: again while the old transaction is being ended.
    pub(crate) fn owner(&mut self, id: &str) -> Pid {
        loop {
            match self.init_producer(Some(id), TIMEOUT_MS) {
                (0, producer) => return producer,
                (CONCURRENT_TRANSACTIONS, _) => {}
                (code, _) => panic!("InitProducerId of {id}: error {code}"),
            }
        }
    }

    /// AddPartitionsToTxn: the codes of the partitions, in their order.
    pub(crate) fn add_partitions(&mut self, id: &str, producer: Pid, parts: &[(&str, i32)]) -> Vec<i16> {
        let answer = self.call(3, &add_partitions_request(id, producer, parts));
        let results = answer.results_by_topic_v3_and_below;
        let code = |(name, part): &(&str, i32)| {
            let topics = results.iter().filter(|topic| topic.name.as_str() == *name);
            let mut parts = topics.flat_map(|topic| &topic.results_by_partition);
            parts.find(|result| result.partition_index == *part).unwrap().partition_error_code
        };
        parts.iter().map(code).collect()
    }

    /// AddOffsetsToTxn.
    pub(crate) fn add_offsets(&mut self, id: &str, producer: Pid, group: &str) -> i16 {
        self.call(3, &add_offsets_request(id, producer, group)).error_code
    }

    /// TxnOffsetCommit of one offset.
    pub(crate) fn txn_offset_commit(
        &mut self,
        (id, producer): (&str, Pid),
        (group, member): (&str, &Member),
        (topic, part, offset): (&str, i32, i64),
    ) -> i16 {
        let request = txn_offset_commit_request((id, producer), (group, member), (topic, part, offset));
        self.call(3, &request).topics[0].partitions[0].error_code
    }

    /// EndTxn.
    pub(crate) fn end_txn(&mut self, id: &str, producer: Pid, commit: bool) -> i16 {
        self.call(3, &end_txn_request(id, producer, commit)).error_code
    }

    /// WriteTxnMarkers of one producer: the codes of the partitions, in their order.
    pub(crate) fn write_markers(&mut self, producer: Pid, commit: bool, parts: &[(&str, i32)]) -> Vec<i16> {
        let topic = |(name, part): &(&str, i32)| {
            WritableTxnMarkerTopic::default().with_name(text(name).into()).with_partition_indexes(vec![*part])
        };
        let marker = WritableTxnMarker::default()
            .with_producer_id(ProducerId(producer.id))
            .with_producer_epoch(producer.epoch)
            .with_transaction_result(commit)
            .with_topics(parts.iter().map(topic).collect());
        let answer = self.call(1, &WriteTxnMarkersRequest::default().with_markers(vec![marker]));
        assert_eq!(answer.markers[0].producer_id.0, producer.id, "T-409");
        let named = parts.iter().zip(&answer.markers[0].topics).map(|((name, part), topic)| {
            assert_eq!((topic.name.as_str(), topic.partitions[0].partition_index), (*name, *part), "T-409");
            topic.partitions[0].error_code
        });
        named.collect()
    }

    /// EndTxn as clients do it: again while the markers are being written.
    pub(crate) fn end_txn_surely(&mut self, id: &str, producer: Pid, commit: bool) {
        loop {
            match self.end_txn(id, producer, commit) {
                0 => return,
                CONCURRENT_TRANSACTIONS => {}
                code => panic!("EndTxn of {id}: error {code}"),
            }
        }
    }
}
