//! One transaction that commits and one that aborts, with records and offsets, through a restart of either kind.

use crate::broker::TestBroker;
use crate::raw::batch::Batch;
use crate::raw::data::{EARLIEST, Isolation, LATEST};
use crate::raw::txn::Member;

const COMMITTED: Isolation = Isolation::ReadCommitted;
const ALL: Isolation = Isolation::ReadUncommitted;

fn check_what_is_there(broker: &TestBroker) {
    let mut client = broker.connect();
    let values = |prefix: &str| (0..3).map(|n| format!("{prefix}-{n}")).collect::<Vec<_>>();
    for part in 0..2 {
        assert_eq!(client.read_all("out", part, COMMITTED), values("kept"), "P2, P3");
        assert_eq!(client.read_all("out", part, ALL), [values("kept"), values("dropped")].concat());
        assert_eq!(client.list_offsets("out", part, EARLIEST, ALL).1, 0);
        assert_eq!(client.list_offsets("out", part, LATEST, COMMITTED).1, 8, "a marker behind each transaction");
    }
    assert_eq!(client.offset_fetch("group", ("in", 0), true), (0, 11), "P2");
}

#[test]
fn a_transaction_commits_and_one_aborts() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("in", 1), 0);
    assert_eq!(client.create_topic("out", 2), 0);
    let producer = client.owner("id");
    for (n, (prefix, commit, offset)) in [("kept", true, 11), ("dropped", false, 22)].into_iter().enumerate() {
        assert_eq!(client.add_partitions("id", producer, &[("out", 0), ("out", 1)]), [0, 0]);
        let sequence = i32::try_from(n * 3).unwrap();
        for part in 0..2 {
            let batch = Batch::transactional(producer, sequence, 3).values(prefix, 3);
            let first = client.produce("out", part, Some("id"), &batch);
            assert_eq!((first.code, first.base_offset), (0, i64::try_from(n * 4).unwrap()));
            assert_eq!(client.produce("out", part, Some("id"), &batch), first, "P5");
        }
        assert_eq!(client.add_offsets("id", producer, "group"), 0);
        let nobody = Member::default();
        assert_eq!(client.txn_offset_commit(("id", producer), ("group", &nobody), ("in", 0, offset)), 0);
        let open = client.fetch("out", 0, 0, COMMITTED);
        assert_eq!(open.last_stable, i64::try_from(n * 4).unwrap(), "P3: nothing open is shown");
        assert_eq!(client.offset_fetch("group", ("in", 0), true).0, 88, "the offset is not stable yet");
        client.end_txn_surely("id", producer, commit);
    }
    check_what_is_there(&broker);
    drop(client);
    broker.stop();
    broker.start_again(|_| {});
    check_what_is_there(&broker);
    broker.crash();
    broker.start_again(|_| {});
    check_what_is_there(&broker);
    let mut client = broker.connect();
    let later = client.owner("id");
    assert_eq!((later.id, later.epoch), (producer.id, producer.epoch + 1), "P1, P4");
    assert_eq!(client.end_txn("id", producer, true), 90, "P4");
    assert!(!broker.is_broken());
}
