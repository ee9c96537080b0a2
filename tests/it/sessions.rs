//! Fetch sessions (KIP-227): what is left out is known, and nothing else is.

use std::collections::BTreeMap;

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse};

use crate::broker::TestBroker;
use crate::raw::batch::{self, Batch};
use crate::raw::data::Isolation;
use crate::raw::{Client, text};

const NOT_FOUND: i16 = 70;
const WRONG_EPOCH: i16 = 71;

/// A Fetch that is answered at once.
fn request((id, epoch): (i32, i32), wanted: &[(&str, i32, i64)], forgotten: &[(&str, i32)]) -> FetchRequest {
    let topic = |(name, index, offset): &(&str, i32, i64)| {
        let partition = FetchPartition::default().with_partition(*index).with_fetch_offset(*offset);
        let partition = partition.with_partition_max_bytes(1 << 20).with_current_leader_epoch(-1);
        FetchTopic::default().with_topic(text(name).into()).with_partitions(vec![partition])
    };
    let forgotten = forgotten
        .iter()
        .map(|(name, index)| ForgottenTopic::default().with_topic(text(name).into()).with_partitions(vec![*index]));
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_bytes(8 << 20)
        .with_session_id(id)
        .with_session_epoch(epoch)
        .with_topics(wanted.iter().map(topic).collect())
        .with_forgotten_topics_data(forgotten.collect())
}

/// Every partition of an answer: topic, number, code, first offsets of its batches.
fn shown(answer: &FetchResponse) -> Vec<(&str, i32, i16, Vec<i64>)> {
    let partitions = answer.responses.iter().flat_map(|topic| {
        topic.partitions.iter().map(move |partition| {
            let records = partition.records.clone().unwrap_or_default();
            let batches = batch::read(records).iter().map(|batch| batch.base_offset).collect();
            (topic.topic.as_str(), partition.partition_index, partition.error_code, batches)
        })
    });
    partitions.collect()
}

fn store(client: &mut Client, topic: &str, part: i32) -> i64 {
    client.produce(topic, part, None, &Batch::plain(1)).base_offset
}

/// F-702 to F-713 in every version that has sessions.
#[test]
fn a_session_from_its_beginning_to_its_end() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 3), 0);
    for (version, round) in (7..=12).zip(0..) {
        let mut ask =
            |session, wanted: &[_], forgotten: &[_]| client.call(version, &request(session, wanted, forgotten));
        let whole = [("t", 0, 0), ("t", 1, round), ("none", 0, 0)];
        let alone = ask((0, -1), &whole, &[]);
        assert_eq!((alone.session_id, shown(&alone).len()), (0, 3), "F-703 v{version}");
        let first = ask((0, 0), &whole[..2], &[]);
        let id = first.session_id;
        assert!(id > 0, "F-705 v{version}");
        assert_eq!(shown(&first).len(), 2, "F-712 v{version}");
        let quiet = ask((id, 1), &[], &[]);
        assert_eq!((quiet.error_code, quiet.session_id, quiet.responses.len()), (0, id, 0), "F-712 v{version}");
        let end = store(&mut broker.connect(), "t", 1);
        let moved = ask((id, 2), &[("t", 1, end)], &[]);
        assert_eq!(shown(&moved), [("t", 1, 0, vec![end])], "F-712 v{version}");
        for (session, code) in
            [((id, 2), WRONG_EPOCH), ((id, 4), WRONG_EPOCH), ((id ^ 1, 1), NOT_FOUND), ((0, 1), NOT_FOUND)]
        {
            let refused = ask(session, &[], &[]);
            assert_eq!(
                (refused.error_code, refused.session_id, refused.responses.len()),
                (code, 0, 0),
                "F-707, F-708, F-713 v{version}"
            );
        }
        let changed = ask((id, 3), &[("t", 2, 0), ("t", 1, end + 1)], &[("t", 0)]);
        assert_eq!(shown(&changed), [("t", 2, 0, vec![])], "F-709 v{version}");
        let without = ask((id, 4), &[], &[("t", 1), ("t", 2)]);
        assert_eq!((without.session_id, without.responses.len()), (0, 0), "F-710 v{version}");
        assert_eq!(ask((id, 5), &[], &[]).error_code, NOT_FOUND, "F-710 v{version}");
        let old = ask((0, 0), &whole[..1], &[]).session_id;
        let new = ask((old, 0), &whole[..1], &[]).session_id;
        assert!(new > 0 && new != old, "F-706 v{version}");
        assert_eq!(ask((old, 1), &[], &[]).error_code, NOT_FOUND, "F-706 v{version}");
        assert_eq!(ask((new, -1), &whole[..1], &[]).session_id, 0, "F-704 v{version}");
        assert_eq!(ask((new, 1), &[], &[]).error_code, NOT_FOUND, "F-704 v{version}");
    }
    // An empty session is made, and ends with its next request.
    let empty = client.call(12, &request((0, 0), &[], &[])).session_id;
    assert!(empty > 0, "F-711");
    assert_eq!(client.call(12, &request((empty, 1), &[], &[])).session_id, 0, "F-710");
    let before = client.call(6, &request((0, -1), &[("t", 0, 0)], &[]));
    assert_eq!((before.session_id, shown(&before).len()), (0, 1), "F-703");
}

/// F-712: errors are told until they are over; a topic that is made again is another one.
#[test]
fn errors_and_topics_that_are_made_again() {
    let broker = TestBroker::start();
    let (mut client, mut admin) = (broker.connect(), broker.connect());
    for topic in ["t", "u"] {
        assert_eq!(admin.create_topic(topic, 1), 0);
        assert_eq!(store(&mut admin, topic, 0), 0);
    }
    let id = client.call(12, &request((0, 0), &[("t", 0, 1), ("u", 0, 1)], &[])).session_id;
    let mut epoch = 0;
    let mut ask = |wanted: &[_]| {
        epoch += 1;
        let answer = client.call(12, &request((id, epoch), wanted, &[]));
        assert_eq!((answer.error_code, answer.session_id), (0, id));
        shown(&answer)
            .into_iter()
            .map(|(topic, _, code, batches)| (topic.to_owned(), code, batches))
            .collect::<Vec<_>>()
    };
    let t = |code, batches: Vec<i64>| vec![("t".to_owned(), code, batches)];
    assert_eq!(ask(&[]), []);
    assert_eq!(admin.delete_topic("t"), 0);
    assert_eq!(ask(&[]), t(3, vec![]));
    assert_eq!(ask(&[]), t(3, vec![]), "until it is over");
    assert_eq!(admin.create_topic("t", 1), 0);
    assert_eq!(ask(&[]), t(1, vec![]), "the new one ends before");
    assert_eq!(ask(&[("t", 0, 0)]), t(0, vec![]), "the error is over");
    assert_eq!(ask(&[]), []);
    assert_eq!(store(&mut admin, "t", 0), 0);
    assert_eq!(ask(&[("t", 0, 0)]), t(0, vec![0]));
    assert_eq!(ask(&[("t", 0, 1)]), []);
    // Made again with the same offsets between two requests.
    assert_eq!(admin.delete_topic("t"), 0);
    assert_eq!(admin.create_topic("t", 1), 0);
    assert_eq!(store(&mut admin, "t", 0), 0);
    assert_eq!(ask(&[]), t(0, vec![]), "another one with the same offsets is told of");
    assert_eq!(admin.delete_records(2, ("t", 0), 1), (0, 1));
    assert_eq!(ask(&[]), t(0, vec![]), "a log start that moved is told of");
    assert_eq!(ask(&[("t", 0, 0)]), t(1, vec![]), "F-732");
}

/// F-712: where not all fits, the next answers have the others.
#[test]
fn no_partition_starves() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 4), 0);
    for part in [0, 1, 2, 3] {
        for offset in 0..3 {
            assert_eq!(store(&mut client, "t", part), offset);
        }
    }
    let whole: Vec<_> = (0..4).map(|part| ("t", part, 0)).collect();
    let small = |request: FetchRequest| request.with_max_bytes(1);
    let first = client.call(12, &small(request((0, 0), &whole, &[])));
    let (id, mut served) = (first.session_id, vec![shown(&first).iter().find(|one| !one.3.is_empty()).unwrap().1]);
    let mut next = BTreeMap::from([(served[0], 1)]);
    for epoch in 1..12 {
        let last = *served.last().unwrap();
        let wanted = [("t", last, next[&last])];
        let answer = client.call(12, &small(request((id, epoch), &wanted, &[])));
        let [(_, part, 0, batches)] = &shown(&answer)[..] else { panic!("{:?}", shown(&answer)) };
        *next.entry(*part).or_default() = batches[0] + 1;
        served.push(*part);
    }
    assert_eq!(served, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn an_incremental_request_waits_for_records() {
    let broker = TestBroker::start();
    let (mut client, mut writer) = (broker.connect(), broker.connect());
    assert_eq!(client.create_topic("t", 2), 0);
    let id = client.call(12, &request((0, 0), &[("t", 0, 0), ("t", 1, 0)], &[])).session_id;
    let waiting = request((id, 1), &[], &[]).with_max_wait_ms(600_000).with_min_bytes(1);
    let sent = client.send(12, &waiting);
    let second = broker.connect().call(12, &request((id, 2), &[], &[])).error_code;
    assert!(matches!(second, 0 | WRONG_EPOCH), "F-713: one request at a time");
    assert_eq!(store(&mut writer, "t", 1), 0);
    let answer = client.receive::<FetchRequest>(sent);
    assert_eq!(shown(&answer), [("t", 1, 0, vec![0])], "T-516");
    // Who hangs up takes the session along, or the next one finds it.
    client.send(12, &request((id, 2), &[("t", 1, 1)], &[]).with_max_wait_ms(600_000).with_min_bytes(1));
    drop(client);
    let code = broker.connect().call(12, &request((id, 3), &[], &[])).error_code;
    assert!(matches!(code, NOT_FOUND | WRONG_EPOCH), "{code}");
}

/// What a client knows of a partition: code, watermark, last stable offset, log start.
type Known = (i16, i64, i64, i64);

fn known(answer: &FetchResponse) -> impl Iterator<Item = ((String, i32), Known)> {
    answer.responses.iter().flat_map(|topic| {
        topic.partitions.iter().map(|one| {
            let offsets = (one.error_code, one.high_watermark, one.last_stable_offset, one.log_start_offset);
            ((topic.topic.to_string(), one.partition_index), offsets)
        })
    })
}

/// Whatever happens, a client that puts together what a session tells it knows what one without a session is told.
#[test]
fn what_a_session_tells_adds_up_to_the_truth() {
    let seed = std::env::var("ONCELOG_TEST_SEED").map_or(7, |seed| seed.parse().unwrap());
    println!("ONCELOG_TEST_SEED={seed}");
    let mut dice: u64 = seed;
    let mut roll = |sides: u64| {
        // Numerical Recipes' generator; its upper half is good enough to choose by.
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    let broker = TestBroker::start();
    let (mut client, mut other) = (broker.connect(), broker.connect());
    let topics = ["a", "b", "c"];
    topics.iter().for_each(|topic| assert_eq!(other.create_topic(topic, 2), 0));
    let all: Vec<(&str, i32, i64)> = topics.iter().flat_map(|topic| [(*topic, 0, 0), (*topic, 1, 0)]).collect();
    let committed =
        |request: FetchRequest| request.with_isolation_level(Isolation::ReadCommitted as i8).with_max_bytes(1);
    let first = client.call(12, &committed(request((0, 0), &all, &[])));
    let (id, mut epoch) = (first.session_id, 0);
    let mut mirror: BTreeMap<_, _> = known(&first).collect();
    let (mut open, mut wanted) = (None, all.clone());
    for step in 0..400 {
        let (topic, part) = (topics[usize::try_from(roll(3)).unwrap()], i32::try_from(roll(2)).unwrap());
        let mut changed = Vec::new();
        match roll(12) {
            0..=3 => {
                other.produce(topic, part, None, &Batch::plain(1));
            }
            4 | 5 if open.is_none() => {
                let owner = other.owner("id");
                if other.add_partitions("id", owner, &[(topic, part)]) == [0] {
                    other.produce(topic, part, Some("id"), &Batch::transactional(owner, 0, 1));
                    open = Some(owner);
                }
            }
            4..=7 => {
                if let Some(owner) = open.take() {
                    other.end_txn_surely("id", owner, roll(2) == 0);
                }
            }
            8 => {
                other.delete_records(2, (topic, part), -1);
            }
            9 if roll(4) == 0 => {
                other.delete_topic(topic);
            }
            10 => {
                other.create_topic(topic, 2);
            }
            _ => {
                let at = usize::try_from(roll(6)).unwrap();
                wanted[at].2 = i64::try_from(roll(6)).unwrap();
                changed.push(wanted[at]);
            }
        }
        epoch += 1;
        let answer = client.call(12, &committed(request((id, epoch), &changed, &[])));
        assert_eq!((answer.error_code, answer.session_id), (0, id), "step {step}");
        mirror.extend(known(&answer));
        let truth: BTreeMap<_, _> = known(&other.call(12, &committed(request((0, -1), &wanted, &[])))).collect();
        assert_eq!(mirror, truth, "step {step}, seed {seed}");
    }
}
