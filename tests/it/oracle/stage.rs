//! TxnOffsetCommit, versions 0 to 3 (T-241 to T-247), and what readers of offsets are told meanwhile (C-14, C-43).

use super::Standing::{Deciding, Empty, Ongoing, Over, Unknown};
use super::{Claim, FREE, HELD, Scene, Standing};
use crate::raw::Client;
use crate::raw::txn::Member;

/// How the id stands, who asks, for which group; the code.
type Line = (Standing, Claim, &'static str, i16);

const LINES: &[Line] = &[
    // T-242, T-243: what the coordinator says, in every version.
    (Unknown, Claim::Owner, "group", 49),
    (Empty, Claim::Other, "group", 49),
    (Empty, Claim::Lower, "group", 47),
    (Empty, Claim::Higher, "group", 47),
    (Empty, Claim::Owner, "group", 48),
    (Ongoing, Claim::Other, "group", 49),
    (Ongoing, Claim::Lower, "group", 47),
    (Ongoing, Claim::Higher, "group", 47),
    (Ongoing, Claim::Owner, "another", 48),
    (Ongoing, Claim::Owner, "group", 0),
    (Over(true), Claim::Owner, "group", 48),
    (Over(false), Claim::Owner, "group", 48),
    (Over(true), Claim::Lower, "group", 47),
    // Whose it is comes before whether it is being decided (T-222).
    (Deciding(true), Claim::Owner, "group", 51),
    (Deciding(false), Claim::Owner, "group", 51),
    (Deciding(true), Claim::Other, "group", 49),
    (Deciding(true), Claim::Lower, "group", 47),
    (Deciding(false), Claim::Higher, "group", 47),
    // T-241 row 7, whatever else is wrong.
    (Ongoing, Claim::Owner, "", 24),
    (Unknown, Claim::Owner, "", 24),
];

fn check(scene: &Scene, client: &mut Client, (version, line): &(i16, Line)) {
    let (standing, claim, group, code) = *line;
    let id = scene.fresh_id();
    let owner = scene.bring(client, &id, standing);
    let who = (id.as_str(), claim.of(owner));
    let said = client.stage_in(*version, who, (group, &Member::default()), (FREE, 0, 7));
    assert_eq!(said, code, "T-243, version {version}: {line:?}");
}

#[test]
fn every_row() {
    let scene = Scene::new();
    scene.hold();
    let lines: Vec<(i16, Line)> = (0..=3).flat_map(|version| LINES.iter().map(move |line| (version, *line))).collect();
    scene.check_all(&lines, check);
}

/// T-241 rows 5 and 6: unknown partitions are told so, and the coordinator is not asked.
#[test]
fn unknown_partitions() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let nobody = Claim::Other.of(client.owner("id"));
    for version in 0..=3 {
        for at in [("none", 0, 1), (FREE, 99, 1)] {
            let said = client.stage_in(version, ("id", nobody), ("group", &Member::default()), at);
            assert_eq!(said, 3, "version {version}: {at:?}");
        }
    }
}

/// What the group looks like when an offset is staged for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Absent,
    /// Somebody committed an offset, nobody is a member.
    Simple,
    /// One member, who has what there is.
    Stable,
    /// The same with an instance id.
    Static,
    /// One member, who has not been given anything yet.
    Completing,
    /// One member, and another who waits for it to come again.
    Preparing,
}

/// What is said of the member: generation and id relative to the real ones.
#[derive(Debug, Clone, Copy)]
enum Says {
    Nothing,
    /// A generation, no member.
    Generation(i32),
    /// The member's own words.
    Itself,
    /// The member, with a generation so far from its own.
    Later(i32),
    /// Somebody else, in the right generation.
    Stranger,
    /// Somebody else and no generation.
    StrangerOutside,
    /// An instance nobody has, under the member's id.
    UnknownInstance,
    /// The right instance under another member's id.
    FencedInstance,
}

use Group::{Absent, Completing, Preparing, Simple, Stable, Static};
use Says::{FencedInstance, Generation, Itself, Later, Nothing, Stranger, StrangerOutside, UnknownInstance};

/// T-244 in version 3.
const FENCING: &[(Group, Says, i16)] = &[
    (Absent, Nothing, 0),
    (Absent, StrangerOutside, 0),
    (Absent, Generation(0), 22),
    (Absent, Generation(5), 22),
    (Simple, Nothing, 0),
    (Simple, StrangerOutside, 0),
    (Simple, UnknownInstance, 0),
    (Simple, Generation(0), 25),
    (Simple, Stranger, 25),
    (Stable, Itself, 0),
    (Stable, Nothing, 0),
    (Stable, Later(1), 22),
    (Stable, Later(-1), 22),
    (Stable, Stranger, 25),
    (Stable, StrangerOutside, 25),
    (Stable, Generation(1), 25),
    (Stable, UnknownInstance, 25),
    (Static, Itself, 0),
    (Static, Nothing, 0),
    (Static, FencedInstance, 82),
    (Static, UnknownInstance, 25),
    (Static, Later(1), 22),
    (Completing, Itself, 0),
    (Completing, Nothing, 0),
    (Completing, Later(1), 22),
    (Completing, Stranger, 25),
    (Preparing, Itself, 0),
    (Preparing, Nothing, 0),
    (Preparing, Later(1), 22),
    (Preparing, Stranger, 25),
];

/// Makes the group, and the connection on which somebody waits to join it.
fn make(scene: &Scene, client: &mut Client, id: &str, group: Group) -> (Member, Option<Client>) {
    let member = match group {
        Absent => return (Member::default(), None),
        Simple => {
            assert_eq!(client.offset_commit(id, &Member::default(), (FREE, 0, 1)), 0);
            return (Member::default(), None);
        }
        Static => client.join_alone(id, Some("instance")),
        Stable | Completing | Preparing => client.join_alone(id, None),
    };
    if group != Completing {
        client.sync_alone(id, &member);
    }
    if group != Preparing {
        return (member, None);
    }
    let mut other = scene.connect();
    let _: crate::raw::Sent = other.send(3, &Client::join_request(id, &Member::default()));
    // The member hears of it by its heartbeat.
    super::until("a rebalance", || client.heartbeat(id, &member) == 27);
    (member, Some(other))
}

fn said(member: &Member, says: Says) -> Member {
    let stranger = "stranger".to_owned();
    match says {
        Nothing => Member::default(),
        Generation(generation) => Member { generation, ..Member::default() },
        Itself => member.clone(),
        Later(by) => Member { generation: member.generation + by, ..member.clone() },
        Stranger => Member { id: stranger, instance: None, generation: member.generation.max(1) },
        StrangerOutside => Member { id: stranger, ..Member::default() },
        UnknownInstance => Member { instance: Some(stranger), ..member.clone() },
        FencedInstance => Member { id: stranger, ..member.clone() },
    }
}

fn check_fencing(scene: &Scene, client: &mut Client, line: &(Group, Says, i16)) {
    let (group, says, code) = *line;
    let id = scene.fresh_id();
    let group_id = format!("group of {id}");
    let (member, _waiting) = make(scene, client, &group_id, group);
    let owner = client.owner(&id);
    assert_eq!(client.add_offsets(&id, owner, &group_id), 0);
    let who = (id.as_str(), owner);
    assert_eq!(client.stage_in(3, who, (&group_id, &said(&member, says)), (FREE, 0, 7)), code, "T-244: {line:?}");
    let pending = client.offset_fetch(&group_id, (FREE, 0), true).0;
    assert_eq!(pending, if code == 0 { 88 } else { 0 }, "X-93, T-821: {line:?}");
    for version in 0..=2 {
        let code = client.stage_in(version, who, (&group_id, &Member::default()), (FREE, 0, 8));
        assert_eq!(code, 0, "T-244: old versions name nobody: {line:?}");
    }
    client.end_txn_surely(&id, owner, true);
    assert_eq!(client.offset_fetch(&group_id, (FREE, 0), true), (0, 8), "T-247: the last one wins: {line:?}");
}

#[test]
fn members_are_fenced() {
    let scene = Scene::new();
    scene.check_all(FENCING, check_fencing);
}

/// C-14, C-43, T-247, T-821: an abort moves no offset, a commit does, and who asks for a stable one is told to wait.
#[test]
fn offsets_move_with_a_commit_alone() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let (group, nobody) = ("group", Member::default());
    let owner = client.owner("id");
    assert_eq!(client.offset_commit(group, &nobody, (FREE, 0, 5)), 0);
    for (commit, stage, before, after) in [(false, 8, 5, 5), (true, 9, 5, 9), (false, 4, 9, 9), (true, 2, 9, 2)] {
        assert_eq!(client.add_offsets("id", owner, group), 0);
        assert_eq!(client.txn_offset_commit(("id", owner), (group, &nobody), (FREE, 0, 77)), 0);
        assert_eq!(client.txn_offset_commit(("id", owner), (group, &nobody), (FREE, 0, stage)), 0);
        assert_eq!(client.offset_fetch(group, (FREE, 0), true), (88, -1), "C-43");
        assert_eq!(client.offset_fetch(group, (FREE, 0), false), (0, before), "C-43: the old one, unstable or not");
        client.end_txn_surely("id", owner, commit);
        for stable in [true, false] {
            assert_eq!(client.offset_fetch(group, (FREE, 0), stable), (0, after), "C-14, commit {commit}");
        }
        scene.crash_and_start(|_| {});
        client = scene.connect();
        assert_eq!(client.offset_fetch(group, (FREE, 0), true), (0, after), "P1, P2, commit {commit}");
    }
}

/// T-823: a plain commit made after the staging is the later one, whatever the transaction's end says.
#[test]
fn a_later_plain_commit_wins() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let (group, nobody) = ("group", Member::default());
    let owner = client.owner("id");
    assert_eq!(client.add_offsets("id", owner, group), 0);
    assert_eq!(client.txn_offset_commit(("id", owner), (group, &nobody), (FREE, 0, 8)), 0);
    assert_eq!(client.offset_commit(group, &nobody, (FREE, 0, 3)), 0, "T-248");
    assert_eq!(client.offset_fetch(group, (FREE, 0), false), (0, 3), "T-248");
    client.end_txn_surely("id", owner, true);
    assert_eq!(client.offset_fetch(group, (FREE, 0), true), (0, 3), "T-823, X-11");
}

/// Offsets show with the markers, not before: who reads on from them finds the records that go with them.
#[test]
fn decided_offsets_wait_for_the_markers() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let owner = client.owner("id");
    let nobody = Member::default();
    assert_eq!(client.add_partitions("id", owner, &[(HELD, 0)]), [0]);
    assert_eq!(client.add_offsets("id", owner, "group"), 0);
    assert_eq!(client.txn_offset_commit(("id", owner), ("group", &nobody), (FREE, 0, 8)), 0);
    scene.hold();
    assert_eq!(client.end_txn("id", owner, true), 51);
    assert_eq!(client.offset_fetch("group", (FREE, 0), true), (88, -1));
    assert_eq!(client.offset_fetch("group", (FREE, 0), false), (0, -1));
    scene.release();
    super::until("the offset shows", || client.offset_fetch("group", (FREE, 0), true) == (0, 8));
    assert_eq!(client.offset_fetch("group", (FREE, 0), false), (0, 8));
}
