//! A sync that fails: the process starts itself over, and what it had acknowledged is there.

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use oncelog::config::{Config, HostPort, OnSyncFailure};
use oncelog::server::{Parts, start};
use oncelog::store::faults::{Fault, Faults, FaultyDisk, Operation, Rule};
use oncelog::telemetry;
use tempfile::TempDir;

use super::child::{Server, eventually, free_port};
use crate::raw::Client;
use crate::raw::batch::{Batch, Pid};
use crate::raw::data::Isolation;
use crate::raw::txn::Member;

/// Where the child keeps everything.
const DIR: &str = "TEST_SYNC_FAILURE_DIR";
const PORT: &str = "TEST_SYNC_FAILURE_PORT";
const POLICY: &str = "TEST_SYNC_FAILURE_POLICY";
/// A file of this name holds a part of a path: the next sync of a file with such a path fails. It is removed when the
/// fault is in place, so that a process that has started itself over finds none.
const ARM: &str = "arm";

const COMMITTED: Isolation = Isolation::ReadCommitted;

#[test]
#[ignore = "a broker with a disk that fails on demand: the tests here start it as a process of its own"]
fn a_broker_on_a_faulty_disk() {
    let var = |name: &str| std::env::var(name).unwrap();
    let dir = var(DIR);
    let mut config = Config::builtin();
    config.data_dir = Path::new(&dir).join("data");
    config.listeners.external.bind = HostPort::new("127.0.0.1", var(PORT).parse().unwrap());
    config.admin.bind = HostPort::new("127.0.0.1", 0);
    if var(POLICY) == "exit" {
        config.on_sync_failure = OnSyncFailure::Exit;
    }
    let _telemetry = telemetry::init(&config).unwrap();
    let (faults, mut parts) = (Faults::default(), Parts::real(&config));
    let own = faults.clone();
    parts.wrap_disk = Box::new(|disk| Arc::new(FaultyDisk::new(disk, own)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _running = runtime.block_on(start(config, parts)).unwrap();
    std::thread::spawn(move || arm_when_told(&Path::new(&dir).join(ARM), &faults));
    // Standard input ends with the process that started this one.
    let ended = std::io::stdin().read(&mut [0]);
    std::process::exit(i32::from(ended.is_err()));
}

fn arm_when_told(file: &Path, faults: &Faults) {
    loop {
        if let Ok(path) = std::fs::read_to_string(file)
            && !path.is_empty()
        {
            faults.add(Rule::once(Operation::Sync, &path, Fault::Io));
            #[expect(clippy::disallowed_methods, reason = "a test's own file")]
            std::fs::remove_file(file).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn serve(policy: &str) -> Server {
    let (dir, port) = (TempDir::new().unwrap(), free_port());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "process::sync_failure::a_broker_on_a_faulty_disk", "--ignored", "--nocapture"]);
    command.env(DIR, dir.path()).env(PORT, port.to_string()).env(POLICY, policy);
    Server::run(command, dir, port)
}

/// The next sync of a file whose path contains this text will fail.
fn arm(server: &Server, path: &str) {
    let (file, unfinished) = (server.dir().join(ARM), server.dir().join("unfinished"));
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    std::fs::write(&unfinished, path).and_then(|()| std::fs::rename(&unfinished, &file)).unwrap();
    eventually("a fault in place", || (!file.exists()).then_some(()));
}

/// A transaction with records in two partitions and an offset, up to its end.
fn open(client: &mut Client, n: usize) -> Pid {
    let producer = client.owner("id");
    assert_eq!(client.add_partitions("id", producer, &[("out", 0), ("out", 1)]), [0, 0]);
    for part in 0..2 {
        let batch = Batch::transactional(producer, 0, 2).values(&format!("txn{n}"), 2);
        assert_eq!(client.produce("out", part, Some("id"), &batch).code, 0);
    }
    assert_eq!(client.add_offsets("id", producer, "group"), 0);
    let offset = ("in", 0, i64::try_from(n).unwrap());
    assert_eq!(client.txn_offset_commit(("id", producer), ("group", &Member::default()), offset), 0);
    producer
}

/// Sends it without hope of an answer: the connection ends.
fn send_and_lose<R: kafka_protocol::protocol::Request>(mut client: Client, version: i16, request: &R) {
    client.send(version, request);
    assert!(client.ended().received.is_empty(), "nothing is acknowledged that is not known to be on disk");
}

/// EndTxn again and again as a client does it: it is told to wait, or that the coordinator is not there yet.
fn commit_again(server: &Server, producer: Pid) {
    eventually("the outcome of the transaction", || {
        let mut client = server.connect_again();
        match client.end_txn("id", producer, true) {
            0 => Some(()),
            14..=16 | 51 => None,
            code => panic!("EndTxn: error {code}"),
        }
    });
}

fn end_txn(producer: Pid) -> kafka_protocol::messages::EndTxnRequest {
    kafka_protocol::messages::EndTxnRequest::default()
        .with_transactional_id(crate::raw::text("id").into())
        .with_producer_id(producer.id.into())
        .with_producer_epoch(producer.epoch)
        .with_committed(true)
}

fn check_all(server: &Server, txns: usize) {
    let mut client = server.connect();
    let values: Vec<_> = (1..=txns).flat_map(|n| [format!("txn{n}-0"), format!("txn{n}-1")]).collect();
    for part in 0..2 {
        assert_eq!(client.read_all("out", part, COMMITTED), values, "P1, P2");
    }
    assert_eq!(client.offset_fetch("group", ("in", 0), true), (0, i64::try_from(txns).unwrap()), "P2");
    assert_eq!(client.read_all("plain", 0, COMMITTED), ["plain-0", "plain-1", "plain-2"], "P1");
}

fn prepare(server: &Server) -> Client {
    let mut client = server.connect();
    assert_eq!(
        (client.create_topic("in", 1), client.create_topic("out", 2), client.create_topic("plain", 1)),
        (0, 0, 0)
    );
    let batch = Batch::plain(3).values("plain", 3);
    assert_eq!(client.produce("plain", 0, None, &batch).code, 0);
    client
}

fn restarts(server: &Server) -> usize {
    server.log().matches("starting over error=").count()
}

/// The end of a transaction, with the sync of a log and of the ledger's journal failing under it.
#[test]
fn the_process_starts_itself_over_and_loses_nothing() {
    let server = serve("restart");
    let (mut client, pid) = (prepare(&server), server.pid());
    for (n, path) in [(1, "out-0/"), (2, "meta.db-wal"), (3, "out-1/"), (4, "meta.db-wal")] {
        let producer = open(&mut client, n);
        arm(&server, path);
        send_and_lose(client, 3, &end_txn(producer));
        client = server.connect_again();
        commit_again(&server, producer);
        check_all(&server, n);
        assert_eq!(restarts(&server), n, "{path}: {}", server.log());
        assert!(server.is_same_process(pid), "{path}");
    }
}

/// A Produce whose sync fails is not acknowledged; sent again, it is stored once (P5).
#[test]
fn a_produce_whose_sync_fails_is_sent_again() {
    let server = serve("restart");
    let mut client = prepare(&server);
    let (code, producer) = client.init_producer(None, 60_000);
    assert_eq!(code, 0);
    let batch = |n: i32| Batch::idempotent(producer, n, 1).values(&format!("batch{n}"), 1);
    assert_eq!(client.produce("out", 0, None, &batch(0)).code, 0);
    arm(&server, "out-0/");
    let request = crate::raw::data::produce_request("out", 0, None, batch(1).bytes());
    send_and_lose(client, 9, &request);
    let mut client = server.connect_again();
    let answer = client.produce("out", 0, None, &batch(1));
    assert!((answer.code, answer.base_offset) == (0, 1), "{answer:?}");
    assert_eq!(client.produce("out", 0, None, &batch(2)).code, 0);
    assert_eq!(client.read_all("out", 0, COMMITTED), ["batch0-0", "batch1-0", "batch2-0"], "P1, P5");
}

#[test]
fn the_end_can_be_left_to_a_supervisor() {
    for path in ["out-0/", "meta.db-wal"] {
        let mut server = serve("exit");
        let mut client = prepare(&server);
        let producer = open(&mut client, 1);
        arm(&server, path);
        send_and_lose(client, 3, &end_txn(producer));
        assert!(server.end().code().is_some_and(|code| code > 0 && code < 128), "{}", server.log());
        server.start_again();
        commit_again(&server, producer);
        check_all(&server, 1);
    }
}
