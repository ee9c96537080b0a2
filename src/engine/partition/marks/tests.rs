use super::*;
use crate::engine::batch::Header;
use crate::engine::partition::tests::{Sent, give, header, now};
use crate::engine::{Epoch, TransactionalId};

const P: i64 = 1000;

fn sent(epoch: Epoch, sequence: i32, txn: Option<&'static str>) -> Header {
    header(&Sent { id: P, epoch, sequence, count: 5, txn })
}

/// What stands on the partition when a marker comes.
#[derive(Debug, Clone, Copy)]
enum Known {
    Nothing,
    /// Five plain records of this epoch, at 0.
    Idle(Epoch),
    /// A transaction of this epoch with five records, at 0.
    Open(Epoch),
}

fn partition(known: Known) -> Partition {
    let mut partition = Partition::new(0, 0);
    match known {
        Known::Nothing => {}
        Known::Idle(epoch) => {
            partition.admit(&sent(epoch, 0, None), None, now(1)).unwrap();
        }
        Known::Open(epoch) => {
            partition.grant(give(epoch, 1));
            partition.admit(&sent(epoch, 0, Some("orders")), Some(&"orders".into()), now(1)).unwrap();
        }
    }
    partition
}

/// The same, and no coordinator knows of it.
fn orphaned(known: Known) -> Partition {
    let mut partition = partition(known);
    partition.grants.close(Producer { id: P, epoch: 0 }, Some(1));
    partition
}

/// T-406, every column, and T-407.
#[test]
fn admin() {
    use Known::{Idle, Nothing, Open};
    use Protocol::{Classic, EpochPerTransaction as Own};
    let last = Epoch::MAX;
    let lines = [
        (Classic, Nothing, 0, true),
        (Classic, Idle(5), 4, false),
        (Classic, Idle(5), 5, true),
        (Classic, Idle(5), 6, true),
        (Classic, Open(5), 4, false),
        (Classic, Open(5), 5, true),
        (Classic, Open(5), 6, true),
        (Own, Nothing, 0, true),
        (Own, Idle(5), 4, false),
        (Own, Idle(5), 5, true),
        (Own, Idle(5), 6, true),
        (Own, Open(5), 4, false),
        (Own, Open(5), 5, false),
        (Own, Open(5), 6, true),
        (Own, Open(last), last, true),
        (Own, Open(last), last - 1, false),
    ];
    for (protocol, known, epoch, fits) in lines {
        let line = format!("T-406 {protocol:?} {known:?} marker {epoch}");
        let mut partition = orphaned(known);
        let (before, end) = (partition.snapshot(), partition.log_end());
        let producer = Producer { id: P, epoch };
        let mark = AdminMark { producer, outcome: Outcome::Abort, coordinator_epoch: 3, protocol };
        let got = partition.admin_mark(&mark, now(2));
        if fits {
            let closes = matches!(known, Open(_)).then_some(0);
            assert_eq!(got.map(|written| (written.offset, written.closes)), Ok((end, closes)), "{line}");
            assert_eq!(partition.log_end(), end + 1, "{line}");
            let earlier = AdminMark { coordinator_epoch: 2, ..mark };
            let fenced = partition.admin_mark(&earlier, now(3));
            assert_eq!(fenced, Err(Refusal::TransactionCoordinatorFenced), "T-407 after {line}");
            assert!(partition.admin_mark(&mark, now(3)).is_ok(), "T-406: a repeat is written, {line}");
        } else {
            assert_eq!(got, Err(Refusal::InvalidProducerEpoch), "{line}");
            assert_eq!((partition.snapshot(), partition.log_end()), (before, end), "{line}");
        }
    }
}

/// T-846 R: a transaction that the coordinator has let in is not a tool's to end, whether its end is being decided or not;
/// what is left open of an older epoch is.
#[test]
fn admin_and_coordinator() {
    let mark = |epoch| AdminMark {
        producer: Producer { id: P, epoch },
        outcome: Outcome::Abort,
        coordinator_epoch: 0,
        protocol: Protocol::Classic,
    };
    for sealed in [false, true] {
        let mut partition = partition(Known::Open(5));
        if sealed {
            partition.seal(P, 1);
        }
        let (before, end) = (partition.snapshot(), partition.log_end());
        for (epoch, refusal) in [
            (4, Refusal::InvalidProducerEpoch),
            (5, Refusal::ConcurrentTransactions),
            (6, Refusal::ConcurrentTransactions),
        ] {
            assert_eq!(partition.admin_mark(&mark(epoch), now(2)), Err(refusal), "sealed: {sealed}, marker {epoch}");
        }
        assert_eq!((partition.snapshot(), partition.log_end()), (before, end));
    }
    let mut partition = orphaned(Known::Open(5));
    partition.grant(give(6, 2));
    assert_eq!(partition.admin_mark(&mark(6), now(2)), Err(Refusal::ConcurrentTransactions));
    assert_eq!(partition.admin_mark(&mark(5), now(2)).map(|written| written.closes), Ok(Some(0)));
    assert_eq!(partition.first_unstable(), None);
    let txn = TransactionalId::from("orders");
    assert!(partition.admit(&sent(6, 0, Some("orders")), Some(&txn), now(3)).is_ok(), "the permission stands");
    assert_eq!(partition.admin_mark(&mark(5), now(4)), Err(Refusal::InvalidProducerEpoch), "T-406");
}

#[derive(Debug, PartialEq)]
enum Came {
    Closes,
    ClosesNothing,
    Done,
    Fenced,
}

/// The coordinator's orders: T-405, T-413, and storage 4.3, the trap of the equal epoch. What is known, the marker's
/// epoch, the log end of the decision, whether it is a second try.
#[rustfmt::skip]
const OWED: &[(Known, Epoch, Offset, bool, Came, &str)] = &[
    (Known::Open(5), 5, 5, false, Came::Closes, "plain"),
    (Known::Open(5), 6, 5, false, Came::Closes, "T-404 fence"),
    (Known::Open(5), 5, 5, true, Came::Closes, "4.3: below the noted end, the marker was lost"),
    (Known::Open(5), 5, 1, true, Came::Closes, "4.3: first offset below the noted end"),
    (Known::Open(5), 5, 0, true, Came::Done, "4.3: at the noted end, the next transaction"),
    (Known::Open(5), 5, 0, false, Came::Done, "4.3: a late first try does not end it either"),
    (Known::Open(5), 6, 0, true, Came::Done, "4.3: nor does a fence"),
    (Known::Open(5), 6, Offset::MAX, true, Came::Closes, "an orphan"),
    (Known::Idle(5), 5, 5, false, Came::ClosesNothing, "T-405"),
    (Known::Nothing, 5, 0, false, Came::ClosesNothing, "T-405"),
    (Known::Idle(5), 5, 5, true, Came::Done, "nothing open"),
    (Known::Idle(5), 6, 5, true, Came::ClosesNothing, "the fence was lost"),
    (Known::Nothing, 6, 0, true, Came::ClosesNothing, "the marker was lost"),
    (Known::Open(7), 6, 5, false, Came::Fenced, "T-413"),
    (Known::Idle(7), 6, 5, true, Came::Fenced, "T-413"),
];

#[test]
fn owed() {
    for (known, epoch, sealed_end, redo, wanted, why) in OWED {
        let (known, epoch, sealed_end, redo) = (*known, *epoch, *sealed_end, *redo);
        let mut partition = partition(known);
        let (before, end) = (partition.snapshot(), partition.log_end());
        let producer = Producer { id: P, epoch };
        let order =
            MarkOrder { producer, outcome: Outcome::Abort, coordinator_epoch: 1, sealed_end, txn_no: None, redo };
        let line = format!("{why}: {known:?} {order:?}");
        let came = match partition.mark(&order, now(2)) {
            MarkStep::Write(written) => {
                assert_eq!((written.offset, partition.log_end()), (end, end + 1), "{line}");
                assert_eq!(partition.first_unstable(), None, "{line}");
                assert_eq!(written.aborted.is_some(), written.closes.is_some(), "{line}: T-505");
                if written.closes.is_some() { Came::Closes } else { Came::ClosesNothing }
            }
            MarkStep::AlreadyDone => Came::Done,
            MarkStep::Fenced => Came::Fenced,
        };
        assert_eq!(came, *wanted, "{line}");
        if matches!(came, Came::Done | Came::Fenced) {
            assert_eq!((partition.snapshot(), partition.log_end()), (before, end), "{line}");
        }
    }
}

/// Storage 4.3 as it happens: the first marker is in the log, its completion is not, and the second transaction of the
/// same epoch runs when the first is redone.
#[test]
fn equal_epoch() {
    let mut partition = partition(Known::Open(5));
    let sealed_end = partition.seal(P, 1);
    let producer = Producer { id: P, epoch: 5 };
    let order = MarkOrder {
        producer,
        outcome: Outcome::Commit,
        coordinator_epoch: 1,
        sealed_end,
        txn_no: Some(1),
        redo: false,
    };
    assert!(matches!(partition.mark(&order, now(2)), MarkStep::Write(_)));
    partition.grant(give(5, 2));
    partition.admit(&sent(5, 5, Some("orders")), Some(&"orders".into()), now(3)).unwrap();
    let again = MarkOrder { redo: true, ..order };
    assert_eq!(partition.mark(&again, now(4)), MarkStep::AlreadyDone);
    assert_eq!(partition.first_unstable(), Some(6));
    assert!(partition.grant_row(P).is_some(), "the second's grant stands");
    let second = MarkOrder { sealed_end: partition.seal(P, 2), txn_no: Some(2), redo: true, ..order };
    assert!(matches!(partition.mark(&second, now(5)), MarkStep::Write(Written { closes: Some(6), .. })));
}
