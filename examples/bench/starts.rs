//! From the start of the process to the first record it has taken.

use std::path::Path;
use std::time::{Duration, Instant};

use kafka_protocol::messages::CreateTopicsRequest;
use kafka_protocol::messages::create_topics_request::CreatableTopic;

use crate::child::{Server, now};
use crate::figures::{figure, heading, ms, resident_kib, spread};
use crate::raw::batch::Batch;
use crate::raw::data::produce_request;
use crate::raw::{Client, text};

/// How often each start is measured.
const TIMES: usize = 5;
/// After a start, so long until memory is looked at.
const REST: Duration = Duration::from_secs(2);
/// Partitions of each topic.
const A_TOPIC: i32 = 50;

/// Until a record is accepted; the topic is made on the way if it is not there.
fn first_produce(server: &Server, topic: &str, began: Instant) -> Duration {
    let mut client = server.connect();
    loop {
        if client.produce(topic, 0, None, &Batch::plain(1)).code == 0 {
            return began.elapsed();
        }
        client.metadata(Some(&[topic]), true);
    }
}

/// With an empty data directory.
pub(crate) fn empty(program: &Path) {
    heading("empty start");
    let mut times = Vec::new();
    for n in 0..TIMES {
        let began = now();
        let server = Server::of(program, &[]);
        times.push(first_produce(&server, "first", began));
        if n == 0 {
            std::thread::sleep(REST);
            figure("resident memory at rest", &format!("{} KiB", resident_kib(server.pid())));
        }
    }
    spread("spawn to first acknowledged produce", times);
}

/// With a data directory that holds so many partitions with a record in each.
pub(crate) fn with_partitions(program: &Path, count: i32) {
    heading(&format!("start with {count} partitions"));
    let mut server = Server::of(program, &[]);
    let mut client = server.connect();
    let began = now();
    let topic = |n: i32| {
        CreatableTopic::default()
            .with_name(text(&format!("topic-{n}")).into())
            .with_num_partitions(A_TOPIC)
            .with_replication_factor(-1)
    };
    let request = CreateTopicsRequest::default().with_topics((0..count / A_TOPIC).map(topic).collect());
    let answer = client.call(7, &request);
    assert!(answer.topics.iter().all(|topic| topic.error_code == 0), "CreateTopics");
    figure("CreateTopics of all of them", &ms(began.elapsed()));
    fill(&mut client, count);
    figure("the same with a record in each", &ms(began.elapsed()));
    drop(client);
    let began = now();
    server.terminate();
    figure("SIGTERM to the end", &ms(began.elapsed()));
    let mut clean = Vec::new();
    for _ in 0..TIMES {
        let began = now();
        server.start_again();
        clean.push(first_produce(&server, "topic-7", began));
        server.terminate();
    }
    spread("spawn to first acknowledged produce after SIGTERM", clean);
    server.start_again();
    let mut killed = Vec::new();
    for _ in 0..TIMES {
        fill(&mut server.connect(), count);
        server.kill();
        let began = now();
        server.start_again();
        killed.push(first_produce(&server, "topic-7", began));
    }
    spread("spawn to first acknowledged produce after SIGKILL", killed);
    std::thread::sleep(REST);
    figure("resident memory at rest", &format!("{} KiB", resident_kib(server.pid())));
}

/// One record to each partition, a few requests ahead of their answers.
fn fill(client: &mut Client, count: i32) {
    let mut sent = std::collections::VecDeque::new();
    for n in 0..count {
        let topic = format!("topic-{}", n / A_TOPIC);
        let request = produce_request(&topic, n % A_TOPIC, None, Batch::plain(1).bytes());
        sent.push_back(client.send(9, &request));
        if sent.len() == 16 || n == count - 1 {
            for sent in sent.drain(..) {
                let answer = client.receive::<kafka_protocol::messages::ProduceRequest>(sent);
                assert_eq!(answer.responses[0].partition_responses[0].error_code, 0, "Produce");
            }
        }
    }
}
