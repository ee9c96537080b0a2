//! An operator's tool aborts transactions (C-51, T-840 to T-847).

use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::{
    DescribeProducersRequest, DescribeTransactionsRequest, ListTransactionsRequest, WriteTxnMarkersRequest,
};

use crate::broker::TestBroker;
use crate::raw::batch::{Batch, Pid};
use crate::raw::data::{Isolation, LATEST};
use crate::raw::txn::Member;
use crate::raw::{Client, text};

const COMMITTED: Isolation = Isolation::ReadCommitted;
const ALL: Isolation = Isolation::ReadUncommitted;

/// The producer of the transaction that begins at this offset, as `kafka-transactions.sh abort` looks for it (T-845).
fn producer_at(client: &mut Client, (topic, part): (&str, i32), start: i64) -> Option<Pid> {
    let topic = TopicRequest::default().with_name(text(topic).into()).with_partition_indexes(vec![part]);
    let answer = client.call(0, &DescribeProducersRequest::default().with_topics(vec![topic]));
    let producers = &answer.topics[0].partitions[0].active_producers;
    let found = producers.iter().find(|producer| producer.current_txn_start_offset == start)?;
    Some(Pid { id: found.producer_id.0, epoch: i16::try_from(found.producer_epoch).unwrap() })
}

fn stable(client: &mut Client, part: i32) -> i64 {
    client.list_offsets("t", part, LATEST, COMMITTED).1
}

#[test]
fn an_open_transaction_is_aborted_in_all_its_partitions() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 3), 0);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0), ("t", 1)]), [0, 0]);
    for part in [0, 1] {
        let batch = Batch::transactional(owner, 0, 2).values("dropped", 2);
        assert_eq!(client.produce("t", part, Some("id"), &batch).code, 0);
        assert_eq!(client.produce("t", part, None, &Batch::plain(1).values("kept", 1)).code, 0);
    }
    assert_eq!(client.add_offsets("id", owner, "g"), 0);
    assert_eq!(client.txn_offset_commit(("id", owner), ("g", &Member::default()), ("t", 0, 2)), 0);
    assert_eq!(producer_at(&mut client, ("t", 1), 0), Some(owner));
    assert_eq!((stable(&mut client, 0), stable(&mut client, 1)), (0, 0));
    assert_eq!(client.write_markers(owner, false, &[("t", 1), ("none", 0), ("t", 9)]), [0, 3, 3], "T-409");
    assert_eq!(producer_at(&mut client, ("t", 1), 0), None);
    let check = |client: &mut Client| {
        for part in [0, 1] {
            assert_eq!(stable(client, part), 4, "T-846 R");
            assert_eq!(client.read_all("t", part, COMMITTED), ["kept-0"], "T-846 R");
        }
        assert_eq!(client.offset_fetch("g", ("t", 0), true), (0, -1));
        let ids = vec![text("id").into()];
        let answer = client.call(0, &DescribeTransactionsRequest::default().with_transactional_ids(ids));
        assert_eq!(answer.transaction_states[0].transaction_state.as_str(), "CompleteAbort");
    };
    check(&mut client);
    assert_eq!(client.end_txn("id", owner, true), 90, "C-51: its producer is told");
    let zombie = client.produce("t", 0, Some("id"), &Batch::transactional(owner, 2, 1));
    assert_eq!(zombie.code, 47, "T-404");
    drop(client);
    broker.crash();
    broker.start_again(|_| {});
    let mut client = broker.connect();
    check(&mut client);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 1).values("new", 1)).code, 0);
    client.end_txn_surely("id", owner, true);
    assert_eq!(client.read_all("t", 0, COMMITTED), ["kept-0", "new-0"]);
}

#[test]
fn what_a_tool_may_not_do() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert!(client.call(1, &WriteTxnMarkersRequest::default()).markers.is_empty(), "T-409");
    assert_eq!(client.create_topic("t", 2), 0);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 1).values("kept", 1)).code, 0);
    for (why, producer, commit, code) in [
        ("T-846 R: it would commit a part", owner, true, 48),
        ("an epoch that is nobody's yet", Pid { epoch: owner.epoch + 1, ..owner }, false, 47),
        ("a producer id that is nobody's yet", Pid { id: owner.id + 100_000, epoch: 0 }, false, 49),
        ("negative", Pid { epoch: -1, ..owner }, false, 42),
    ] {
        assert_eq!(client.write_markers(producer, commit, &[("t", 0), ("t", 1)]), [code, code], "{why}");
    }
    assert_eq!(stable(&mut client, 0), 0);
    // Nothing of it is open in the other partition: a marker is written there (T-408), and ends nothing.
    assert_eq!(client.write_markers(owner, false, &[("t", 1)]), [0]);
    assert_eq!((client.list_offsets("t", 1, LATEST, ALL).1, stable(&mut client, 1), stable(&mut client, 0)), (1, 1, 0));
    client.end_txn_surely("id", owner, true);
    assert_eq!(client.read_all("t", 0, COMMITTED), ["kept-0"]);
    assert_eq!(client.write_markers(owner, false, &[("t", 0)]), [0], "T-406: too late to end anything");
    assert_eq!(client.read_all("t", 0, COMMITTED), ["kept-0"]);
}

/// T-847: what `find-hanging` asks; on a broker that is well it finds that the owner lists the partition.
#[test]
fn nothing_hangs_on_a_broker_that_is_well() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    let found = producer_at(&mut client, ("t", 0), 0).unwrap();
    let filter = ListTransactionsRequest::default().with_producer_id_filters(vec![found.id.into()]);
    let ids: Vec<_> = client.call(0, &filter).transaction_states.into_iter().map(|one| one.transactional_id).collect();
    let described = client.call(0, &DescribeTransactionsRequest::default().with_transactional_ids(ids));
    let topics = &described.transaction_states[0].topics;
    assert!(topics.iter().any(|topic| topic.topic.as_str() == "t" && topic.partitions == [0]));
}
