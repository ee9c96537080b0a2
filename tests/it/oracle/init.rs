//! InitProducerId (T-101 to T-149), versions 0 to 4.

use super::Standing::{Deciding, Ongoing};
use super::{Claim, FREE, Scene};
use crate::raw::Client;
use crate::raw::batch::{NOBODY, Pid};

/// A call: which pair it names, and what it is to get.
#[derive(Debug, Clone, Copy)]
struct Call(Named, Gets);

#[derive(Debug, Clone, Copy)]
enum Named {
    /// No pair: a new instance.
    Nothing,
    /// The owner's producer id, and this epoch.
    Epoch(i16),
    /// Another producer id.
    Stranger,
}

#[derive(Debug, Clone, Copy)]
enum Gets {
    /// The producer id of the first call, with this epoch.
    Epoch(i16),
    /// 90; 47 in version 3, which does not know it (T-116).
    Fenced,
}

use Gets::Fenced;
use Named::{Nothing, Stranger};

const fn new(epoch: i16) -> Call {
    Call(Nothing, Gets::Epoch(epoch))
}

const fn again(epoch: i16, gets: Gets) -> Call {
    Call(Named::Epoch(epoch), gets)
}

/// Calls on an idle id, one after the other.
const IDLE: &[(&str, &[Call])] = &[
    ("T-122: a new instance each time", &[new(0), new(1), new(2)]),
    ("T-123: a pair for an id nobody knows", &[Call(Stranger, Gets::Epoch(0)), new(1)]),
    ("T-124: the owner recovers", &[new(0), again(0, Gets::Epoch(1)), again(1, Gets::Epoch(2))]),
    ("T-125: the bump's answer was lost", &[new(0), again(0, Gets::Epoch(1)), again(0, Gets::Epoch(1))]),
    ("T-125 and on", &[new(0), again(0, Gets::Epoch(1)), again(0, Gets::Epoch(1)), again(1, Gets::Epoch(2))]),
    ("T-126: lower", &[new(0), new(1), new(2), again(0, Fenced), again(1, Fenced), again(2, Gets::Epoch(3))]),
    ("T-126: higher", &[new(0), again(1, Fenced), again(7, Fenced), new(1)]),
    ("T-126: two bumps ago", &[new(0), again(0, Gets::Epoch(1)), again(1, Gets::Epoch(2)), again(0, Fenced)]),
    (
        "T-117: who came without a pair fences who was before",
        &[new(0), new(1), again(0, Fenced), again(1, Gets::Epoch(2))],
    ),
    ("T-113: another producer id", &[new(0), Call(Stranger, Fenced), new(1)]),
];

fn check_idle(scene: &Scene, client: &mut Client, (version, (rule, calls)): &(i16, (&str, &[Call]))) {
    let id = scene.fresh_id();
    let mut first = None;
    for (n, Call(named, gets)) in calls.iter().enumerate() {
        let producer_id = first.unwrap_or(-1);
        let pair = match named {
            Nothing => NOBODY,
            Named::Epoch(epoch) => Pid { id: producer_id, epoch: *epoch },
            Stranger => Pid { id: 1 << 40, epoch: 0 },
        };
        let (code, given) = client.init_in(*version, Some(&id), pair);
        match gets {
            Gets::Epoch(epoch) => {
                assert_eq!((code, given.epoch), (0, *epoch), "{rule}, version {version}, call {n}");
                assert_eq!(*first.get_or_insert(given.id), given.id, "{rule}, version {version}, call {n}");
            }
            Fenced => {
                let fenced = if *version < 4 { 47 } else { 90 };
                assert_eq!(code, fenced, "{rule}, version {version}, call {n}");
            }
        }
    }
}

#[test]
fn of_an_idle_id() {
    let scene = Scene::new();
    let lines: Vec<_> = [3, 4].iter().flat_map(|version| IDLE.iter().map(|line| (*version, *line))).collect();
    scene.check_all(&lines, check_idle);
}

/// T-104 to T-109, T-115, T-132, T-149: what is judged before the id's state.
#[test]
fn what_is_judged_before_the_state() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let mut ids = std::collections::BTreeSet::new();
    for version in 0..=4 {
        for _ in 0..3 {
            let (code, given) = client.init_for(version, None, -7, NOBODY);
            assert_eq!((code, given.epoch), (0, 0), "T-105");
            assert!(ids.insert(given.id), "T-105, T-149: never one twice");
        }
        assert_eq!(client.init_in(version, Some(""), NOBODY).0, 42, "T-106");
        for timeout_ms in [i32::MIN, -1, 0, 900_001, i32::MAX] {
            assert_eq!(client.init_for(version, Some("id"), timeout_ms, NOBODY).0, 50, "T-109: {timeout_ms}");
        }
        let id = scene.fresh_id();
        for (timeout_ms, epoch) in [(1, 0), (900_000, 1)] {
            let (code, given) = client.init_for(version, Some(&id), timeout_ms, NOBODY);
            assert_eq!((code, given.epoch), (0, epoch), "T-109: {timeout_ms}; what was refused fenced nobody (T-115)");
            assert!(given.id >= 0 && given.id < 1 << 40);
        }
    }
    for version in [3, 4] {
        for id in [None, Some("id")] {
            for (producer_id, epoch) in [(-1, 0), (0, -1), (5, -1), (-5, -5), (-2, 3)] {
                let pair = Pid { id: producer_id, epoch };
                assert_eq!(client.init_in(version, id, pair).0, 42, "T-104: {pair:?}");
            }
        }
        let (code, given) = client.init_in(version, None, Pid { id: 3, epoch: 4 });
        assert_eq!((code, given.epoch, ids.insert(given.id)), (0, 0, true), "T-105: a pair without an id is nothing");
    }
}

/// Who comes while a transaction is open, with which pair; the first answer, the state it leaves, and what the owner of
/// the epoch after is given (T-130, T-140, T-145 R).
const OPEN: &[(Option<Claim>, i16, &str)] = &[
    (None, 51, "CompleteAbort"),
    // T-144.
    (Some(Claim::Owner), 51, "CompleteAbort"),
    // T-145 R, X-82: a zombie disturbs nobody, though its producer id is the right one.
    (Some(Claim::Lower), 90, "Ongoing"),
    (Some(Claim::Higher), 90, "Ongoing"),
    (Some(Claim::Other), 90, "Ongoing"),
];

fn check_open(scene: &Scene, client: &mut Client, (version, line): &(i16, (Option<Claim>, i16, &str))) {
    let (claim, code, state) = *line;
    if *version < 3 && claim.is_some() {
        return;
    }
    let id = scene.fresh_id();
    let owner = scene.bring(client, &id, Ongoing);
    let pair = claim.map_or(NOBODY, |claim| claim.of(owner));
    let code = if code == 90 && *version < 4 { 47 } else { code };
    assert_eq!(client.init_in(*version, Some(&id), pair).0, code, "version {version}: {line:?}");
    super::until(state, || client.state_of(&id).as_deref() == Ok(state));
    if state == "Ongoing" {
        assert_eq!(client.end_txn(&id, owner, true), 0, "version {version}: {line:?}");
        return;
    }
    // T-144: the pair is worth nothing any more, the classic protocol does not remember it.
    if claim.is_some() {
        let fenced = if *version < 4 { 47 } else { 90 };
        assert_eq!(client.init_in(*version, Some(&id), pair).0, fenced, "version {version}: {line:?}");
    }
    let (code, next) = client.init_in(*version, Some(&id), NOBODY);
    assert_eq!((code, next.id, next.epoch), (0, owner.id, owner.epoch + 2), "T-140, version {version}: {line:?}");
}

#[test]
fn of_an_id_with_an_open_transaction() {
    let scene = Scene::new();
    let lines: Vec<_> = (0..=4).flat_map(|version| OPEN.iter().map(move |line| (version, *line))).collect();
    scene.check_all(&lines, check_open);
}

/// T-112, T-121: while a decision is carried out, whoever asks is told to come again.
#[test]
fn of_an_id_whose_decision_is_carried_out() {
    let scene = Scene::new();
    scene.hold();
    let claims = [None, Some(Claim::Owner), Some(Claim::Lower), Some(Claim::Higher), Some(Claim::Other)];
    let lines: Vec<_> = [true, false]
        .iter()
        .flat_map(|commit| (3..=4).flat_map(move |version| claims.map(|claim| (*commit, version, claim))))
        .collect();
    scene.check_all(&lines, |scene, client, (commit, version, claim)| {
        let id = scene.fresh_id();
        let owner = scene.bring(client, &id, Deciding(*commit));
        let pair = claim.map_or(NOBODY, |claim| claim.of(owner));
        assert_eq!(client.init_in(*version, Some(&id), pair).0, 51, "{commit} {version} {claim:?}");
    });
}

/// T-147, the classic column: epochs as an application sees them.
#[test]
fn epochs_as_they_are_seen() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let first = client.owner("a");
    assert_eq!((first.epoch, client.owner("a")), (0, Pid { epoch: 1, ..first }), "init, init");
    for (epoch, commit) in [(0, true), (1, false), (2, true)] {
        let owner = client.owner("b");
        assert_eq!(owner.epoch, epoch, "a transaction leaves the epoch as it is");
        assert_eq!(client.add_partitions("b", owner, &[(FREE, 0)]), [0]);
        client.end_txn_surely("b", owner, commit);
    }
    let owner = client.owner("c");
    assert_eq!(client.add_partitions("c", owner, &[(FREE, 0)]), [0]);
    assert_eq!(client.init_in(4, Some("c"), NOBODY).0, 51, "at once");
    assert_eq!(client.owner("c"), Pid { epoch: 2, ..owner }, "begin, another instance comes");
}
