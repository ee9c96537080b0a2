//! The requests of transactions in every version that is offered, and groups made by hand.

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, DescribeTransactionsRequest, EndTxnRequest, HeartbeatRequest,
    InitProducerIdRequest, JoinGroupRequest, ProducerId, SyncGroupRequest, TxnOffsetCommitRequest,
};

use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::data::{Appended, produce_request};
use crate::raw::txn::Member;
use crate::raw::{Client, Sent, text};

/// How long transactions of these tests may stay open.
const TIMEOUT_MS: i32 = 60_000;

fn end_request((id, producer): (&str, Pid), commit: bool) -> EndTxnRequest {
    EndTxnRequest::default()
        .with_transactional_id(text(id).into())
        .with_producer_id(ProducerId(producer.id))
        .with_producer_epoch(producer.epoch)
        .with_committed(commit)
}

impl Client {
    pub(crate) fn init_in(&mut self, version: i16, id: Option<&str>, expected: Pid) -> (i16, Pid) {
        self.init_for(version, id, TIMEOUT_MS, expected)
    }

    pub(crate) fn init_for(&mut self, version: i16, id: Option<&str>, timeout_ms: i32, expected: Pid) -> (i16, Pid) {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(id.map(|id| text(id).into()))
            .with_transaction_timeout_ms(timeout_ms)
            .with_producer_id(ProducerId(expected.id))
            .with_producer_epoch(expected.epoch);
        let answer = self.call(version, &request);
        let given = Pid { id: answer.producer_id.0, epoch: answer.producer_epoch };
        assert_eq!(given == NOBODY, answer.error_code != 0, "an error names nobody (T-101)");
        (answer.error_code, given)
    }

    /// AddPartitionsToTxn of partitions that all get one code (T-212).
    pub(crate) fn add_in(&mut self, version: i16, (id, producer): (&str, Pid), parts: &[(&str, i32)]) -> i16 {
        let topic = |(name, part): &(&str, i32)| {
            AddPartitionsToTxnTopic::default().with_name(text(name).into()).with_partitions(vec![*part])
        };
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(text(id).into())
            .with_v3_and_below_producer_id(ProducerId(producer.id))
            .with_v3_and_below_producer_epoch(producer.epoch)
            .with_v3_and_below_topics(parts.iter().map(topic).collect());
        let answer = self.call(version, &request);
        let topics = answer.results_by_topic_v3_and_below.iter();
        let mut codes: Vec<i16> =
            topics.flat_map(|topic| &topic.results_by_partition).map(|part| part.partition_error_code).collect();
        assert_eq!(codes.len(), parts.len());
        codes.dedup();
        assert_eq!(codes.len(), 1, "one code for all (T-212)");
        codes[0]
    }

    pub(crate) fn add_offsets_in(&mut self, version: i16, (id, producer): (&str, Pid), group: &str) -> i16 {
        let request = AddOffsetsToTxnRequest::default()
            .with_transactional_id(text(id).into())
            .with_producer_id(ProducerId(producer.id))
            .with_producer_epoch(producer.epoch)
            .with_group_id(text(group).into());
        self.call(version, &request).error_code
    }

    pub(crate) fn end_in(&mut self, version: i16, (id, producer): (&str, Pid), commit: bool) -> i16 {
        self.call(version, &end_request((id, producer), commit)).error_code
    }

    /// EndTxn, to be answered later.
    pub(crate) fn send_end(&mut self, id: &str, producer: Pid, commit: bool) -> Sent {
        self.send(3, &end_request((id, producer), commit))
    }

    pub(crate) fn received_end(&mut self, sent: Sent) -> i16 {
        self.receive::<EndTxnRequest>(sent).error_code
    }

    /// TxnOffsetCommit of one offset; the member is said from version 3 on.
    pub(crate) fn stage_in(
        &mut self,
        version: i16,
        (id, producer): (&str, Pid),
        (group, member): (&str, &Member),
        (topic, part, offset): (&str, i32, i64),
    ) -> i16 {
        let offset =
            TxnOffsetCommitRequestPartition::default().with_partition_index(part).with_committed_offset(offset);
        let topic = TxnOffsetCommitRequestTopic::default().with_name(text(topic).into()).with_partitions(vec![offset]);
        let mut request = TxnOffsetCommitRequest::default()
            .with_transactional_id(text(id).into())
            .with_group_id(text(group).into())
            .with_producer_id(ProducerId(producer.id))
            .with_producer_epoch(producer.epoch)
            .with_topics(vec![topic]);
        if version >= 3 {
            request = request
                .with_generation_id(member.generation)
                .with_member_id(text(&member.id))
                .with_group_instance_id(member.instance.as_deref().map(text));
        }
        self.call(version, &request).topics[0].partitions[0].error_code
    }

    pub(crate) fn produce_in(&mut self, version: i16, at: (&str, i32), txn: Option<&str>, batch: &Batch) -> Appended {
        let answer = self.call(version, &produce_request(at.0, at.1, txn, batch.bytes()));
        let result = &answer.responses[0].partition_responses[0];
        assert_eq!(result.base_offset < 0, result.error_code != 0, "T-318");
        Appended {
            code: result.error_code,
            base_offset: result.base_offset,
            log_append_time: result.log_append_time_ms,
            log_start: result.log_start_offset,
        }
    }

    /// The state of a transactional id as tools are shown it; the code if there is none.
    pub(crate) fn state_of(&mut self, id: &str) -> Result<String, i16> {
        let request = DescribeTransactionsRequest::default().with_transactional_ids(vec![text(id).into()]);
        let answer = self.call(0, &request);
        let state = &answer.transaction_states[0];
        if state.error_code == 0 { Ok(state.transaction_state.to_string()) } else { Err(state.error_code) }
    }

    /// The owner of an id as tools are shown it.
    pub(crate) fn who(&mut self, id: &str) -> Pid {
        let request = DescribeTransactionsRequest::default().with_transactional_ids(vec![text(id).into()]);
        let answer = self.call(0, &request);
        let state = &answer.transaction_states[0];
        Pid { id: state.producer_id.0, epoch: state.producer_epoch }
    }

    /// JoinGroup, to be received later.
    pub(crate) fn join_request(id: &str, member: &Member) -> JoinGroupRequest {
        let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
        JoinGroupRequest::default()
            .with_group_id(text(id).into())
            .with_session_timeout_ms(30_000)
            .with_rebalance_timeout_ms(30_000)
            .with_member_id(text(&member.id))
            .with_group_instance_id(member.instance.as_deref().map(text))
            .with_protocol_type(text("consumer"))
            .with_protocols(vec![protocol])
    }

    /// Joins a group as its only member. Version 3 asks for no member id first; an instance is named from 5 on.
    pub(crate) fn join_alone(&mut self, id: &str, instance: Option<&str>) -> Member {
        let version = if instance.is_some() { 5 } else { 3 };
        let nobody = Member { instance: instance.map(str::to_owned), ..Member::default() };
        let answer = self.call(version, &Self::join_request(id, &nobody));
        assert_eq!(answer.error_code, 0, "JoinGroup");
        Member { generation: answer.generation_id, id: answer.member_id.to_string(), ..nobody }
    }

    /// Gives everything to itself.
    pub(crate) fn sync_alone(&mut self, id: &str, member: &Member) {
        let own = SyncGroupRequestAssignment::default().with_member_id(text(&member.id));
        let request = SyncGroupRequest::default()
            .with_group_id(text(id).into())
            .with_generation_id(member.generation)
            .with_member_id(text(&member.id))
            .with_group_instance_id(member.instance.as_deref().map(text))
            .with_assignments(vec![own]);
        assert_eq!(self.call(3, &request).error_code, 0, "SyncGroup");
    }

    /// Heartbeat.
    pub(crate) fn heartbeat(&mut self, id: &str, member: &Member) -> i16 {
        let request = HeartbeatRequest::default()
            .with_group_id(text(id).into())
            .with_generation_id(member.generation)
            .with_member_id(text(&member.id));
        self.call(3, &request).error_code
    }
}
