//! Markers that a tool asks for (T-840, T-846 R).

use super::*;
use crate::engine::Refusal;
use crate::engine::ledger::tools::ToolMark;
use crate::engine::partition::{AdminMark, Protocol};
use crate::engine::txn::work::after_failure;

fn judge(bench: &Bench, producer: Producer, outcome: Outcome, part: PartId) -> Result<ToolMark, Refusal> {
    let mark = AdminMark { producer, outcome, coordinator_epoch: 0, protocol: Protocol::Classic };
    bench.ledger.judge_tool_mark(&mark, part)
}

fn abort(bench: &Bench, producer: Producer, part: PartId) -> Result<ToolMark, Refusal> {
    judge(bench, producer, Outcome::Abort, part)
}

fn under(producer: Producer, epoch: i16) -> Producer {
    Producer { epoch, ..producer }
}

const ALONE: Result<ToolMark, Refusal> = Ok(ToolMark::InPartition);

#[test]
fn what_the_ledger_has_no_part_in_is_the_partitions() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let idempotent = Producer { id: bench.ledger.fresh_producer_id(), epoch: 0 };
    bench.ledger.commit();
    let never = Producer { id: idempotent.id + 1, epoch: 0 };
    for (why, producer, expected) in [
        ("nothing was begun", a, ALONE),
        ("T-406 is the partition's to say", under(a, 0), ALONE),
        ("a producer without an id", idempotent, ALONE),
        ("whose epoch nobody but partitions know", under(idempotent, 7), ALONE),
        ("it would fence the owner", under(a, a.epoch + 1), Err(Refusal::InvalidProducerEpoch)),
        ("it would fence who gets the id", never, Err(Refusal::InvalidProducerIdMapping)),
        ("negative", under(a, -1), Err(Refusal::InvalidRequest)),
        ("negative", Producer { id: -1, epoch: 0 }, Err(Refusal::InvalidRequest)),
    ] {
        assert_eq!(abort(&bench, producer, P), expected, "{why}: {producer:?}");
        let commit = judge(&bench, producer, Outcome::Commit, P);
        assert!(commit.is_err(), "only the ledger's decisions commit: {producer:?}");
    }
}

#[test]
fn an_open_transaction_ends_as_a_whole_or_not_at_all() {
    let mut bench = Bench::new();
    bench.init("a");
    let a = bench.init("a");
    let number = bench.add("a", a, &[P], &["g"]);
    let whole = Ok(ToolMark::EndWhole { id: "a".into(), number });
    assert_eq!(abort(&bench, a, P), whole, "T-846 R");
    assert_eq!(judge(&bench, a, Outcome::Commit, P), Err(Refusal::InvalidTxnState), "T-846 R");
    assert_eq!(abort(&bench, a, Q), ALONE, "it is not in the transaction: what is open there hangs (T-847)");
    assert_eq!(abort(&bench, under(a, 0), P), ALONE, "what is open there under an older epoch is none of it");
    assert_eq!(abort(&bench, under(a, 2), P), Err(Refusal::InvalidProducerEpoch));
    bench.add("a", a, &[Q], &[]);
    assert_eq!(abort(&bench, a, Q), whole);
}

#[test]
fn a_decision_is_carried_out_as_it_was_taken() {
    for (decided, expected) in
        [(Outcome::Abort, Ok(ToolMark::UnderWay { id: "a".into() })), (Outcome::Commit, Err(Refusal::InvalidTxnState))]
    {
        let mut bench = Bench::new();
        bench.init("a");
        let a = bench.init("a");
        let number = bench.add("a", a, &[P, Q], &[]);
        let seq = bench.decide("a", number, decided).unwrap();
        let mut stages = vec![Stage::Due { at_mono_ms: 0, tries: 0 }, Stage::Asked { tries: 0 }];
        stages.push(after_failure(stages[1], 5));
        for stage in stages {
            bench.ledger.set_stage(seq, P, stage);
            assert_eq!(abort(&bench, a, P), expected, "{decided:?} {stage:?}");
            assert_eq!(abort(&bench, under(a, 0), P), expected, "{decided:?} {stage:?}");
            let higher =
                if decided == Outcome::Abort { Refusal::InvalidProducerEpoch } else { Refusal::InvalidTxnState };
            assert_eq!(abort(&bench, under(a, 2), P), Err(higher), "{decided:?} {stage:?}");
            assert_eq!(judge(&bench, a, Outcome::Commit, P), Err(Refusal::InvalidTxnState));
        }
        for stage in [Stage::Parked, Stage::Left] {
            bench.ledger.set_stage(seq, P, stage);
            assert_eq!(abort(&bench, a, P), Err(Refusal::KafkaStorageError), "{decided:?} {stage:?}");
        }
        assert_eq!(abort(&bench, a, Q), expected, "{decided:?}: each partition by itself");
        bench.ledger.set_stage(seq, Q, Stage::Appended);
        assert_eq!(abort(&bench, a, Q), ALONE, "{decided:?}: what comes lies behind the marker");
        bench.ledger.set_stage(seq, P, Stage::Synced);
        assert_eq!(abort(&bench, a, P), ALONE, "{decided:?}");
    }
}

/// An id that has another producer by now: the debt is known by the producer that it is about.
#[test]
fn a_debt_of_a_producer_that_was_replaced_stands() {
    let mut bench = Bench::new();
    let mut a = bench.init("a");
    while a.epoch < 32_766 {
        a = bench.init("a");
    }
    let number = bench.add("a", a, &[P], &[]);
    let seq =
        bench.decide_with("a", number, (Outcome::Abort, Cause::Timeout), &BTreeMap::from([(P, Some(10))])).unwrap();
    assert_eq!(abort(&bench, a, P), Ok(ToolMark::UnderWay { id: "a".into() }));
    bench.pay(seq);
    let next = bench.init("a");
    assert_ne!(next.id, a.id);
    assert_eq!(abort(&bench, a, P), ALONE, "T-406: 32767 is there by now");
    bench.add("a", next, &[P], &[]);
    assert_eq!(abort(&bench, a, P), ALONE, "another producer's transaction is not touched by it");
}
