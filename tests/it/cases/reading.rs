//! What readers are given: at markers, inside batches, by time and by epoch.

use bytes::Buf;
use kafka_protocol::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use kafka_protocol::messages::{BrokerId, OffsetForLeaderEpochRequest};
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};

use crate::broker::TestBroker;
use crate::oracle::{ONE_SEGMENT, until};
use crate::process::librdkafka::{self, CALL};
use crate::raw::batch::{Batch, Codec, Pid};
use crate::raw::data::{EARLIEST, Isolation, LATEST, list_offsets_request};
use crate::raw::{Client, text};

const COMMITTED: Isolation = Isolation::ReadCommitted;
const ALL: Isolation = Isolation::ReadUncommitted;
/// ListOffsets: where the largest timestamp is.
const LARGEST_TIME: i64 = -3;

fn topic(configs: &[(&str, &str)]) -> (TestBroker, Client) {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic_with("t", 1, configs), 0);
    (broker, client)
}

/// A transaction of one record.
fn transaction(client: &mut Client, owner: Pid, sequence: i32, commit: bool) {
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, sequence, 1)).code, 0);
    client.end_txn_surely("id", owner, commit);
}

/// A consumer of librdkafka's on the one partition.
fn consumer(broker: &TestBroker, isolation: &str, from: i64) -> BaseConsumer {
    let consumer = librdkafka::consumer(&broker.address().to_string(), "nobody", isolation);
    let mut at = TopicPartitionList::new();
    at.add_partition_offset("t", 0, Offset::Offset(from)).unwrap();
    consumer.assign(&at).unwrap();
    consumer
}

/// Nobody hangs at a marker that is the last thing there is, of a segment or of the partition.
#[test]
fn c_46_the_last_offset_is_a_marker() {
    for configs in [&ONE_SEGMENT[..], &[("internal.segment.bytes", "100")]] {
        let (broker, mut client) = topic(configs);
        let owner = client.owner("id");
        for (n, commit) in (0..3).zip([true, false, true]) {
            transaction(&mut client, owner, n, commit);
            let end = i64::from(2 * n + 2);
            for isolation in [COMMITTED, ALL] {
                assert_eq!(client.list_offsets("t", 0, LATEST, isolation).1, end);
                let fetched = client.fetch("t", 0, end - 1, isolation);
                let batches = fetched.batches();
                let [marker] = batches.as_slice() else { panic!("{configs:?}: {batches:?}") };
                assert_eq!((marker.base_offset, marker.last_offset, marker.marker), (end - 1, end - 1, Some(commit)));
                assert_eq!(client.fetch("t", 0, end, isolation).batches(), [], "and that is the end");
            }
            let fetched = client.fetch("t", 0, end - 2, ALL);
            let offsets: Vec<_> =
                fetched.batches().iter().map(|batch| (batch.base_offset, batch.last_offset)).collect();
            assert_eq!(offsets[0], (end - 2, end - 2), "{configs:?}");
        }
        for (isolation, values) in [("read_committed", 2), ("read_uncommitted", 3)] {
            let consumer = consumer(&broker, isolation, 0);
            let (mut seen, mut at_the_end) = (0, false);
            until("the end, as the client sees it", || {
                match consumer.poll(CALL) {
                    Some(Ok(_)) => seen += 1,
                    Some(Err(KafkaError::PartitionEOF(_))) => at_the_end = true,
                    Some(Err(error)) => panic!("{error}"),
                    None => {}
                }
                at_the_end
            });
            assert_eq!(seen, values, "{isolation}");
        }
    }
}

/// A marker is not only for brokers: clients take it apart.
#[test]
fn c_47_the_bytes_of_a_marker() {
    let (broker, mut client) = topic(&ONE_SEGMENT);
    let owner = client.owner("id");
    let incarnation = broker.running().broker.identity().incarnation;
    for (offset, commit) in [(1, true), (3, false)] {
        transaction(&mut client, owner, (offset - 1) / 2, commit);
        let mut bytes = client.fetch("t", 0, i64::from(offset), ALL).records;
        assert_eq!((bytes.get_i64(), bytes.get_i32()), (i64::from(offset), 66), "base offset, length");
        assert_eq!((bytes.get_i32(), bytes.get_i8()), (incarnation, 2), "leader epoch, magic");
        bytes.advance(4);
        assert_eq!((bytes.get_i16(), bytes.get_i32()), (0x30, 0), "transactional, control, not compressed; last delta");
        assert_eq!(bytes.get_i64(), bytes.get_i64(), "first and largest timestamp");
        assert_eq!((bytes.get_i64(), bytes.get_i16()), (owner.id, owner.epoch));
        assert_eq!((bytes.get_i32(), bytes.get_i32()), (-1, 1), "base sequence, records");
        let kind = u8::from(commit);
        // Length, attributes, deltas; a key of 4 bytes: version 0, type; a value of 6: version 0, coordinator epoch.
        let mut record = vec![32, 0, 0, 0, 8, 0, 0, 0, kind, 12, 0, 0];
        record.extend(incarnation.to_be_bytes());
        record.push(0);
        assert_eq!(bytes.to_vec(), record, "commit {commit}");
    }
}

#[test]
fn c_77_an_offset_inside_a_batch() {
    for codec in [Codec::None, Codec::Lz4] {
        let (broker, mut client) = topic(&[("segment.ms", "9000000000000000"), ("index.interval.bytes", "1")]);
        for prefix in ["a", "b"] {
            let batch = Batch::plain(5).values(prefix, 5).compressed(codec);
            assert_eq!(client.produce("t", 0, None, &batch).code, 0);
        }
        for offset in 0..10 {
            let batches = client.fetch("t", 0, offset, COMMITTED).batches();
            let first = &batches[0];
            assert_eq!(first.base_offset, offset / 5 * 5, "the batch that holds {offset}");
            let prefix = if offset < 5 { "a" } else { "b" };
            let record = first.records.iter().find(|(at, _)| *at == offset);
            assert_eq!(record, Some(&(offset, format!("{prefix}-{}", offset % 5))));
        }
        let codes: Vec<_> = [10, 11, -1].iter().map(|offset| client.fetch("t", 0, *offset, ALL).code).collect();
        assert_eq!(codes, [0, 1, 1], "at the end, behind it, before the start");
        for offset in [0, 3, 4, 5, 9] {
            let consumer = consumer(&broker, "read_committed", offset);
            let mut got = None;
            until("a record", || {
                got = match consumer.poll(CALL) {
                    Some(Ok(message)) => Some((message.offset(), message.payload().unwrap().to_vec())),
                    Some(Err(KafkaError::PartitionEOF(_))) | None => None,
                    Some(Err(error)) => panic!("{error}"),
                };
                got.is_some()
            });
            let prefix = if offset < 5 { "a" } else { "b" };
            assert_eq!(got, Some((offset, format!("{prefix}-{}", offset % 5).into_bytes())));
        }
    }
}

#[test]
fn c_88_offsets_by_time() {
    let (_broker, mut client) = topic(&ONE_SEGMENT);
    for isolation in [COMMITTED, ALL] {
        for (asked, found) in [(20, -1), (0, -1), (LARGEST_TIME, -1), (LATEST, 0), (EARLIEST, 0)] {
            assert_eq!(client.list_offsets("t", 0, asked, isolation), (0, found, -1), "empty, {asked}");
        }
    }
    for time in [10, 20, 30] {
        let batch = Batch { timestamp: time, ..Batch::plain(1) };
        assert_eq!(client.produce("t", 0, None, &batch).code, 0);
    }
    for (asked, found) in [(20, (1, 20)), (21, (2, 30)), (31, (-1, -1)), (5, (0, 10)), (10, (0, 10)), (30, (2, 30))] {
        assert_eq!(client.list_offsets("t", 0, asked, ALL), (0, found.0, found.1), "{asked}");
    }
    assert_eq!(client.list_offsets("t", 0, LARGEST_TIME, ALL), (0, 2, 30));
    let again = Batch { timestamp: 30, ..Batch::plain(1) };
    assert_eq!(client.produce("t", 0, None, &again).code, 0);
    assert_eq!(client.list_offsets("t", 0, LARGEST_TIME, ALL), (0, 2, 30), "the first of equal ones");
    // Within one batch, and within an open transaction.
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    let open = Batch { timestamp: 40, ..Batch::transactional(owner, 0, 3) };
    assert_eq!(client.produce("t", 0, Some("id"), &open).base_offset, 4);
    assert_eq!(client.list_offsets("t", 0, 41, ALL), (0, 5, 41));
    assert_eq!(client.list_offsets("t", 0, 41, COMMITTED), (0, -1, -1), "not decided");
    assert_eq!(client.list_offsets("t", 0, LARGEST_TIME, ALL), (0, 6, 42));
    let ends = [COMMITTED, ALL].map(|isolation| client.list_offsets("t", 0, LATEST, isolation).1);
    assert_eq!(ends, [4, 7], "the last stable offset, the watermark");
    client.end_txn_surely("id", owner, true);
    assert_eq!(client.list_offsets("t", 0, 41, COMMITTED), (0, 5, 41));
}

/// The leader epoch of what is found is that of its batch: here, of the start that wrote it.
#[test]
fn c_88_and_their_epochs() {
    let mut broker = TestBroker::start();
    let mut epochs = Vec::new();
    for start in 0..3 {
        let mut client = broker.connect();
        if start == 0 {
            assert_eq!(client.create_topic_with("t", 1, &ONE_SEGMENT), 0);
        }
        epochs.push(broker.running().broker.identity().incarnation);
        let batch = Batch { timestamp: 10 * (start + 1), ..Batch::plain(1) };
        assert_eq!(client.produce("t", 0, None, &batch).code, 0);
        for (n, epoch) in (1..).zip(&epochs) {
            let answer = client.call(8, &list_offsets_request("t", 0, 10 * n, ALL));
            let found = &answer.topics[0].partitions[0];
            assert_eq!((found.offset, found.leader_epoch), (n - 1, *epoch), "start {start}, record {n}");
        }
        let last = client.call(8, &list_offsets_request("t", 0, LARGEST_TIME, ALL));
        assert_eq!(last.topics[0].partitions[0].leader_epoch, epochs[epochs.len() - 1]);
        drop(client);
        broker.crash();
        broker.start_again(|_| {});
    }
}

/// Code, epoch and end offset, for an epoch and what the client takes for the current one.
fn end_of(client: &mut Client, version: i16, epoch: i32, current: i32) -> (i16, i32, i64) {
    let part = OffsetForLeaderPartition::default().with_leader_epoch(epoch).with_current_leader_epoch(current);
    let topic = OffsetForLeaderTopic::default().with_topic(text("t").into()).with_partitions(vec![part]);
    let request = OffsetForLeaderEpochRequest::default().with_topics(vec![topic]);
    let request = if version >= 3 { request.with_replica_id(BrokerId(-1)) } else { request };
    let answer = client.call(version, &request);
    let end = &answer.topics[0].partitions[0];
    (end.error_code, end.leader_epoch, end.end_offset)
}

#[test]
fn c_89_epochs_that_are_not_there() {
    let mut broker = TestBroker::start();
    assert_eq!(broker.connect().create_topic_with("t", 1, &ONE_SEGMENT), 0);
    // Two starts that write, one before them and one between them that does not.
    let mut epochs = Vec::new();
    for writes in [false, true, false, true] {
        let epoch = broker.running().broker.identity().incarnation;
        if writes {
            assert_eq!(broker.connect().produce("t", 0, None, &Batch::plain(2)).code, 0);
        }
        epochs.push(epoch);
        if epochs.len() < 4 {
            broker.crash();
            broker.start_again(|_| {});
        }
    }
    let [below, first, idle, last] = epochs[..] else { panic!("{epochs:?}") };
    let mut client = broker.connect();
    for version in 2..=4 {
        for current in [-1, last] {
            assert_eq!(end_of(&mut client, version, last, current), (0, last, 4), "the current one");
            assert_eq!(end_of(&mut client, version, first, current), (0, first, 2), "an earlier one");
            assert_eq!(end_of(&mut client, version, idle, current), (0, first, 2), "one that wrote nothing");
            assert_eq!(end_of(&mut client, version, last + 1, current), (0, -1, -1), "one to come");
            assert_eq!(end_of(&mut client, version, i32::MAX, current), (0, -1, -1), "far from here");
            assert_eq!(
                end_of(&mut client, version, below, current),
                (0, below, 0),
                "below the first: where the log begins"
            );
            assert_eq!(end_of(&mut client, version, -1, current), (0, -1, -1), "none");
        }
        assert_eq!(end_of(&mut client, version, last, last - 1), (74, -1, -1), "an old view of who leads");
        assert_eq!(end_of(&mut client, version, last, last + 1), (75, -1, -1), "and one from the future");
    }
}
