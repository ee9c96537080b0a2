//! A disk that is full, or nearly so: what must be stored is, and nothing acknowledged is lost.
#![expect(clippy::disallowed_methods, reason = "a test fills the disk itself")]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use oncelog::store::faults::{Fault, Faults, FaultyDisk, Operation, Rule};

use crate::broker::TestBroker;
use crate::process::child::eventually;
use crate::raw::batch::Batch;
use crate::raw::data::Isolation::ReadCommitted;
use crate::raw::txn::Member;
use crate::recovery::{STORAGE_ERROR, admin};

#[test]
fn a_disk_that_fills_up_under_transactions_loses_nothing_c_66() {
    let faults = Faults::default();
    let own = faults.clone();
    let mut broker =
        TestBroker::on(|_| {}, |parts| parts.wrap_disk = Box::new(|disk| Arc::new(FaultyDisk::new(disk, own))));
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 2), 0);
    let producer = client.owner("id");
    let mut sequences = [0, 0];
    let mut acknowledged = Vec::new();
    for round in 0..6 {
        let full = round % 2 == 1;
        assert_eq!(client.add_partitions("id", producer, &[("t", 0), ("t", 1)]), [0, 0]);
        for part in 0..2_i32 {
            if full && part == 1 {
                faults.add(Rule::always(Operation::Write, "t-1/", Fault::Short(20)));
            }
            let own = &mut sequences[usize::try_from(part).unwrap()];
            let batch = Batch::transactional(producer, *own, 1).values(&format!("r{round}"), 1);
            let code = client.produce("t", part, Some("id"), &batch).code;
            assert_eq!(code, if full && part == 1 { STORAGE_ERROR } else { 0 }, "round {round}, {part}");
            for _ in 0..3 * i32::from(code != 0) {
                assert_eq!(client.produce("t", part, Some("id"), &batch).code, STORAGE_ERROR, "until there is room");
            }
            if code != 0 {
                faults.lift();
                assert_eq!(client.produce("t", part, Some("id"), &batch).code, 0);
            }
            *own += 1;
        }
        if full {
            // No room for markers either: the decision stands, and is carried out when there is.
            faults.add(Rule::always(Operation::Write, "t-0/", Fault::NoSpace));
            assert_eq!(client.end_txn("id", producer, true), 51);
            faults.lift();
        }
        client.end_txn_surely("id", producer, true);
        acknowledged.push(format!("r{round}-0"));
    }
    drop(client);
    broker.crash();
    broker.start_again(|_| {});
    let mut client = broker.connect();
    for part in 0..2 {
        assert_eq!(client.read_all("t", part, ReadCommitted), acknowledged, "P1, P2");
    }
}

#[test]
fn below_the_low_mark_records_are_refused_and_all_else_goes_on_c_66() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!((client.create_topic("t", 1), client.create_topic("other", 1)), (0, 0));
    let producer = client.owner("id");
    assert_eq!(client.add_partitions("id", producer, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(producer, 0, 2)).code, 0);
    drop(client);
    broker.stop();
    // More than any disk has.
    broker.reconfigure(|config| config.storage.low_free_bytes = 1 << 50);
    broker.start_again(|_| {});
    let mut client = broker.connect();
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(producer, 2, 2)).code, STORAGE_ERROR);
    assert_eq!(client.produce("other", 0, None, &Batch::plain(1)).code, STORAGE_ERROR);
    assert_eq!(client.create_topic("new", 1), STORAGE_ERROR);
    let ready = admin(&broker, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("storage.low_free_bytes"), "a warning: {ready}");
    assert!(admin(&broker, "/metrics").contains("oncelog_disk_space_low 1"));
    client.end_txn_surely("id", producer, true);
    assert_eq!(client.read_all("t", 0, ReadCommitted).len(), 2, "fetch and EndTxn go on");
    assert_eq!(client.offset_commit("group", &Member::default(), ("t", 0, 1)), 0, "and commits of offsets");
    assert_eq!(client.delete_topic("other"), 0, "and deletes");
    drop(client);
    broker.stop();
    broker.reconfigure(|config| config.storage.low_free_bytes = 0);
    broker.start_again(|_| {});
    let mut client = broker.connect();
    assert_eq!(client.produce("t", 0, None, &Batch::plain(1)).code, 0);
    assert!(admin(&broker, "/readyz").starts_with("HTTP/1.1 200"));
}

#[test]
fn what_is_set_aside_is_there_soon_after_a_start() {
    let broker = TestBroker::with(|config| config.storage.reserve_bytes = 3 << 20);
    let path = broker.config().data_dir.join("reserve.bin");
    let full = || fs::metadata(&path).ok().filter(|found| found.len() == 3 << 20);
    eventually("a file of 3 MiB", || full().map(drop));
}

/// Where a small file system is mounted, for [`a_volume_filled_to_the_last_block_c_66`].
const SMALL_VOLUME: &str = "ONCELOG_TEST_SMALL_VOLUME";

#[test]
#[ignore = "needs a small file system of its own: ONCELOG_TEST_SMALL_VOLUME names where it is mounted"]
fn a_volume_filled_to_the_last_block_c_66() {
    // With the marks of the disk's size, and without any: then only what is set aside helps.
    for low_free_bytes in [-1, 0] {
        fill_to_the_last_block(low_free_bytes);
    }
}

fn fill_to_the_last_block(low_free_bytes: i64) {
    let volume = PathBuf::from(std::env::var(SMALL_VOLUME).unwrap());
    let data = tempfile::tempdir_in(&volume).unwrap();
    let mut broker = TestBroker::with(|config| {
        config.data_dir = data.path().to_path_buf();
        config.storage.reserve_bytes = 64 << 20;
        config.storage.low_free_bytes = low_free_bytes;
    });
    let reserve = data.path().join("reserve.bin");
    eventually("what is set aside", || fs::metadata(&reserve).ok().filter(|found| found.len() > 1 << 20).map(drop));
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 2), 0);
    let producer = client.owner("id");
    assert_eq!(client.add_partitions("id", producer, &[("t", 0), ("t", 1)]), [0, 0]);
    for part in 0..2 {
        assert_eq!(client.produce("t", part, Some("id"), &Batch::transactional(producer, 0, 3)).code, 0);
    }
    let filler = fs::File::create(volume.join("filler")).unwrap();
    let mut size = 1 << 20;
    while size > 0 {
        match (&filler).write(&vec![1; size]) {
            Ok(0) | Err(_) => size /= 2,
            Ok(_) => {}
        }
    }
    drop(filler);
    let code = eventually("a refusal", || {
        let code = client.produce("t", 0, None, &Batch::plain(100)).code;
        (code != 0).then_some(code)
    });
    assert_eq!(code, STORAGE_ERROR);
    client.end_txn_surely("id", producer, true);
    for part in 0..2 {
        let of_it = client.read_all("t", part, ReadCommitted).into_iter().filter(|value| value.starts_with("value"));
        assert!(of_it.count() >= 3, "P2");
    }
    let ready = admin(&broker, "/readyz");
    assert!(low_free_bytes == 0 || ready.contains("storage.low_free_bytes"), "{ready}");
    // The power of the process goes, and it starts on the full disk.
    drop(client);
    broker.crash();
    broker.start_again(|_| {});
    let mut client = broker.connect();
    assert_eq!(client.offset_commit("group", &Member::default(), ("t", 0, 1)), 0);
    fs::remove_file(volume.join("filler")).unwrap();
    eventually("room", || (client.produce("t", 0, None, &Batch::plain(1)).code == 0).then_some(()));
    eventually("what is set aside, again", || {
        fs::metadata(&reserve).ok().filter(|found| found.len() > 1 << 20).map(drop)
    });
    eventually("readiness", || admin(&broker, "/readyz").ends_with("\r\n\r\nready\n").then_some(()));
    assert!(!broker.is_broken());
}
