//! Producer ids, owners, decisions and what they owe, tools.

use super::*;
use crate::engine::Refusal;
use crate::engine::ledger::rows::{RowKey, RowValue};
use crate::engine::ledger::show::{Find, Shown};

#[test]
fn producer_ids_are_reserved_on_disk_before_they_are_handed_out() {
    let mut ledger = Ledger::load(Loaded::default(), &settings(), now(0));
    let mut end = 0;
    for wanted in 0..2_500 {
        assert_eq!(ledger.fresh_producer_id(), wanted, "T-105, T-149");
        for (key, value) in ledger.rows().changes() {
            let (RowKey::Marks, Some(RowValue::Marks(marks))) = (key, value) else { panic!("{key:?}") };
            end = marks.producer_ids_end;
        }
        assert!(wanted < end, "T-132 R: {wanted} is not reserved");
        ledger.commit();
    }
    assert_eq!(end, 3_000, "blocks of a thousand");
    let marks = Marks { producer_ids_end: end, next_producer_id: 0, next_part: 0 };
    let mut next = Ledger::load(Loaded { marks, ..Loaded::default() }, &settings(), now(0));
    assert_eq!(next.fresh_producer_id(), 3_000, "T-132 R: what was left of a block is lost at a start");
    next.discard();
    assert_eq!(next.fresh_producer_id(), 3_000, "T-148 R: a refused one was never given");
}

#[test]
fn who_owns_what() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    assert_eq!(bench.ledger.owner_of(a.id), Some(&"a".into()));
    let request = Init { timeout_ms: 1, expected: None };
    let empty = bench.ledger.init_producer(&"".into(), request, now(0));
    assert_eq!(empty, Err(Refusal::InvalidRequest), "T-106");
    for epoch in 1..=32_766 {
        assert_eq!(bench.init("a").epoch, epoch);
    }
    let rotated = bench.init("a");
    assert_eq!((rotated.id, rotated.epoch), (a.id + 1, 0), "T-127");
    assert_eq!(bench.ledger.owner_of(a.id), None, "T-263");
    assert_eq!(bench.ledger.owner_of(rotated.id), Some(&"a".into()));
}

#[test]
fn everything_is_concurrent_while_markers_are_owed() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let number = bench.add("a", a, &[P], &["g"]);
    let seq = bench.decide("a", number, Outcome::Commit).unwrap();
    let id = TransactionalId::from("a");
    let stranger = Producer { id: 77, epoch: 9 };
    for producer in [a, stranger] {
        let claimed = Claimed { id: &id, producer };
        let add = bench.ledger.add_to_txn(claimed, &Addition::Group("g".into()), now(1));
        assert_eq!(add, Err(Refusal::ConcurrentTransactions), "T-020, T-212 row 4");
        let init = bench.ledger.init_producer(&id, Init { timeout_ms: 1, expected: Some(producer) }, now(1));
        assert_eq!(init, Err(Refusal::ConcurrentTransactions), "T-112, T-121");
    }
    let claimed = Claimed { id: &id, producer: a };
    assert_eq!(bench.ledger.verify(claimed, P), Err(Refusal::ConcurrentTransactions), "T-222");
    let foreign = Claimed { id: &id, producer: stranger };
    assert_eq!(bench.ledger.verify(foreign, P), Err(Refusal::InvalidProducerIdMapping), "T-222 step 3");
    assert_eq!(bench.ledger.may_stage(claimed, &"g".into()), Err(Refusal::ConcurrentTransactions), "T-243");
    assert_eq!(bench.ledger.may_stage(foreign, &"g".into()), Err(Refusal::InvalidProducerIdMapping), "T-243");
    bench.pay(seq);
    assert!(bench.ledger.add_to_txn(claimed, &Addition::Group("g".into()), now(1)).is_ok());
}

#[test]
fn unknown_and_empty_ids() {
    let bench = Bench::new();
    let producer = Producer { id: 0, epoch: 0 };
    for (id, refusal) in [("", Refusal::InvalidRequest), ("never", Refusal::InvalidProducerIdMapping)] {
        let id = TransactionalId::from(id);
        let claimed = Claimed { id: &id, producer };
        assert_eq!(bench.ledger.verify(claimed, P), Err(refusal), "T-222");
        assert_eq!(bench.ledger.may_stage(claimed, &"g".into()), Err(refusal), "T-243");
        assert_eq!(bench.ledger.judge_end(claimed, Outcome::Commit), Err(refusal), "T-253");
    }
    assert_eq!(bench.ledger.describe_txn(&"".into()), Err(Refusal::InvalidRequest), "T-801");
    assert_eq!(bench.ledger.describe_txn(&"x".into()), Err(Refusal::TransactionalIdNotFound), "T-801");
}

#[test]
fn a_debt_names_every_partition_that_was_sealed_and_no_other() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let number = bench.add("a", a, &[P, Q], &[]);
    let sealed = BTreeMap::from([(P, Some(42)), (Q, None)]);
    let seq = bench.decide_with("a", number, (Outcome::Abort, Cause::Timeout), &sealed).unwrap();
    let owed = bench.ledger.owed.get(&seq).unwrap().clone();
    assert_eq!(owed.parts.keys().copied().collect::<Vec<_>>(), [P], "a partition that is gone owes nothing");
    assert_eq!((owed.parts[&P].sealed_end, owed.number), (42, number), "storage 4.3");
    assert_eq!(owed.marker, Producer { epoch: a.epoch + 1, ..a }, "T-404");
    assert!(bench.ledger.decide((&"a".into(), number), (Outcome::Commit, Cause::Client), &sealed, now(1)).is_err());
}

#[test]
fn nothing_to_mark_is_over_at_once() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let number = bench.add("a", a, &[], &["g"]);
    bench.stage("a", a, "g", (P, 4));
    assert_eq!(bench.decide("a", number, Outcome::Commit), None);
    assert!(!bench.ledger.is_owing(&"a".into()));
    assert_eq!(bench.seen("g", P), Seen::At(at(4)));
    assert!(!bench.is_unstable("g", P));
}

#[test]
fn tools_are_shown_kafkas_states() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let shown = |bench: &Bench| {
        let described = bench.ledger.describe_txn(&"a".into()).unwrap();
        (described.state, described.started_wall_ms, described.parts)
    };
    assert_eq!(shown(&bench), (Shown::Empty, -1, vec![]), "T-803");
    bench.ms = 7;
    let number = bench.add("a", a, &[P, Q], &["g"]);
    let start = now(7).wall_ms;
    assert_eq!(shown(&bench), (Shown::Ongoing, start, vec![P, Q]), "T-802");
    bench.ms = 9;
    let seq = bench.decide("a", number, Outcome::Commit).unwrap();
    assert_eq!(shown(&bench), (Shown::PrepareCommit, start, vec![P, Q]), "T-802");
    bench.ledger.set_stage(seq, P, Stage::Appended);
    bench.ledger.commit();
    assert_eq!(shown(&bench), (Shown::PrepareCommit, start, vec![Q]), "T-802: those that lack a marker");
    bench.pay(seq);
    assert_eq!(shown(&bench), (Shown::CompleteCommit, start, vec![]), "T-803");
    let number = bench.add("a", a, &[P], &[]);
    let seq = bench.decide("a", number, Outcome::Abort).unwrap();
    assert_eq!(shown(&bench).0, Shown::PrepareAbort);
    bench.pay(seq);
    assert_eq!(shown(&bench).0, Shown::CompleteAbort);
    let all: Vec<&str> = bench.ledger.describe_txns().map(|described| described.state.name()).collect();
    assert_eq!(all, ["CompleteAbort"], "T-811, T-812: idle ones are listed too");
}

#[test]
fn deadlines_follow_the_state() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    assert_eq!(bench.ledger.deadline_mono_ms(), None);
    bench.ms = 50;
    let number = bench.add("a", a, &[P], &[]);
    let waits = Waits::Txn("a".into());
    assert_eq!(bench.ledger.waits_for(&waits), Some(1_050), "T-601");
    bench.ms = 60;
    bench.add("a", a, &[Q], &[]);
    assert_eq!(bench.ledger.waits_for(&waits), Some(1_050), "T-602");
    assert!(bench.ledger.due(1_049).is_empty());
    assert_eq!(bench.ledger.due(1_050), std::slice::from_ref(&waits));
    let seq = bench.decide("a", number, Outcome::Commit).unwrap();
    assert_eq!(bench.ledger.waits_for(&waits), None);
    assert_eq!(bench.ledger.waits_for(&Waits::Owed(seq)), Some(60));
    for part in [P, Q] {
        bench.ledger.set_stage(seq, part, Stage::Asked { tries: 0 });
    }
    bench.ledger.commit();
    assert_eq!(bench.ledger.deadline_mono_ms(), None, "the partitions have the word");
    bench.pay(seq);
    assert_eq!(bench.ledger.deadline_mono_ms(), None);
}

#[test]
fn stages_do_not_go_back_when_letters_overtake_each_other() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let number = bench.add("a", a, &[P], &[]);
    let seq = bench.decide("a", number, Outcome::Commit).unwrap();
    bench.ledger.set_stage(seq, P, Stage::Synced);
    bench.ledger.set_stage(seq, P, Stage::Appended);
    assert_eq!(bench.ledger.owed.get(&seq).unwrap().parts[&P].stage, Stage::Synced);
    bench.ledger.set_stage(999, P, Stage::Synced);
    bench.ledger.set_stage(seq, PartId(99), Stage::Synced);
}

#[test]
fn idle_ids_are_forgotten_and_others_are_not() {
    let mut bench = Bench::new();
    let (idle, open, owing) = (bench.init("idle"), bench.init("open"), bench.init("owing"));
    bench.add("open", open, &[P], &[]);
    let number = bench.add("owing", owing, &[P], &[]);
    bench.decide("owing", number, Outcome::Abort);
    assert_eq!(bench.ledger.expire_ids(100, now(99)), []);
    assert_eq!(bench.ledger.expire_ids(100, now(100)), [TransactionalId::from("idle")], "T-612");
    bench.ledger.commit();
    assert_eq!(bench.ledger.owner_of(idle.id), None);
    assert_eq!(bench.ledger.known(&"idle".into()).err(), Some(Refusal::InvalidProducerIdMapping), "T-613");
    assert_ne!(bench.init("idle").id, idle.id, "T-613: a fresh id");
}

/// Something done to a ledger on behalf of an owner and its open transaction.
type Deed = fn(&mut Bench, Producer, u64);

#[test]
fn a_discarded_step_leaves_nothing() {
    let steps: &[(&str, Deed)] = &[
        ("init", |bench, _, _| {
            bench.ledger.init_producer(&"new".into(), Init { timeout_ms: 1, expected: None }, now(2)).unwrap();
        }),
        ("again", |bench, _, _| {
            bench.ledger.init_producer(&"b".into(), Init { timeout_ms: 1, expected: None }, now(2)).unwrap();
        }),
        ("fresh", |bench, _, _| assert!(bench.ledger.fresh_producer_id() > 0)),
        ("add", |bench, a, _| {
            let parts = Addition::Parts(BTreeSet::from([Q, PartId(2)]));
            bench.ledger.add_to_txn(Claimed { id: &"a".into(), producer: a }, &parts, now(2)).unwrap();
        }),
        ("stage", |bench, a, _| {
            let claimed = Claimed { id: &"a".into(), producer: a };
            bench.ledger.stage_for_group(claimed, (&"g".into(), &nobody()), vec![(Q, at(5))], now(2)).unwrap();
        }),
        ("commit", |bench, _, _| {
            bench.ledger.commit_offsets(&"h".into(), &nobody(), (&[(P, at(1))], None), now(2)).unwrap();
        }),
        ("decide", |bench, _, number| {
            let sealed = BTreeMap::from([(P, Some(3))]);
            bench.ledger.decide((&"a".into(), number), (Outcome::Commit, Cause::Client), &sealed, now(2)).unwrap();
        }),
        ("abort", |bench, _, number| {
            let sealed = BTreeMap::from([(P, Some(3))]);
            bench.ledger.decide((&"a".into(), number), (Outcome::Abort, Cause::Timeout), &sealed, now(2)).unwrap();
        }),
        ("delete", |bench, _, _| {
            let topic = bench.ledger.deletable("t").unwrap();
            bench.ledger.delete_topic(&topic);
        }),
        ("expire", |bench, _, _| {
            bench.ledger.expire_ids(0, now(9));
            bench.ledger.expire_offsets(0, now(i64::MAX / 4));
        }),
    ];
    for (name, step) in steps {
        let mut bench = Bench::new();
        let a = bench.init("a");
        bench.init("b");
        let number = bench.add("a", a, &[P], &["g"]);
        bench.plain("g", P, 1);
        bench.stage("a", a, "g", (P, 4));
        let before = picture(&bench.ledger);
        step(&mut bench, a, number);
        bench.ledger.discard();
        assert_eq!(picture(&bench.ledger), before, "{name}");
        // And the same step again goes as if it had never been tried.
        step(&mut bench, a, number);
        bench.ledger.commit();
        assert_ne!(picture(&bench.ledger), before, "{name} did something");
    }
}

#[test]
fn who_is_looked_for_and_the_longest_open_first() {
    let mut bench = Bench::new();
    for (ms, id) in [(30, "b1"), (10, "a1"), (20, "a2")] {
        bench.ms = ms;
        let producer = bench.init(id);
        bench.add(id, producer, &[P], &[]);
    }
    bench.init("a3");
    bench.ms = 40;
    let find = |find: Find| {
        let (total, found) = bench.ledger.find_txns(&find, bench.now());
        (total, found.into_iter().map(|described| described.id.to_string()).collect::<Vec<_>>().join(" "))
    };
    let all = || Find { states: Vec::new(), prefix: String::new(), open_longer_than_ms: None, limit: 10 };
    for (what, wish, total, found) in [
        ("all", all(), 4, "a1 a2 b1 a3"),
        ("two of them", Find { limit: 2, ..all() }, 4, "a1 a2"),
        ("none of them", Find { limit: 0, ..all() }, 4, ""),
        ("a prefix", Find { prefix: "a".to_owned(), ..all() }, 3, "a1 a2 a3"),
        ("two states", Find { states: vec![Shown::Ongoing, Shown::CompleteAbort], ..all() }, 3, "a1 a2 b1"),
        ("idle", Find { states: vec![Shown::Empty], ..all() }, 1, "a3"),
        ("longer than", Find { open_longer_than_ms: Some(19), ..all() }, 2, "a1 a2"),
        ("no longer", Find { open_longer_than_ms: Some(30), ..all() }, 0, ""),
        ("all at once", Find { prefix: "a".to_owned(), open_longer_than_ms: Some(9), limit: 1, ..all() }, 2, "a1"),
    ] {
        assert_eq!(find(wish), (total, found.to_owned()), "{what}");
    }
}
