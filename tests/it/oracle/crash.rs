//! Kills between the steps of a transaction (T-718, C-16).

use oncelog::config::MarkerSync;

use super::{FREE, HELD, Scene, until};
use crate::raw::Client;
use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::data::Isolation;
use crate::raw::txn::Member;

const COMMITTED: Isolation = Isolation::ReadCommitted;
const TOPICS: [&str; 2] = [HELD, FREE];

/// Whether EndTxn is answered when the markers are on disk or when they are written makes no difference to a kill.
fn both(check: fn(MarkerSync)) {
    [MarkerSync::Answer, MarkerSync::Redo].into_iter().for_each(check);
}

fn scene(sync: MarkerSync) -> Scene {
    Scene::on(|config| config.marker_sync = sync, |_| {})
}

fn begin(client: &mut Client, id: &str) -> Pid {
    let owner = client.owner(id);
    assert_eq!(client.add_partitions(id, owner, &[(HELD, 0), (FREE, 0)]), [0, 0]);
    for topic in TOPICS {
        assert_eq!(client.produce(topic, 0, Some(id), &Batch::transactional(owner, 0, 1).values(id, 1)).code, 0);
    }
    assert_eq!(client.add_offsets(id, owner, "group"), 0);
    assert_eq!(client.txn_offset_commit((id, owner), ("group", &Member::default()), (FREE, 0, 9)), 0);
    owner
}

/// Markers of a partition: who, and whether they commit.
fn markers(client: &mut Client, topic: &str) -> Vec<(Pid, bool)> {
    let batches = client.fetch(topic, 0, 0, Isolation::ReadUncommitted).batches();
    batches.iter().filter_map(|batch| Some((batch.producer, batch.marker?))).collect()
}

fn check_over(client: &mut Client, id: &str, owner: Pid, commit: bool) {
    let over = if commit { "CompleteCommit" } else { "CompleteAbort" };
    until(over, || client.state_of(id).as_deref() == Ok(over));
    for topic in TOPICS {
        let fetched = client.fetch(topic, 0, 0, COMMITTED);
        assert_eq!((fetched.last_stable, fetched.high_watermark), (3, 3), "{topic}");
        assert_eq!(markers(client, topic), [(owner, commit)], "{topic}: one marker, written once");
        let record = format!("{id}-0");
        let all = if commit { vec!["first-0", record.as_str()] } else { vec!["first-0"] };
        assert_eq!(client.read_all(topic, 0, COMMITTED), all, "P2");
    }
    assert_eq!(client.offset_fetch("group", (FREE, 0), true), (0, if commit { 9 } else { -1 }), "P2");
}

/// T-718 row 1: data, no decision. It stays open, and its producer goes on.
#[test]
fn before_the_end() {
    both(check_before_the_end);
}

fn check_before_the_end(sync: MarkerSync) {
    let mut scene = scene(sync);
    let mut client = scene.connect();
    let owner = begin(&mut client, "id");
    scene.crash_and_start(|_| {});
    client = scene.connect();
    assert_eq!(client.state_of("id").as_deref(), Ok("Ongoing"));
    for topic in TOPICS {
        assert_eq!(client.fetch(topic, 0, 0, COMMITTED).last_stable, 1, "P3");
        assert_eq!(client.produce(topic, 0, Some("id"), &Batch::transactional(owner, 1, 1).values("id", 1)).code, 0);
    }
    assert_eq!(client.produce(FREE, 1, Some("id"), &Batch::transactional(owner, 0, 1)).code, 48, "T-373");
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 1)]), [0]);
    assert_eq!(client.produce(FREE, 1, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    assert_eq!(client.end_txn("id", owner, true), 0);
    for topic in TOPICS {
        assert_eq!(client.read_all(topic, 0, COMMITTED), ["first-0", "id-0", "id-0"], "P2");
    }
}

/// T-718 rows 2 and 3: decided, some markers written, nobody answered. It completes by itself, as decided.
#[test]
fn between_the_decision_and_the_last_marker() {
    both(check_between_the_decision_and_the_last_marker);
}

fn check_between_the_decision_and_the_last_marker(sync: MarkerSync) {
    for commit in [true, false] {
        let mut scene = scene(sync);
        let mut client = scene.connect();
        let owner = begin(&mut client, "id");
        scene.hold();
        assert_eq!(client.end_txn("id", owner, commit), 51);
        until("the other marker", || markers(&mut client, FREE) == [(owner, commit)]);
        assert_eq!(markers(&mut client, HELD), []);
        scene.crash_and_start(|_| {});
        client = scene.connect();
        check_over(&mut client, "id", owner, commit);
        assert_eq!(client.end_txn("id", owner, !commit), 48, "the other decision is never carried out");
        assert_eq!(client.end_txn("id", owner, commit), 0, "C-16: asked again");
        assert_eq!(client.who("id"), owner);
    }
}

/// Markers that cannot be written after the restart either are written later, and hold their partition back till then.
#[test]
fn a_kill_while_a_marker_is_retried_again_and_again() {
    both(check_a_kill_while_a_marker_is_retried_again_and_again);
}

fn check_a_kill_while_a_marker_is_retried_again_and_again(sync: MarkerSync) {
    let mut scene = scene(sync);
    let mut client = scene.connect();
    let owner = begin(&mut client, "id");
    scene.hold();
    assert_eq!(client.end_txn("id", owner, true), 51);
    for _ in 0..3 {
        scene.crash_and_start(|_| {});
    }
    client = scene.connect();
    check_over(&mut client, "id", owner, true);
}

/// T-718 row 4: all markers written and answered, what was owed perhaps not yet forgotten.
#[test]
fn right_after_the_answer() {
    both(check_right_after_the_answer);
}

fn check_right_after_the_answer(sync: MarkerSync) {
    for commit in [true, false] {
        let mut scene = scene(sync);
        let mut client = scene.connect();
        let owner = begin(&mut client, "id");
        assert_eq!(client.end_txn("id", owner, commit), 0);
        for _ in 0..3 {
            scene.crash_and_start(|_| {});
            client = scene.connect();
            check_over(&mut client, "id", owner, commit);
            assert_eq!(client.end_txn("id", owner, commit), 0, "C-16: asked again");
            assert_eq!(client.end_txn("id", owner, !commit), 48);
        }
    }
}

/// The debt of one transaction is not taken for the next one's, which has the same epoch.
#[test]
fn right_after_the_answer_and_into_the_next_transaction() {
    both(check_right_after_the_answer_and_into_the_next_transaction);
}

fn check_right_after_the_answer_and_into_the_next_transaction(sync: MarkerSync) {
    let mut scene = scene(sync);
    let mut client = scene.connect();
    let owner = begin(&mut client, "id");
    assert_eq!(client.end_txn("id", owner, false), 0);
    assert_eq!(client.add_partitions("id", owner, &[(HELD, 0), (FREE, 0)]), [0, 0]);
    for topic in TOPICS {
        assert_eq!(client.produce(topic, 0, Some("id"), &Batch::transactional(owner, 1, 1).values("next", 1)).code, 0);
    }
    scene.crash_and_start(|_| {});
    client = scene.connect();
    for topic in TOPICS {
        assert_eq!(client.fetch(topic, 0, 0, COMMITTED).last_stable, 3, "P3: the next one is open");
        assert_eq!(markers(&mut client, topic), [(owner, false)], "and was not ended");
    }
    assert_eq!(client.end_txn("id", owner, true), 0);
    for topic in TOPICS {
        assert_eq!(client.read_all(topic, 0, COMMITTED), ["first-0", "next-0"], "P2");
    }
}

/// T-718 row 5, T-118 R: an InitProducerId whose answer was lost.
#[test]
fn after_an_owner_was_made() {
    both(check_after_an_owner_was_made);
}

fn check_after_an_owner_was_made(sync: MarkerSync) {
    let mut scene = scene(sync);
    let mut client = scene.connect();
    let first = client.owner("id");
    let second = Pid { epoch: 1, ..first };
    assert_eq!(client.init_in(4, Some("id"), first), (0, second), "T-124");
    for _ in 0..2 {
        scene.crash_and_start(|_| {});
        client = scene.connect();
        assert_eq!(client.init_in(4, Some("id"), first), (0, second), "T-118 R, X-80: asked again");
    }
    assert_eq!(client.init_in(4, Some("id"), NOBODY), (0, Pid { epoch: 2, ..first }));
    scene.crash_and_start(|_| {});
    client = scene.connect();
    assert_eq!(client.init_in(4, Some("id"), second).0, 90, "T-117 over a restart");
    let (code, other) = client.init_in(4, Some("other"), NOBODY);
    assert_eq!(code, 0);
    assert!(other.id > first.id, "T-132 R: never a producer id twice");
    let (_, idempotent) = client.init_in(4, None, NOBODY);
    assert!(idempotent.id > other.id, "T-132 R");
}

/// P4 over a kill: the take-over's abort was decided, its markers were not all written.
#[test]
fn while_an_owner_is_fenced() {
    both(check_while_an_owner_is_fenced);
}

fn check_while_an_owner_is_fenced(sync: MarkerSync) {
    let mut scene = scene(sync);
    let mut client = scene.connect();
    let was = begin(&mut client, "id");
    scene.hold();
    assert_eq!(client.init_in(4, Some("id"), NOBODY).0, 51);
    until("it is decided", || client.state_of("id").as_deref() == Ok("PrepareAbort"));
    scene.crash_and_start(|_| {});
    client = scene.connect();
    check_over(&mut client, "id", Pid { epoch: was.epoch + 1, ..was }, false);
    for topic in TOPICS {
        assert_eq!(client.produce(topic, 0, Some("id"), &Batch::transactional(was, 1, 1)).code, 47, "P4");
    }
    assert_eq!(client.end_txn("id", was, true), 90, "P4");
    assert_eq!(client.owner("id"), Pid { epoch: was.epoch + 2, ..was }, "T-140");
}
