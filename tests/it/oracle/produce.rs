//! Produce within transactions, versions 3 to 9 (T-301, T-306, T-316, T-358, T-373, T-377, T-385).

use super::Standing::{Deciding, Empty, Ongoing, Over, Unknown};
use super::{Claim, FREE, HELD, Scene, Standing, until};
use crate::raw::Client;
use crate::raw::batch::{Batch, NOBODY, Pid, seal};
use crate::raw::data::{Isolation, LATEST, produce_request};

/// How the id stands, who writes, to which partition of the free topic (0 is in the transaction); the code.
type Line = (Standing, Claim, i32, i16);

/// T-385 and T-373 where the partition holds nothing of the producer.
const LINES: &[Line] = &[
    (Ongoing, Claim::Owner, 0, 0),
    (Ongoing, Claim::Owner, 1, 48),
    (Empty, Claim::Owner, 0, 48),
    (Over(true), Claim::Owner, 0, 48),
    (Over(false), Claim::Owner, 0, 48),
    (Deciding(true), Claim::Owner, 0, 19),
    (Deciding(false), Claim::Owner, 0, 19),
    (Deciding(true), Claim::Owner, 1, 19),
    (Ongoing, Claim::Lower, 0, 47),
    (Ongoing, Claim::Higher, 0, 47),
    (Empty, Claim::Lower, 0, 47),
    (Empty, Claim::Higher, 0, 47),
    (Over(true), Claim::Lower, 0, 47),
    (Over(true), Claim::Higher, 0, 47),
    (Deciding(true), Claim::Lower, 0, 47),
    (Deciding(true), Claim::Higher, 0, 47),
    (Ongoing, Claim::Other, 0, 49),
    (Empty, Claim::Other, 0, 49),
    (Over(true), Claim::Other, 0, 49),
    (Deciding(true), Claim::Other, 0, 49),
    (Unknown, Claim::Owner, 0, 49),
];

fn check(scene: &Scene, client: &mut Client, (version, line): &(i16, Line)) {
    let (standing, claim, part, code) = *line;
    let id = scene.fresh_id();
    let owner = scene.bring(client, &id, standing);
    let batch = Batch::transactional(claim.of(owner), 0, 1);
    let said = client.produce_in(*version, (FREE, part), Some(&id), &batch);
    assert_eq!(said.code, code, "T-385, version {version}: {line:?}");
}

#[test]
fn every_row() {
    let scene = Scene::new();
    scene.hold();
    let lines: Vec<(i16, Line)> = (3..=9).flat_map(|version| LINES.iter().map(move |line| (version, *line))).collect();
    scene.check_all(&lines, check);
}

/// X-98 R: once the end is decided nothing joins the transaction any more, though it is open on the partition.
#[test]
fn what_comes_after_the_decision_is_not_in_it() {
    let scene = Scene::new();
    let lines: Vec<(bool, String)> = [(true, "commit".to_owned()), (false, "abort".to_owned())].to_vec();
    scene.check_all(&lines, |_, client, (_, id)| {
        let owner = client.owner(id);
        assert_eq!(client.add_partitions(id, owner, &[(HELD, 0), (FREE, 0)]), [0, 0]);
        for topic in [HELD, FREE] {
            assert_eq!(client.produce(topic, 0, Some(id), &Batch::transactional(owner, 0, 1).values(id, 1)).code, 0);
        }
    });
    scene.hold();
    scene.check_all(&lines, |_, client, (commit, id)| {
        let owner = client.who(id);
        assert_eq!(client.end_txn(id, owner, *commit), 51);
        for version in 3..=9 {
            for topic in [HELD, FREE] {
                let late = Batch::transactional(owner, 1, 1).values("late", 1);
                let said = client.produce_in(version, (topic, 0), Some(id), &late);
                assert_eq!(said.code, 19, "X-98 R, T-373: {id}, {topic}, version {version}");
            }
        }
    });
    scene.release();
    scene.check_all(&lines, |_, client, (_, id)| {
        let owner = client.who(id);
        until("it is over", || client.state_of(id).is_ok_and(|state| state.starts_with("Complete")));
        assert_eq!(client.add_partitions(id, owner, &[(HELD, 0), (FREE, 0)]), [0, 0]);
        for topic in [HELD, FREE] {
            let next = Batch::transactional(owner, 1, 1).values("next", 1);
            assert_eq!(client.produce(topic, 0, Some(id), &next).code, 0, "T-373: it is asked to try again, and may");
        }
        client.end_txn_surely(id, owner, true);
    });
    let mut client = scene.connect();
    for topic in [HELD, FREE] {
        let shown = client.read_all(topic, 0, Isolation::ReadCommitted);
        assert_eq!(shown, ["first-0", "commit-0", "next-0", "next-0"], "P2, P3, {topic}");
    }
}

/// T-385: the decision is another's (a new owner, a timeout), so the epoch is a former one.
#[test]
fn a_fenced_producer_is_told_so_while_its_abort_is_carried_out() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[(HELD, 0), (FREE, 0), (FREE, 1)]), [0, 0, 0]);
    for part in [(HELD, 0), (FREE, 0)] {
        assert_eq!(client.produce(part.0, part.1, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    }
    scene.hold();
    assert_eq!(client.init_in(4, Some("id"), NOBODY).0, 51);
    until("it is decided", || client.state_of("id").as_deref() == Ok("PrepareAbort"));
    // Where the seal stands and the marker has not come yet, the client is told to ask again.
    let mut end = |part| client.list_offsets(FREE, part, LATEST, Isolation::ReadUncommitted).1;
    until("the markers are there", || (end(0), end(1)) == (3, 2));
    for version in 3..=9 {
        for (at, sequence) in [((FREE, 0), 1), ((FREE, 1), 0), ((FREE, 2), 0)] {
            let said = client.produce_in(version, at, Some("id"), &Batch::transactional(owner, sequence, 1));
            assert_eq!(said.code, 47, "T-385, version {version}: {at:?}");
        }
        // The marker has not come here, so the seal answers: the client asks again, and is told then. One that shares a
        // turn with a marker for which there is no room is told to ask again as well.
        let said = client.produce_in(version, (HELD, 0), Some("id"), &Batch::transactional(owner, 1, 1));
        assert!(matches!(said.code, 19 | 47 | 56), "T-608, version {version}: {}", said.code);
    }
}

/// What a batch may not be, whoever sends it, in every version.
#[test]
fn forged_batches() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let (owner, stranger) = (client.owner("id"), client.owner("other"));
    for (id, who) in [("id", owner), ("other", stranger)] {
        assert_eq!(client.add_partitions(id, who, &[(FREE, 0)]), [0]);
    }
    let mut sequence = 0;
    for version in 3..=9 {
        let batch =
            |epoch: i16, sequence| Batch::transactional(Pid { epoch: owner.epoch + epoch, ..owner }, sequence, 1);
        let good = client.produce_in(version, (FREE, 0), Some("id"), &batch(0, sequence));
        assert_eq!(good.code, 0, "version {version}");
        sequence += 1;
        let lines: [(&str, Option<&str>, Batch, i16); 7] = [
            ("T-301: no transactional id", None, batch(0, sequence), 53),
            ("T-316 R, X-87: another's id, owned by the caller", Some("other"), batch(0, sequence), 49),
            ("T-373: an id nobody knows", Some("unknown"), batch(0, sequence), 49),
            ("X-7: an epoch to come", Some("id"), batch(1, sequence), 47),
            ("X-7: and at its beginning", Some("id"), batch(1, 0), 47),
            ("T-354: a gap", Some("id"), batch(0, sequence + 1), 45),
            ("T-358, C-49: not transactional", Some("id"), Batch::idempotent(owner, sequence, 1), 48),
        ];
        for (rule, id, batch, code) in lines {
            assert_eq!(client.produce_in(version, (FREE, 0), id, &batch).code, code, "{rule}, version {version}");
        }
        let mut marker = batch(0, sequence).bytes();
        marker[22] |= 0x20;
        seal(&mut marker);
        let answer = client.call(version, &produce_request(FREE, 0, Some("id"), marker));
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 87, "T-334, C-48, version {version}");
        // T-357, T-314: others may write among it, and a header's id is nothing to a plain batch.
        let plain = client.produce_in(version, (FREE, 0), Some("unknown"), &Batch::plain(1));
        assert_eq!(plain.code, 0, "T-314, T-357, version {version}");
    }
    client.end_txn_surely("id", owner, true);
    client.end_txn_surely("other", stranger, true);
}

/// T-377, X-95 R: a late copy is refused when nothing is open, answered as the duplicate it is in the next transaction,
/// and spoils nothing either way.
#[test]
fn a_late_copy_leaves_no_trace() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let owner = client.owner("id");
    let batch = |sequence: i32| Batch::transactional(owner, sequence, 1).values(&format!("n{sequence}"), 1);
    let produce = |client: &mut Client, sequence| client.produce(FREE, 0, Some("id"), &batch(sequence));
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 0)]), [0]);
    let first = produce(&mut client, 0);
    assert_eq!((first.code, produce(&mut client, 0)), (0, first), "T-352");
    client.end_txn_surely("id", owner, true);
    assert_eq!(produce(&mut client, 0).code, 48, "T-377");
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 0)]), [0]);
    assert_eq!(produce(&mut client, 0), first, "X-95 R");
    assert_eq!(produce(&mut client, 7).code, 45, "T-354");
    assert_eq!(produce(&mut client, 1).code, 0, "X-95 R: the owner's next batch");
    client.end_txn_surely("id", owner, true);
    let shown = client.read_all(FREE, 0, Isolation::ReadCommitted);
    assert_eq!(shown, ["first-0", "n0-0", "n1-0"], "P5");
}
