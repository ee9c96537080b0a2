//! Offsets: pending, held, committed, forgotten.

use super::*;
use crate::engine::Refusal;
use crate::engine::ledger::rows::{RowKey, RowValue};

#[test]
fn staged_offsets_are_seen_when_the_markers_are_written() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    bench.plain("g", P, 1);
    let number = bench.add("a", a, &[P], &["g"]);
    bench.stage("a", a, "g", (P, 5));
    assert_eq!(bench.seen("g", P), Seen::At(at(1)), "T-247");
    assert!(bench.is_unstable("g", P), "T-821");
    assert!(!bench.is_unstable("g", Q), "T-821: others are answered");
    bench.stage("a", a, "g", (P, 6));
    let seq = bench.decide("a", number, Outcome::Commit).unwrap();
    assert_eq!(bench.seen("g", P), Seen::At(at(1)), "decided, its marker is not written");
    assert!(bench.is_unstable("g", P));
    bench.pay(seq);
    assert_eq!(bench.seen("g", P), Seen::At(at(6)), "T-247: the later of two");
    assert!(!bench.is_unstable("g", P), "X-48");
}

#[test]
fn an_abort_drops_what_was_staged() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let number = bench.add("a", a, &[P], &["g"]);
    bench.stage("a", a, "g", (P, 5));
    bench.decide("a", number, Outcome::Abort);
    assert_eq!(bench.seen("g", P), Seen::Absent, "T-823");
    assert!(!bench.is_unstable("g", P));
}

#[test]
fn the_later_write_wins() {
    // T-823, T-248, X-11: a plain commit before or after the staging, before or after the decision.
    for (when, wanted) in [("before the staging", 5), ("after the staging", 9), ("after the decision", 9)] {
        let mut bench = Bench::new();
        let a = bench.init("a");
        let number = bench.add("a", a, &[P], &["g"]);
        let plain = |bench: &mut Bench, now: &str| {
            if now == when {
                bench.plain("g", P, 9);
                assert_eq!(bench.seen("g", P), Seen::At(at(9)), "T-248: unaffected by what is pending");
            }
        };
        plain(&mut bench, "before the staging");
        bench.stage("a", a, "g", (P, 5));
        plain(&mut bench, "after the staging");
        let seq = bench.decide("a", number, Outcome::Commit).unwrap();
        plain(&mut bench, "after the decision");
        bench.pay(seq);
        assert_eq!(bench.seen("g", P), Seen::At(at(wanted)), "T-823: {when}");
    }
}

#[test]
fn two_decisions_that_hold_one_key_show_it_in_any_order() {
    for first in [0, 1] {
        let mut bench = Bench::new();
        bench.plain("g", P, 1);
        let ids = ["a", "b"];
        let owners = ids.map(|id| bench.init(id));
        let mut seqs = Vec::new();
        for (n, (id, owner)) in ids.iter().zip(owners).enumerate() {
            let number = bench.add(id, owner, &[P], &["g"]);
            bench.stage(id, owner, "g", (P, 10 + i64::try_from(n).unwrap()));
            seqs.push((number, *id));
        }
        let seqs: Vec<u64> =
            seqs.into_iter().map(|(number, id)| bench.decide(id, number, Outcome::Commit).unwrap()).collect();
        assert_eq!(bench.seen("g", P), Seen::At(at(1)));
        bench.pay(seqs[first]);
        let shown = 10 + i64::try_from(first).unwrap();
        assert_eq!(bench.seen("g", P), Seen::At(at(shown)), "T-823: each visible at its own marker");
        assert!(bench.is_unstable("g", P), "the other one is not written");
        bench.pay(seqs[1 - first]);
        assert_eq!(bench.seen("g", P), Seen::At(at(11)), "the later staging wins, {first} first");
        assert!(!bench.is_unstable("g", P));
    }
}

#[test]
fn all_partitions_of_a_group_include_those_only_pending() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    bench.plain("g", Q, 1);
    bench.add("a", a, &[P], &["g"]);
    bench.stage("a", a, "g", (P, 5));
    assert_eq!(bench.ledger.parts_with_offsets(&"g".into()), [P, Q], "T-822 R");
    assert_eq!(bench.ledger.parts_with_offsets(&"f".into()), []);
}

#[test]
fn a_deleted_topic_takes_everything_along() {
    // T-824: also what is staged, and what is decided and not yet shown.
    for decided in [false, true] {
        let mut bench = Bench::new();
        let gone = bench.topic("gone", 1)[0];
        let a = bench.init("a");
        bench.plain("g", gone, 1);
        let number = bench.add("a", a, &[P], &["g"]);
        bench.stage("a", a, "g", (gone, 5));
        bench.stage("a", a, "g", (P, 6));
        let seq = decided.then(|| bench.decide("a", number, Outcome::Commit).unwrap());
        bench.delete("gone");
        assert_eq!(bench.seen("g", gone), Seen::Absent);
        let seq = seq.unwrap_or_else(|| bench.decide("a", number, Outcome::Commit).unwrap());
        bench.pay(seq);
        assert_eq!(bench.seen("g", gone), Seen::Absent, "a later commit brings nothing back, decided: {decided}");
        assert_eq!(bench.seen("g", P), Seen::At(at(6)));
        assert_eq!(bench.ledger.pending_offsets(), 0);
        let again = bench.topic("gone", 1)[0];
        assert_ne!(gone, again, "a namesake shares nothing");
    }
}

#[test]
fn a_deleted_topic_removes_its_rows_in_the_same_commit() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    bench.plain("g", Q, 1);
    bench.add("a", a, &[P], &["g"]);
    bench.stage("a", a, "g", (P, 5));
    let topic = bench.ledger.deletable("t").unwrap();
    bench.ledger.delete_topic(&topic);
    let removed = |key: RowKey| bench.ledger.rows().changes().any(|(have, value)| *have == key && value.is_none());
    assert!(removed(RowKey::Pending("a".into(), "g".into(), P)));
    assert!(removed(RowKey::Offset("g".into(), Q)));
    assert!(removed(RowKey::Part(P)) && removed(RowKey::Part(Q)) && removed(RowKey::Topic(topic.id)));
}

#[test]
fn offsets_of_idle_groups_go_and_pending_ones_stay() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    bench.plain("g", P, 1);
    bench.plain("g", Q, 2);
    bench.plain("alone", Q, 3);
    let number = bench.add("a", a, &[P], &["g"]);
    bench.stage("a", a, "g", (P, 5));
    bench.ledger.expire_offsets(100, now(1_000_000));
    bench.ledger.commit();
    assert_eq!(bench.seen("g", P), Seen::At(at(1)), "T-826");
    assert_eq!(bench.seen("g", Q), Seen::Absent);
    assert!(bench.ledger.groups.get("g").is_some(), "T-826: the group lives while it has any");
    assert!(bench.ledger.groups.get("alone").is_none());
    let seq = bench.decide("a", number, Outcome::Commit).unwrap();
    bench.pay(seq);
    assert_eq!(bench.seen("g", P), Seen::At(at(5)));
}

#[test]
fn the_groups_check_comes_with_the_staging() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    bench.add("a", a, &[], &["g"]);
    let claim = Claim { generation: 3, member: "m".into(), instance: None };
    let id = TransactionalId::from("a");
    let claimed = Claimed { id: &id, producer: a };
    let refused = bench.ledger.stage_for_group(claimed, (&"g".into(), &claim), vec![(P, at(1))], now(1));
    assert_eq!(refused, Err(Refusal::IllegalGeneration), "T-244");
    assert!(bench.ledger.rows().is_empty(), "nothing is staged");
    let other = bench.ledger.stage_for_group(claimed, (&"h".into(), &claim), vec![(P, at(1))], now(1));
    assert_eq!(other, Err(Refusal::InvalidTxnState), "T-241: the transaction is judged before the group");
}

#[test]
fn the_commit_point_is_one_commit() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let number = bench.add("a", a, &[P], &["g"]);
    bench.stage("a", a, "g", (P, 5));
    let sealed = BTreeMap::from([(P, Some(2))]);
    bench.ledger.decide((&"a".into(), number), (Outcome::Commit, Cause::Client), &sealed, now(1)).unwrap();
    let kinds: Vec<&str> = (bench.ledger.rows().changes())
        .map(|(_, value)| match value {
            Some(RowValue::Txn(_)) => "txn",
            Some(RowValue::Offset(_)) => "offset",
            Some(RowValue::Owed(_)) => "owed",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["offset", "txn", "owed"]);
    assert_eq!(bench.ledger.rows().unstaged().collect::<Vec<_>>(), [&TransactionalId::from("a")]);
}

#[test]
fn slices_of_what_readers_see_make_up_the_whole() {
    let mut bench = Bench::new();
    for (group, part, offset) in [("g", P, 1), ("g", Q, 2), ("h", P, 3), ("i", Q, 4)] {
        bench.plain(group, part, offset);
    }
    let a = bench.init("a");
    let number = bench.add("a", a, &[P], &["h", "j"]);
    bench.stage("a", a, "h", (P, 9));
    bench.stage("a", a, "j", (P, 9));
    let seq = bench.decide("a", number, Outcome::Commit).unwrap();
    let slice = |bench: &Bench, from: Option<(&str, PartId)>, most| {
        let from = from.map(|(group, part)| (group.into(), part));
        let slice = bench.ledger.seen_offsets(from.as_ref(), most);
        slice
            .into_iter()
            .map(|(group, part, offset)| format!("{group}-{}@{offset}", part.0))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(slice(&bench, None, 2), "g-0@1 g-1@2");
    assert_eq!(slice(&bench, Some(("g", Q)), 2), "g-1@2 h-0@3", "from a key on, it included; decided is not seen yet");
    assert_eq!(slice(&bench, Some(("h", Q)), 9), "i-1@4 j-0@-1", "a key that is not there; nothing seen of it yet");
    bench.pay(seq);
    assert_eq!(slice(&bench, Some(("h", P)), 9), "h-0@9 i-1@4 j-0@9");
    assert_eq!(slice(&bench, Some(("k", P)), 9), "");
}
