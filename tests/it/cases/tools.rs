//! What operators and their tools are told: who is fenced and why, what is open, and when the broker can be asked at all.

use std::io::{Read, Write};
use std::net::TcpStream;

use kafka_protocol::messages::{DescribeTransactionsRequest, ListTransactionsRequest, ListTransactionsResponse};
use oncelog::clock::Clock;

use super::rest::{at_rest, producers};
use crate::oracle::{FREE, HELD, Scene};
use crate::process::child::{PATIENCE, Server, eventually, now};
use crate::process::serve;
use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::data::Isolation;
use crate::raw::txn::Member;
use crate::raw::{Client, text};

const COMMITTED: Isolation = Isolation::ReadCommitted;

fn begin(client: &mut Client, (id, owner): (&str, Pid), value: &str) {
    assert_eq!(client.add_partitions(id, owner, &[(FREE, 0)]), [0]);
    let batch = Batch::transactional(owner, 0, 2).values(value, 2);
    assert_eq!(client.produce(FREE, 0, Some(id), &batch).code, 0);
}

/// An administrator's tool fences an id as a new instance with the shortest timeout would, asking again while it is told
/// to.
#[test]
fn c_51_an_id_fenced_by_an_administrator() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let owner = client.owner("id");
    begin(&mut client, ("id", owner), "lost");
    let mut admin = scene.connect();
    let mut codes = Vec::new();
    while codes.last() != Some(&0) {
        codes.push(admin.init_for(4, Some("id"), 1, NOBODY).0);
    }
    assert_eq!(codes[0], 51, "the first answer is no error");
    assert!(codes[1..codes.len() - 1].iter().all(|code| *code == 51), "{codes:?}");
    assert_eq!(client.end_txn("id", owner, true), 90);
    assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0"], "and readers go on");
    let again = client.owner("id");
    begin(&mut client, ("id", again), "kept");
    client.end_txn_surely("id", again, true);
    at_rest(&mut scene, None);
}

fn listed(client: &mut Client, states: &[&str], producers: &[i64]) -> ListTransactionsResponse {
    let request = ListTransactionsRequest::default()
        .with_state_filters(states.iter().map(|state| text(state)).collect())
        .with_producer_id_filters(producers.iter().map(|id| (*id).into()).collect());
    client.call(0, &request)
}

fn ids(answer: &ListTransactionsResponse) -> Vec<(&str, &str)> {
    let states = answer.transaction_states.iter();
    let mut ids: Vec<_> =
        states.map(|state| (state.transactional_id.as_str(), state.transaction_state.as_str())).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn c_52_transactions_and_producers_as_tools_see_them() {
    let began = Clock::system().now().wall_ms;
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let [empty, open, committed, aborted, deciding] =
        ["empty", "open", "committed", "aborted", "deciding"].map(|id| client.owner(id));
    for (id, owner, commit) in [("committed", committed, true), ("aborted", aborted, false)] {
        begin(&mut client, (id, owner), id);
        client.end_txn_surely(id, owner, commit);
    }
    begin(&mut client, ("open", open), "open");
    assert_eq!(client.add_partitions("deciding", deciding, &[(HELD, 1), (FREE, 1)]), [0, 0]);
    scene.hold();
    assert_eq!(client.end_txn("deciding", deciding, true), 51);
    let all = [
        ("aborted", "CompleteAbort"),
        ("committed", "CompleteCommit"),
        ("deciding", "PrepareCommit"),
        ("empty", "Empty"),
        ("open", "Ongoing"),
    ];
    assert_eq!(ids(&listed(&mut client, &[], &[])), all);
    assert_eq!(ids(&listed(&mut client, &["Ongoing", "Empty"], &[])), all[3..]);
    assert_eq!(ids(&listed(&mut client, &[], &[open.id, empty.id, 99_999])), all[3..]);
    assert_eq!(ids(&listed(&mut client, &["Ongoing"], &[empty.id])), []);
    let unknown = listed(&mut client, &["ongoing", "Ongoing", "Lost"], &[]);
    assert_eq!(ids(&unknown), all[4..]);
    assert_eq!(unknown.unknown_state_filters, [text("ongoing"), text("Lost")]);
    check_described(&mut client, open);
    let known = producers(&mut client, (FREE, 0));
    let of = |owner: Pid| known.iter().find(|known| known.producer_id.0 == owner.id).unwrap();
    assert_eq!((of(open).last_sequence, of(open).current_txn_start_offset), (1, 7));
    let came = began..=Clock::system().now().wall_ms;
    assert!(came.contains(&of(open).last_timestamp), "T-611: when its last batch came, by the broker's clock");
    assert_eq!((of(committed).last_sequence, of(committed).current_txn_start_offset), (1, -1));
    assert!(of(committed).coordinator_epoch >= 0 && of(open).coordinator_epoch == -1, "who has ended something");
    scene.release();
    client.end_txn_surely("deciding", deciding, true);
    client.end_txn_surely("open", open, true);
    at_rest(&mut scene, None);
}

fn check_described(client: &mut Client, open: Pid) {
    let asked = ["open", "deciding", "empty", "unknown", ""].map(|id| text(id).into());
    let answer = client.call(0, &DescribeTransactionsRequest::default().with_transactional_ids(asked.to_vec()));
    let shown: Vec<_> =
        answer.transaction_states.iter().map(|state| (state.error_code, state.transaction_state.as_str())).collect();
    assert_eq!(shown, [(0, "Ongoing"), (0, "PrepareCommit"), (0, "Empty"), (105, ""), (42, "")]);
    let [ongoing, deciding, empty, ..] = answer.transaction_states.as_slice() else { panic!("{shown:?}") };
    assert_eq!((ongoing.producer_id.0, ongoing.producer_epoch), (open.id, open.epoch));
    assert_eq!(ongoing.transaction_timeout_ms, 60_000);
    assert!(ongoing.transaction_start_time_ms > 0 && empty.transaction_start_time_ms == -1, "T-803");
    let parts = |n: usize| {
        let topics = answer.transaction_states[n].topics.iter();
        topics.map(|topic| (topic.topic.to_string(), topic.partitions.clone())).collect::<Vec<_>>()
    };
    assert_eq!(parts(0), [(FREE.to_owned(), vec![0])]);
    assert_eq!(parts(1), [(HELD.to_owned(), vec![1])], "T-802: what still lacks its marker");
    assert!(deciding.producer_id.0 >= 0 && parts(2).is_empty());
}

/// A start lets nobody in before it knows everything: whoever is answered is answered as before the kill.
#[test]
fn c_56_a_start_lets_nobody_in_before_it_knows_everything() {
    let mut server = serve(&["topics.auto_create=false"]);
    let mut client = server.connect();
    assert_eq!(client.create_topic(FREE, 20), 0);
    let owner = client.owner("id");
    let parts: Vec<(&str, i32)> = (0..20).map(|part| (FREE, part)).collect();
    assert_eq!(client.add_partitions("id", owner, &parts), [0; 20]);
    assert_eq!(client.add_offsets("id", owner, "group"), 0);
    let mut client = Some(client);
    for n in 0..8 {
        if n > 0 {
            server.kill();
            server.spawn_again();
            client = None;
        }
        let began = now();
        // The first connection that is taken, however early.
        let mut client = loop {
            match client.take().map_or_else(|| Client::try_connect(server.address()), Ok) {
                Ok(client) => break client,
                Err(_) => assert!(began.elapsed() < PATIENCE, "the broker does not come back"),
            }
        };
        let known = client.metadata(Some(&[FREE]), false);
        assert_eq!((known.topics[0].error_code, known.topics[0].partitions.len()), (0, 20), "C-94, start {n}");
        let batch = Batch::transactional(owner, n, 1);
        assert_eq!(client.produce(FREE, n, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0, "start {n}");
        assert_eq!(client.produce(FREE, 19, Some("id"), &batch).code, 0, "start {n}");
        let staged = client.stage_in(
            n.rem_euclid(4).try_into().unwrap(),
            ("id", owner),
            ("group", &Member::default()),
            (FREE, n, 1),
        );
        assert_eq!(staged, 0, "start {n}");
        assert_eq!(client.init_in(4, Some(&format!("other-{n}")), NOBODY).0, 0, "start {n}");
    }
    let mut client = server.connect();
    client.end_txn_surely("id", owner, true);
    assert_eq!(client.read_all(FREE, 19, COMMITTED).len(), 8);
}

/// The lines of its log that say that somebody was fenced.
fn fences(server: &Server) -> Vec<String> {
    server.log().lines().filter(|line| line.contains("producer fenced")).map(str::to_owned).collect()
}

fn counted(server: &Server, reason: &str) -> u64 {
    let mut stream = TcpStream::connect(server.admin()).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let series = format!("oncelog_fencing_events_total{{reason=\"{reason}\"}} ");
    let value =
        page.lines().find_map(|line| line.strip_prefix(&series)).unwrap_or_else(|| panic!("{series} in {page}"));
    value.parse().unwrap()
}

/// "Fenced, but only one instance runs": the log and the metrics know better.
#[test]
fn c_57_why_a_producer_was_fenced() {
    let server = serve(&[]);
    let mut client = server.connect();
    assert_eq!(client.create_topic(FREE, 1), 0);
    let reasons = ["init_producer_id", "timeout_bump", "stale_epoch", "admin"];
    assert_eq!(reasons.map(|reason| counted(&server, reason)), [0, 0, 0, 0]);
    let expect = |reason: &str, label: &str, (old, new): (Pid, Pid)| {
        let line = eventually("a line about it", || fences(&server).pop().filter(|line| line.contains(reason)));
        let told = format!("producer_id={} old_epoch={}", old.id, old.epoch);
        for words in
            ["transactional_id=\"who\"", &told, &format!("new_epoch={}", new.epoch), &format!("reason={reason}")]
        {
            assert!(line.contains(words), "{words} in {line}");
        }
        assert_eq!(counted(&server, label), 1, "{label}");
    };
    let first = client.owner("who");
    begin(&mut client, ("who", first), "a");
    let second = client.owner("who");
    let bumped = |owner: Pid| Pid { epoch: owner.epoch + 1, ..owner };
    expect("InitProducerId", "init_producer_id", (first, bumped(first)));
    assert_eq!(client.end_txn("who", first, true), 90);
    expect("StaleEpoch", "stale_epoch", (first, second));
    let (_, third) = client.init_for(4, Some("who"), 1, NOBODY);
    assert_eq!(client.add_partitions("who", third, &[(FREE, 0)]), [0]);
    eventually("its abort", || (client.state_of("who").as_deref() == Ok("CompleteAbort")).then_some(()));
    expect("TimeoutBump", "timeout_bump", (third, bumped(third)));
    let fourth = client.owner("who");
    begin(&mut client, ("who", fourth), "b");
    assert_eq!(client.write_markers(fourth, false, &[(FREE, 0)]), [0]);
    expect("Admin", "admin", (fourth, bumped(fourth)));
    assert_eq!(fences(&server).len(), 4, "one line each: {:?}", fences(&server));
}
