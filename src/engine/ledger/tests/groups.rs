//! Groups and their offsets deleted, and what becomes of the transactions that carry some.

use super::*;
use crate::engine::group::{Join, JoinVersion, Sync};
use crate::engine::ledger::rows::RowKey;
use crate::engine::{MemberId, Refusal, ReplyTo};

/// Consumer metadata of version 0 that names one topic.
fn reads(topic: &str) -> Vec<u8> {
    let length = i16::try_from(topic.len()).unwrap();
    [&[0, 0, 0, 0, 0, 1][..], &length.to_be_bytes(), topic.as_bytes(), &[0xff; 4]].concat()
}

impl Bench {
    /// A group of one member that is Stable in generation 1.
    fn stable(&mut self, group: &str, kind: &str, metadata: Vec<u8>) -> Claim {
        let join = Join {
            member: MemberId::from(""),
            instance: None,
            client_id: "c".to_owned(),
            client_host: "/10.0.0.1".to_owned(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 10_000,
            protocol_type: kind.to_owned(),
            protocols: vec![("range".to_owned(), metadata.into())],
            version: JoinVersion::V0,
            fresh_member: MemberId::from("m"),
        };
        let (id, now) = (GroupId::from(group), self.now());
        self.ledger.join(&id, &join, (ReplyTo(1), &settings()), now);
        self.ledger.expire_group(&id, now);
        let claim = Claim { generation: 1, member: MemberId::from("m"), instance: None };
        let sync = Sync { claim: claim.clone(), protocol_type: None, protocol: None, assignments: Vec::new() };
        self.ledger.sync(&id, &sync, ReplyTo(2), now);
        self.ledger.commit();
        assert_eq!(self.ledger.groups.get(&id).map(|group| group.state_name()), Some("Stable"));
        claim
    }

    fn delete_group(&mut self, group: &str) -> Result<(), Refusal> {
        let deleted = self.ledger.delete_group(&group.into());
        self.ledger.commit();
        deleted
    }

    fn delete_offsets(&mut self, group: &str, parts: &[PartId]) -> Result<Vec<Result<(), Refusal>>, Refusal> {
        let deleted = self.ledger.delete_offsets(&group.into(), parts);
        self.ledger.commit();
        deleted
    }
}

#[test]
fn groups_are_deleted_with_their_offsets() {
    let mut bench = Bench::new();
    bench.plain("g", P, 1);
    bench.plain("g", Q, 2);
    bench.plain("h", P, 3);
    bench.plain("", P, 4);
    bench.stable("busy", "consumer", reads("t"));
    assert_eq!(bench.delete_group("never"), Err(Refusal::GroupIdNotFound), "G-465");
    assert_eq!(bench.delete_group("busy"), Err(Refusal::NonEmptyGroup), "G-465");
    assert_eq!(bench.ledger.delete_group(&"g".into()), Ok(()), "O-652");
    let removed = |key: RowKey| bench.ledger.rows().changes().any(|(have, value)| *have == key && value.is_none());
    assert!(removed(RowKey::Group("g".into())), "G-465");
    assert!(removed(RowKey::Offset("g".into(), P)) && removed(RowKey::Offset("g".into(), Q)), "G-465");
    bench.ledger.commit();
    assert_eq!((bench.seen("g", P), bench.seen("g", Q)), (Seen::Absent, Seen::Absent));
    assert_eq!(bench.seen("h", P), Seen::At(at(3)), "another group's stay");
    assert_eq!(bench.delete_group("g"), Err(Refusal::GroupIdNotFound), "G-465");
    assert_eq!(bench.delete_group(""), Ok(()), "G-404: a group without a name is one too");
    bench.plain("g", P, 9);
    assert_eq!(bench.seen("g", P), Seen::At(at(9)), "O-606: a commit makes it anew");
}

/// T-824, T-825: what a transaction carries for a group goes with the group, whenever that is deleted.
#[test]
fn no_commit_brings_a_deleted_group_back() {
    for deletes in ["the group", "its offsets"] {
        for decided in [false, true] {
            let mut bench = Bench::new();
            let a = bench.init("a");
            bench.plain("g", P, 1);
            let number = bench.add("a", a, &[P], &["g"]);
            bench.stage("a", a, "g", (P, 5));
            let seq = decided.then(|| bench.decide("a", number, Outcome::Commit).unwrap());
            if deletes == "the group" {
                assert_eq!(bench.delete_group("g"), Ok(()), "T-825, decided: {decided}");
            } else {
                assert_eq!(bench.delete_offsets("g", &[P]), Ok(vec![Ok(())]), "T-824, decided: {decided}");
            }
            assert_eq!(bench.seen("g", P), Seen::Absent);
            let seq = seq.unwrap_or_else(|| bench.decide("a", number, Outcome::Commit).unwrap());
            bench.pay(seq);
            assert_eq!(bench.seen("g", P), Seen::Absent, "T-824: {deletes}, decided: {decided}");
            assert_eq!(bench.ledger.pending_offsets(), 0);
            assert_eq!(bench.ledger.groups.get("g").is_some(), deletes == "its offsets");
        }
    }
}

/// T-824: one transaction is decided before the deletion and shown after it, another begins behind it.
#[test]
fn what_is_decided_after_a_deletion_waits_for_its_own_markers() {
    for first in ["before", "after"] {
        let mut bench = Bench::new();
        let (a, b) = (bench.init("a"), bench.init("b"));
        let number = bench.add("a", a, &[P], &["g"]);
        bench.stage("a", a, "g", (P, 5));
        let before = bench.decide("a", number, Outcome::Commit).unwrap();
        assert_eq!(bench.delete_group("g"), Ok(()));
        let number = bench.add("b", b, &[P], &["g"]);
        bench.stage("b", b, "g", (P, 7));
        let after = bench.decide("b", number, Outcome::Commit).unwrap();
        assert_eq!(bench.seen("g", P), Seen::Absent);
        let (one, other, shown) =
            if first == "before" { (before, after, Seen::Absent) } else { (after, before, Seen::At(at(7))) };
        bench.pay(one);
        assert_eq!(bench.seen("g", P), shown, "the one decided {first} the deletion is over");
        bench.pay(other);
        assert_eq!(bench.seen("g", P), Seen::At(at(7)), "{first}");
    }
}

/// A plain commit behind a deletion stands, whatever was decided before.
#[test]
fn a_commit_behind_a_deletion_is_seen_at_once() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    let number = bench.add("a", a, &[P], &["g"]);
    bench.stage("a", a, "g", (P, 5));
    let seq = bench.decide("a", number, Outcome::Commit).unwrap();
    assert_eq!(bench.delete_group("g"), Ok(()));
    bench.plain("g", P, 2);
    assert_eq!(bench.seen("g", P), Seen::At(at(2)), "T-248");
    bench.pay(seq);
    assert_eq!(bench.seen("g", P), Seen::At(at(2)), "T-824");
}

#[test]
fn offsets_are_deleted_unless_they_are_read() {
    use Refusal::{GroupIdNotFound, GroupSubscribedToTopic, InvalidGroupId, NonEmptyGroup, UnknownTopicOrPartition};
    let mut bench = Bench::new();
    let other = bench.topic("u", 1)[0];
    let gone = bench.topic("gone", 1)[0];
    bench.delete("gone");
    for group in ["simple", "reads t", "unreadable", "connect"] {
        bench.plain(group, P, 1);
        bench.plain(group, other, 2);
    }
    bench.stable("reads t", "consumer", reads("t"));
    bench.stable("unreadable", "consumer", vec![0]);
    bench.stable("connect", "connect", Vec::new());
    let covered = Err(GroupSubscribedToTopic);
    type Line<'a> = (&'a str, &'a [PartId], Result<Vec<Result<(), Refusal>>, Refusal>);
    let table: &[Line<'_>] = &[
        ("", &[P], Err(InvalidGroupId)),
        ("never", &[P], Err(GroupIdNotFound)),
        ("never", &[], Err(GroupIdNotFound)),
        ("connect", &[other], Err(NonEmptyGroup)),
        ("reads t", &[P, other, Q], Ok(vec![covered, Ok(()), covered])),
        ("unreadable", &[P, other], Ok(vec![covered, covered])),
        ("simple", &[P, P, Q, gone], Ok(vec![Ok(()), Ok(()), Ok(()), Err(UnknownTopicOrPartition)])),
        ("simple", &[], Ok(Vec::new())),
    ];
    for (group, parts, expected) in table {
        assert_eq!(&bench.delete_offsets(group, parts), expected, "G-466: {group}");
    }
    let left = |group: &str| (bench.seen(group, P), bench.seen(group, other));
    let (first, second) = (Seen::At(at(1)), Seen::At(at(2)));
    assert_eq!(left("simple"), (Seen::Absent, second.clone()));
    assert_eq!(left("reads t"), (first.clone(), Seen::Absent));
    assert_eq!(left("unreadable"), (first.clone(), second.clone()));
    assert_eq!(left("connect"), (first, second));
    assert!(bench.ledger.groups.get("simple").is_some(), "G-466: the group stays");
}
