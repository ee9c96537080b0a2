//! What a start makes of files that were torn, changed or lost behind its back.
#![expect(clippy::disallowed_methods, reason = "files are changed behind the broker's back")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use crate::broker::TestBroker;
use crate::process::child::{eventually, run};
use crate::raw::Client;
use crate::raw::batch::{Batch, Pid};
use crate::raw::data::Isolation::{ReadCommitted, ReadUncommitted};
use crate::raw::data::{EARLIEST, LATEST, produce_request};

pub(crate) const STORAGE_ERROR: i16 = 56;

fn log_of(broker: &TestBroker, dir: &str) -> PathBuf {
    broker.config().data_dir.join(dir).join("00000000000000000000.log")
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// A page of the admin port.
pub(crate) fn admin(broker: &TestBroker, page: &str) -> String {
    let mut stream = TcpStream::connect(broker.admin()).unwrap();
    write!(stream, "GET {page} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn batch(producer: Pid, n: i32) -> Batch {
    Batch::idempotent(producer, 2 * n, 2).values(&format!("b{n}"), 2)
}

fn values(batches: std::ops::Range<i32>) -> Vec<String> {
    batches.flat_map(|n| [format!("b{n}-0"), format!("b{n}-1")]).collect()
}

/// A topic with five batches of two records by an idempotent producer.
fn filled() -> (TestBroker, Pid) {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let (code, producer) = client.init_producer(None, 60_000);
    assert_eq!(code, 0);
    for n in 0..5 {
        assert_eq!(client.produce("t", 0, None, &batch(producer, n)).code, 0);
    }
    (broker, producer)
}

#[test]
fn a_torn_tail_is_cut_and_the_producer_goes_on_c_70_a_b_c() {
    type Change = fn(&mut Vec<u8>, usize);
    let cases: [(&str, i32, Change); 4] = [
        ("(a) half of the last batch", 4, |bytes, last| bytes.truncate(bytes.len() - last / 2)),
        ("(b) zeros behind it", 5, |bytes, _| bytes.extend([0; 4096])),
        ("(c) a bit of its payload", 4, |bytes, last| {
            let at = bytes.len() - last / 4;
            bytes[at] ^= 4;
        }),
        ("(c) a bit of its header", 4, |bytes, last| {
            let at = bytes.len() - last + 9;
            bytes[at] ^= 1;
        }),
    ];
    for (what, left, tear) in cases {
        let (mut broker, producer) = filled();
        let path = log_of(&broker, "t-0");
        broker.crash();
        change(&path, |bytes| {
            let last = bytes.len() / 5;
            tear(bytes, last);
        });
        for _ in 0..2 {
            broker.start_again(|_| {});
            let mut client = broker.connect();
            assert_eq!(client.read_all("t", 0, ReadUncommitted), values(0..left), "{what}");
            assert_eq!(client.list_offsets("t", 0, LATEST, ReadCommitted).1, i64::from(2 * left), "{what}");
            assert!(admin(&broker, "/readyz").starts_with("HTTP/1.1 200"), "{what}");
            broker.crash();
        }
        broker.start_again(|_| {});
        let mut client = broker.connect();
        let again = client.produce("t", 0, None, &batch(producer, left - 1));
        assert_eq!((again.code, again.base_offset), (0, i64::from(2 * left - 2)), "P5, C-60, C-61: {what}");
        assert_eq!(client.produce("t", 0, None, &batch(producer, left + 1)).code, 45, "C-62, a gap: {what}");
        assert_eq!(client.produce("t", 0, None, &batch(producer, left)).base_offset, i64::from(2 * left), "{what}");
        let torn = fs::read_dir(path.parent().unwrap()).unwrap();
        let kept = torn.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("torn")).count();
        assert_eq!(kept, 1, "2.4, kept aside: {what}");
    }
}

#[test]
fn zeros_behind_a_log_that_was_closed_are_cut_too_c_70_b() {
    let (mut broker, producer) = filled();
    broker.stop();
    change(&log_of(&broker, "t-0"), |bytes| bytes.extend([0; 4096]));
    broker.start_again(|_| {});
    let mut client = broker.connect();
    assert_eq!(client.read_all("t", 0, ReadCommitted), values(0..5));
    assert_eq!(client.produce("t", 0, None, &batch(producer, 5)).base_offset, 10);
}

#[test]
fn a_flipped_bit_in_the_middle_stops_that_partition_there_and_nothing_else_c_70_d() {
    let (mut broker, producer) = filled();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("healthy", 1), 0);
    drop(client);
    broker.stop();
    let path = log_of(&broker, "t-0");
    let whole = fs::read(&path).unwrap();
    let place = whole.len() / 5 * 2;
    change(&path, |bytes| bytes[place + 9] ^= 1);
    let damaged = fs::read(&path).unwrap();
    for clean in [true, false] {
        broker.start_again(|_| {});
        let mut client = broker.connect();
        for isolation in [ReadUncommitted, ReadCommitted] {
            for offset in 0..4 {
                let fetched = client.fetch("t", 0, offset, isolation);
                assert_eq!((fetched.code, fetched.high_watermark), (0, 4), "offset {offset}, clean {clean}");
                assert_eq!(fetched.batches().last().unwrap().last_offset, 3);
            }
            for offset in [4, 5, 9, 10, 11] {
                assert_eq!(client.fetch("t", 0, offset, isolation).code, STORAGE_ERROR, "offset {offset}");
            }
        }
        assert_eq!(client.produce("t", 0, None, &batch(producer, 5)).code, STORAGE_ERROR);
        assert_eq!(client.list_offsets("t", 0, EARLIEST, ReadCommitted).1, 0);
        assert_eq!(client.list_offsets("t", 0, LATEST, ReadCommitted).0, STORAGE_ERROR, "not known");
        assert_eq!(client.produce("healthy", 0, None, &Batch::plain(1)).code, 0, "the rest serves");
        let ready = admin(&broker, "/readyz");
        assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
        for word in ["t-0/00000000000000000000.log", &format!("at byte {place}"), "below offset 4"] {
            assert!(ready.contains(word), "{word:?} is not in {ready}");
        }
        assert!(admin(&broker, "/metrics").contains("oncelog_partitions_offline 1"));
        assert_eq!(fs::read(&path).unwrap(), damaged, "never cut");
        drop(client);
        if clean { broker.stop() } else { broker.crash() }
    }
    fs::write(&path, whole).unwrap();
    broker.start_again(|_| {});
    let mut client = broker.connect();
    assert_eq!(client.read_all("t", 0, ReadCommitted), values(0..5));
    assert_eq!(client.produce("t", 0, None, &batch(producer, 5)).base_offset, 10);
    assert!(admin(&broker, "/readyz").starts_with("HTTP/1.1 200"));
}

#[test]
fn index_files_may_be_lost_or_wrong_c_70_e_f() {
    let broker = &mut TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let producer = client.owner("id");
    for n in 0..6 {
        assert_eq!(client.add_partitions("id", producer, &[("t", 0)]), [0]);
        let batch = Batch::transactional(producer, 3 * n, 3).values(&format!("txn{n}"), 3);
        assert_eq!(client.produce("t", 0, Some("id"), &batch).code, 0);
        client.end_txn_surely("id", producer, n % 2 == 0);
    }
    let all = client.read_all("t", 0, ReadUncommitted);
    let committed = client.read_all("t", 0, ReadCommitted);
    assert_eq!((all.len(), committed.len()), (18, 9));
    let found = client.list_offsets("t", 0, 1_700_000_000_001, ReadUncommitted);
    drop(client);
    broker.stop();
    let dir = broker.config().data_dir.join("t-0");
    for how in ["deleted", "zeroed", "too long", "deleted"] {
        for clean in [true, false] {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let kind = path.extension().map(|kind| kind.to_string_lossy().into_owned()).unwrap_or_default();
                match how {
                    _ if !kind.ends_with("index") => {}
                    "deleted" => fs::remove_file(&path).unwrap(),
                    "zeroed" => change(&path, |bytes| bytes.fill(0)),
                    _ => change(&path, |bytes| bytes.extend([0; 5000])),
                }
            }
            broker.start_again(|_| {});
            let mut client = broker.connect();
            let what = format!("{how}, clean {clean}");
            assert_eq!(client.read_all("t", 0, ReadUncommitted), all, "{what}");
            assert_eq!(client.read_all("t", 0, ReadCommitted), committed, "{what}");
            assert_eq!(client.list_offsets("t", 0, 1_700_000_000_001, ReadUncommitted), found, "{what}");
            assert!(admin(broker, "/readyz").starts_with("HTTP/1.1 200"), "{what}");
            drop(client);
            if clean { broker.crash() } else { broker.stop() }
        }
    }
}

#[test]
fn an_open_transaction_is_open_after_a_restart_and_times_out_anew_c_74() {
    for clean in [true, false] {
        let mut broker = TestBroker::start();
        let mut client = broker.connect();
        assert_eq!(client.create_topic("t", 1), 0);
        let kept = client.owner("kept");
        let (_, late) = client.init_producer(Some("late"), 3_000);
        let aborted = client.owner("aborted");
        for (id, producer) in [("aborted", aborted), ("kept", kept), ("late", late)] {
            assert_eq!(client.add_partitions(id, producer, &[("t", 0)]), [0]);
            assert_eq!(client.produce("t", 0, Some(id), &Batch::transactional(producer, 0, 1).values(id, 1)).code, 0);
        }
        client.end_txn_surely("aborted", aborted, false);
        drop(client);
        if clean {
            broker.stop()
        } else {
            broker.crash()
        }
        broker.start_again(|_| {});
        let mut client = broker.connect();
        let fetched = client.fetch("t", 0, 0, ReadCommitted);
        assert_eq!((fetched.code, fetched.last_stable), (0, 1), "pinned, clean {clean}");
        client.end_txn_surely("kept", kept, true);
        eventually("the abort of the one that is late", || {
            let fetched = client.fetch("t", 0, 0, ReadCommitted);
            (fetched.last_stable == fetched.high_watermark).then_some(())
        });
        assert_eq!(client.end_txn("late", late, true), 90, "fenced");
        assert_eq!(client.read_all("t", 0, ReadCommitted), ["kept-0"], "the index of aborted ones is whole");
    }
}

#[test]
fn an_answer_that_was_lost_is_given_again_c_68_c_72() {
    let (mut broker, producer) = filled();
    let mut client = broker.connect();
    client.send(9, &produce_request("t", 0, None, batch(producer, 5).bytes()));
    // Whatever became of it, nobody hears.
    let mut other = broker.connect();
    eventually("the append", || (other.list_offsets("t", 0, LATEST, ReadUncommitted).1 == 12).then_some(()));
    drop((client, other));
    broker.crash();
    broker.start_again(|_| {});
    let mut client = broker.connect();
    let again = client.produce("t", 0, None, &batch(producer, 5));
    assert_eq!((again.code, again.base_offset), (0, 10), "what a consumer saw is there, once");
    assert_eq!(client.produce("t", 0, None, &batch(producer, 6)).base_offset, 12, "the stream goes on");
    assert_eq!(client.read_all("t", 0, ReadUncommitted), values(0..7));
}

#[test]
fn an_offset_has_one_value_for_every_reader_over_every_restart_c_67() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let producer = client.owner("id");
    drop(client);
    let mut values = std::collections::BTreeMap::new();
    let mut latest = 0;
    for round in 0..6 {
        let mut writer = broker.connect();
        assert_eq!(writer.produce("t", 0, None, &Batch::plain(2).values(&format!("plain{round}"), 2)).code, 0);
        assert_eq!(writer.add_partitions("id", producer, &[("t", 0)]), [0]);
        let batch = Batch::transactional(producer, round, 1).values(&format!("txn{round}"), 1);
        assert_eq!(writer.produce("t", 0, Some("id"), &batch).code, 0);
        if round % 3 != 0 {
            writer.end_txn_surely("id", producer, round % 3 == 1);
        }
        let mut readers = [broker.connect(), broker.connect()];
        for reader in &mut readers {
            let (code, offset, _) = reader.list_offsets("t", 0, LATEST, ReadUncommitted);
            assert!(code == 0 && offset >= latest, "never back: {offset} after {latest}");
            latest = offset;
            for (offset, value) in reader.read_from(("t", 0), 0, ReadUncommitted) {
                let before = values.entry(offset).or_insert_with(|| value.clone());
                assert_eq!(*before, value, "at {offset}");
            }
        }
        drop((writer, readers));
        if round % 2 == 0 {
            broker.crash()
        } else {
            broker.stop()
        }
        broker.start_again(|_| {});
    }
    assert_eq!(values.len(), 18);
}

#[test]
fn a_gap_inside_a_transaction_does_not_begin_another_one_c_69() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let producer = client.owner("id");
    assert_eq!(client.add_partitions("id", producer, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(producer, 0, 1)).code, 0);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(producer, 5, 1)).code, 45);
    assert_eq!(client.init_producer_as(Some("id"), 60_000, producer).0, 51, "its transaction is aborted first");
    // Of the classic protocol no pair is good any more (T-144): whoever asks goes on without.
    let next = client.owner("id");
    assert!(next.epoch > producer.epoch);
    assert_eq!(client.end_txn("id", next, true), 48, "there is nothing to commit");
    assert!(client.read_all("t", 0, ReadCommitted).is_empty());
}

#[test]
fn the_mark_of_a_clean_stop_is_gone_before_anything_is_loaded_c_71() {
    let mut server = crate::process::serve(&["storage.reserve_bytes=0"]);
    let mut client = server.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    assert_eq!(client.produce("t", 0, None, &Batch::plain(3)).code, 0);
    drop(client);
    assert!(server.terminate().success());
    server.start_again();
    assert!(server.started_clean());
    server.kill();
    // Nothing was written by that process but the mark; its tail is torn now all the same.
    change(&server.dir().join("data/t-0/00000000000000000000.log"), |bytes| bytes.extend([7; 100]));
    for _ in 0..2 {
        server.start_again();
        assert!(!server.started_clean());
        let mut client: Client = server.connect();
        assert_eq!(client.read_all("t", 0, ReadUncommitted).len(), 3);
        server.kill();
    }
}

#[test]
fn a_lost_meta_db_is_told_and_nothing_is_touched() {
    let (mut broker, _) = filled();
    broker.stop();
    let data = broker.config().data_dir.clone();
    let rows = fs::read(data.join("meta.db")).unwrap();
    for name in ["meta.db", "meta.db-wal"] {
        drop(fs::remove_file(data.join(name)));
    }
    let log = fs::read(log_of(&broker, "t-0")).unwrap();
    for _ in 0..2 {
        let mut command = crate::process::oncelog(broker.dir().path());
        command.args(["--set", "admin.bind=127.0.0.1:0", "--set", "listeners.external.bind=127.0.0.1:0"]);
        let said = run(&mut command);
        assert_eq!(said.code, Some(1), "{said:?}");
        for word in ["meta.db is missing or empty", "t-0", "put the meta.db"] {
            assert!(said.stderr.contains(word), "{word:?} is not in {said:?}");
        }
    }
    assert_eq!(fs::read(log_of(&broker, "t-0")).unwrap(), log);
    for name in ["meta.db-wal", "meta.db-shm"] {
        drop(fs::remove_file(data.join(name)));
    }
    fs::write(data.join("meta.db"), rows).unwrap();
    broker.start_again(|_| {});
    assert_eq!(broker.connect().read_all("t", 0, ReadCommitted), values(0..5));
}
