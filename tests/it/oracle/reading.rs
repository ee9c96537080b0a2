//! What read_committed is shown: bounds, and the aborted transactions that go with what it is given (T-501 to T-531).

use super::{FREE, ONE_SEGMENT, Scene};
use crate::raw::Client;
use crate::raw::batch::{Batch, Pid};
use crate::raw::data::{EARLIEST, Fetched, Isolation, LATEST, fetch_request};

const COMMITTED: Isolation = Isolation::ReadCommitted;
const ALL: Isolation = Isolation::ReadUncommitted;
const TOPIC: &str = "t";

fn topic(scene: &Scene) -> Client {
    topic_with(scene, &ONE_SEGMENT)
}

fn topic_with(scene: &Scene, configs: &[(&str, &str)]) -> Client {
    let mut client = scene.connect();
    assert_eq!(client.create_topic_with(TOPIC, 2, configs), 0);
    client
}

/// One producer of the test, with its next sequence on partition 0.
struct Writer {
    id: String,
    owner: Pid,
    next: i32,
}

impl Writer {
    fn new(client: &mut Client, id: &str) -> Self {
        Self { id: id.to_owned(), owner: client.owner(id), next: 0 }
    }

    /// Adds a batch of this many records to the transaction, and gives its offset.
    fn write(&mut self, client: &mut Client, prefix: &str, count: usize) -> i64 {
        assert_eq!(client.add_partitions(&self.id, self.owner, &[(TOPIC, 0)]), [0]);
        let batch = Batch::transactional(self.owner, self.next, count).values(prefix, count);
        self.next += i32::try_from(count).unwrap();
        let said = client.produce(TOPIC, 0, Some(&self.id), &batch);
        assert_eq!(said.code, 0);
        said.base_offset
    }

    fn end(&self, client: &mut Client, commit: bool) {
        assert_eq!(client.end_txn(&self.id, self.owner, commit), 0);
    }
}

/// C-02, C-10, T-510 to T-512, T-515, with this many records in front.
fn check_bounds(front: i64) {
    let scene = Scene::new();
    let mut client = topic(&scene);
    if front > 0 {
        let count = usize::try_from(front).unwrap();
        assert_eq!(client.produce(TOPIC, 0, None, &Batch::plain(count)).code, 0);
    }
    let mut writer = Writer::new(&mut client, "id");
    assert_eq!(writer.write(&mut client, "open", 1), front);
    let bounds = |fetched: &Fetched| (fetched.code, fetched.high_watermark, fetched.last_stable, fetched.log_start);
    for (offset, isolation, given) in [
        (0, COMMITTED, usize::try_from(front.min(1)).unwrap()),
        (front, COMMITTED, 0),
        (front + 1, COMMITTED, 0),
        (front, ALL, 1),
        (front + 1, ALL, 0),
    ] {
        let fetched = client.fetch(TOPIC, 0, offset, isolation);
        assert_eq!(bounds(&fetched), (0, front + 1, front, 0), "T-511, T-512: {offset} {isolation:?}");
        assert_eq!(fetched.batches().len(), given, "C-02, P3: {offset} {isolation:?}");
        assert_eq!(fetched.aborted, (isolation == COMMITTED).then(Vec::new), "T-513, T-515");
    }
    for (offset, isolation) in [(front + 2, COMMITTED), (front + 2, ALL), (-1, COMMITTED)] {
        let fetched = client.fetch(TOPIC, 0, offset, isolation);
        assert_eq!(bounds(&fetched), (1, -1, -1, -1), "T-511, T-512: {offset}");
    }
    check_list_offsets(&mut client, front + 1, front);
    writer.end(&mut client, false);
    let fetched = client.fetch(TOPIC, 0, front, COMMITTED);
    assert_eq!(bounds(&fetched), (0, front + 2, front + 2, 0), "P6");
    assert_eq!(fetched.aborted, Some(vec![(writer.owner.id, front)]), "C-02: with the data goes its abort");
    assert_eq!(fetched.batches().last().map(|batch| batch.last_offset), Some(front + 1), "T-504, T-518");
    assert_eq!(fetched.shown(COMMITTED), []);
    let fetched = client.fetch(TOPIC, 0, front, ALL);
    assert_eq!((fetched.aborted.clone(), fetched.shown(ALL).len()), (None, 1), "C-10");
    check_list_offsets(&mut client, front + 2, front + 2);
}

/// T-520, T-521, T-526.
fn check_list_offsets(client: &mut Client, end: i64, stable: i64) {
    assert_eq!(client.list_offsets(TOPIC, 0, LATEST, ALL), (0, end, -1), "T-520");
    assert_eq!(client.list_offsets(TOPIC, 0, LATEST, COMMITTED), (0, stable, -1), "T-520");
    assert_eq!(client.list_offsets(TOPIC, 0, EARLIEST, COMMITTED), (0, 0, -1), "T-521");
    let (code, offset, _) = client.list_offsets(TOPIC, 0, 0, COMMITTED);
    assert_eq!((code, offset), (0, if stable > 0 { 0 } else { -1 }), "T-526");
    let far = client.list_offsets(TOPIC, 0, 4_000_000_000_000, ALL);
    assert_eq!(far, (0, -1, -1), "T-526");
}

#[test]
fn nothing_open_is_shown() {
    check_bounds(0);
    check_bounds(3);
}

/// C-03: an abort and a commit of one producer, also after a kill.
fn check_abort_and_commit(configs: &[(&str, &str)]) {
    let mut scene = Scene::new();
    let mut client = topic_with(&scene, configs);
    let mut writer = Writer::new(&mut client, "id");
    writer.write(&mut client, "dropped", 3);
    writer.end(&mut client, false);
    writer.write(&mut client, "kept", 3);
    writer.end(&mut client, true);
    for round in 0..3 {
        let fetched = client.fetch(TOPIC, 0, 0, COMMITTED);
        assert_eq!(fetched.aborted, Some(vec![(writer.owner.id, 0)]), "C-03, round {round}");
        assert_eq!(client.read_all(TOPIC, 0, COMMITTED), ["kept-0", "kept-1", "kept-2"], "C-03, round {round}");
        assert_eq!(client.read_all(TOPIC, 0, ALL).len(), 6, "C-10, round {round}");
        // What lies behind an abort's marker has nothing to do with it (T-514).
        assert_eq!(client.fetch(TOPIC, 0, 4, COMMITTED).aborted, Some(Vec::new()), "T-514, round {round}");
        assert_eq!(client.fetch(TOPIC, 0, 3, COMMITTED).aborted, Some(vec![(writer.owner.id, 0)]), "round {round}");
        scene.crash_and_start(|_| {});
        client = scene.connect();
    }
}

/// In one segment, and with a segment between the data and its marker.
#[test]
fn an_abort_and_then_a_commit() {
    check_abort_and_commit(&ONE_SEGMENT);
    check_abort_and_commit(&[("segment.ms", "1")]);
}

/// C-06: transactions of three producers in one another. Ranges of the log, and the aborts that belong to each.
#[test]
fn transactions_in_one_another() {
    let mut scene = Scene::new();
    let mut client = topic(&scene);
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(|id| Writer::new(&mut client, id));
    // Offsets:         a: 0 commit 2   4 abort 5   7 commit 8     b: 1, 6 abort 9     c: 3 commit 10
    a.write(&mut client, "a0", 1);
    b.write(&mut client, "b1", 1);
    a.end(&mut client, true);
    c.write(&mut client, "c3", 1);
    a.write(&mut client, "a4", 1);
    a.end(&mut client, false);
    b.write(&mut client, "b6", 1);
    a.write(&mut client, "a7", 1);
    a.end(&mut client, true);
    b.end(&mut client, false);
    c.end(&mut client, true);
    let (a4, b1) = ((a.owner.id, 4), (b.owner.id, 1));
    for round in 0..2 {
        for (from, expected) in [
            (0, vec![b1, a4]),
            (1, vec![b1, a4]),
            (4, vec![b1, a4]),
            (5, vec![b1, a4]),
            (6, vec![b1]),
            (9, vec![b1]),
            (10, vec![]),
        ] {
            assert_eq!(client.fetch(TOPIC, 0, from, COMMITTED).aborted, Some(expected), "C-06, {from}, round {round}");
        }
        // One batch at a time: no entry that begins behind what was returned, in the list's own order.
        for (from, expected) in [(0, vec![]), (1, vec![b1]), (3, vec![b1]), (4, vec![b1, a4]), (6, vec![b1])] {
            let mut request = fetch_request(TOPIC, 0, from, COMMITTED);
            request.topics[0].partitions[0].partition_max_bytes = 1;
            let answer = client.call(12, &request);
            let part = &answer.responses[0].partitions[0];
            let list = part.aborted_transactions.as_ref().unwrap().iter();
            let list: Vec<(i64, i64)> = list.map(|txn| (txn.producer_id.0, txn.first_offset)).collect();
            assert_eq!(list, expected, "T-513 R, {from}, round {round}");
        }
        assert_eq!(client.read_all(TOPIC, 0, COMMITTED), ["a0-0", "c3-0", "a7-0"], "C-06, round {round}");
        scene.crash_and_start(|_| {});
        client = scene.connect();
    }
}

/// C-07: an abort of a transaction that wrote nothing here hides nothing.
#[test]
fn an_abort_without_records() {
    let scene = Scene::new();
    let mut client = topic(&scene);
    let mut writer = Writer::new(&mut client, "id");
    assert_eq!(client.add_partitions("id", writer.owner, &[(TOPIC, 0), (TOPIC, 1)]), [0, 0]);
    assert_eq!(client.produce(TOPIC, 1, Some("id"), &Batch::transactional(writer.owner, 0, 1)).code, 0);
    writer.end(&mut client, false);
    writer.write(&mut client, "kept", 2);
    writer.end(&mut client, true);
    assert_eq!(client.fetch(TOPIC, 0, 0, COMMITTED).aborted, Some(Vec::new()), "C-07, X-21");
    assert_eq!(client.read_all(TOPIC, 0, COMMITTED), ["kept-0", "kept-1"], "C-07");
    assert_eq!(client.read_all(TOPIC, 1, COMMITTED), Vec::<String>::new());
}

/// C-04, C-08, T-515, T-516: a fetch that waits at the tail is answered by the marker, with the abort that belongs to it.
#[test]
fn a_waiting_fetch_is_answered_by_the_marker() {
    let scene = Scene::new();
    let mut client = topic(&scene);
    let mut writer = Writer::new(&mut client, "id");
    let mut consumer = scene.connect();
    let mut position = 0;
    for n in 0..30 {
        let commit = n % 3 == 0;
        let request = fetch_request(TOPIC, 0, position, COMMITTED).with_max_wait_ms(20_000).with_min_bytes(1);
        let sent = consumer.send(12, &request);
        let first = writer.write(&mut client, &format!("n{n}"), 1);
        writer.end(&mut client, commit);
        let answer = consumer.receive::<kafka_protocol::messages::FetchRequest>(sent);
        let fetched = Fetched::of(&answer);
        assert!(fetched.high_watermark > first && fetched.last_stable == first + 2, "round {n}");
        let aborted = if commit { vec![] } else { vec![(writer.owner.id, first)] };
        assert_eq!(fetched.aborted, Some(aborted), "C-08, round {n}");
        let shown = fetched.shown(COMMITTED);
        assert_eq!(shown.len(), usize::from(commit), "C-04, round {n}: {shown:?}");
        position = fetched.batches().last().unwrap().last_offset + 1;
        assert_eq!(position, first + 2, "T-518, round {n}");
    }
}

/// C-48: the position of a consumer moves over a trailing marker; T-501: the earliest open transaction bounds all.
#[test]
fn the_earliest_open_transaction_bounds_all() {
    let scene = Scene::new();
    let mut client = topic(&scene);
    let [mut early, mut late] = ["early", "late"].map(|id| Writer::new(&mut client, id));
    assert_eq!(early.write(&mut client, "early", 1), 0);
    assert_eq!(late.write(&mut client, "late", 1), 1);
    late.end(&mut client, true);
    assert_eq!(client.produce(TOPIC, 0, None, &Batch::plain(1)).code, 0);
    assert_eq!(client.list_offsets(TOPIC, 0, LATEST, COMMITTED).1, 0, "T-501");
    assert_eq!(client.read_all(TOPIC, 0, COMMITTED), Vec::<String>::new(), "P3");
    assert_eq!(client.fetch(FREE, 0, 0, COMMITTED).last_stable, 1, "other partitions have nothing to do with it");
    early.end(&mut client, true);
    assert_eq!(client.list_offsets(TOPIC, 0, LATEST, COMMITTED).1, 5, "T-501");
    assert_eq!(client.read_all(TOPIC, 0, COMMITTED), ["early-0", "late-0", "value-0"]);
}
