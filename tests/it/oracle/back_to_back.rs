//! Transactions one right after the other, by a client that never asks twice (C-27, C-28).

use std::time::{Duration, Instant};

use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{FetchRequest, ProduceRequest};

use super::Scene;
use crate::raw::batch::Batch;
use crate::raw::data::{Fetched, Isolation, fetch_request};
use crate::raw::text;

const TOPIC: &str = "t";

/// One record to each of the partitions, in one request.
fn everywhere(id: &str, batch: &Batch, parts: i32) -> ProduceRequest {
    let records = bytes::Bytes::from(batch.bytes());
    let data =
        (0..parts).map(|part| PartitionProduceData::default().with_index(part).with_records(Some(records.clone())));
    let topic = TopicProduceData::default().with_name(text(TOPIC).into()).with_partition_data(data.collect());
    ProduceRequest::default()
        .with_transactional_id(Some(text(id).into()))
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic])
}

/// Every request of every transaction succeeds at its first try. How long each took.
fn check(parts: i32, transactions: i32) -> Duration {
    let scene = Scene::new();
    let mut client = scene.connect();
    assert_eq!(client.create_topic(TOPIC, parts), 0);
    let owner = client.owner("id");
    let all: Vec<(&str, i32)> = (0..parts).map(|part| (TOPIC, part)).collect();
    let began = now();
    for n in 0..transactions {
        assert_eq!(client.add_in(3, ("id", owner), &all), 0, "C-27, transaction {n}");
        let batch = Batch::transactional(owner, n, 1);
        let answer = client.call(9, &everywhere("id", &batch, parts));
        let codes = answer.responses[0].partition_responses.iter().map(|part| part.error_code);
        assert!(codes.clone().all(|code| code == 0), "C-27, transaction {n}: {:?}", codes.collect::<Vec<_>>());
        assert_eq!(client.end_txn("id", owner, true), 0, "C-27, transaction {n}");
    }
    let each = began.elapsed() / transactions.unsigned_abs();
    for part in 0..parts {
        let fetched = client.fetch(TOPIC, part, 0, Isolation::ReadCommitted);
        assert_eq!(fetched.last_stable, i64::from(2 * transactions), "C-27");
    }
    each
}

#[expect(clippy::disallowed_methods, reason = "what is measured is what a client sees")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn over_one_partition() {
    println!("each transaction over one partition: {:?}", check(1, 1_000));
}

#[test]
fn over_fifty_partitions() {
    println!("each transaction over fifty partitions: {:?}", check(50, 1_000));
}

/// How long after the answer to EndTxn a consumer at the tail has the records. Printed, not judged.
#[test]
fn the_consumer_at_the_tail() {
    const COMMITS: i32 = 200;
    let scene = Scene::new();
    let mut client = scene.connect();
    assert_eq!(client.create_topic(TOPIC, 1), 0);
    let owner = client.owner("id");
    let mut consumer = scene.connect();
    let mut after_us: Vec<i64> = Vec::new();
    for n in 0..COMMITS {
        assert_eq!(client.add_partitions("id", owner, &[(TOPIC, 0)]), [0]);
        assert_eq!(client.produce(TOPIC, 0, Some("id"), &Batch::transactional(owner, n, 1)).code, 0);
        let request = fetch_request(TOPIC, 0, i64::from(2 * n), Isolation::ReadCommitted);
        let sent = consumer.send(12, &request.with_max_wait_ms(20_000).with_min_bytes(1));
        let (received, answered) = std::thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let fetched = Fetched::of(&consumer.receive::<FetchRequest>(sent));
                (now(), fetched)
            });
            assert_eq!(client.end_txn("id", owner, true), 0);
            let answered = now();
            let (received, fetched) = receiving.join().unwrap();
            assert_eq!(fetched.shown(Isolation::ReadCommitted).len(), 1, "commit {n}");
            (received, answered)
        });
        let us = |duration: Duration| i64::try_from(duration.as_micros()).unwrap();
        let later = us(received.saturating_duration_since(answered));
        after_us.push(later - us(answered.saturating_duration_since(received)));
    }
    after_us.sort_unstable();
    let (median, worst) = (after_us[after_us.len() / 2], after_us[after_us.len() - 1]);
    println!("records after the answer to EndTxn, in microseconds: median {median}, worst {worst}");
}
