//! What comes late: ends, records and owners of transactions that are over.

use oncelog::clock::Clock;
use rdkafka::producer::{BaseRecord, Producer as _};

use super::rest::at_rest;
use crate::oracle::{FREE, HELD, Scene, until};
use crate::process::librdkafka::{self, CALL, Stop, flush, settle};
use crate::raw::Client;
use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::data::{Isolation, LATEST};
use crate::raw::txn::Member;

const COMMITTED: Isolation = Isolation::ReadCommitted;
const ALL: Isolation = Isolation::ReadUncommitted;

/// A transaction of one record in each of two partitions.
fn write(client: &mut Client, (id, owner): (&str, Pid), sequence: i32, value: &str) {
    assert_eq!(client.add_partitions(id, owner, &[(FREE, 0), (FREE, 1)]), [0, 0]);
    for part in 0..2 {
        let batch = Batch::transactional(owner, sequence, 1).values(value, 1);
        assert_eq!(client.produce(FREE, part, Some(id), &batch).code, 0, "{value}");
    }
}

/// The markers of a partition: whose, and whether they commit.
fn markers(client: &mut Client, (topic, part): (&str, i32)) -> Vec<(Pid, bool)> {
    let batches = client.fetch(topic, part, 0, ALL).batches();
    batches.iter().filter_map(|batch| Some((batch.producer, batch.marker?))).collect()
}

/// An EndTxn that was given up, and comes when another owner has begun or when nothing is open, ends nothing.
#[test]
fn c_01_a_late_end_ends_nothing_of_another_owner() {
    let mut scene = Scene::new();
    let (mut client, mut late) = (scene.connect(), scene.connect());
    for commit in [true, false] {
        let owner = client.owner("id");
        write(&mut client, ("id", owner), 0, "a");
        client.end_txn_surely("id", owner, commit);
        assert_eq!(late.end_txn("id", owner, commit), 0, "it comes again, and nothing is open");
        assert_eq!(late.end_txn("id", owner, !commit), 48);
        let before = client.read_all(FREE, 0, COMMITTED);
        let next = client.owner("id");
        write(&mut client, ("id", next), 0, "b");
        for version in 0..=3 {
            let fenced = if version < 2 { 47 } else { 90 };
            assert_eq!(late.end_in(version, ("id", owner), commit), fenced, "version {version}");
        }
        assert_eq!(client.state_of("id").as_deref(), Ok("Ongoing"));
        assert_eq!(client.read_all(FREE, 0, COMMITTED), before, "it is not decided");
        client.end_txn_surely("id", next, commit);
        assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0", "a-0", "b-0"], "commit {commit}");
    }
    at_rest(&mut scene, None);
}

/// Of the same owner the classic protocol cannot tell one transaction's end from the next one's: neither names it. What
/// holds then is that the whole transaction ends one way, and that its producer is told so if that was not its own.
#[test]
fn c_01_a_late_end_within_one_epoch_ends_the_next_transaction_as_a_whole() {
    let mut scene = Scene::new();
    let (mut client, mut late) = (scene.connect(), scene.connect());
    let mut shown = vec!["first-0".to_owned()];
    for (n, (held, own)) in (0..).zip([(true, true), (true, false), (false, true), (false, false)]) {
        let (id, owner) = ("id", client.owner("id"));
        write(&mut client, (id, owner), 0, &format!("a{n}"));
        client.end_txn_surely(id, owner, held);
        write(&mut client, (id, owner), 1, &format!("b{n}"));
        assert_eq!(late.end_txn(id, owner, held), 0, "taken for the end of what is open");
        assert_eq!(client.produce(FREE, 0, Some(id), &Batch::transactional(owner, 2, 1)).code, 48, "it is told");
        assert_eq!(client.end_txn(id, owner, own), if held == own { 0 } else { 48 }, "and told again");
        shown.extend(["a", "b"].into_iter().filter(|_| held).map(|prefix| format!("{prefix}{n}-0")));
        for part in 0..2 {
            assert_eq!(client.read_all(FREE, part, COMMITTED), shown, "P2, partition {part}");
        }
    }
    at_rest(&mut scene, None);
}

/// How a transaction ended whose records come late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    TimedOut,
    Committed,
    Aborted,
    Replaced,
}

#[test]
fn c_11_a_late_produce_opens_nothing() {
    let (mut scene, clock) = Scene::by_hand();
    let mut client = scene.connect();
    for (part, over) in (0..).zip([Over::TimedOut, Over::Committed, Over::Aborted, Over::Replaced]) {
        let id = format!("{over:?}");
        let owner = client.owner(&id);
        assert_eq!(client.add_partitions(&id, owner, &[(FREE, part), (HELD, part)]), [0, 0]);
        assert_eq!(client.produce(FREE, part, Some(&id), &Batch::transactional(owner, 0, 1)).code, 0);
        match over {
            Over::TimedOut => {
                clock.advance(60_001);
                until("its abort", || client.state_of(&id).as_deref() == Ok("CompleteAbort"));
            }
            Over::Committed | Over::Aborted => client.end_txn_surely(&id, owner, over == Over::Committed),
            Over::Replaced => drop(client.owner(&id)),
        }
        let code = if matches!(over, Over::TimedOut | Over::Replaced) { 47 } else { 48 };
        // The partition knows the producer, was in the transaction without a record of it, was never in it.
        let other = (part + 1) % 4;
        for (topic, part, sequence) in [(FREE, part, 1), (HELD, part, 0), (HELD, other, 0)] {
            let end = client.list_offsets(topic, part, LATEST, ALL).1;
            for version in 3..=9 {
                let late = Batch::transactional(owner, sequence, 1).values("late", 1);
                let said = client.produce_in(version, (topic, part), Some(&id), &late);
                assert_eq!(said.code, code, "{over:?}, version {version}, {topic}-{part}");
            }
            assert_eq!(client.list_offsets(topic, part, LATEST, ALL).1, end, "{over:?}: nothing is appended");
            assert_eq!(client.list_offsets(topic, part, LATEST, COMMITTED).1, end, "{over:?}: nothing is open");
        }
    }
    at_rest(&mut scene, Some(&clock));
}

/// A scene whose clock begins where the machine's stands, for clients that date their records by that.
fn by_hand_from_now() -> (Scene, Clock) {
    let clock = Clock::manual(Clock::system().now().wall_ms);
    let own = clock.clone();
    (Scene::on(|_| {}, move |parts| parts.clock = own), clock)
}

/// librdkafka's producer, which nobody told that its transaction has timed out.
#[test]
fn c_12_who_timed_out_writes_no_more() {
    let (mut scene, clock) = by_hand_from_now();
    let mut client = scene.connect();
    let producer = librdkafka::producer(&scene.broker.address().to_string(), "id");
    settle(|| producer.init_transactions(CALL)).unwrap();
    settle(|| producer.begin_transaction()).unwrap();
    let send = |value: &'static str| {
        let record = BaseRecord::<(), str>::to(FREE).partition(0).payload(value);
        producer.send(record).map_err(|(error, _)| error)
    };
    send("in time").unwrap();
    flush(&producer);
    clock.advance(60_001);
    until("the broker's abort", || client.state_of("id").as_deref() == Ok("CompleteAbort"));
    let (sent, committed) = (send("late"), settle(|| producer.commit_transaction(CALL)));
    assert!(matches!(committed, Err(Stop::StartOver(_))), "{sent:?}, {committed:?}");
    assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0"]);
    assert_eq!(client.read_all(FREE, 0, ALL), ["first-0", "in time"]);
    drop(producer);
    at_rest(&mut scene, Some(&clock));
}

/// A process dies in its transaction, the next one takes its id. No time passes: it does not wait for the timeout.
#[test]
fn c_13_who_comes_next_ends_what_is_open_once() {
    let (mut scene, clock) = by_hand_from_now();
    let mut client = scene.connect();
    let bootstrap = scene.broker.address().to_string();
    let begin = |value: &'static str| {
        let producer = librdkafka::producer(&bootstrap, "id");
        settle(|| producer.init_transactions(CALL)).unwrap();
        settle(|| producer.begin_transaction()).unwrap();
        producer.send(BaseRecord::<(), str>::to(FREE).partition(0).payload(value)).unwrap();
        flush(&producer);
        producer
    };
    drop(begin("x"));
    let was = client.who("id");
    let second = begin("y");
    let owner = client.who("id");
    assert_eq!(owner, Pid { epoch: was.epoch + 2, ..was }, "T-140");
    settle(|| second.commit_transaction(CALL)).unwrap();
    assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0", "y"]);
    let expected = [(Pid { epoch: was.epoch + 1, ..was }, false), (owner, true)];
    assert_eq!(markers(&mut client, (FREE, 0)), expected, "one abort, one commit");
    drop(second);
    at_rest(&mut scene, Some(&clock));
}

/// Consume, process, produce in a tight loop whose markers are slow: the next transaction waits, and is never mistaken for
/// the last one.
#[test]
fn c_15_the_next_transaction_begins_when_the_last_one_has_ended() {
    let mut scene = Scene::new();
    let [mut client, mut other] = [scene.connect(), scene.connect()];
    let (owner, nobody) = (client.owner("id"), Member::default());
    for (n, done) in (0..12).zip(1_i64..) {
        assert_eq!(client.add_partitions("id", owner, &[(HELD, 0)]), [0]);
        assert_eq!(client.add_offsets("id", owner, "group"), 0);
        assert_eq!(client.produce(HELD, 0, Some("id"), &Batch::transactional(owner, n, 1)).code, 0);
        assert_eq!(client.txn_offset_commit(("id", owner), ("group", &nobody), (FREE, 0, done)), 0);
        scene.hold();
        let ending = client.send_end("id", owner, true);
        until("the decision", || other.state_of("id").as_deref() == Ok("PrepareCommit"));
        let early = Batch::transactional(owner, n + 1, 1);
        assert_eq!(other.produce(HELD, 0, Some("id"), &early).code, 19, "transaction {n}");
        if n == 0 {
            assert_eq!(other.add_offsets("id", owner, "group"), 51);
            assert_eq!(other.add_partitions("id", owner, &[(HELD, 0)]), [51]);
            assert_eq!(other.end_txn("id", owner, true), 51, "it is not an empty transaction that commits");
            assert_eq!(other.end_txn("id", owner, false), 51);
        }
        scene.release();
        match client.received_end(ending) {
            0 => {}
            51 => client.end_txn_surely("id", owner, true),
            code => panic!("EndTxn: {code}"),
        }
        assert_eq!(client.offset_fetch("group", (FREE, 0), true), (0, done));
        assert_eq!(client.read_all(HELD, 0, COMMITTED).len(), usize::try_from(done + 1).unwrap(), "P2");
    }
    at_rest(&mut scene, None);
}

#[test]
fn c_16_an_end_whose_answer_was_lost_is_asked_for_again() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let mut expected = Vec::new();
    for (n, commit) in (0..10).zip([true, false].into_iter().cycle()) {
        let owner = client.owner("id");
        write(&mut client, ("id", owner), 0, &format!("txn{n}"));
        // The connection goes before the answer can be read.
        scene.connect().send_end("id", owner, commit);
        until("the outcome", || match scene.connect().end_txn("id", owner, commit) {
            0 => true,
            51 => false,
            code => panic!("EndTxn: {code}"),
        });
        assert_eq!(client.end_txn("id", owner, !commit), 48, "the other decision");
        expected.push((owner, commit));
        assert_eq!(markers(&mut client, (FREE, 0)), expected, "one marker, transaction {n}");
        assert_eq!(markers(&mut client, (FREE, 1)), expected, "one marker, transaction {n}");
    }
    at_rest(&mut scene, None);
}

/// A pair for InitProducerId whose answer was lost, and two new instances of which the later one wins.
#[test]
fn c_34_an_owner_asked_for_twice() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let first = client.owner("id");
    let lost = |expected: Pid| {
        let mut gone = scene.connect();
        gone.send(4, &crate::raw::txn::init_producer_request(Some("id"), 60_000, expected));
    };
    lost(first);
    let second = Pid { epoch: 1, ..first };
    assert_eq!(client.init_in(4, Some("id"), first), (0, second));
    assert_eq!(client.init_in(3, Some("id"), first), (0, second), "and once more");
    let (_, early) = client.init_in(4, Some("id"), NOBODY);
    let (_, later) = client.init_in(4, Some("id"), NOBODY);
    assert_eq!((early.epoch, later.epoch), (2, 3));
    for (version, fenced) in [(1, 47), (2, 90)] {
        assert_eq!(client.add_in(version, ("id", early), &[(FREE, 0)]), fenced);
    }
    write(&mut client, ("id", later), 0, "later");
    client.end_txn_surely("id", later, true);
    assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0", "later-0"]);
    at_rest(&mut scene, None);
}

/// librdkafka aborts what the broker has aborted already. It is told that it is fenced, and comes back under its id.
#[test]
fn c_35_an_abort_after_the_timeout() {
    let (mut scene, clock) = by_hand_from_now();
    let mut client = scene.connect();
    let bootstrap = scene.broker.address().to_string();
    let begun = || {
        let producer = librdkafka::producer(&bootstrap, "id");
        settle(|| producer.init_transactions(CALL)).unwrap();
        settle(|| producer.begin_transaction()).unwrap();
        producer.send(BaseRecord::<(), str>::to(FREE).partition(0).payload("x")).unwrap();
        flush(&producer);
        producer
    };
    let producer = begun();
    let was = client.who("id");
    clock.advance(60_001);
    until("the broker's abort", || client.state_of("id").as_deref() == Ok("CompleteAbort"));
    for version in 0..=3 {
        let fenced = if version < 2 { 47 } else { 90 };
        assert_eq!(client.end_in(version, ("id", was), false), fenced, "never 48, version {version}");
    }
    let aborted = librdkafka::abort(&producer);
    assert!(matches!(aborted, Err(Stop::StartOver(_))), "{aborted:?}");
    let again = begun();
    settle(|| again.commit_transaction(CALL)).unwrap();
    assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0", "x"]);
    drop((producer, again));
    at_rest(&mut scene, Some(&clock));
}

/// A transaction belongs to no connection: whoever has its id, producer id and epoch may end it.
#[test]
fn c_53_a_commit_by_another_process() {
    let mut scene = Scene::new();
    let mut first = scene.connect();
    let owner = first.owner("id");
    write(&mut first, ("id", owner), 0, "prepared");
    drop(first);
    let mut second = scene.connect();
    assert_eq!(second.end_txn("id", owner, true), 0);
    for part in 0..2 {
        assert_eq!(second.read_all(FREE, part, COMMITTED), ["first-0", "prepared-0"]);
    }
    write(&mut second, ("id", owner), 1, "forgotten");
    drop(second);
    let mut third = scene.connect();
    let next = third.owner("id");
    assert_eq!(next, Pid { epoch: owner.epoch + 2, ..owner }, "it was open all the time");
    for (version, fenced) in [(0, 47), (1, 47), (2, 90), (3, 90)] {
        assert_eq!(third.end_in(version, ("id", owner), true), fenced, "version {version}");
    }
    assert_eq!(third.read_all(FREE, 0, COMMITTED), ["first-0", "prepared-0"], "nothing changed");
    at_rest(&mut scene, None);
}

/// The wall clock steps back before a transaction begins and forth while it is open.
#[test]
fn c_23_a_wall_clock_that_jumps() {
    let (mut scene, clock) = Scene::by_hand();
    let mut client = scene.connect();
    let steps: [fn(&Clock); 2] = [|clock| clock.set_wall(clock.now().wall_ms - 10_000), |_| {}];
    for step in steps {
        let owner = client.owner("id");
        step(&clock);
        write(&mut client, ("id", owner), 0, "a");
        clock.set_wall(clock.now().wall_ms + 3_600_000);
        clock.advance(59_999);
        assert_eq!(client.state_of("id").as_deref(), Ok("Ongoing"), "only time that has passed counts");
        clock.advance(2);
        until("the broker's abort", || client.state_of("id").as_deref() == Ok("CompleteAbort"));
        assert_eq!(client.end_txn("id", owner, true), 90);
    }
    at_rest(&mut scene, Some(&clock));
}
