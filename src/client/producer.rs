//! A producer: plain, idempotent or transactional. One batch is in flight at a time.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, EndTxnRequest,
    InitProducerIdRequest, ProduceRequest, ProduceResponse, ProducerId, TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
};

use super::cluster::{Whom, text};
use super::records::Batch;
use super::{Cluster, Failure, Member, Part};
use crate::clock::Clock;

/// A code for an answer that leaves out what was asked for.
const UNKNOWN_SERVER_ERROR: i16 = -1;

/// A producer, and what it has told the broker so far.
pub struct Producer {
    cluster: Cluster,
    clock: Clock,
    id: Option<String>,
    /// Producer id and epoch, -1 for a plain one.
    identity: (i64, i16),
    /// The sequence of the next batch.
    sequences: BTreeMap<Part, i32>,
    /// Partitions of the open transaction.
    added: BTreeSet<Part>,
}

impl Producer {
    /// One whose batches may be stored twice if they are sent twice.
    #[must_use]
    pub fn plain(cluster: Cluster) -> Self {
        Self {
            cluster,
            clock: Clock::system(),
            id: None,
            identity: (-1, -1),
            sequences: BTreeMap::new(),
            added: BTreeSet::new(),
        }
    }

    /// One whose batches are stored once.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn idempotent(cluster: Cluster) -> Result<Self, Failure> {
        let mut own = Self::plain(cluster);
        own.init(0).await?;
        Ok(own)
    }

    /// The owner of a transactional id: whoever was it before is fenced, and a transaction he left open is aborted.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn transactional(cluster: Cluster, id: &str, timeout_ms: i32) -> Result<Self, Failure> {
        let mut own = Self { id: Some(id.to_owned()), ..Self::plain(cluster) };
        own.init(timeout_ms).await?;
        Ok(own)
    }

    async fn init(&mut self, timeout_ms: i32) -> Result<(), Failure> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(self.id.as_deref().map(|id| text(id).into()))
            .with_transaction_timeout_ms(timeout_ms);
        let whom = self.id.clone().map_or(Whom::Anyone, Whom::Transactions);
        let answer = self.cluster.insist(&whom, (0..=4, &request), |answer| answer.error_code).await?;
        self.identity = (answer.producer_id.0, answer.producer_epoch);
        Ok(())
    }

    /// Sends one batch, and gives the offset of its first record. Within a transaction the partition is added first.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn send(&mut self, part: &Part, values: Vec<String>) -> Result<i64, Failure> {
        if self.id.is_some() && !self.added.contains(part) {
            self.add(part).await?;
        }
        self.send_unannounced(part, values).await
    }

    /// The same, but a transaction is not told of the partition first: what a producer would do that has lost count.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn send_unannounced(&mut self, part: &Part, values: Vec<String>) -> Result<i64, Failure> {
        let batch = self.batch(part, values);
        let count = i32::try_from(batch.values.len()).unwrap_or(0);
        let offset = self.deliver(part, &batch).await?;
        self.skip(part, count);
        Ok(offset)
    }

    /// Sends one batch and then the same again, as a producer does that has lost the answer; gives both offsets.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn send_twice(&mut self, part: &Part, values: Vec<String>) -> Result<(i64, i64), Failure> {
        let batch = self.batch(part, values.clone());
        let first = self.send(part, values).await?;
        Ok((first, self.deliver(part, &batch).await?))
    }

    /// Leaves out so many sequences, or goes back by so many.
    pub fn skip(&mut self, part: &Part, by: i32) {
        let next = self.sequences.entry(part.clone()).or_insert(0);
        *next = next.wrapping_add(by) & i32::MAX;
    }

    fn batch(&self, part: &Part, values: Vec<String>) -> Batch {
        let (id, epoch) = self.identity;
        let sequence = if id < 0 { -1 } else { self.sequences.get(part).copied().unwrap_or(0) };
        let (transactional, wall_ms) = (self.id.is_some(), self.clock.now().wall_ms);
        Batch { producer: (id, epoch, sequence), transactional, wall_ms, values }
    }

    async fn deliver(&mut self, part: &Part, batch: &Batch) -> Result<i64, Failure> {
        let bytes = batch.encode().ok_or_else(|| Failure::foreign("Produce", "the batch is too large"))?;
        let data = PartitionProduceData::default().with_index(part.index).with_records(Some(bytes));
        let topic = TopicProduceData::default().with_name(text(&part.topic).into()).with_partition_data(vec![data]);
        let request = ProduceRequest::default()
            .with_transactional_id(self.id.as_deref().map(|id| text(id).into()))
            .with_acks(-1)
            .with_timeout_ms(10_000)
            .with_topic_data(vec![topic]);
        let result = |answer: &ProduceResponse| {
            let own = answer.responses.first().and_then(|topic| topic.partition_responses.first());
            own.map_or((UNKNOWN_SERVER_ERROR, -1), |own| (own.error_code, own.base_offset))
        };
        let whom = Whom::Leader(part.clone());
        let answer = self.cluster.insist(&whom, (3..=9, &request), |answer| result(answer).0).await?;
        Ok(result(&answer).1)
    }

    async fn add(&mut self, part: &Part) -> Result<(), Failure> {
        let (whom, (id, epoch)) = (self.own()?, self.identity);
        let topic =
            AddPartitionsToTxnTopic::default().with_name(text(&part.topic).into()).with_partitions(vec![part.index]);
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(text(self.id.as_deref().unwrap_or_default()).into())
            .with_v3_and_below_producer_id(ProducerId(id))
            .with_v3_and_below_producer_epoch(epoch)
            .with_v3_and_below_topics(vec![topic]);
        let code = |answer: &AddPartitionsToTxnResponse| {
            let results = answer.results_by_topic_v3_and_below.iter().flat_map(|topic| &topic.results_by_partition);
            worst(results.map(|result| result.partition_error_code))
        };
        self.cluster.insist(&whom, (0..=3, &request), code).await?;
        self.added.insert(part.clone());
        Ok(())
    }

    /// Makes a group's offsets part of the open transaction; `member` says who commits them.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn send_offsets(
        &mut self,
        group: &str,
        member: Option<&Member>,
        offsets: &[(Part, i64)],
    ) -> Result<(), Failure> {
        let (whom, (id, epoch)) = (self.own()?, self.identity);
        let own = text(self.id.as_deref().unwrap_or_default());
        let request = AddOffsetsToTxnRequest::default()
            .with_transactional_id(own.clone().into())
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(epoch)
            .with_group_id(text(group).into());
        self.cluster.insist(&whom, (0..=3, &request), |answer| answer.error_code).await?;
        let topic = |(part, offset): &(Part, i64)| {
            let own = TxnOffsetCommitRequestPartition::default().with_partition_index(part.index);
            let own = own.with_committed_offset(*offset).with_committed_metadata(Some(text("")));
            TxnOffsetCommitRequestTopic::default().with_name(text(&part.topic).into()).with_partitions(vec![own])
        };
        let (generation, member) = member.map_or((-1, ""), Member::membership);
        let request = TxnOffsetCommitRequest::default()
            .with_transactional_id(own.into())
            .with_group_id(text(group).into())
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(epoch)
            .with_generation_id(generation)
            .with_member_id(text(member))
            .with_topics(offsets.iter().map(topic).collect());
        let code = |answer: &TxnOffsetCommitResponse| {
            worst(answer.topics.iter().flat_map(|topic| &topic.partitions).map(|own| own.error_code))
        };
        let whom = Whom::Group(group.to_owned());
        self.cluster.insist(&whom, (3..=3, &request), code).await.map(drop)
    }

    /// Ends the transaction.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn end(&mut self, commit: bool) -> Result<(), Failure> {
        let (whom, (id, epoch)) = (self.own()?, self.identity);
        let request = EndTxnRequest::default()
            .with_transactional_id(text(self.id.as_deref().unwrap_or_default()).into())
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(epoch)
            .with_committed(commit);
        self.cluster.insist(&whom, (0..=3, &request), |answer| answer.error_code).await?;
        self.added.clear();
        Ok(())
    }

    fn own(&self) -> Result<Whom, Failure> {
        let none = || Failure::foreign("AddPartitionsToTxn", "the producer has no transactional id");
        self.id.clone().map(Whom::Transactions).ok_or_else(none)
    }
}

/// The first code that is not 0; nothing asked for, nothing wrong.
fn worst(codes: impl Iterator<Item = i16>) -> i16 {
    codes.into_iter().find(|code| *code != 0).unwrap_or(0)
}
