//! What operators see of transactions, and do to them: `/v1/…`, `oncelog txn`, and the metrics beside them.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

use oncelog::clock::Clock;
use oncelog::store::faults::{Fault, Faults, FaultyDisk, Operation, Rule};
use serde_json::Value;

use crate::broker::TestBroker;
use crate::process::child::eventually;
use crate::process::{oncelog, serve};
use crate::raw::batch::Batch;
use crate::raw::data::Isolation;
use crate::raw::txn::Member;
use crate::recovery::admin;

fn json(broker: &TestBroker, page: &str) -> Value {
    let answer = admin(broker, page);
    assert!(answer.starts_with("HTTP/1.1 200"), "{page}: {answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// A series of the metrics.
fn series(broker: &TestBroker, name: &str) -> f64 {
    let text = admin(broker, "/metrics");
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    line.unwrap_or_else(|| panic!("no {name}")).rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// `oncelog txn …`: whether it went well, and what it said.
fn txn(admin: SocketAddr, words: &[&str]) -> (bool, String) {
    let dir = tempfile::tempdir().unwrap();
    let mut command: Command = oncelog(dir.path());
    let said = command.arg("txn").args(["--admin", &admin.to_string()]).args(words).output().unwrap();
    let text = if said.status.success() { said.stdout } else { said.stderr };
    (said.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn who_holds_readers_back_is_shown_with_owner_age_and_time_left() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 2), 0);
    let id = "billing/7 \u{e4}";
    let owner = client.owner(id);
    assert_eq!(client.add_partitions(id, owner, &[("t", 1)]), [0]);
    assert_eq!(client.produce("t", 1, Some(id), &Batch::transactional(owner, 0, 2).values("held", 2)).code, 0);
    assert_eq!(client.add_offsets(id, owner, "g"), 0);
    assert_eq!(client.produce("t", 1, None, &Batch::plain(3).values("behind", 3)).code, 0);

    let blocked = json(&broker, "/v1/partitions/blocked");
    assert_eq!(blocked["total"], 1);
    let part = &blocked["items"][0];
    assert_eq!((&part["topic"], &part["partition"]), (&"t".into(), &1.into()));
    assert_eq!(
        (&part["last_stable_offset"], &part["watermark"], &part["held_records"]),
        (&0.into(), &5.into(), &5.into())
    );
    let holder = &part["holder"];
    assert_eq!(holder["transactional_id"], id);
    assert_eq!((&holder["producer_id"], &holder["producer_epoch"]), (&owner.id.into(), &owner.epoch.into()));
    assert_eq!(holder["state"], "Ongoing");
    assert!(holder["client"]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{holder}");
    assert!(holder["time_left_ms"].as_i64().unwrap() > 0 && holder["age_ms"].as_i64().unwrap() >= 0, "{holder}");

    let shown = json(&broker, "/v1/transactions/billing%2F7%20%C3%A4");
    assert_eq!((&shown["state"], &shown["groups"][0]), (&"Ongoing".into(), &"g".into()));
    assert_eq!(shown["partitions"][0]["partition"], 1);
    assert_eq!(json(&broker, "/v1/transactions?state=ongoing&prefix=bill")["total"], 1);
    assert_eq!(json(&broker, "/v1/transactions?state=Empty")["total"], 0);

    assert_eq!(series(&broker, "oncelog_partitions_held_back"), 1.0);
    assert_eq!(series(&broker, "oncelog_partition_lso_lag_records{topic=\"t\"}"), 5.0);
    assert_eq!(series(&broker, "oncelog_partitions_with_late_transactions"), 0.0);

    let (done, table) = txn(broker.admin(), &["blocked"]);
    assert!(done && table.contains("t-1") && table.contains("billing/7 \u{e4}"), "{table}");
    let (done, table) = txn(broker.admin(), &["list", "--state", "ongoing"]);
    assert!(done && table.contains("Ongoing"), "{table}");

    client.end_txn_surely(id, owner, true);
    assert_eq!(json(&broker, "/v1/partitions/blocked")["total"], 0);
    let (done, none) = txn(broker.admin(), &["blocked"]);
    assert!(done && none.contains("no partition holds read_committed readers back"), "{none}");
    assert_eq!(series(&broker, "oncelog_transactions_completed_total{outcome=\"commit\",reason=\"client\"}"), 1.0);
    assert_eq!(series(&broker, "oncelog_transaction_commit_phase_seconds_count{phase=\"markers\"}"), 1.0);
    assert_eq!(series(&broker, "oncelog_transaction_marker_writes_total{result=\"ok\",type=\"commit\"}"), 1.0);
}

#[test]
fn an_operator_aborts_and_fences() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 2).values("dropped", 2)).code, 0);
    let (done, said) = txn(broker.admin(), &["abort", "id"]);
    assert!(done && said.contains("aborted") && said.contains("CompleteAbort"), "{said}");
    assert_eq!(client.read_all("t", 0, Isolation::ReadCommitted), Vec::<String>::new());
    assert_eq!(client.end_txn("id", owner, true), 90, "its producer is fenced");
    let (done, said) = txn(broker.admin(), &["abort", "id"]);
    assert!(!done && said.contains("no transaction is open"), "{said}");
    let (done, said) = txn(broker.admin(), &["abort", "nobody"]);
    assert!(!done && said.contains("no such transactional id"), "{said}");
    assert_eq!(series(&broker, "oncelog_fencing_events_total{reason=\"admin\"}"), 1.0);
    assert_eq!(series(&broker, "oncelog_operator_actions_total{action=\"abort\"}"), 1.0);
    assert_eq!(series(&broker, "oncelog_transactions_completed_total{outcome=\"abort\",reason=\"admin\"}"), 1.0);
    assert_eq!(series(&broker, "oncelog_aborted_batches_total{topic=\"t\"}"), 1.0);

    let owner = client.owner("id");
    let (done, said) = txn(broker.admin(), &["fence", "id"]);
    assert!(done && said.contains("fenced"), "{said}");
    assert_eq!(
        client.add_partitions("id", owner, &[("t", 0)]),
        [90],
        "nothing was open, and it is fenced all the same"
    );
    assert_eq!(series(&broker, "oncelog_operator_actions_total{action=\"fence\"}"), 1.0);
}

/// C-122: a group that has read all that read_committed members may have is not behind to them, and is to others.
#[test]
fn a_groups_lag_is_counted_to_both_ends() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    assert_eq!(client.produce("t", 0, None, &Batch::plain(3).values("kept", 3)).code, 0);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 4).values("open", 4)).code, 0);
    let lag = |to: &str| series(&broker, &format!("oncelog_group_lag_records{{group=\"g\",to=\"{to}\"}}"));
    assert_eq!(client.offset_commit("g", &Member::default(), ("t", 0, 1)), 0);
    assert_eq!((lag("last_stable_offset"), lag("watermark")), (2.0, 6.0));
    assert_eq!(client.offset_commit("g", &Member::default(), ("t", 0, 3)), 0);
    assert_eq!((lag("last_stable_offset"), lag("watermark")), (0.0, 4.0));
    assert_eq!(client.offset_commit("g", &Member::default(), ("t", 0, 900)), 0);
    assert_eq!((lag("last_stable_offset"), lag("watermark")), (0.0, 0.0), "never negative");
}

/// Figures that a rate needs from the first event on, and those that come of a restart.
#[test]
fn figures_of_topics_sizes_and_starts() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 3), 0);
    assert_eq!(series(&broker, "oncelog_produced_records_total{topic=\"t\"}"), 0.0, "before its first batch");
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 2).values("a", 2)).code, 0);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 2).values("a", 2)).code, 0);
    assert_eq!(series(&broker, "oncelog_produced_records_total{topic=\"t\"}"), 2.0, "a duplicate is not produced");
    assert_eq!(series(&broker, "oncelog_producer_duplicate_batches_total"), 1.0);
    assert_eq!((series(&broker, "oncelog_topics"), series(&broker, "oncelog_partitions")), (1.0, 3.0));
    assert_eq!((series(&broker, "oncelog_producer_ids"), series(&broker, "oncelog_transactional_ids")), (1.0, 1.0));
    assert!(series(&broker, "oncelog_log_bytes") > 0.0 && series(&broker, "oncelog_log_segments") >= 1.0);
    assert_eq!(series(&broker, "oncelog_ready"), 1.0);
    eventually("the disk is measured", || (series(&broker, "oncelog_disk_total_bytes") > 0.0).then_some(()));
    assert_eq!(client.delete_topic("t"), 0);
    eventually("its series go", || {
        (!admin(&broker, "/metrics").contains("oncelog_produced_records_total{topic=\"t\"}")).then_some(())
    });
    drop(client);
    broker.crash();
    broker.start_again(|_| {});
    assert_eq!(series(&broker, "oncelog_transactional_ids"), 1.0);
}

#[test]
fn listeners_are_shown_with_what_clients_are_told() {
    let broker = TestBroker::start();
    let shown = json(&broker, "/v1/listeners");
    assert_eq!(shown[0]["name"], "external");
    assert_eq!(shown[0]["advertised"], broker.address().to_string());
}

/// C-124: an operator can be told when a transaction hangs: its abort is decided, and its marker finds no room.
#[test]
fn a_late_transaction_and_markers_that_fail_are_counted_until_they_are_written() {
    let (clock, faults) = (Clock::manual(1_700_000_000_000), Faults::default());
    let (own, hand) = (faults.clone(), clock.clone());
    let broker = TestBroker::on(
        |config| config.transactions.max_timeout_ms = 10_000,
        |parts| {
            parts.clock = hand;
            parts.wrap_disk = Box::new(|disk| Arc::new(FaultyDisk::new(disk, own)));
        },
    );
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let (code, owner) = client.init_producer(Some("id"), 1_000);
    assert_eq!((code, client.add_partitions("id", owner, &[("t", 0)])), (0, vec![0]));
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 1).values("held", 1)).code, 0);
    faults.add(Rule::always(Operation::Write, "t-0/", Fault::NoSpace));
    clock.advance(2_000);
    eventually("a marker fails", || {
        (series(&broker, "oncelog_transaction_marker_write_retries_total{error=\"storage_full\"}") > 0.0).then_some(())
    });
    assert_eq!(series(&broker, "oncelog_partitions_with_late_transactions"), 0.0, "not yet");
    clock.advance(310_000);
    let late = || series(&broker, "oncelog_partitions_with_late_transactions");
    assert_eq!(late(), 1.0, "T-607: more than five minutes beyond any timeout");
    assert_eq!(series(&broker, "oncelog_transaction_markers_pending"), 1.0);
    assert!(series(&broker, "oncelog_transaction_marker_oldest_pending_seconds") >= 310.0);
    assert!(series(&broker, "oncelog_transaction_marker_writes_total{result=\"error\",type=\"abort\"}") > 0.0);
    assert_eq!(json(&broker, "/v1/partitions/blocked")["items"][0]["holder"]["state"], "PrepareAbort");
    faults.lift();
    eventually("the marker is written", || {
        clock.advance(1_000);
        (late() == 0.0 && series(&broker, "oncelog_transaction_markers_pending") == 0.0).then_some(())
    });
    assert_eq!(series(&broker, "oncelog_transactions_completed_total{outcome=\"abort\",reason=\"timeout\"}"), 1.0);
    assert_eq!(series(&broker, "oncelog_fencing_events_total{reason=\"timeout_bump\"}"), 1.0);
}

/// A fence raises the epoch in any case: also where what is open is being aborted at its producer's own wish.
#[test]
fn a_fence_that_comes_behind_the_producers_own_abort_fences() {
    let faults = Faults::default();
    let own = faults.clone();
    let broker =
        TestBroker::on(|_| {}, |parts| parts.wrap_disk = Box::new(|disk| Arc::new(FaultyDisk::new(disk, own))));
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    faults.add(Rule::always(Operation::Write, "t-0/", Fault::NoSpace));
    assert_eq!(client.end_txn("id", owner, false), 51, "its marker finds no room");
    let admin = broker.admin();
    let retries = || series(&broker, "oncelog_transaction_marker_write_retries_total{error=\"storage_full\"}");
    let before = retries();
    let fencing = std::thread::spawn(move || txn(admin, &["fence", "id"]));
    eventually("the fence waits behind the abort", || (retries() >= before + 3.0).then_some(()));
    faults.lift();
    let (done, said) = fencing.join().unwrap();
    assert!(done && said.contains("fenced"), "{said}");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [90]);
}

/// C-119: whatever an id or a name is made of, a line of the log stays one line.
#[test]
fn no_name_forges_a_line_of_the_log() {
    let mut server = serve(&[]);
    let id = "x%0A2026-01-01T00:00:00Z%20%20WARN%20oncelog::audit:%20forged";
    let request = format!(
        "POST /v1/transactions/{id}/abort HTTP/1.1\r\nHost: a\r\nX-Oncelog-Operator: ada address=10.0.0.1\r\n\
         Connection: close\r\nContent-Length: 0\r\n\r\n"
    );
    let mut stream = std::net::TcpStream::connect(server.admin()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert_eq!(server.terminate().code(), Some(0));
    let log = server.log();
    let line = log.lines().find(|line| line.contains("asked for by an operator")).unwrap();
    assert!(line.contains("forged") && line.contains("operator=\"ada address=10.0.0.1\""), "{line}");
    assert!(log.lines().all(|line| !line.starts_with("2026-01-01")), "{log}");
}
