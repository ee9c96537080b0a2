use kafka_protocol::messages::ListTransactionsRequest;
use kafka_protocol::protocol::StrBytes;

use super::Filter;
use crate::engine::ledger::show::{Described, Shown};
use crate::engine::{Producer, TransactionalId};

/// `kept`: which of an Ongoing id of producer 1, an Empty one of 2, and a CompleteAbort one of 3 pass.
fn check(states: &[&'static str], producer_ids: &[i64], kept: &[i64], unknown: &[&str], rule: &str) {
    let request = ListTransactionsRequest::default()
        .with_state_filters(states.iter().map(|name| StrBytes::from_static_str(name)).collect())
        .with_producer_id_filters(producer_ids.iter().map(|id| (*id).into()).collect());
    let (filter, left) = Filter::of(request);
    let all = [(1, Shown::Ongoing), (2, Shown::Empty), (3, Shown::CompleteAbort)].map(|(id, state)| Described {
        id: TransactionalId::from("t"),
        state,
        producer: Producer { id, epoch: 0 },
        timeout_ms: 1,
        deadline_mono_ms: None,
        started_wall_ms: -1,
        parts: Vec::new(),
        groups: Vec::new(),
    });
    let passed: Vec<i64> = all.iter().filter(|one| filter.keeps(one)).map(|one| one.producer.id).collect();
    assert_eq!(passed, kept, "{rule}");
    assert_eq!(left.iter().map(|name| &**name).collect::<Vec<_>>(), unknown, "{rule}");
}

#[test]
fn filters_are_exact_and_joined_by_and() {
    check(&[], &[], &[1, 2, 3], &[], "no filter");
    check(&["Ongoing", "Empty"], &[], &[1, 2], &[], "T-811");
    check(&["ongoing"], &[], &[], &["ongoing"], "T-811: case counts; only unknown names match nothing");
    check(&["Gone", "CompleteAbort"], &[], &[3], &["Gone"], "T-811");
    check(&["Dead", "PrepareEpochFence"], &[], &[], &[], "T-811, T-011: names of states, and nobody is in them");
    check(&[], &[3, 9, 2], &[2, 3], &[], "T-812");
    check(&["Ongoing"], &[2, 3], &[], &[], "T-814");
}
