//! Storage that says no: nothing has changed for whoever is refused, and what was decided is carried out (P7, P6).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oncelog::engine::ledger::rows::Rows;
use oncelog::store::StoreError;
use oncelog::store::meta::LedgerStore;

use super::{FREE, HELD, Scene, until};
use crate::raw::Client;
use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::data::Isolation;
use crate::raw::txn::Member;

/// A store that has no room while it is told so.
struct Crowded {
    inner: Box<dyn LedgerStore>,
    full: Arc<AtomicBool>,
}

impl LedgerStore for Crowded {
    fn commit(&mut self, rows: &Rows) -> Result<u64, StoreError> {
        if self.full.load(Ordering::Acquire) {
            return Err(StoreError::Full("no room".to_owned()));
        }
        self.inner.commit(rows)
    }

    fn tidy(&mut self, idle: bool) -> Result<(), StoreError> {
        self.inner.tidy(idle)
    }

    fn written(&self) -> u64 {
        self.inner.written()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.inner.close()
    }
}

fn crowded() -> (Scene, Arc<AtomicBool>) {
    let full = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&full);
    let wrap = |inner| Box::new(Crowded { inner, full: own }) as Box<dyn LedgerStore>;
    (Scene::on(|_| {}, move |parts| parts.wrap_store = Box::new(wrap)), full)
}

/// The order's sentence: a write that fails changes nothing, and the request is answered NOT_COORDINATOR.
#[test]
fn a_ledger_that_cannot_write_refuses_and_changes_nothing() {
    let (scene, full) = crowded();
    let mut client = scene.connect();
    let nobody = Member::default();
    let (owner, idle) = (client.owner("id"), client.owner("idle"));
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 0)]), [0]);
    assert_eq!(client.add_offsets("id", owner, "group"), 0);
    assert_eq!(client.produce(FREE, 0, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    full.store(true, Ordering::Release);
    for version in 0..=4 {
        assert_eq!(client.init_in(version, Some("idle"), NOBODY).0, 16, "InitProducerId {version}");
        assert_eq!(client.init_in(version, Some("new"), NOBODY).0, 16, "InitProducerId {version}, unknown");
    }
    for version in 0..=3 {
        assert_eq!(client.add_in(version, ("id", owner), &[(FREE, 1)]), 16, "AddPartitionsToTxn {version}");
        assert_eq!(client.add_in(version, ("idle", idle), &[(FREE, 1)]), 16, "AddPartitionsToTxn {version}, first");
        assert_eq!(client.add_offsets_in(version, ("id", owner), "other"), 16, "AddOffsetsToTxn {version}");
        let staged = client.stage_in(version, ("id", owner), ("group", &nobody), (FREE, 0, 9));
        assert_eq!(staged, 16, "TxnOffsetCommit {version}");
        for commit in [true, false] {
            assert_eq!(client.end_in(version, ("id", owner), commit), 16, "EndTxn {version}");
        }
    }
    assert_eq!(client.offset_commit("group", &nobody, (FREE, 0, 5)), 16, "OffsetCommit");
    check_unchanged(&mut client, owner, idle);
    full.store(false, Ordering::Release);
    check_unchanged(&mut client, owner, idle);
    assert_eq!(client.txn_offset_commit(("id", owner), ("group", &nobody), (FREE, 0, 9)), 0);
    assert_eq!(client.end_txn("id", owner, true), 0);
    assert_eq!(client.read_all(FREE, 0, Isolation::ReadCommitted), ["first-0", "value-0", "value-0", "value-0"]);
    assert_eq!(client.offset_fetch("group", (FREE, 0), true), (0, 9));
    assert_eq!(client.owner("idle"), Pid { epoch: idle.epoch + 1, ..idle }, "no epoch was used up");
    assert_eq!(client.owner("new").epoch, 0);
}

/// Reads need no room, and see what was before; the transaction is still open and takes records.
fn check_unchanged(client: &mut Client, owner: Pid, idle: Pid) {
    assert_eq!((client.state_of("id").as_deref(), client.who("id")), (Ok("Ongoing"), owner));
    assert_eq!((client.state_of("idle").as_deref(), client.who("idle")), (Ok("Empty"), idle));
    assert_eq!(client.state_of("new"), Err(105));
    assert_eq!(client.offset_fetch("group", (FREE, 0), true), (0, -1));
    let fetched = client.fetch(FREE, 0, 0, Isolation::ReadCommitted);
    assert_eq!(fetched.last_stable, 1);
    assert_eq!(client.produce(FREE, 1, Some("id"), &Batch::transactional(owner, 0, 1)).code, 48, "not added");
    let sequence = i32::try_from(fetched.high_watermark).unwrap() - 1;
    let said = client.produce(FREE, 0, Some("id"), &Batch::transactional(owner, sequence, 1));
    assert_eq!(said.code, 0, "the permission that EndTxn closed is open again");
}

/// A timeout and a new owner that find no room are tried again, and nobody can go round them.
#[test]
fn a_fencing_that_finds_no_room_is_tried_again() {
    let (scene, full) = crowded();
    let mut client = scene.connect();
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 0)]), [0]);
    assert_eq!(client.produce(FREE, 0, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    full.store(true, Ordering::Release);
    assert_eq!(client.init_in(4, Some("id"), NOBODY).0, 51);
    assert_eq!(client.state_of("id").as_deref(), Ok("Ongoing"), "P7: not decided, so not shown");
    let late = client.produce(FREE, 0, Some("id"), &Batch::transactional(owner, 1, 1));
    assert_eq!(late.code, 19, "sealed all the same");
    full.store(false, Ordering::Release);
    until("it is aborted", || client.state_of("id").as_deref() == Ok("CompleteAbort"));
    assert_eq!(client.read_all(FREE, 0, Isolation::ReadCommitted), ["first-0"]);
    assert_eq!(client.owner("id"), Pid { epoch: owner.epoch + 2, ..owner }, "T-140");
}

/// The sum of a counter over its labels, as it is scraped.
fn scraped(scene: &Scene, name: &str) -> f64 {
    let mut stream = TcpStream::connect(scene.broker.admin()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let samples = said.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    samples.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

const RETRIES: &str = "oncelog_transaction_marker_write_retries_total";

/// The decision stands, the marker is tried again with doubling pauses that are counted, and nobody need ask (C-135).
#[test]
fn a_marker_that_cannot_be_written_is_tried_again() {
    let (scene, clock) = Scene::by_hand();
    let mut client = scene.connect();
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[(HELD, 0)]), [0]);
    assert_eq!(client.produce(HELD, 0, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    scene.hold();
    let mut waiting = scene.connect();
    let sent = waiting.send_end("id", owner, true);
    let mut tries = 1.0;
    until("the first try", || scraped(&scene, RETRIES) >= tries);
    for pause in [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000] {
        clock.advance(pause - 1);
        // The ledger has looked at the clock since: it has taken a turn for this.
        assert_eq!(client.state_of("id").as_deref(), Ok("PrepareCommit"));
        assert_eq!(client.state_of("id").as_deref(), Ok("PrepareCommit"));
        assert!(scraped(&scene, RETRIES) <= tries, "before {pause} ms have gone by");
        clock.advance(1);
        tries += 1.0;
        until("another try", || scraped(&scene, RETRIES) >= tries);
    }
    assert_eq!(waiting.received_end(sent), 51, "it has waited its bounded time");
    assert_eq!(client.fetch(HELD, 0, 0, Isolation::ReadCommitted).last_stable, 1, "P3");
    scene.release();
    clock.advance(1_000);
    until("it completes by itself", || client.state_of("id").as_deref() == Ok("CompleteCommit"));
    assert_eq!(client.end_txn("id", owner, true), 0);
    assert_eq!(client.end_txn("id", owner, false), 48);
    assert_eq!(client.read_all(HELD, 0, Isolation::ReadCommitted), ["first-0", "value-0"]);
}

/// A Produce that finds no room leaves no trace: neither in the log nor in the sequences nor in the transaction.
#[test]
fn a_batch_that_cannot_be_written_is_not_there() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let owner = client.owner("id");
    let batch = |sequence| Batch::transactional(owner, sequence, 1);
    assert_eq!(client.add_partitions("id", owner, &[(HELD, 0)]), [0]);
    assert_eq!(client.produce(HELD, 0, Some("id"), &batch(0)).code, 0);
    scene.hold();
    for _ in 0..3 {
        assert_eq!(client.produce(HELD, 0, Some("id"), &batch(1)).code, 56);
        let shown = client.fetch(HELD, 0, 0, Isolation::ReadUncommitted);
        assert_eq!((shown.high_watermark, shown.last_stable), (2, 1));
    }
    scene.release();
    let said = client.produce(HELD, 0, Some("id"), &batch(1));
    assert_eq!((said.code, said.base_offset), (0, 2), "P7");
    assert_eq!(client.produce(HELD, 0, Some("id"), &batch(1)), said, "P5");
    assert_eq!(client.produce(HELD, 0, Some("id"), &batch(2)).base_offset, 3);
    assert_eq!(client.end_txn("id", owner, true), 0);
}
