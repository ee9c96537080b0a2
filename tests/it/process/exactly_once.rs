//! Consume, process, produce with librdkafka, a thousand transactions long, while the broker is stopped five times.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kafka_protocol::messages::ListTransactionsRequest;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, Producer as _};
use rdkafka::{Message, Offset, TopicPartitionList};

use super::child::{PATIENCE, Server, eventually, now};
use super::librdkafka::{self, CALL, Producer, Stop, abort, committed, flush, is_passing, settle};
use super::oracle::{Attempt, Oracle, Outcome};
use super::serve;
use crate::raw::Client;
use crate::raw::batch::Batch;
use crate::raw::data::{Isolation, LATEST};

/// Groups, and the processors behind them, each with a transactional id of its own.
const GROUPS: usize = 2;
/// Attempts of each.
const ATTEMPTS: usize = 500;
const STOPS: usize = 5;
/// Of the topic that is read. A transaction reads one record of each partition.
const SOURCES: i32 = 2;
/// Of the topic that is written.
const PARTITIONS: i32 = 6;
/// Each so many attempts one is aborted on purpose.
const ABORT_EVERY: usize = 3;
/// Each so many attempts another owner takes the id in the middle of a transaction.
const FENCE_EVERY: usize = 100;
/// How long all of it may take: everything here happens on conditions, and a machine may be slow.
const LIMIT: Duration = Duration::from_secs(180);

/// One processor.
struct Processor<'a> {
    bootstrap: &'a str,
    group: String,
    producer: Producer,
    consumer: BaseConsumer,
    /// The source's position: all its partitions are read evenly.
    position: i64,
    /// The last record read of each source partition, with its offset.
    read: Vec<(i64, String)>,
    oracle: Oracle,
}

/// How an attempt shall end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Commit,
    Abort,
    BeFenced,
}

impl<'a> Processor<'a> {
    fn new(bootstrap: &'a str, group: &str) -> Self {
        let consumer = librdkafka::consumer(bootstrap, group, "read_committed");
        let producer = owner(bootstrap, group);
        let mut from_start = TopicPartitionList::new();
        for source in 0..SOURCES {
            from_start.add_partition_offset("in", source, Offset::Offset(0)).unwrap();
        }
        consumer.assign(&from_start).unwrap();
        let (read, oracle) = (vec![(-1, String::new()); 2], Oracle::default());
        Self { bootstrap, group: group.to_owned(), producer, consumer, position: 0, read, oracle }
    }

    /// The record of each source partition that is due: the last ones again, if their transaction came to nothing.
    fn gather(&mut self) -> Vec<String> {
        let began = now();
        while self.read.iter().any(|(offset, _)| *offset < self.position) {
            match self.consumer.poll(CALL) {
                Some(Ok(message)) if self.read[source_of(&message)].0 + 1 == message.offset() => {
                    let value = String::from_utf8(message.payload().unwrap().to_vec()).unwrap();
                    self.read[source_of(&message)] = (message.offset(), value);
                }
                Some(Ok(message)) => panic!("{}: offset {} comes out of turn", self.group, message.offset()),
                Some(Err(error)) => assert!(
                    is_passing(&error) || matches!(error, KafkaError::PartitionEOF(_)),
                    "{}: reading the source: {error}",
                    self.group
                ),
                None => {}
            }
            assert!(began.elapsed() < PATIENCE, "{}: the source shows nothing at {}", self.group, self.position);
        }
        self.read.iter().map(|(_, value)| value.clone()).collect()
    }

    /// One attempt at the transaction that is due.
    fn attempt(&mut self, n: usize) {
        let plan = match n {
            _ if n % FENCE_EVERY == FENCE_EVERY - 1 => Plan::BeFenced,
            _ if n % ABORT_EVERY == 1 => Plan::Abort,
            _ => Plan::Commit,
        };
        let read = self.gather();
        let name = format!("{}/{n}", self.group);
        let first = i32::try_from(n).unwrap();
        let record = |k: i32| ((first + k) % PARTITIONS, format!("{name}/{k}/{}", read.join("+")));
        let records: Vec<_> = (0..4 + first % 3).map(record).collect();
        let mut attempt = Attempt { name, records, outcome: Outcome::Aborted, acknowledged: false };
        let ended = self.work(&mut attempt, plan);
        attempt.outcome = match (plan, ended) {
            (Plan::Commit, Ok(())) => Outcome::Committed,
            (Plan::Commit | Plan::Abort, Err(stop)) => self.start_over(stop),
            (Plan::BeFenced, Err(_)) => self.start_over_fenced(),
            (Plan::Abort, Ok(())) => Outcome::Aborted,
            (Plan::BeFenced, Ok(())) => panic!("{}: a commit under an epoch that is over (P4)", attempt.name),
        };
        if attempt.outcome == Outcome::Committed {
            self.position += 1;
        }
        assert!(plan == Plan::Commit || attempt.outcome == Outcome::Aborted, "{}: {plan:?}", attempt.name);
        self.oracle.note(attempt);
    }

    /// The transaction up to the end that is planned; an error leaves the outcome open.
    fn work(&self, attempt: &mut Attempt, plan: Plan) -> Result<(), Stop> {
        let failed = self.producer.context().failed();
        settle(|| self.producer.begin_transaction())?;
        for (partition, value) in &attempt.records {
            let record = BaseRecord::<(), String>::to("out").partition(*partition).payload(value);
            self.producer.send(record).map_err(|(error, _)| Stop::Abort(error))?;
        }
        let mut offsets = TopicPartitionList::new();
        for source in 0..SOURCES {
            offsets.add_partition_offset("in", source, Offset::Offset(self.position + 1)).unwrap();
        }
        let member = self.consumer.group_metadata().unwrap();
        settle(|| self.producer.send_offsets_to_transaction(&offsets, &member, CALL))?;
        if plan == Plan::BeFenced {
            drop(owner(self.bootstrap, &self.group));
        }
        flush(&self.producer);
        match plan {
            Plan::Commit | Plan::BeFenced => settle(|| self.producer.commit_transaction(CALL)),
            Plan::Abort => {
                attempt.acknowledged = self.producer.context().failed() == failed;
                abort(&self.producer)
            }
        }
    }

    /// Finds out what became of the transaction: the committed offsets say it, once nothing of the id is open.
    fn start_over(&mut self, stop: Stop) -> Outcome {
        let aborted = match &stop {
            Stop::Abort(_) => abort(&self.producer).is_ok(),
            Stop::StartOver(_) => false,
        };
        if !aborted {
            self.producer = owner(self.bootstrap, &self.group);
        }
        let found = committed(&self.consumer, "in", SOURCES);
        assert!(found.iter().all(|offset| offset == &found[0]), "{}: offsets of a half: {found:?} (P2)", self.group);
        match found[0] - self.position {
            0 => Outcome::Aborted,
            1 => Outcome::Committed,
            _ => panic!("{}: at {}, the committed offsets are {found:?}; {}", self.group, self.position, stop.error()),
        }
    }

    fn start_over_fenced(&mut self) -> Outcome {
        self.producer = owner(self.bootstrap, &self.group);
        let found = committed(&self.consumer, "in", SOURCES);
        assert!(found.iter().all(|offset| *offset == self.position), "{}: {found:?} (P4)", self.group);
        Outcome::Aborted
    }
}

fn source_of(message: &impl Message) -> usize {
    usize::try_from(message.partition()).unwrap()
}

/// A producer that owns the id of this group.
fn owner(bootstrap: &str, group: &str) -> Producer {
    let began = now();
    loop {
        let producer = librdkafka::producer(bootstrap, &format!("id-of-{group}"));
        match settle(|| producer.init_transactions(CALL)) {
            Ok(()) => return producer,
            Err(stop) => assert!(began.elapsed() < PATIENCE, "InitProducerId: {}", stop.error()),
        }
    }
}

fn prepare(client: &mut Client) {
    assert_eq!(client.create_topic("in", SOURCES), 0);
    assert_eq!(client.create_topic("out", PARTITIONS), 0);
    for source in 0..SOURCES {
        let batch = Batch::plain(0).values(&format!("s{source}"), ATTEMPTS);
        assert_eq!(client.produce("in", source, None, &batch).code, 0);
    }
}

/// T-513 and further: nothing holds a last stable offset back, and no id is open.
fn comes_to_rest(server: &Server) {
    let mut client = server.connect();
    eventually("a last stable offset at every watermark", || {
        let mut end = |part, isolation| client.list_offsets("out", part, LATEST, isolation).1;
        let rests = |part| end(part, Isolation::ReadCommitted) == end(part, Isolation::ReadUncommitted);
        (0..PARTITIONS).all(rests).then_some(())
    });
    let states = client.call(0, &ListTransactionsRequest::default()).transaction_states;
    assert_eq!(states.len(), GROUPS);
    for state in states {
        let (id, state) = (state.transactional_id.as_str(), state.transaction_state.as_str());
        assert!(matches!(state, "Empty" | "CompleteCommit" | "CompleteAbort"), "{id} is {state} (P6)");
    }
}

fn check(server: &Server, processors: &[Processor<'_>]) {
    comes_to_rest(server);
    let bootstrap = server.address().to_string();
    let read = librdkafka::read(&bootstrap, "out", PARTITIONS, "read_committed");
    let all = librdkafka::read(&bootstrap, "out", PARTITIONS, "read_uncommitted");
    for processor in processors {
        let oracle = &processor.oracle;
        oracle.check(&format!("{}/", processor.group), &read, &all);
        let position = vec![processor.position; 2];
        assert_eq!(committed(&processor.consumer, "in", SOURCES), position, "{}: P2", processor.group);
        let (done, undone) = (oracle.count(Outcome::Committed), oracle.count(Outcome::Aborted));
        assert_eq!(i64::try_from(done).unwrap(), processor.position);
        assert!(undone >= ATTEMPTS / ABORT_EVERY && done > ATTEMPTS / 2, "{done} committed, {undone} aborted");
        eprintln!("{}: {done} committed, {undone} aborted", processor.group);
    }
}

/// All of it, with the broker stopped in this way.
fn a_thousand_transactions(stop: impl Fn(&mut Server)) {
    let began = now();
    let mut server = serve(&["transactions.max_timeout_ms=60000"]);
    prepare(&mut server.connect());
    let bootstrap = server.address().to_string();
    let done = AtomicUsize::new(0);
    let mut processors: Vec<_> = std::thread::scope(|scope| {
        let processor = |n| {
            let (bootstrap, done) = (&bootstrap, &done);
            scope.spawn(move || {
                let mut processor = Processor::new(bootstrap, &format!("group{n}"));
                for n in 0..ATTEMPTS {
                    processor.attempt(n);
                    done.fetch_add(1, Ordering::Relaxed);
                }
                processor
            })
        };
        let threads: Vec<_> = (0..GROUPS).map(processor).collect();
        for n in 1..=STOPS {
            let due = GROUPS * ATTEMPTS * n / (STOPS + 1);
            while done.load(Ordering::Relaxed) < due && !threads.iter().any(std::thread::ScopedJoinHandle::is_finished)
            {
                assert!(began.elapsed() < LIMIT, "{} attempts", done.load(Ordering::Relaxed));
                std::thread::sleep(Duration::from_millis(1));
            }
            stop(&mut server);
            server.start_again();
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    check(&server, &processors);
    stop(&mut server);
    server.start_again();
    check(&server, &processors);
    eprintln!("{:?}", began.elapsed());
    for processor in &mut processors {
        processor.attempt(ATTEMPTS);
    }
}

/// C-60.
#[test]
fn exactly_once_through_five_kills() {
    a_thousand_transactions(Server::kill);
}

#[test]
fn exactly_once_through_five_stops() {
    a_thousand_transactions(|server| {
        assert!(server.started_clean(), "{}", server.log());
        let status = server.terminate();
        assert_eq!(status.code(), Some(0), "{}", server.log());
    });
}
