//! Transactions and ids that elsewhere were stuck, forgotten too early or never, or refused for the wrong reason.

use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ListTransactionsRequest, ProduceRequest};
use oncelog::clock::Clock;
use oncelog::config::Config;
use rdkafka::producer::{BaseRecord, Producer as _};

use super::rest::{at_rest, producers};
use crate::oracle::{FREE, HELD, Scene, until};
use crate::process::librdkafka::{self, CALL, Stop, abort, flush, settle};
use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::data::Isolation;
use crate::raw::txn::Member;
use crate::raw::{Client, text};

const COMMITTED: Isolation = Isolation::ReadCommitted;
const DAY_MS: u32 = 24 * 60 * 60 * 1_000;

/// On a clock moved by hand.
fn by_hand(change: impl FnOnce(&mut Config)) -> (Scene, Clock) {
    let clock = Clock::manual(1_700_000_000_000);
    let own = clock.clone();
    (Scene::on(change, move |parts| parts.clock = own), clock)
}

/// Transactions without anything in them, as an application begins them: librdkafka, and what it is told of a record
/// that is too large.
#[test]
fn c_21_empty_transactions() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let mut config = librdkafka::client(&scene.broker.address().to_string());
    config.set("transactional.id", "id").set("linger.ms", "0").set("message.max.bytes", "4000000");
    let producer: librdkafka::Producer = config.create_with_context(Default::default()).unwrap();
    let send = |value: &str| {
        let record = BaseRecord::<(), str>::to(FREE).partition(0).payload(value);
        producer.send(record).map_err(|(error, _)| error).unwrap();
        flush(&producer);
    };
    let commit = || settle(|| producer.commit_transaction(CALL)).unwrap();
    settle(|| producer.init_transactions(CALL)).unwrap();
    for committed in [true, false, true, false] {
        settle(|| producer.begin_transaction()).unwrap();
        if committed { commit() } else { abort(&producer).unwrap() }
    }
    settle(|| producer.begin_transaction()).unwrap();
    send("kept");
    commit();
    settle(|| producer.begin_transaction()).unwrap();
    abort(&producer).unwrap();
    settle(|| producer.begin_transaction()).unwrap();
    send(&"x".repeat(2_000_000));
    assert_eq!(producer.context().failed(), 1, "it is too large");
    abort(&producer).unwrap();
    // After a record that failed for good librdkafka may ask for one more abort, to begin its sequences anew.
    until("the next one", || {
        settle(|| producer.begin_transaction()).unwrap();
        send("next");
        let committed = settle(|| producer.commit_transaction(CALL));
        assert!(!matches!(committed, Err(Stop::StartOver(_))), "{committed:?}");
        committed.is_ok() || abort(&producer).is_err()
    });
    assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0", "kept", "next"]);
    drop(producer);
    at_rest(&mut scene, None);
}

/// The same on the wire: what was begun by a produce that failed is closed by the abort.
#[test]
fn c_21_an_end_without_anything_to_end() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let owner = client.owner("id");
    for version in 0..=3 {
        for commit in [true, false] {
            assert_eq!(client.end_in(version, ("id", owner), commit), 48, "nothing was begun, version {version}");
        }
    }
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 0)]), [0]);
    let mut large = Batch::transactional(owner, 0, 1);
    large.records[0].1 = Some(vec![b'x'; 2_000_000]);
    assert_eq!(client.produce(FREE, 0, Some("id"), &large).code, 10);
    client.end_txn_surely("id", owner, false);
    assert_eq!(
        (client.end_txn("id", owner, false), client.end_txn("id", owner, true)),
        (0, 48),
        "again, and the other"
    );
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 0)]), [0]);
    assert_eq!(client.produce(FREE, 0, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    client.end_txn_surely("id", owner, true);
    assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0", "value-0"]);
    at_rest(&mut scene, None);
}

/// Lets the partition forget producers that have been idle for a minute: at a turn, and not at every one.
fn forget_the_idle(client: &mut Client, clock: &Clock) {
    clock.advance(600_001);
    assert_eq!(client.produce(FREE, 0, None, &Batch::plain(1)).code, 0);
}

/// The producer of the first epoch is forgotten while the second one's transaction is open.
#[test]
fn c_22_the_first_epoch_is_forgotten_and_the_second_is_not() {
    let (mut scene, clock) = by_hand(|config| config.producers.id_expiration_ms = 60_000);
    let mut client = scene.connect();
    let (_, first) = client.init_for(4, Some("id"), 900_000, NOBODY);
    let begin = |client: &mut Client, owner, value: &str| {
        assert_eq!(client.add_partitions("id", owner, &[(FREE, 0)]), [0]);
        let batch = Batch::transactional(owner, 0, 1).values(value, 1);
        assert_eq!(client.produce(FREE, 0, Some("id"), &batch).code, 0);
    };
    begin(&mut client, first, "lost");
    let second = loop {
        match client.init_for(4, Some("id"), 900_000, NOBODY) {
            (0, owner) => break owner,
            (code, _) => assert_eq!(code, 51),
        }
    };
    begin(&mut client, second, "kept");
    forget_the_idle(&mut client, &clock);
    assert_eq!(client.produce(FREE, 0, Some("id"), &Batch::transactional(first, 1, 1)).code, 47);
    let more = Batch::transactional(second, 1, 1).values("more", 1);
    assert_eq!(client.produce(FREE, 0, Some("id"), &more).code, 0);
    client.end_txn_surely("id", second, true);
    assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0", "kept-0", "value-0", "more-0"]);
    // And when nobody is known there any more, the owner still is.
    forget_the_idle(&mut client, &clock);
    for (owner, code) in [(first, 47), (second, 48)] {
        assert_eq!(client.produce(FREE, 0, Some("id"), &Batch::transactional(owner, 2, 1)).code, code);
    }
    at_rest(&mut scene, Some(&clock));
}

/// An id outlives its idle time as long as its transaction is open; then it goes, and can be taken anew.
#[test]
fn c_36_an_id_with_an_open_transaction_is_not_forgotten() {
    let (mut scene, clock) = by_hand(|config| config.transactions.id_expiration_ms = 5_000);
    let mut client = scene.connect();
    let (_, owner) = client.init_for(4, Some("id"), 900_000, NOBODY);
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 0)]), [0]);
    let (_, idle) = client.init_for(4, Some("idle"), 900_000, NOBODY);
    clock.advance(120_000);
    until("the idle one is forgotten", || client.state_of("idle") == Err(105));
    assert_eq!(client.state_of("id").as_deref(), Ok("Ongoing"));
    assert_eq!(client.produce(FREE, 0, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    client.end_txn_surely("id", owner, true);
    clock.advance(120_000);
    until("and so is the other", || client.state_of("id") == Err(105));
    for (id, was) in [("id", owner), ("idle", idle), ("made up", owner)] {
        for version in 0..=3 {
            assert_eq!(client.add_in(version, (id, was), &[(FREE, 0)]), 49, "{id}");
            assert_eq!(client.end_in(version, (id, was), true), 49, "{id}");
        }
        let next = client.owner(id);
        assert_eq!(client.add_partitions(id, next, &[(FREE, 0)]), [0]);
        assert_eq!(client.produce(FREE, 0, Some(id), &Batch::transactional(next, 0, 1)).code, 0);
        client.end_txn_surely(id, next, true);
    }
    at_rest(&mut scene, Some(&clock));
}

/// Ids that are asked for once, as a sink does that looks for transactions it may have left: over eight connections.
/// They cost a flush for many, and are forgotten in time.
#[test]
fn c_37_c_54_a_crowd_of_ids_that_are_never_used() {
    const EACH: usize = 125;
    let (mut scene, clock) = by_hand(|config| config.transactions.id_expiration_ms = 5_000);
    let probe = |prefix: usize, count: usize| {
        let mut client = scene.connect();
        for n in 0..count {
            assert_eq!(client.init_in(4, Some(&format!("sink-{prefix}-{n}")), NOBODY).0, 0);
        }
    };
    std::thread::scope(|scope| {
        for prefix in 0..8 {
            scope.spawn(move || probe(prefix, EACH));
        }
    });
    // One whose client never hears that it was made.
    scene.connect().send(4, &crate::raw::txn::init_producer_request(Some("half"), 60_000, NOBODY));
    let mut client = scene.connect();
    let listed = |client: &mut Client| client.call(0, &ListTransactionsRequest::default()).transaction_states.len();
    until("all of them", || listed(&mut client) == 8 * EACH + 1);
    clock.advance(120_000);
    until("none of them", || listed(&mut client) == 0);
    scene.crash_and_start(|parts| parts.clock = clock.clone());
    client = scene.connect();
    assert_eq!(listed(&mut client), 0, "nor on disk");
    for n in 0..10 {
        let id = format!("sink-0-{n}");
        let owner = client.owner(&id);
        assert_eq!(owner.epoch, 0);
        assert_eq!(client.add_partitions(&id, owner, &[(FREE, 0)]), [0]);
        assert_eq!(client.produce(FREE, 0, Some(&id), &Batch::transactional(owner, 0, 1)).code, 0);
        assert_eq!(client.end_txn(&id, owner, true), 0);
    }
    at_rest(&mut scene, Some(&clock));
}

/// Producers of a single record: a partition forgets them in time, and with them what it writes beside its log.
#[test]
fn c_38_a_crowd_of_producers_of_one_record() {
    const CROWD: usize = 150;
    let (mut scene, clock) = by_hand(|config| config.producers.id_expiration_ms = 60_000);
    let mut client = scene.connect();
    for _ in 0..CROWD {
        let (code, producer) = client.init_producer(None, 1_000);
        assert_eq!((code, client.produce(FREE, 0, None, &Batch::idempotent(producer, 0, 1)).code), (0, 0));
    }
    let (_, open) = client.init_for(4, Some("open"), 900_000, NOBODY);
    assert_eq!(client.add_partitions("open", open, &[(FREE, 0)]), [0]);
    assert_eq!(client.produce(FREE, 0, Some("open"), &Batch::transactional(open, 0, 1)).code, 0);
    clock.advance(60_000);
    assert_eq!(producers(&mut client, (FREE, 0)).len(), CROWD + 1);
    forget_the_idle(&mut client, &clock);
    let left = producers(&mut client, (FREE, 0));
    assert_eq!(left.iter().map(|known| known.producer_id.0).collect::<Vec<_>>(), [open.id], "open, so it stays");
    client.end_txn_surely("open", open, true);
    at_rest(&mut scene, Some(&clock));
}

#[test]
fn c_39_a_partition_that_is_added_twice() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    for version in 0..=3 {
        let (id, part) = (format!("id-{version}"), i32::from(version));
        let owner = client.owner(&id);
        for parts in [&[(FREE, part)][..], &[(FREE, part)], &[(FREE, part), (HELD, part)], &[(HELD, part)]] {
            assert_eq!(client.add_in(version, (&id, owner), parts), 0, "version {version}: {parts:?}");
        }
        assert_eq!(client.produce(FREE, part, Some(&id), &Batch::transactional(owner, 0, 1)).code, 0);
        assert_eq!(client.add_in(version, (&id, owner), &[(FREE, part)]), 0, "version {version}");
        client.end_txn_surely(&id, owner, true);
        for (topic, batches) in [(FREE, 3), (HELD, 2)] {
            let found = client.fetch(topic, part, 0, COMMITTED).batches();
            let markers = found.iter().filter(|batch| batch.marker == Some(true)).count();
            assert_eq!((found.len(), markers), (batches, 1), "version {version}, {topic}");
        }
    }
    at_rest(&mut scene, None);
}

/// Idle offsets go, and groups without any; an offset that a transaction carries does not, nor does its group.
#[test]
fn c_44_an_offset_of_an_open_transaction_is_not_forgotten() {
    let (mut scene, clock) = by_hand(|config| config.transactions.max_timeout_ms = i64::from(20 * DAY_MS));
    let mut client = scene.connect();
    let nobody = Member::default();
    let timeout_ms = i32::try_from(20 * DAY_MS).unwrap();
    let (code, owner) = client.init_for(4, Some("id"), timeout_ms, NOBODY);
    assert_eq!(code, 0);
    for group in ["new", "old"] {
        assert_eq!(client.add_offsets("id", owner, group), 0);
    }
    for group in ["old", "idle"] {
        assert_eq!(client.offset_commit(group, &nobody, (FREE, 0, 3)), 0);
    }
    for group in ["new", "old"] {
        assert_eq!(client.txn_offset_commit(("id", owner), (group, &nobody), (FREE, 0, 8)), 0);
    }
    clock.advance(8 * DAY_MS);
    until("the idle one is forgotten", || client.offset_fetch("idle", (FREE, 0), true) == (0, -1));
    for (group, before) in [("new", -1), ("old", 3)] {
        assert_eq!(client.offset_fetch(group, (FREE, 0), true), (88, -1), "{group}");
        assert_eq!(client.offset_fetch(group, (FREE, 0), false), (0, before), "{group}");
    }
    client.end_txn_surely("id", owner, true);
    clock.advance(DAY_MS);
    scene.crash_and_start(|parts| parts.clock = clock.clone());
    client = scene.connect();
    for group in ["new", "old"] {
        assert_eq!(client.offset_fetch(group, (FREE, 0), true), (0, 8), "{group}");
    }
    at_rest(&mut scene, Some(&clock));
}

/// What is deleted takes along what a transaction carries for it; what is staged afterwards counts again.
#[test]
fn c_44_an_offset_deleted_under_a_transaction() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let (owner, nobody) = (client.owner("id"), Member::default());
    for (again, after) in [(None, -1), (Some(9), 9)] {
        assert_eq!(client.offset_commit("group", &nobody, (FREE, 0, 3)), 0);
        assert_eq!(client.add_offsets("id", owner, "group"), 0);
        let stage = |client: &mut Client, offset: i64| {
            client.txn_offset_commit(("id", owner), ("group", &nobody), (FREE, 0, offset))
        };
        assert_eq!(stage(&mut client, 8), 0);
        let deleted = (0, vec![(FREE.to_owned(), vec![(0, 0)])]);
        assert_eq!(client.offset_delete("group", &[(FREE, &[0])]), deleted);
        assert_eq!(client.offset_fetch("group", (FREE, 0), true), (0, -1), "nothing is pending");
        if let Some(offset) = again {
            assert_eq!(stage(&mut client, offset), 0);
            assert_eq!(client.offset_fetch("group", (FREE, 0), true), (88, -1));
        }
        client.end_txn_surely("id", owner, true);
        assert_eq!(client.offset_fetch("group", (FREE, 0), true), (0, after));
        scene.crash_and_start(|_| {});
        client = scene.connect();
        assert_eq!(client.offset_fetch("group", (FREE, 0), true), (0, after), "nor brought back");
    }
    at_rest(&mut scene, None);
}

/// A Produce of one batch to each of the partitions.
fn to_each(id: Option<&str>, batches: &[(i32, Batch)]) -> ProduceRequest {
    let data = batches.iter().map(|(part, batch)| {
        PartitionProduceData::default().with_index(*part).with_records(Some(batch.bytes().into()))
    });
    let topic = TopicProduceData::default().with_name(text(FREE).into()).with_partition_data(data.collect());
    ProduceRequest::default()
        .with_transactional_id(id.map(|id| text(id).into()))
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic])
}

/// Batches of two producers in one request, and transactional ones without an id.
#[test]
fn c_50_who_writes_in_whose_name() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let [mine, theirs] = ["mine", "theirs"].map(|id| {
        let owner = client.owner(id);
        assert_eq!(client.add_partitions(id, owner, &[(FREE, 0), (FREE, 1)]), [0, 0]);
        owner
    });
    let batch = |owner: Pid| Batch::transactional(owner, 0, 1).values("forged", 1);
    for version in 3..=9 {
        let mut codes = |id, batches: &[(i32, Batch)]| -> Vec<i16> {
            let answer = client.call(version, &to_each(id, batches));
            answer.responses[0].partition_responses.iter().map(|part| part.error_code).collect()
        };
        assert_eq!(codes(None, &[(0, batch(mine))]), [53], "version {version}");
        assert_eq!(codes(Some("mine"), &[(0, batch(theirs))]), [49], "version {version}");
        assert_eq!(codes(Some("mine"), &[(0, batch(mine)), (1, batch(theirs))]), [49, 49], "version {version}");
        assert_eq!(codes(Some("mine"), &[(0, batch(theirs)), (1, batch(mine))]), [49, 49], "version {version}");
    }
    for (id, owner) in [("mine", mine), ("theirs", theirs)] {
        client.end_txn_surely(id, owner, true);
    }
    for part in 0..2 {
        assert_eq!(client.read_all(FREE, part, COMMITTED), ["first-0"], "nothing is appended");
    }
    at_rest(&mut scene, None);
}
