//! Retention through the whole broker: what goes, what stays, and what clients see of it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use kafka_protocol::messages::DeleteRecordsRequest;
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use oncelog::clock::Clock;
use oncelog::runtime::partition::published::Availability;

use crate::broker::TestBroker;
use crate::raw::Client;
use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::data::{EARLIEST, Isolation, LATEST};
use crate::raw::text;

const COMMITTED: Isolation = Isolation::ReadCommitted;
const ALL: Isolation = Isolation::ReadUncommitted;
const OUT_OF_RANGE: i16 = 1;
/// When batches are dated, and hand-moved clocks begin.
pub(crate) const START_MS: i64 = 1_700_000_000_000;
/// The interval of looks that nobody set.
pub(crate) const LOOK_MS: u32 = 300_000;

/// Two or three batches a segment; a minute.
const MINUTE: [(&str, &str); 2] = [("internal.segment.bytes", "300"), ("retention.ms", "60000")];

pub(crate) fn by_hand() -> (TestBroker, Clock) {
    let clock = Clock::manual(START_MS);
    let own = clock.clone();
    (TestBroker::on(|_| {}, |parts| parts.clock = own), clock)
}

/// Asks until it is so, or fails.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::system();
    while !is_so() {
        assert!(clock.now().mono_ms < 20_000, "never so: {what}");
        std::thread::yield_now();
    }
}

pub(crate) fn earliest(client: &mut Client, topic: &str, part: i32) -> i64 {
    let (code, offset, _) = client.list_offsets(topic, part, EARLIEST, ALL);
    assert_eq!(code, 0);
    offset
}

fn latest(client: &mut Client, topic: &str, isolation: Isolation) -> i64 {
    client.list_offsets(topic, 0, LATEST, isolation).1
}

pub(crate) fn names(broker: &TestBroker, dir: &str, end: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(broker.config().data_dir.join(dir)) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(end));
    names.sort_unstable();
    names
}

fn metric(broker: &TestBroker, name: &str) -> f64 {
    let text = String::from_utf8(broker.running().broker.metrics().render().unwrap()).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Ten batches of one record of a producer without a transactional id.
fn fill(client: &mut Client, topic: &str) -> Pid {
    let (code, producer) = client.init_producer(None, 60_000);
    assert_eq!(code, 0);
    for sequence in 0..10 {
        let batch = Batch::idempotent(producer, sequence, 1);
        assert_eq!(client.produce(topic, 0, None, &batch).base_offset, i64::from(sequence));
    }
    producer
}

#[test]
fn old_records_go_and_an_open_transaction_holds_its_segments() {
    let (mut broker, clock) = by_hand();
    let mut client = broker.connect();
    assert_eq!(client.create_topic_with("t", 1, &MINUTE), 0);
    assert_eq!(client.create_topic_with("kept", 1, &[MINUTE[0], ("retention.ms", "-1")]), 0);
    assert_eq!(client.create_topic_with("compacted", 1, &[MINUTE[0], MINUTE[1], ("cleanup.policy", "compact")]), 0);
    fill(&mut client, "kept");
    for n in 0..10 {
        let mut batch = Batch::plain(1);
        batch.records[0].0 = Some(vec![n]);
        assert_eq!(client.produce("compacted", 0, None, &batch).code, 0);
    }
    let producer = fill(&mut client, "t");
    let (_, owner) = client.init_producer_as(Some("id"), 900_000, NOBODY);
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    let first = client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 1).values("kept", 1)).base_offset;
    for _ in 0..10 {
        assert_eq!(client.produce("t", 0, None, &Batch::plain(1)).code, 0);
    }
    clock.advance(60_000);
    assert_eq!(earliest(&mut client, "t", 0), 0);
    clock.advance(LOOK_MS);
    until("what is decided and old is gone", || earliest(&mut client, "t", 0) > 0);
    let log_start = earliest(&mut client, "t", 0);
    assert!(log_start <= first, "T-543 R: {log_start}, {first}");
    assert_eq!(client.fetch("t", 0, log_start - 1, ALL).code, OUT_OF_RANGE);
    assert_eq!(client.fetch("t", 0, 0, COMMITTED).code, OUT_OF_RANGE);
    let fetched = client.fetch("t", 0, log_start, ALL);
    assert_eq!((fetched.code, fetched.log_start, fetched.batches()[0].base_offset), (0, log_start, log_start));
    assert_eq!(client.list_offsets("t", 0, START_MS, ALL), (0, log_start, START_MS), "T-526");
    assert_eq!(latest(&mut client, "t", COMMITTED), first);
    client.end_txn_surely("id", owner, true);
    assert_eq!(client.read_all("t", 0, COMMITTED)[usize::try_from(first - log_start).unwrap()], "kept-0", "P2");
    clock.advance(LOOK_MS);
    until("it is decided and old", || earliest(&mut client, "t", 0) == latest(&mut client, "t", COMMITTED));
    until("files have gone", || names(&broker, "t-0", ".log").len() == 1 && names(&broker, "t-0", "index").is_empty());
    assert!(metric(&broker, "oncelog_log_segments_removed_total") > 5.0);
    assert!(metric(&broker, "oncelog_log_bytes_removed_total") > 1_000.0);
    for topic in ["kept", "compacted"] {
        assert_eq!(earliest(&mut client, topic, 0), 0, "A-331");
    }
    drop(client);
    check_over_starts(&mut broker, producer, owner);
}

/// C-64, C-73: producers are known when their records, or all but a marker, are gone.
fn check_over_starts(broker: &mut TestBroker, producer: Pid, owner: Pid) {
    let end = 22;
    for (markers, crash) in (0..).zip([true, false, true]) {
        if crash {
            broker.crash();
        } else {
            broker.stop();
        }
        broker.start_again(|parts| parts.clock = Clock::manual(START_MS + i64::from(3 * LOOK_MS)));
        let mut client = broker.connect();
        let bounds = (earliest(&mut client, "t", 0), latest(&mut client, "t", ALL));
        assert_eq!(bounds, (end, end + markers), "P1, crash: {crash}");
        for sequence in 5..10 {
            let again = client.produce("t", 0, None, &Batch::idempotent(producer, sequence, 1));
            assert_eq!((again.code, again.base_offset, again.log_start), (0, i64::from(sequence), end), "C-64");
        }
        assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
        assert_eq!(client.end_txn("id", owner, false), 0, "C-73: and a marker is written (T-405)");
    }
    let mut client = broker.connect();
    let end = latest(&mut client, "t", ALL);
    let next = client.produce("t", 0, None, &Batch::idempotent(producer, 10, 1));
    assert_eq!((next.code, next.base_offset), (0, end), "C-64: and then it goes on");
    assert!(!broker.is_broken());
}

#[test]
fn idle_partitions_are_not_opened_to_look_at_them() {
    let (mut broker, _) = by_hand();
    let mut client = broker.connect();
    assert_eq!(client.create_topic_with("t", 20, &MINUTE), 0);
    for part in 0..10 {
        assert_eq!(client.produce("t", part, None, &Batch::plain(1)).code, 0);
    }
    drop(client);
    broker.stop();
    let clock = Clock::manual(START_MS);
    let own = clock.clone();
    broker.start_again(|parts| parts.clock = own);
    let open = |broker: &TestBroker| {
        let all = broker.running().broker.router().partitions.all();
        all.iter().filter(|(_, slot)| slot.shared.published().availability == Availability::Open).count()
    };
    // One partition is in use, and tells when a look is over.
    let mut client = broker.connect();
    assert_eq!(client.create_topic_with("used", 1, &[("retention.ms", "1000")]), 0);
    assert_eq!(client.produce("used", 0, None, &Batch::plain(1)).code, 0);
    clock.set_wall(START_MS + 30_000 - i64::from(LOOK_MS));
    clock.advance(LOOK_MS);
    until("one look", || earliest(&mut client, "used", 0) == 1);
    assert_eq!(open(&broker), 1, "nothing has expired there");
    clock.advance(LOOK_MS);
    until("the next look", || open(&broker) == 11);
    for part in 0..20 {
        let end = i64::from(part < 10);
        until("what has expired is gone", || earliest(&mut client, "t", part) == end);
        assert_eq!(names(&broker, &format!("t-{part}"), ".log"), [format!("{end:020}.log")]);
    }
}

#[test]
fn a_client_may_say_where_a_log_starts() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic_with("t", 1, &MINUTE[..1]), 0);
    let producer = fill(&mut client, "t");
    for (version, offset, expected) in
        [(0, 11, (OUT_OF_RANGE, -1)), (1, -5, (OUT_OF_RANGE, -1)), (2, 4, (0, 4)), (0, 4, (0, 4)), (1, 2, (0, 4))]
    {
        assert_eq!(client.delete_records(version, ("t", 0), offset), expected, "C-90, T-540: {offset}, v{version}");
    }
    assert_eq!(earliest(&mut client, "t", 0), 4);
    assert_eq!(client.fetch("t", 0, 3, ALL).code, OUT_OF_RANGE);
    assert_eq!(client.delete_records(2, ("t", 0), -1), (0, 10), "T-540");
    assert!(client.read_all("t", 0, ALL).is_empty());
    drop(client);
    broker.crash();
    broker.start_again(|_| {});
    let mut client = broker.connect();
    assert_eq!((earliest(&mut client, "t", 0), latest(&mut client, "t", ALL)), (10, 10), "P1");
    let again = client.produce("t", 0, None, &Batch::idempotent(producer, 7, 1));
    assert_eq!((again.code, again.base_offset), (0, 7), "C-64");
    assert_eq!(client.produce("t", 0, None, &Batch::idempotent(producer, 10, 1)).base_offset, 10, "C-64");
    assert_eq!(client.delete_records(2, ("t", 0), 2), (0, 10));
}

/// M-246: one that is refused holds up no other.
#[test]
fn not_every_log_may_be_cut() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for (topic, policy) in [("t", "delete"), ("both", "compact,delete"), ("compacted", "compact")] {
        assert_eq!(client.create_topic_with(topic, 1, &[("cleanup.policy", policy)]), 0);
        let mut batch = Batch::plain(3);
        batch.records.iter_mut().for_each(|record| record.0 = Some(vec![1]));
        assert_eq!(client.produce(topic, 0, None, &batch).code, 0);
    }
    let asked = [("t", 0), ("compacted", 0), ("none", 0), ("t", 1), ("__consumer_offsets", 0), ("both", 0)];
    let topic = |(name, index): &(&str, i32)| {
        let partition = DeleteRecordsPartition::default().with_partition_index(*index).with_offset(1);
        DeleteRecordsTopic::default().with_name(text(name).into()).with_partitions(vec![partition])
    };
    let request = DeleteRecordsRequest::default().with_topics(asked.iter().map(topic).collect());
    let answer = client.call(2, &request);
    let found = answer.topics.iter().flat_map(|topic| {
        let name = topic.name.as_str();
        topic.partitions.iter().map(move |at| (name, at.partition_index, at.error_code, at.low_watermark))
    });
    let expected = [
        ("__consumer_offsets", 0, 17, -1),
        ("both", 0, 0, 1),
        ("compacted", 0, 44, -1),
        ("none", 0, 3, -1),
        ("t", 0, 0, 1),
        ("t", 1, 3, -1),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected, "C-90, M-246, T-540");
    let read = client.fetch("t", 0, 1, ALL);
    assert_eq!((read.code, read.log_start, read.batches()[0].base_offset), (0, 1, 0), "F-726: the batch comes whole");
}

/// C-90, T-541: the transaction stays open, readers stand at the log start, and it commits.
#[test]
fn a_log_may_be_cut_into_an_open_transaction() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    let batch = |sequence| Batch::transactional(owner, sequence, 2).values("kept", 2);
    assert_eq!(client.produce("t", 0, Some("id"), &batch(0)).code, 0);
    assert_eq!(client.produce("t", 0, Some("id"), &batch(2)).code, 0);
    assert_eq!(client.delete_records(2, ("t", 0), 3), (0, 3), "T-540");
    assert_eq!(latest(&mut client, "t", COMMITTED), 3, "T-541: never below the log start");
    let fetched = client.fetch("t", 0, 3, COMMITTED);
    assert_eq!((fetched.code, fetched.last_stable, fetched.log_start, fetched.records.len()), (0, 3, 3, 0), "T-541");
    client.end_txn_surely("id", owner, true);
    assert_eq!(client.read_from(("t", 0), 3, COMMITTED), [(3, "kept-1".to_owned())]);
    drop(client);
    broker.crash();
    broker.start_again(|_| {});
    let mut client = broker.connect();
    assert_eq!(client.read_from(("t", 0), 3, COMMITTED), [(3, "kept-1".to_owned())]);
    assert_eq!(client.produce("t", 0, None, &Batch::plain(1)).base_offset, 5);
}

/// Readers meet segments that go under their hands. What they are given is right, or they are told that it is gone.
#[test]
fn readers_are_never_shown_an_aborted_record_of_a_segment_that_goes() {
    let broker = TestBroker::with(|config| config.topics.retention_check_interval_ms = 3);
    let mut client = broker.connect();
    let settings = [("internal.segment.bytes", "400"), ("retention.ms", "-1"), ("retention.bytes", "600")];
    assert_eq!(client.create_topic_with("t", 1, &settings), 0);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| read_until(&broker, &over))).collect();
        for round in 0..150 {
            let owner = client.owner("id");
            assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
            let (prefix, commit) = if round % 2 == 0 { ("kept", true) } else { ("dropped", false) };
            let batch = Batch::transactional(owner, 0, 2).values(prefix, 2);
            assert_eq!(client.produce("t", 0, Some("id"), &batch).code, 0);
            client.end_txn_surely("id", owner, commit);
        }
        over.store(true, Ordering::Release);
        let shown: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        assert!(shown > 0, "readers saw nothing at all");
    });
    assert!(earliest(&mut client, "t", 0) > 100, "T-543: {}", earliest(&mut client, "t", 0));
    assert!(!broker.is_broken());
}

fn read_until(broker: &TestBroker, over: &AtomicBool) -> usize {
    let (mut client, mut shown, mut offset) = (broker.connect(), 0, 0);
    while !over.load(Ordering::Acquire) {
        let fetched = client.fetch("t", 0, offset, COMMITTED);
        if fetched.code == OUT_OF_RANGE {
            offset = earliest(&mut client, "t", 0);
            continue;
        }
        assert_eq!(fetched.code, 0);
        let batches = fetched.batches();
        let records = fetched.shown(COMMITTED);
        assert!(records.iter().all(|(_, value)| value.starts_with("kept")), "P3: {records:?}");
        assert!(batches.first().is_none_or(|batch| batch.base_offset <= offset), "nothing is left out at {offset}");
        shown += records.len();
        // From the front again at the end: old segments are the ones that go.
        offset = batches.last().map_or_else(|| earliest(&mut client, "t", 0), |batch| batch.last_offset + 1);
    }
    shown
}

#[test]
fn topics_are_deleted_while_their_segments_go() {
    let mut broker = TestBroker::with(|config| config.topics.retention_check_interval_ms = 1);
    let mut client = broker.connect();
    let settings = [("internal.segment.bytes", "100"), ("retention.bytes", "0")];
    for _ in 0..25 {
        assert_eq!(client.create_topic_with("t", 3, &settings), 0);
        for part in 0..3 {
            for _ in 0..5 {
                assert_eq!(client.produce("t", part, None, &Batch::plain(1)).code, 0, "C-76");
            }
        }
        assert_eq!(client.delete_topic("t"), 0);
    }
    drop(client);
    broker.stop();
    broker.start_again(|_| {});
    assert!(!broker.is_broken());
    let left: Vec<_> =
        std::fs::read_dir(&broker.config().data_dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!left.iter().any(|path| path.is_dir() && Path::new(path) != broker.config().data_dir), "C-76: {left:?}");
}
