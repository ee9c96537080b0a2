//! Transactions that outlive their timeout (T-601 to T-606), in virtual time.

use oncelog::clock::Clock;

use super::{FREE, Scene, until};
use crate::raw::Client;
use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::data::{Isolation, LATEST};
use crate::raw::txn::Member;

const TIMEOUT_MS: i32 = 5_000;
const COMMITTED: Isolation = Isolation::ReadCommitted;

/// A transaction with a record and an offset.
fn begin(client: &mut Client, id: &str) -> Pid {
    let (code, owner) = client.init_for(4, Some(id), TIMEOUT_MS, NOBODY);
    assert_eq!(code, 0);
    assert_eq!(client.add_partitions(id, owner, &[(FREE, 0)]), [0]);
    assert_eq!(client.add_offsets(id, owner, "group"), 0);
    assert_eq!(client.produce(FREE, 0, Some(id), &Batch::transactional(owner, 0, 1)).code, 0);
    assert_eq!(client.txn_offset_commit((id, owner), ("group", &Member::default()), (FREE, 0, 9)), 0);
    owner
}

fn check_open(client: &mut Client, id: &str, when: &str) {
    assert_eq!(client.state_of(id).as_deref(), Ok("Ongoing"), "{when}");
    assert_eq!(client.list_offsets(FREE, 0, LATEST, COMMITTED).1, 1, "P3, {when}");
    assert_eq!(client.offset_fetch("group", (FREE, 0), true).0, 88, "{when}");
}

fn check_aborted(client: &mut Client, id: &str, was: Pid) {
    until("it is aborted", || client.state_of(id).as_deref() == Ok("CompleteAbort"));
    assert_eq!(client.who(id), Pid { epoch: was.epoch + 1, ..was }, "T-603");
    let fetched = client.fetch(FREE, 0, 0, COMMITTED);
    assert_eq!((fetched.last_stable, fetched.high_watermark), (3, 3), "P6: the last stable offset moves");
    assert_eq!(fetched.aborted, Some(vec![(was.id, 1)]));
    let markers: Vec<_> = fetched.batches().iter().filter(|batch| batch.marker.is_some()).map(|b| b.producer).collect();
    assert_eq!(markers, [Pid { epoch: was.epoch + 1, ..was }], "T-404: the marker fences");
    assert_eq!(client.offset_fetch("group", (FREE, 0), true), (0, -1), "C-14, C-43");
    assert_eq!(client.end_txn(id, was, true), 90, "T-607d");
    assert_eq!(client.produce(FREE, 0, Some(id), &Batch::transactional(was, 1, 1)).code, 47, "T-607a");
}

#[test]
fn an_open_transaction_is_aborted_when_it_times_out() {
    let (scene, clock) = Scene::by_hand();
    let mut client = scene.connect();
    let owner = begin(&mut client, "id");
    check_open(&mut client, "id", "at the beginning");
    clock.advance(4_999);
    check_open(&mut client, "id", "just before");
    clock.advance(2);
    check_aborted(&mut client, "id", owner);
}

/// T-602, T-606: nothing that the producer does lengthens it, and the wall clock has no say.
#[test]
fn nothing_lengthens_a_transaction() {
    let (scene, clock) = Scene::by_hand();
    let mut client = scene.connect();
    let owner = begin(&mut client, "id");
    clock.set_wall(1_699_997_000_000);
    clock.advance(3_000);
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 1)]), [0]);
    assert_eq!(client.produce(FREE, 1, Some("id"), &Batch::transactional(owner, 0, 1)).code, 0);
    assert_eq!(client.add_offsets("id", owner, "another"), 0);
    clock.set_wall(2_000_000_000_000);
    check_open(&mut client, "id", "the wall clock stands elsewhere");
    clock.advance(2_001);
    check_aborted(&mut client, "id", owner);
    // The next one counts from its own beginning.
    let later = client.owner("id");
    clock.advance(50_000);
    assert_eq!(client.add_partitions("id", later, &[(FREE, 0)]), [0]);
    clock.advance(50_000);
    assert_eq!(client.end_txn("id", later, true), 0);
}

/// The time starts anew with a restart, and is full again (T-704 is not ours).
#[test]
fn a_restart_starts_the_time_anew() {
    for kill in [true, false] {
        let (mut scene, clock) = Scene::by_hand();
        let mut client = scene.connect();
        let owner = begin(&mut client, "id");
        clock.advance(4_000);
        let own: Clock = clock.clone();
        if kill {
            scene.crash_and_start(|parts| parts.clock = own);
        } else {
            scene.broker.stop();
            scene.broker.start_again(|parts| parts.clock = own);
        }
        client = scene.connect();
        check_open(&mut client, "id", "after the restart");
        clock.advance(4_999);
        check_open(&mut client, "id", "longer than what was left");
        clock.advance(2);
        check_aborted(&mut client, "id", owner);
    }
}

/// A transaction that lived through a restart can go on, and commits.
#[test]
fn a_restart_ends_no_transaction() {
    let (mut scene, clock) = Scene::by_hand();
    let mut client = scene.connect();
    let owner = begin(&mut client, "id");
    for n in 1..4 {
        clock.advance(4_000);
        let own = clock.clone();
        scene.crash_and_start(|parts| parts.clock = own);
        client = scene.connect();
        let batch = Batch::transactional(owner, n, 1).values("more", 1);
        assert_eq!(client.produce(FREE, 0, Some("id"), &batch).code, 0, "restart {n}");
    }
    assert_eq!(client.end_txn("id", owner, true), 0);
    assert_eq!(client.read_all(FREE, 0, COMMITTED), ["first-0", "value-0", "more-0", "more-0", "more-0"]);
    assert_eq!(client.offset_fetch("group", (FREE, 0), true), (0, 9));
}
