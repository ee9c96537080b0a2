//! The ledger from its rows, and logs compared with it.

use std::sync::Arc;

use super::*;
use crate::engine::ledger::offsets::Committed;
use crate::engine::ledger::recover::Adopted;
use crate::engine::ledger::rows::RowKey;
use crate::engine::txn::work::{Owed, OwedPart};
use crate::engine::txn::{Ongoing, Staged, State, Txn};

fn txn(id: i64, epoch: i16, state: State) -> Txn {
    let producer = Producer { id, epoch };
    Txn { producer, last_epoch: -1, previous_producer_id: -1, timeout_ms: 500, state, updated_wall_ms: 0 }
}

fn open(number: u64, parts: &[PartId]) -> State {
    State::Ongoing(Ongoing {
        number,
        parts: Arc::new(parts.iter().copied().collect()),
        groups: Arc::default(),
        staged: Arc::default(),
        started_wall_ms: 5,
        since_mono_ms: 0,
    })
}

fn ended() -> State {
    State::Ended { outcome: Outcome::Commit, started_wall_ms: 5 }
}

fn loaded() -> Loaded {
    let staged = |order| Staged { order, position: at(3) };
    let part = OwedPart { sealed_end: 4, stage: Stage::Synced };
    let owed = Owed {
        id: "owing".into(),
        number: 70,
        marker: Producer { id: 3, epoch: 0 },
        outcome: Outcome::Commit,
        parts: BTreeMap::from([(P, part)]),
        offsets: Vec::new(),
        since_mono_ms: -5,
    };
    Loaded {
        txns: vec![
            ("empty".into(), txn(1, 4, State::Empty)),
            ("open".into(), txn(2, 4, open(40, &[P]))),
            ("owing".into(), txn(3, 0, ended())),
        ],
        pending: vec![
            ("open".into(), ("g".into(), P), staged(90)),
            ("empty".into(), ("g".into(), Q), staged(91)),
            ("never".into(), ("g".into(), Q), staged(92)),
        ],
        owed: vec![(80, owed)],
        ..Loaded::default()
    }
}

#[test]
fn rows_become_state() {
    let mut ledger = Ledger::load(loaded(), &settings(), now(1_000));
    assert_eq!(ledger.waits_for(&Waits::Txn("open".into())), Some(1_500), "timeouts count anew");
    assert_eq!(ledger.waits_for(&Waits::Owed(80)), Some(1_000), "the marker is due now");
    assert!(ledger.is_owing(&"owing".into()) && !ledger.is_owing(&"open".into()));
    let gone: Vec<RowKey> = ledger.rows().changes().map(|(key, _)| key.clone()).collect();
    let pending = |id: &str| RowKey::Pending(id.into(), "g".into(), Q);
    assert_eq!(gone, [pending("empty"), pending("never")], "storage 4.4 step 4");
    assert!(ledger.is_pending(&("g".into(), P)) && !ledger.is_pending(&("g".into(), Q)));
    assert!(ledger.next_order() > 92, "no place in the order is given twice");
}

/// T-821, T-826: two transactions carry an offset of one key, and one of them is decided when the broker ends.
#[test]
fn what_is_pending_is_counted_anew() {
    let key = (GroupId::from("g"), P);
    let mut rows = loaded();
    let committed = Committed { order: 60, position: at(2), at_wall_ms: 0, expires_wall_ms: None };
    rows.owed[0].1.offsets.push((key.clone(), committed.clone()));
    rows.offsets.push((key.clone(), committed));
    let mut ledger = Ledger::load(rows, &settings(), now(0));
    assert!(ledger.is_pending(&key));
    ledger.set_stage(80, P, Stage::Synced);
    assert!(ledger.release_if_over(80, false, now(0)));
    ledger.commit();
    assert!(ledger.is_pending(&key), "the open transaction still carries one");
    ledger.forget_offset(&key);
    ledger.commit();
    assert!(!ledger.is_pending(&key), "T-824");
    assert!(ledger.open_transactions().all(|(_, _, ongoing)| ongoing.staged.is_empty()), "T-824");
}

#[test]
fn logs_are_compared_with_the_ledger() {
    // storage 4.4: what a log holds open, by whose producer id, epoch and partition.
    let table: &[(&str, (i64, i16), PartId, Adopted)] = &[
        ("known", (2, 4), P, Adopted::Known),
        ("registration of a partition lost", (2, 4), Q, Adopted::Again),
        ("registration lost", (1, 4), P, Adopted::Again),
        ("next transaction of a decided id", (3, 0), P, Adopted::Again),
        ("lower epoch", (2, 3), P, Adopted::Orphan { marker: Producer { id: 2, epoch: 4 } }),
        ("higher epoch", (2, 6), P, Adopted::Orphan { marker: Producer { id: 2, epoch: 6 } }),
        ("no row", (99, 6), P, Adopted::Orphan { marker: Producer { id: 99, epoch: 7 } }),
    ];
    for (case, (id, epoch), part, wanted) in table {
        let mut ledger = Ledger::load(loaded(), &settings(), now(0));
        let producer = Producer { id: *id, epoch: *epoch };
        assert_eq!(ledger.adopt(producer, *part, now(7)), *wanted, "{case}");
        ledger.commit();
        let listed = ledger
            .open_transactions()
            .any(|(_, txn, ongoing)| txn.producer == producer && ongoing.parts.contains(part));
        assert_eq!(listed, !matches!(wanted, Adopted::Orphan { .. }), "{case}");
        if *wanted == Adopted::Again {
            assert_eq!(ledger.adopt(producer, *part, now(7)), Adopted::Known, "{case}: twice does no harm");
        }
    }
}

#[test]
fn one_transaction_found_in_two_partitions_is_one() {
    let mut ledger = Ledger::load(loaded(), &settings(), now(0));
    let producer = Producer { id: 1, epoch: 4 };
    assert_eq!(ledger.adopt(producer, P, now(7)), Adopted::Again);
    assert_eq!(ledger.adopt(producer, Q, now(7)), Adopted::Again);
    ledger.commit();
    let (_, _, ongoing) = ledger.open_transactions().find(|(_, txn, _)| txn.producer == producer).unwrap();
    assert_eq!(ongoing.parts.len(), 2);
    assert_eq!(ledger.waits_for(&Waits::Txn("empty".into())), Some(507));
}

#[test]
fn a_partition_is_known_as_transactional_with_the_first_add() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let id = TransactionalId::from("a");
    let claimed = Claimed { id: &id, producer: a };
    let parts = Addition::Parts(BTreeSet::from([P]));
    let first = bench.ledger.add_to_txn(claimed, &parts, now(0)).unwrap();
    assert!(first.first_ever == [P] && bench.ledger.rows().changes().any(|(key, _)| *key == RowKey::Part(P)));
    bench.ledger.commit();
    let number = first.number;
    let seq = bench.decide("a", number, Outcome::Abort).unwrap();
    bench.pay(seq);
    let later = bench.ledger.add_to_txn(claimed, &parts, now(0)).unwrap();
    assert!(later.first_ever.is_empty() && later.number > number);
}
