//! What a producer is told that has been fenced (T-607, C-29), on every API and version of the classic protocol.

use oncelog::clock::Clock;

use super::{FREE, HELD, Scene, until};
use crate::raw::Client;
use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::data::Isolation;
use crate::raw::txn::Member;

/// What happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Its transaction timed out.
    TimedOut,
    /// A second instance came while its transaction was open.
    Replaced,
    /// A second instance came while nothing was open.
    ReplacedIdle,
    /// Its id was forgotten.
    Expired,
}

/// Rows a to d and h of T-607, the columns of the classic protocol.
struct Codes {
    produce: i16,
    add: i16,
    add_old: i16,
    stage: i16,
    init: i16,
    init_old: i16,
}

const FENCED: Codes = Codes { produce: 47, add: 90, add_old: 47, stage: 47, init: 90, init_old: 47 };
const FORGOTTEN: Codes = Codes { produce: 49, add: 49, add_old: 49, stage: 49, init: 0, init_old: 0 };

/// Asks with what was the owner's, everywhere.
fn check(client: &mut Client, id: &str, was: Pid, (why, codes): (Why, &Codes)) {
    let nobody = Member::default();
    for version in 3..=9 {
        for part in [0, 1] {
            let said = client.produce_in(version, (FREE, part), Some(id), &Batch::transactional(was, 1, 1));
            assert_eq!(said.code, codes.produce, "T-607a, {why:?}, version {version}, partition {part}");
        }
    }
    for version in 0..=3 {
        let code = if version < 2 { codes.add_old } else { codes.add };
        assert_eq!(client.add_in(version, (id, was), &[(FREE, 0)]), code, "T-607b, {why:?}, version {version}");
        assert_eq!(client.add_offsets_in(version, (id, was), "group"), code, "T-607b, {why:?}, version {version}");
        let staged = client.stage_in(version, (id, was), ("group", &nobody), (FREE, 0, 1));
        assert_eq!(staged, codes.stage, "T-607c, {why:?}, version {version}");
        for commit in [true, false] {
            assert_eq!(client.end_in(version, (id, was), commit), code, "T-607d, {why:?}, version {version}");
        }
    }
    if why == Why::Expired {
        return;
    }
    for (version, code) in [(3, codes.init_old), (4, codes.init)] {
        assert_eq!(client.init_in(version, Some(id), was).0, code, "T-607h, {why:?}, version {version}");
    }
}

fn begin(client: &mut Client, id: &str) -> Pid {
    let owner = client.owner(id);
    assert_eq!(client.add_partitions(id, owner, &[(FREE, 0)]), [0]);
    assert_eq!(client.add_offsets(id, owner, "group"), 0);
    assert_eq!(client.produce(FREE, 0, Some(id), &Batch::transactional(owner, 0, 1)).code, 0);
    owner
}

#[test]
fn when_its_transaction_timed_out() {
    let (scene, clock) = Scene::by_hand();
    let mut client = scene.connect();
    let was = begin(&mut client, "id");
    clock.advance(60_001);
    until("it is aborted", || client.state_of("id").as_deref() == Ok("CompleteAbort"));
    assert_eq!(client.who("id"), Pid { epoch: was.epoch + 1, ..was }, "T-603");
    check(&mut client, "id", was, (Why::TimedOut, &FENCED));
    // T-607i.
    assert_eq!(client.init_in(4, Some("id"), NOBODY), (0, Pid { epoch: was.epoch + 2, ..was }));
    check(&mut client, "id", was, (Why::TimedOut, &FENCED));
}

#[test]
fn when_another_instance_came() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let was = begin(&mut client, "open");
    let now = client.owner("open");
    assert_eq!(now, Pid { epoch: was.epoch + 2, ..was }, "T-140");
    check(&mut client, "open", was, (Why::Replaced, &FENCED));
    let was = begin(&mut client, "idle");
    client.end_txn_surely("idle", was, true);
    let now = client.owner("idle");
    assert_eq!(now, Pid { epoch: was.epoch + 1, ..was }, "T-122");
    check(&mut client, "idle", was, (Why::ReplacedIdle, &FENCED));
    // The new owner works, and what the old one sent has changed nothing (P4).
    assert_eq!(client.add_partitions("idle", now, &[(FREE, 0)]), [0]);
    assert_eq!(client.produce(FREE, 0, Some("idle"), &Batch::transactional(now, 0, 1).values("new", 1)).code, 0);
    check(&mut client, "idle", was, (Why::Replaced, &FENCED));
    assert_eq!(client.end_txn("idle", now, true), 0);
    let shown = client.read_all(FREE, 0, Isolation::ReadCommitted);
    assert_eq!(shown.last().map(String::as_str), Some("new-0"), "P4");
    // T-607i: it may come again as a new instance, and fences the other by that.
    let again = client.owner("idle");
    check(&mut client, "idle", now, (Why::ReplacedIdle, &FENCED));
    assert_eq!(again.epoch, now.epoch + 1);
}

/// T-612, T-613, T-119.
#[test]
fn when_its_id_was_forgotten() {
    const WEEK_MS: u32 = 604_800_000;
    let (scene, clock) = Scene::by_hand();
    let mut client = scene.connect();
    let was = begin(&mut client, "id");
    client.end_txn_surely("id", was, true);
    clock.advance(WEEK_MS - 1_000);
    clock.advance(60_000);
    until("it is forgotten", || {
        clock.advance(60_000);
        client.state_of("id") == Err(105)
    });
    check(&mut client, "id", was, (Why::Expired, &FORGOTTEN));
    let (code, new) = client.init_in(4, Some("id"), was);
    assert_eq!((code, new.epoch), (0, 0), "T-119");
    assert_ne!(new.id, was.id, "T-613");
}

/// T-607g: while the markers of its abort are outstanding.
#[test]
fn while_its_abort_is_carried_out() {
    let (scene, clock) = Scene::by_hand();
    let mut client = scene.connect();
    let was = client.owner("id");
    assert_eq!(client.add_partitions("id", was, &[(HELD, 0), (FREE, 0)]), [0, 0]);
    assert_eq!(client.add_offsets("id", was, "group"), 0);
    scene.hold();
    clock.advance(60_001);
    until("it is decided", || client.state_of("id").as_deref() == Ok("PrepareAbort"));
    let now = Pid { epoch: was.epoch + 1, ..was };
    assert_eq!(client.who("id"), now, "T-603: shown at once");
    with_time(&clock, || {
        for version in 0..=3 {
            let fenced = if version < 2 { 47 } else { 90 };
            assert_eq!(client.add_in(version, ("id", was), &[(FREE, 1)]), 51, "row b");
            assert_eq!(client.add_offsets_in(version, ("id", was), "group"), 51, "row b");
            let staged = client.stage_in(version, ("id", was), ("group", &Member::default()), (FREE, 0, 1));
            assert_eq!(staged, 47, "row c");
            for commit in [true, false] {
                assert_eq!(client.end_in(version, ("id", was), commit), fenced, "row d");
            }
        }
        for version in 3..=4 {
            assert_eq!(client.init_in(version, Some("id"), was).0, 51, "row h");
            assert_eq!(client.init_in(version, Some("id"), NOBODY).0, 51, "row i");
        }
        scene.release();
        until("it is over", || client.state_of("id").as_deref() == Ok("CompleteAbort"));
    });
    check(&mut client, "id", was, (Why::TimedOut, &FENCED));
}

/// Lets time go by, a little at a step, while `doing` is done.
fn with_time(clock: &Clock, doing: impl FnOnce()) {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ticking = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                clock.advance(100);
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(doing));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        ticking.join().unwrap();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
