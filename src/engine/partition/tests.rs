//! Table tests: each line is a story on a fresh partition, and what each step must answer.

#![expect(clippy::arithmetic_side_effects, reason = "a test may count freely: an overflow fails it")]

use super::*;
use crate::engine::Outcome;
use crate::engine::batch::samples;

/// One producer id for the stories; a second one where they need another.
const P: i64 = 1000;
const Q: i64 = 1001;

const TXN: &str = "orders";

/// What the partition must say to a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Want {
    At(Offset),
    Repeat(Offset),
    No(Refusal),
    Unverified,
    Deciding,
}

use Want::{At, Deciding, No, Repeat, Unverified};

/// A batch of `count` records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) id: i64,
    pub(super) epoch: Epoch,
    pub(super) sequence: i32,
    pub(super) count: i32,
    pub(super) txn: Option<&'static str>,
}

pub(super) fn header(sent: &Sent) -> Header {
    let attributes = if sent.txn.is_some() { 0x10 } else { 0 };
    Header {
        attributes,
        producer_id: sent.id,
        producer_epoch: sent.epoch,
        base_sequence: sent.sequence,
        ..samples::header(sent.count)
    }
}

const fn plain(epoch: Epoch, sequence: i32, count: i32) -> Sent {
    Sent { id: P, epoch, sequence, count, txn: None }
}

const fn txn(epoch: Epoch, sequence: i32, count: i32) -> Sent {
    Sent { txn: Some(TXN), ..plain(epoch, sequence, count) }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A batch arrives.
    Send(Sent, Want),
    /// The coordinator grants `TXN` of producer P: epoch, transaction number.
    Grant(Epoch, u64),
    /// It seals that transaction and must be told this log end.
    Seal(u64, Offset),
    Unseal(u64),
    /// The coordinator's marker: epoch, transaction number. It must be written.
    Mark(Epoch, u64),
    /// Time passes, and idle producers are dropped.
    Idle(i64),
    /// The log start moves.
    Start(Offset),
    /// The partition is stored and loaded.
    Reload,
}

use Step::{Grant as Give, Idle, Mark, Reload, Seal, Send, Start, Unseal};

pub(super) fn now(ms: i64) -> Now {
    Now { mono_ms: ms, wall_ms: 1_700_000_000_000 + ms }
}

pub(super) fn answer(result: Result<Admission, NotAdmitted>) -> Want {
    match result {
        Ok(Admission::Append { base_offset }) => At(base_offset),
        Ok(Admission::Duplicate { base_offset, .. }) => Repeat(base_offset),
        Err(NotAdmitted::Refused(refusal)) => No(refusal),
        Err(NotAdmitted::Unverified) => Unverified,
        Err(NotAdmitted::Deciding) => Deciding,
    }
}

/// Everything that a batch could have changed.
fn trace(partition: &Partition) -> (Vec<u8>, Offset, Vec<OpenTransaction>) {
    (partition.snapshot(), partition.log_end(), partition.open_transactions().collect())
}

pub(super) fn give(epoch: Epoch, txn_no: u64) -> Grant {
    Grant { txn: TXN.into(), producer: Producer { id: P, epoch }, txn_no, row: txn_no * 10 }
}

fn check(story: &str, steps: &[Step]) {
    let mut partition = Partition::new(0, 0);
    let mut ms = 0;
    for (at, step) in steps.iter().enumerate() {
        let place = format!("{story}, step {at}: {step:?}");
        ms += 1;
        match *step {
            Send(sent, want) => {
                let before = trace(&partition);
                let id = sent.txn.map(TransactionalId::from);
                let got = answer(partition.admit(&header(&sent), id.as_ref(), now(ms)));
                assert_eq!(got, want, "{place}");
                let same = before == trace(&partition);
                assert_eq!(same, !matches!(got, At(_)), "{place}: T-359, X-95");
            }
            Give(epoch, txn_no) => partition.grant(give(epoch, txn_no)),
            Seal(txn_no, end) => assert_eq!(partition.seal(P, txn_no), end, "{place}"),
            Unseal(txn_no) => partition.unseal(P, txn_no),
            Mark(epoch, txn_no) => {
                let order = MarkOrder {
                    producer: Producer { id: P, epoch },
                    outcome: Outcome::Commit,
                    coordinator_epoch: 0,
                    sealed_end: partition.log_end(),
                    txn_no: Some(txn_no),
                    redo: false,
                };
                assert!(matches!(partition.mark(&order, now(ms)), MarkStep::Write(_)), "{place}");
            }
            Idle(idle_ms) => {
                ms += idle_ms;
                partition.expire(now(ms), 1000);
            }
            Start(offset) => partition.set_log_start(offset),
            Reload => {
                let mut loaded = Partition::new(partition.log_start(), partition.log_end());
                loaded.restore(&partition.snapshot(), now(ms)).unwrap();
                partition = loaded;
            }
        }
    }
}

const GAP: Want = No(Refusal::OutOfOrderSequence);
const OLD: Want = No(Refusal::InvalidProducerEpoch);
const MAX: i32 = i32::MAX;

#[rustfmt::skip]
const REPEATS: &[(&str, &[Step])] = &[
    ("T-352, T-355, C-61: five batches are known again", &[
        Send(plain(0, 0, 3), At(0)), Send(plain(0, 3, 1), At(3)), Send(plain(0, 4, 1), At(4)),
        Send(plain(0, 5, 1), At(5)), Send(plain(0, 6, 2), At(6)),
        Send(plain(0, 0, 3), Repeat(0)), Send(plain(0, 6, 2), Repeat(6)),
        Send(plain(0, 8, 1), At(8)),
        Send(plain(0, 0, 3), GAP), Send(plain(0, 3, 1), Repeat(3)),
        Send(plain(0, 6, 1), GAP), Send(plain(0, 6, 3), GAP), Send(plain(0, 9, 1), At(9)),
    ]),
    ("X-86, T-712: all five survive a snapshot", &[
        Send(plain(0, 0, 3), At(0)), Send(plain(0, 3, 1), At(3)), Send(plain(0, 4, 2), At(4)),
        Send(plain(0, 6, 1), At(6)), Send(plain(0, 7, 1), At(7)), Send(plain(0, 8, 9), At(8)),
        Reload,
        Send(plain(0, 8, 9), Repeat(8)), Send(plain(0, 7, 1), Repeat(7)), Send(plain(0, 6, 1), Repeat(6)),
        Send(plain(0, 4, 2), Repeat(4)), Send(plain(0, 3, 1), Repeat(3)),
        Send(plain(0, 0, 3), GAP), Send(plain(0, 17, 1), At(17)),
    ]),
    ("C-64, T-542: the log start takes nothing of a producer", &[
        Send(plain(0, 0, 5), At(0)), Send(plain(0, 5, 5), At(5)), Start(10), Send(plain(0, 5, 5), Repeat(5)),
        Reload, Send(plain(0, 5, 5), Repeat(5)), Send(plain(0, 10, 1), At(10)),
    ]),
];

const NONE: Sent = Sent { id: -1, epoch: -1, sequence: -1, count: 2, txn: None };

#[rustfmt::skip]
const SEQUENCES: &[(&str, &[Step])] = &[
    ("T-354 no entry: any", &[Send(plain(3, 77, 2), At(0)), Send(plain(3, 79, 1), At(2))]),
    ("T-354 greater epoch: 0 only", &[Send(plain(0, 0, 1), At(0)), Send(plain(1, 1, 1), GAP), Send(plain(1, 0, 1), At(1))]),
    ("T-354 equal epoch: the next", &[Send(plain(0, 0, 2), At(0)), Send(plain(0, 3, 1), GAP), Send(plain(0, 2, 1), At(2))]),
    ("T-353 lower epoch", &[Send(plain(4, 0, 1), At(0)), Send(plain(3, 0, 1), OLD), Send(plain(3, 1, 1), OLD)]),
    ("T-356 a higher epoch forgets the batches", &[
        Send(plain(0, 0, 2), At(0)), Send(plain(1, 0, 2), At(2)), Send(plain(0, 0, 2), OLD), Send(plain(1, 0, 2), Repeat(2)),
    ]),
    ("T-354 a marker of a new epoch leaves no batches: 0 only", &[
        Give(0, 1), Send(txn(0, 0, 2), At(0)), Mark(1, 1), Give(1, 2), Send(txn(1, 2, 1), GAP), Send(txn(1, 0, 1), At(3)),
    ]),
    ("T-351, C-62 wrap at 2^31", &[
        Send(plain(0, MAX - 1, 2), At(0)), Send(plain(0, MAX, 1), GAP), Send(plain(0, 0, 1), At(2)),
        Send(plain(0, MAX - 1, 2), Repeat(0)),
    ]),
    ("T-351 a batch over the wrap", &[
        Send(plain(0, MAX - 1, 4), At(0)), Send(plain(0, 1, 1), GAP), Send(plain(0, 2, 1), At(4)),
        Send(plain(0, MAX - 1, 4), Repeat(0)), Reload, Send(plain(0, MAX - 1, 4), Repeat(0)),
    ]),
    ("T-357 no producer", &[
        Send(NONE, At(0)), Send(NONE, At(2)), Give(0, 1), Send(txn(0, 0, 1), At(4)), Send(NONE, At(5)),
    ]),
    ("T-362, C-63 idle producers are dropped, any sequence then", &[
        Send(plain(5, 0, 7), At(0)), Idle(500), Send(plain(5, 9, 1), GAP), Idle(900), Send(plain(2, 7, 1), At(7)),
    ]),
    ("T-362 an open transaction protects", &[
        Give(5, 1), Send(txn(5, 0, 7), At(0)), Idle(5000), Send(txn(5, 9, 1), GAP), Send(txn(5, 7, 1), At(7)),
    ]),
    ("T-611 R the idle time goes on over a restart", &[
        Send(plain(5, 0, 7), At(0)), Reload, Idle(10), Send(plain(5, 9, 1), GAP),
        Reload, Idle(1000), Send(plain(0, 9, 1), At(7)),
    ]),
];

#[test]
fn repeats_and_sequences() {
    for (story, steps) in REPEATS.iter().chain(SEQUENCES) {
        check(story, steps);
    }
}

/// T-354, second row: not offered yet, so judged alone.
#[test]
fn sequence_that_opens_an_own_epoch() {
    let entry = Entry::new(3, now(0));
    let lines = [
        (None, 0, Some(Protocol::EpochPerTransaction), true),
        (None, 5, Some(Protocol::EpochPerTransaction), false),
        (None, 5, Some(Protocol::Classic), true),
        (None, 5, None, true),
        (Some(&entry), 5, Some(Protocol::Classic), false),
        (Some(&entry), 0, Some(Protocol::EpochPerTransaction), true),
    ];
    for (entry, sequence, opens, fits) in lines {
        let got = producers::check_sequence(entry, &header(&txn(3, sequence, 1)), opens);
        assert_eq!(got.is_ok(), fits, "T-354: {entry:?} {sequence} {opens:?}");
    }
}

const MAPPING: Want = No(Refusal::InvalidProducerIdMapping);
const OTHER_PRODUCER: Sent = Sent { id: Q, ..txn(0, 0, 1) };

const fn stranger(sequence: i32) -> Sent {
    Sent { txn: Some("payments"), ..txn(0, sequence, 1) }
}

/// T-385, classic column: Unverified is asked of the coordinator (48, 47, 49), Deciding is 51's mapping (19).
#[rustfmt::skip]
const TRANSACTIONS: &[(&str, &[Step])] = &[
    ("T-385 open", &[Give(0, 1), Send(txn(0, 0, 1), At(0)), Send(txn(0, 1, 1), At(1)), Send(txn(0, 3, 1), GAP)]),
    ("T-385 none, Ongoing, listed", &[Give(0, 1), Send(txn(0, 0, 1), At(0))]),
    ("T-385 none, not listed or Empty", &[Send(txn(0, 0, 1), Unverified)]),
    ("T-385 none, Complete; T-377 a late repeat is none then", &[
        Give(0, 1), Send(txn(0, 0, 1), At(0)), Seal(1, 1), Mark(0, 1),
        Send(txn(0, 1, 1), Unverified), Send(txn(0, 0, 1), Unverified),
    ]),
    ("T-385 none, Prepare of the same epoch", &[Give(0, 1), Seal(1, 0), Send(txn(0, 0, 1), Deciding)]),
    ("T-385 Prepare of a higher epoch, before and after the marker came", &[
        Give(0, 1), Seal(1, 0), Send(txn(0, 0, 1), Deciding), Mark(1, 1), Send(txn(0, 0, 1), OLD),
    ]),
    ("T-385 epoch mismatch: lower", &[Give(4, 1), Send(txn(3, 0, 1), OLD)]),
    ("T-385 epoch mismatch: higher", &[Give(4, 1), Send(txn(5, 0, 1), Unverified)]),
    ("T-385 other producer id", &[Give(0, 1), Send(OTHER_PRODUCER, Unverified)]),
    ("T-316 R, X-87 another transactional id", &[
        Give(0, 1), Send(stranger(0), MAPPING), Send(txn(0, 0, 1), At(0)), Send(stranger(1), MAPPING),
        Send(stranger(0), MAPPING),
    ]),
    ("T-358 a plain batch of a producer with an open transaction", &[
        Give(0, 1), Send(plain(0, 0, 1), At(0)), Send(txn(0, 1, 1), At(1)),
        Send(plain(0, 5, 1), GAP), Send(plain(0, 2, 1), No(Refusal::InvalidTxnState)),
        Send(plain(1, 0, 1), No(Refusal::InvalidTxnState)), Send(plain(0, 1, 1), Repeat(1)), Send(txn(0, 2, 1), At(2)),
    ]),
    ("T-380 a lower epoch than wrote here", &[Send(plain(7, 0, 1), At(0)), Give(6, 1), Send(txn(6, 0, 1), OLD)]),
    ("X-95 a late repeat in the next transaction of the epoch", &[
        Give(0, 1), Send(txn(0, 0, 2), At(0)), Mark(0, 1), Give(0, 2),
        Send(txn(0, 0, 2), Repeat(0)), Send(txn(0, 1, 1), GAP), Send(txn(0, 2, 1), At(3)),
    ]),
    ("X-98 what comes after the seal is not in it, also where it is open; a repeat is still one", &[
        Give(0, 1), Send(txn(0, 0, 2), At(0)), Seal(1, 2), Send(txn(0, 2, 1), Deciding), Send(txn(0, 9, 1), Deciding),
        Send(txn(0, 0, 2), Repeat(0)), Give(0, 1), Send(txn(0, 2, 1), Deciding),
        Unseal(1), Send(txn(0, 2, 1), At(2)), Seal(7, 3), Send(txn(0, 3, 1), At(3)),
    ]),
    ("nothing joins a transaction of another epoch", &[
        Give(0, 1), Send(txn(0, 0, 1), At(0)), Give(1, 2), Send(txn(1, 0, 1), Deciding),
    ]),
    ("T-383 a stored marker closes the grant; an earlier grant does not come back", &[
        Give(0, 2), Mark(0, 2), Send(txn(0, 0, 1), Unverified), Give(0, 3), Give(0, 2), Send(txn(0, 0, 1), At(1)),
        Mark(0, 2), Send(txn(0, 1, 1), At(3)),
    ]),
];

#[test]
fn transactions() {
    for (story, steps) in TRANSACTIONS {
        check(story, steps);
    }
}

const OTHER: Producer = Producer { id: Q, epoch: 0 };
const OWNER: Producer = Producer { id: P, epoch: 3 };

/// Q has a transaction at 10, P one at 12.
fn two_open() -> Partition {
    let mut partition = Partition::new(0, 10);
    partition.grant(give(3, 1));
    partition.grant(Grant { txn: "b".into(), producer: OTHER, txn_no: 1, row: 99 });
    let sent = Sent { id: Q, epoch: 0, sequence: 0, count: 2, txn: Some("b") };
    partition.admit(&header(&sent), Some(&"b".into()), now(5)).unwrap();
    partition.admit(&header(&txn(3, 0, 4)), Some(&TXN.into()), now(6)).unwrap();
    partition.admit(&header(&txn(3, 4, 4)), Some(&TXN.into()), now(7)).unwrap();
    partition
}

/// T-501, T-541 R.
#[test]
fn first_unstable() {
    assert_eq!(Partition::new(0, 10).first_unstable(), None);
    let mut partition = two_open();
    assert_eq!((partition.grant_row(P), partition.grant_row(Q), partition.grant_row(7)), (Some(10), Some(99), None));
    let begun =
        |producer, first_offset, ms| OpenTransaction { producer, first_offset, started_wall_ms: now(ms).wall_ms };
    let open: Vec<_> = partition.open_transactions().collect();
    assert_eq!(open, [begun(OTHER, 10, 5), begun(OWNER, 12, 6)]);
    assert_eq!(partition.first_unstable(), Some(10));
    partition.set_log_start(11);
    assert_eq!(partition.first_unstable(), Some(11), "T-541 R");
    partition.set_log_start(5);
    assert_eq!(partition.log_start(), 11);
}

fn order(producer: Producer, outcome: Outcome) -> MarkOrder {
    MarkOrder { producer, outcome, coordinator_epoch: 7, sealed_end: 20, txn_no: Some(1), redo: false }
}

/// What markers do (T-408, T-505, T-506).
#[test]
fn markers() {
    let mut partition = two_open();
    let step = partition.mark(&order(OTHER, Outcome::Abort), now(8));
    let aborted = Aborted { producer_id: Q, first_offset: 10, last_offset: 20, last_stable_offset: 12 };
    assert_eq!(step, MarkStep::Write(Written { offset: 20, closes: Some(10), aborted: Some(aborted) }), "T-505, T-506");
    assert_eq!((partition.first_unstable(), partition.grant_row(Q)), (Some(12), None));
    let fence = Producer { epoch: 4, ..OWNER };
    let step = partition.mark(&order(fence, Outcome::Commit), now(9));
    assert_eq!(step, MarkStep::Write(Written { offset: 21, closes: Some(12), aborted: None }));
    assert_eq!((partition.first_unstable(), partition.log_end(), partition.producer_count()), (None, 22, 2));
    let known = partition.describe()[0];
    assert_eq!((known.epoch, known.last_sequence, known.coordinator_epoch), (4, -1, 7), "T-408");
}

/// What tools are shown (T-830).
#[test]
fn described() {
    let mut partition = two_open();
    partition.mark(&order(OTHER, Outcome::Abort), now(8));
    let shown = |id, epoch, last_sequence, ms| {
        let last_timestamp = now(ms).wall_ms;
        ProducerState { id, epoch, last_sequence, last_timestamp, coordinator_epoch: -1, current_txn_start: None }
    };
    let owner = ProducerState { current_txn_start: Some(12), ..shown(P, 3, 7, 7) };
    let other = ProducerState { coordinator_epoch: 7, ..shown(Q, 0, 1, 8) };
    assert_eq!(partition.describe(), [owner, other]);
}

/// T-352 R: the time to answer on topics of LogAppendTime.
#[test]
fn repeat_says_when() {
    let mut partition = Partition::new(0, 0);
    partition.admit(&header(&plain(0, 0, 3)), None, now(5)).unwrap();
    let again = partition.admit(&header(&plain(0, 0, 3)), None, now(50));
    assert_eq!(again, Ok(Admission::Duplicate { base_offset: 0, last_offset: 2, arrived_wall_ms: now(5).wall_ms }));
}
