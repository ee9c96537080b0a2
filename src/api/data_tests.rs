//! Produce, Fetch, ListOffsets and OffsetForLeaderEpoch, from message to message, over a whole broker.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    BrokerId, FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse, ProduceRequest, ProduceResponse, TopicName, TransactionalId as TxnName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use super::service::{Incoming, Peer, Reply, Service};
use super::{Ctx, Handlers};
use crate::clock::Clock;
use crate::config::{Config, HostPort};
use crate::engine::batch::samples::{Entry, encode, header, seal};
use crate::engine::batch::{HEADER_BYTES, Header};
use crate::engine::catalog::CreateTopic;
use crate::engine::txn::Addition;
use crate::engine::{Outcome, Producer, TransactionalId};
use crate::server::{Parts, Running, start};
use crate::wire::Api;

/// A timestamp that is neither too old nor too new for any clock.
const TIME: i64 = 1_700_000_000_000;

struct Bench {
    running: Running,
    handlers: Handlers,
    peer: Arc<Peer>,
    _dir: tempfile::TempDir,
}

impl Bench {
    /// A broker with the topic `t` of two partitions.
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::builtin();
        config.data_dir = dir.path().to_path_buf();
        config.listeners.external.bind = HostPort::new("127.0.0.1", 0);
        config.admin.bind = HostPort::new("127.0.0.1", 0);
        let parts = Parts::real(&config);
        let running = start(config.clone(), parts).await.unwrap();
        let topic = CreateTopic { partitions: Some(2), ..CreateTopic::by_defaults("t") };
        running.broker.create_topics(vec![topic]).await.unwrap();
        let ctx = Ctx { broker: Arc::clone(&running.broker), config: Arc::new(config), advertised: Vec::new() };
        let peer = Peer {
            address: "127.0.0.1:1".parse().unwrap(),
            listener: Arc::from("external"),
            connection: 1,
            local_port: 9092,
        };
        Self { running, handlers: Handlers::new(Arc::new(ctx)), peer: Arc::new(peer), _dir: dir }
    }

    async fn reply<Q: Encodable>(&self, api: Api, version: i16, request: &Q) -> Reply {
        let mut body = BytesMut::new();
        request.encode(&mut body, version).unwrap();
        let incoming = Incoming { api, version, correlation_id: 1, client_id: None, body: body.freeze() };
        self.handlers.call(&self.peer, incoming).await
    }

    async fn ask<Q: Encodable, A: Decodable>(&self, api: Api, version: i16, request: &Q) -> A {
        let Reply::Answer(pieces) = self.reply(api, version, request).await else { panic!("no answer") };
        let mut whole = BytesMut::new();
        pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
        let mut whole = whole.freeze();
        let answer = A::decode(&mut whole, version).unwrap();
        assert!(whole.is_empty(), "{api} v{version}: {} bytes too many", whole.len());
        answer
    }

    async fn produce(&self, version: i16, request: &ProduceRequest) -> Vec<PartitionProduceResponse> {
        let answer: ProduceResponse = self.ask(Api::Produce, version, request).await;
        answer.responses.into_iter().flat_map(|topic| topic.partition_responses).collect()
    }

    /// Stores one batch and gives its first offset.
    async fn store(&self, index: i32, batch: Bytes) -> i64 {
        let answer = self.produce(9, &produce(-1, None, vec![("t", index, batch)])).await;
        assert_eq!(answer[0].error_code, 0, "{answer:?}");
        answer[0].base_offset
    }

    async fn fetch(&self, version: i16, request: &FetchRequest) -> Vec<PartitionData> {
        let answer: FetchResponse = self.ask(Api::Fetch, version, request).await;
        assert_eq!((answer.error_code, answer.session_id), (0, 0));
        answer.responses.into_iter().flat_map(|topic| topic.partitions).collect()
    }

    /// Offset, timestamp and error of the first partition of `t`.
    async fn list(&self, version: i16, level: i8, timestamp: i64) -> (i64, i64, i16) {
        let partition = ListOffsetsPartition::default().with_timestamp(timestamp).with_current_leader_epoch(-1);
        let topic = ListOffsetsTopic::default().with_name(name("t")).with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_isolation_level(if version >= 2 { level } else { 0 })
            .with_topics(vec![topic]);
        let answer: ListOffsetsResponse = self.ask(Api::ListOffsets, version, &request).await;
        let found = &answer.topics[0].partitions[0];
        (found.offset, found.timestamp, found.error_code)
    }

    /// A transaction that may write to the first partition of `t`.
    async fn begin(&self, id: &str) -> (TransactionalId, Producer) {
        let (id, broker) = (TransactionalId::from(id), &self.running.broker);
        let producer = broker.init_producer(Some(id.clone()), 60_000, None).await.unwrap();
        let part = broker.catalog().part_id("t", 0).unwrap();
        let parts = Addition::Parts(BTreeSet::from([part]));
        broker.add_to_txn(id.clone(), producer, parts).await.unwrap();
        (id, producer)
    }
}

fn name(topic: &'static str) -> TopicName {
    TopicName(StrBytes::from_static_str(topic))
}

fn batch(count: i32) -> Bytes {
    of(header(count))
}

fn of(header: Header) -> Bytes {
    let records =
        (0..header.count).map(|at| Entry { delta_ms: i64::from(at), value: Some(vec![b'x'; 100]), ..Entry::default() });
    let max_timestamp = header.base_timestamp + i64::from(header.count) - 1;
    Bytes::from(seal(&Header { max_timestamp, ..header }, &encode(&records.collect::<Vec<_>>())))
}

fn transactional(producer: Producer, base_sequence: i32) -> Bytes {
    let (producer_id, producer_epoch) = (producer.id, producer.epoch);
    of(Header { attributes: 1 << 4, producer_id, producer_epoch, base_sequence, ..fresh() })
}

/// One record of this moment, so that a marker behind it begins no new segment.
fn fresh() -> Header {
    Header { base_timestamp: Clock::system().now().wall_ms, ..header(1) }
}

fn produce(acks: i16, id: Option<&'static str>, batches: Vec<(&'static str, i32, Bytes)>) -> ProduceRequest {
    let topics = batches.into_iter().map(|(topic, index, batch)| {
        let partition = PartitionProduceData::default().with_index(index).with_records(Some(batch));
        TopicProduceData::default().with_name(name(topic)).with_partition_data(vec![partition])
    });
    ProduceRequest::default()
        .with_acks(acks)
        .with_timeout_ms(1000)
        .with_transactional_id(id.map(|id| TxnName(StrBytes::from_static_str(id))))
        .with_topic_data(topics.collect())
}

/// A fetch of partitions of `t` from these offsets that never waits.
fn fetch(from: &[(i32, i64)]) -> FetchRequest {
    let partitions = from.iter().map(|(index, offset)| {
        FetchPartition::default()
            .with_partition(*index)
            .with_fetch_offset(*offset)
            .with_current_leader_epoch(-1)
            .with_last_fetched_epoch(-1)
            .with_partition_max_bytes(1 << 20)
    });
    let topic = FetchTopic::default().with_topic(name("t")).with_partitions(partitions.collect());
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_bytes(1 << 20)
        .with_min_bytes(1)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

/// First offsets of the batches.
fn offsets(partition: &PartitionData) -> Vec<i64> {
    let mut records: &[u8] = partition.records.as_deref().unwrap();
    let mut found = Vec::new();
    while let Some(header) = Header::read(records) {
        found.push(header.base_offset);
        records = &records[header.size().unwrap()..];
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_produced_is_fetched_in_every_version() {
    let bench = Bench::new().await;
    let mut next = 0;
    for version in 3..=9 {
        for acks in [1, -1] {
            let request = produce(acks, None, vec![("t", 1, batch(2)), ("t", 0, batch(3))]);
            let answer = bench.produce(version, &request).await;
            let found = answer.iter().map(|part| (part.index, part.error_code, part.base_offset)).collect::<Vec<_>>();
            assert_eq!(found, [(1, 0, next * 2), (0, 0, next * 3)], "v{version}");
            next += 1;
        }
    }
    for version in 4..=12 {
        let mut request = fetch(&[(0, 4), (1, 0), (7, 0)]);
        request.session_epoch = if version >= 7 { -1 } else { request.session_epoch };
        let answer = bench.fetch(version, &request).await;
        assert_eq!(offsets(&answer[0]), (1..14).map(|at| at * 3).collect::<Vec<_>>(), "F-726 v{version}");
        assert_eq!(offsets(&answer[1]), (0..14).map(|at| at * 2).collect::<Vec<_>>(), "v{version}");
        assert_eq!((answer[0].high_watermark, answer[0].last_stable_offset), (42, 42), "T-511");
        assert_eq!(answer[0].aborted_transactions, None, "T-513");
        assert_eq!((answer[2].error_code, answer[2].high_watermark), (3, -1), "F-733");
    }
    bench.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn produce_refuses_as_kafka_does() {
    let bench = Bench::new().await;
    let someone = Producer { id: 77, epoch: 0 };
    let codes = |answer: Vec<PartitionProduceResponse>| answer.iter().map(|part| part.error_code).collect::<Vec<_>>();
    for (rule, request, expected) in [
        ("T-301", produce(-1, None, vec![("t", 0, batch(1)), ("t", 1, transactional(someone, 0))]), vec![53, 53]),
        ("T-304", produce(-1, None, vec![("t", 2, batch(1)), ("u", 0, batch(1)), ("t", 0, batch(1))]), vec![3, 3, 0]),
        ("T-308", produce(2, None, vec![("t", 0, batch(1))]), vec![21]),
        ("T-317", produce(-1, None, vec![("t", 0, batch(1)), ("t", 1, batch(1)), ("t", 0, batch(1))]), vec![42, 0, 42]),
        ("T-321", produce(-1, None, vec![("t", 0, Bytes::new())]), vec![87]),
        ("T-385", produce(-1, Some("x"), vec![("t", 0, transactional(someone, 0))]), vec![49]),
    ] {
        assert_eq!(codes(bench.produce(9, &request).await), expected, "{rule}");
    }
    let zero = |batch| produce(0, None, vec![("t", 0, batch)]);
    assert!(matches!(bench.reply(Api::Produce, 9, &zero(batch(1))).await, Reply::Nothing), "T-312");
    assert!(matches!(bench.reply(Api::Produce, 9, &zero(Bytes::new())).await, Reply::Close(_)), "T-312");
    bench.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn committed_readers_wait_for_the_end_of_a_transaction() {
    let bench = Bench::new().await;
    bench.store(0, of(fresh())).await;
    let (id, producer) = bench.begin("x").await;
    let request = produce(-1, Some("x"), vec![("t", 0, transactional(producer, 0))]);
    assert_eq!(bench.produce(9, &request).await[0].base_offset, 1);
    bench.store(0, of(fresh())).await;
    let committed = |from, max_wait| fetch(&[(0, from)]).with_isolation_level(1).with_max_wait_ms(max_wait);
    let answer = bench.fetch(12, &committed(0, 0)).await;
    assert_eq!(offsets(&answer[0]), [0], "T-510");
    assert_eq!((answer[0].high_watermark, answer[0].last_stable_offset), (3, 1), "T-511");
    let answer = bench.fetch(12, &committed(1, 0)).await;
    assert_eq!(answer[0].records.as_deref(), Some(&[][..]), "T-512");
    assert_eq!(answer[0].aborted_transactions, Some(Vec::new()), "T-515");
    assert_eq!(bench.list(8, 1, -1).await, (1, -1, 0), "T-531");
    assert_eq!(bench.list(8, 0, -1).await, (3, -1, 0), "T-520");
    // The marker wakes the reader, not the end of its patience.
    let waiting = committed(1, 600_000);
    let end = bench.running.broker.end_txn(id, producer, Outcome::Abort);
    let (answer, ended) = tokio::join!(bench.fetch(12, &waiting), end);
    ended.unwrap();
    assert_eq!(offsets(&answer[0]), [1, 2, 3], "T-516, T-504");
    let aborted = answer[0].aborted_transactions.as_ref().unwrap();
    let aborted = aborted.iter().map(|one| (*one.producer_id, one.first_offset)).collect::<Vec<_>>();
    assert_eq!(aborted, [(producer.id, 1)], "T-513");
    let answer = bench.fetch(12, &committed(0, 0).with_max_bytes(1)).await;
    assert_eq!((offsets(&answer[0]), answer[0].aborted_transactions.as_ref().unwrap().len()), (vec![0], 0), "C-06");
    bench.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_long_polls() {
    let bench = Bench::new().await;
    let size = i32::try_from(batch(1).len()).unwrap();
    for _ in 0..3 {
        bench.store(0, batch(1)).await;
        bench.store(1, batch(1)).await;
    }
    for (rule, max_bytes, partition_max, expected) in [
        ("F-721", 4 * size, 1 << 20, [3, 1]),
        ("F-723 the first batch comes whole", 1, 1 << 20, [1, 0]),
        ("F-723 and no later partition's", size + 1, size / 2, [1, 0]),
        ("F-723 partitions have limits of their own", 1 << 20, 2 * size + 1, [2, 2]),
        ("F-725", 0, 0, [1, 0]),
    ] {
        let mut request = fetch(&[(0, 0), (1, 0)]).with_max_bytes(max_bytes);
        request.topics[0].partitions.iter_mut().for_each(|part| part.partition_max_bytes = partition_max);
        let answer = bench.fetch(12, &request).await;
        assert_eq!([offsets(&answer[0]).len(), offsets(&answer[1]).len()], expected, "{rule}");
    }
    let free = bench.running.broker.reads().free_bytes();
    // Four batches are asked for; the fourth comes while the reader waits.
    let waiting = fetch(&[(0, 0)]).with_min_bytes(4 * size).with_max_wait_ms(600_000);
    let (answer, _) = tokio::join!(bench.fetch(12, &waiting), bench.store(0, batch(1)));
    assert_eq!(offsets(&answer[0]), [0, 1, 2, 3], "T-516");
    let answer = bench.fetch(12, &fetch(&[(0, 4)]).with_max_wait_ms(1)).await;
    assert_eq!((offsets(&answer[0]), answer[0].error_code), (vec![], 0), "T-512");
    assert_eq!(bench.running.broker.reads().free_bytes(), free, "memory comes back with the bytes");
    bench.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_epochs_and_sessions() {
    let bench = Bench::new().await;
    bench.store(0, batch(2)).await;
    let ours = bench.running.broker.identity().incarnation;
    for (rule, offset, leader_epoch, error_code) in [
        ("T-512", 3, -1, 1),
        ("F-732", -1, -1, 1),
        ("F-729", 0, ours, 0),
        ("F-729", 0, ours + 1, 75),
        ("F-729", 0, ours - 1, if ours == 0 { 0 } else { 74 }),
    ] {
        let mut request = fetch(&[(0, offset)]).with_max_wait_ms(600_000);
        request.topics[0].partitions[0].current_leader_epoch = leader_epoch;
        assert_eq!(bench.fetch(12, &request).await[0].error_code, error_code, "{rule}");
    }
    let session: FetchResponse = bench.ask(Api::Fetch, 12, &fetch(&[(0, 0)]).with_session_epoch(1)).await;
    assert_eq!((session.error_code, session.responses.len()), (70, 0), "F-715");
    let odd = bench.fetch(12, &fetch(&[(0, 0)]).with_isolation_level(2)).await;
    assert_eq!(odd[0].error_code, 42);
    let partition = OffsetForLeaderPartition::default().with_current_leader_epoch(-1);
    for (rule, asked, expected) in [("F-752", ours, (ours, 2)), ("F-752", ours + 1, (-1, -1))] {
        let topic = OffsetForLeaderTopic::default()
            .with_topic(name("t"))
            .with_partitions(vec![partition.clone().with_leader_epoch(asked)]);
        let request =
            OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic.clone()]);
        for version in 3..=4 {
            let answer: OffsetForLeaderEpochResponse = bench.ask(Api::OffsetForLeaderEpoch, version, &request).await;
            let found = &answer.topics[0].partitions[0];
            assert_eq!((found.error_code, (found.leader_epoch, found.end_offset)), (0, expected), "{rule}");
        }
    }
    bench.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_are_listed_by_time() {
    let bench = Bench::new().await;
    bench.store(0, batch(3)).await;
    bench.store(0, batch(2)).await;
    for (rule, version, timestamp, expected) in [
        ("T-520", 1, -1, (5, -1, 0)),
        ("T-521", 1, -2, (0, -1, 0)),
        ("T-522", 7, -3, (2, TIME + 2, 0)),
        ("T-527", 6, -3, (-1, -1, 35)),
        ("T-523", 8, -4, (0, -1, 0)),
        ("T-526", 4, TIME, (0, TIME, 0)),
        ("T-526", 4, TIME + 1, (1, TIME + 1, 0)),
        ("T-526", 4, TIME + 3, (-1, -1, 0)),
    ] {
        assert_eq!(bench.list(version, 0, timestamp).await, expected, "{rule} v{version}");
    }
    assert!(batch(1).len() > HEADER_BYTES);
    bench.running.stop().await.unwrap();
}
