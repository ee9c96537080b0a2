use super::{distinct, show};
use crate::api::words::tests::catalog;
use crate::engine::ledger::show::{Described, Shown};
use crate::engine::{PartId, Producer, TransactionalId};

#[test]
fn an_id_named_twice_is_described_once() {
    let ids = distinct(["b", "", "a", "b", ""].into_iter());
    assert_eq!(ids, ["b", "", "a"].map(TransactionalId::from));
}

#[test]
fn partitions_are_shown_by_topic() {
    let described = Described {
        id: TransactionalId::from("t"),
        state: Shown::PrepareCommit,
        producer: Producer { id: 4, epoch: 2 },
        timeout_ms: 60_000,
        deadline_mono_ms: None,
        started_wall_ms: 17,
        parts: [7, 2, 1, 99].map(PartId).to_vec(),
        groups: Vec::new(),
    };
    let shown = show(&catalog(), described);
    assert_eq!(shown.error_code, 0, "T-802");
    assert_eq!((&*shown.transactional_id.0, &*shown.transaction_state), ("t", "PrepareCommit"), "T-802");
    assert_eq!((shown.producer_id.0, shown.producer_epoch), (4, 2), "T-802");
    assert_eq!((shown.transaction_timeout_ms, shown.transaction_start_time_ms), (60_000, 17), "T-802");
    let topics: Vec<(&str, &[i32])> =
        shown.topics.iter().map(|topic| (&*topic.topic.0, topic.partitions.as_slice())).collect();
    assert_eq!(topics, [("a", &[0, 1][..]), ("b", &[0][..])], "T-802");
}
