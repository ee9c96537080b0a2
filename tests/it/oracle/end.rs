//! EndTxn (T-251 to T-254), and what it says while a decision is being carried out.

use super::Standing::{Deciding, Empty, Ongoing, Over, Unknown};
use super::{Claim, FREE, HELD, PARTS, Scene, Standing, until};
use crate::raw::Client;
use crate::raw::batch::Batch;
use crate::raw::data::Isolation;

const COMMIT: bool = true;
const ABORT: bool = false;
const VERSIONS: [i16; 4] = [0, 1, 2, 3];

/// How the id stands, who asks, for what; the code in versions 0 and 1, and from 2 on.
type Line = (Standing, Claim, bool, i16, i16);

const LINES: &[Line] = &[
    // T-253 step 3.
    (Unknown, Claim::Owner, COMMIT, 49, 49),
    (Unknown, Claim::Owner, ABORT, 49, 49),
    // Step 4 before step 5; both before the state is looked at.
    (Empty, Claim::Other, COMMIT, 49, 49),
    (Ongoing, Claim::Other, COMMIT, 49, 49),
    (Deciding(COMMIT), Claim::Other, COMMIT, 49, 49),
    (Over(COMMIT), Claim::Other, COMMIT, 49, 49),
    (Empty, Claim::Lower, ABORT, 47, 90),
    (Empty, Claim::Higher, ABORT, 47, 90),
    (Ongoing, Claim::Lower, COMMIT, 47, 90),
    (Ongoing, Claim::Higher, COMMIT, 47, 90),
    (Deciding(ABORT), Claim::Lower, ABORT, 47, 90),
    (Deciding(ABORT), Claim::Higher, ABORT, 47, 90),
    (Over(ABORT), Claim::Lower, ABORT, 47, 90),
    (Over(ABORT), Claim::Higher, ABORT, 47, 90),
    // The table of step 7.
    (Empty, Claim::Owner, COMMIT, 48, 48),
    (Empty, Claim::Owner, ABORT, 48, 48),
    (Deciding(COMMIT), Claim::Owner, COMMIT, 51, 51),
    (Deciding(COMMIT), Claim::Owner, ABORT, 51, 51),
    (Deciding(ABORT), Claim::Owner, COMMIT, 51, 51),
    (Deciding(ABORT), Claim::Owner, ABORT, 51, 51),
    (Over(COMMIT), Claim::Owner, COMMIT, 0, 0),
    (Over(COMMIT), Claim::Owner, ABORT, 48, 48),
    (Over(ABORT), Claim::Owner, COMMIT, 48, 48),
    (Over(ABORT), Claim::Owner, ABORT, 0, 0),
];

fn check(scene: &Scene, client: &mut Client, (version, line): &(i16, Line)) {
    let (standing, claim, commit, old, new) = *line;
    let id = scene.fresh_id();
    let owner = scene.bring(client, &id, standing);
    let code = client.end_in(*version, (&id, claim.of(owner)), commit);
    assert_eq!(code, if *version < 2 { old } else { new }, "T-253, version {version}: {line:?}");
    // Whoever asked in vain changed nothing.
    let shown = match standing {
        Unknown => Err(105),
        Empty => Ok("Empty"),
        Ongoing => Ok("Ongoing"),
        Deciding(COMMIT) => Ok("PrepareCommit"),
        Deciding(ABORT) => Ok("PrepareAbort"),
        Over(COMMIT) => Ok("CompleteCommit"),
        Over(ABORT) => Ok("CompleteAbort"),
    };
    assert_eq!(client.state_of(&id), shown.map(str::to_owned), "version {version}: {line:?}");
}

#[test]
fn every_row() {
    let scene = Scene::new();
    scene.hold();
    let lines: Vec<(i16, Line)> =
        VERSIONS.iter().flat_map(|version| LINES.iter().map(|line| (*version, *line))).collect();
    scene.check_all(&lines, check);
}

/// T-253 step 1, and an open transaction that ends as asked (T-254).
#[test]
fn an_open_transaction_ends_as_asked() {
    let scene = Scene::new();
    let mut client = scene.connect();
    for version in VERSIONS {
        let nobody = Claim::Other.of(scene.bring(&mut client, "x", Unknown));
        assert_eq!(client.end_in(version, ("", nobody), COMMIT), 42, "T-253 step 1, version {version}");
        for (commit, state) in [(COMMIT, "CompleteCommit"), (ABORT, "CompleteAbort")] {
            let id = scene.fresh_id();
            let owner = scene.bring(&mut client, &id, Ongoing);
            assert_eq!(client.end_in(version, (&id, owner), commit), 0, "version {version}, {state}");
            assert_eq!(client.state_of(&id).as_deref(), Ok(state));
        }
    }
}

/// A version, a decision, and the id it is made for. Each version has a partition of its own.
type Held = (i16, bool, String);

/// Both decisions of a version write to the same partitions.
fn begin(client: &mut Client, (version, _, id): &Held) {
    let owner = client.owner(id);
    let parts = [(HELD, i32::from(*version)), (FREE, i32::from(*version))];
    assert_eq!(client.add_in(*version, (id, owner), &parts), 0);
    for (topic, part) in parts {
        let batch = Batch::transactional(owner, 0, 1).values(id, 1);
        assert_eq!(client.produce(topic, part, Some(id), &batch).code, 0, "{id}");
    }
}

fn ask_while_held(client: &mut Client, (version, commit, id): &Held) {
    let owner = client.who(id);
    let mut end = |commit| client.end_in(*version, (id, owner), commit);
    assert_eq!(end(*commit), 51, "the decision stands, its marker does not: {id}");
    assert_eq!(end(*commit), 51, "the same again: {id}");
    assert_eq!(end(!*commit), 51, "the other one: {id}");
    assert_eq!(end(!*commit), 51, "and again: {id}");
}

fn ask_when_over(client: &mut Client, (version, commit, id): &Held) {
    // It completes by itself: nobody has asked since.
    let over = if *commit { "CompleteCommit" } else { "CompleteAbort" };
    until(over, || client.state_of(id).as_deref() == Ok(over));
    let owner = client.who(id);
    let mut end = |commit| client.end_in(*version, (id, owner), commit);
    assert_eq!([end(!*commit), end(*commit), end(*commit), end(!*commit)], [48, 0, 0, 48], "{id}");
}

/// While a decision is carried out both answers are CONCURRENT_TRANSACTIONS; once it is over the same one succeeds and
/// the other is INVALID_TXN_STATE (T-020, T-253). The decision is the first one, whatever was asked meanwhile.
#[test]
fn a_decision_stands_while_its_markers_are_held_back() {
    let scene = Scene::new();
    let lines: Vec<Held> = (VERSIONS.iter())
        .flat_map(|version| [COMMIT, ABORT].map(|commit| (*version, commit, format!("{version}-{commit}"))))
        .collect();
    scene.check_all(&lines, |_, client, line| begin(client, line));
    scene.hold();
    scene.check_all(&lines, |_, client, line| ask_while_held(client, line));
    let mut client = scene.connect();
    for part in 0..PARTS {
        let held = client.fetch(HELD, part, 0, Isolation::ReadCommitted);
        assert_eq!(held.last_stable, 1, "P3: nothing undecided is shown");
    }
    scene.release();
    scene.check_all(&lines, |_, client, line| ask_when_over(client, line));
    for topic in [HELD, FREE] {
        for (part, version) in (0..PARTS).zip(VERSIONS) {
            let shown = client.read_all(topic, part, Isolation::ReadCommitted);
            assert_eq!(shown, ["first-0".to_owned(), format!("{version}-true-0")], "P2, {topic}-{part}");
        }
    }
}
