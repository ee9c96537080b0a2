//! Groups described, listed and deleted, as operators and their tools see it.

use crate::broker::TestBroker;
use crate::raw::Client;
use crate::raw::groups::reads;
use crate::raw::txn::Member;

/// A simple group, one that is in use, one whose member left, one that waits for its leader.
fn stage(client: &mut Client) -> Member {
    assert_eq!(client.create_topic("t", 2), 0);
    assert_eq!(client.create_topic("u", 1), 0);
    assert_eq!(client.offset_commit("simple", &Member::default(), ("t", 0, 5)), 0);
    let busy = client.join("busy", "consumer", &reads("t"));
    assert_eq!(client.sync("busy", &busy, b"share"), 0);
    let left = client.join("left", "consumer", &reads("t"));
    assert_eq!(client.sync("left", &left, b""), 0);
    assert_eq!(client.leave("left", &left), 0);
    client.join("waits", "connect", b"xyz");
    busy
}

fn row(id: &str, kind: &str, state: &str, group_type: &str) -> [String; 4] {
    [id, kind, state, group_type].map(str::to_owned)
}

/// G-461, G-462, M-215, in every version.
#[test]
fn groups_are_described() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let busy = stage(&mut client);
    for version in 0..=6 {
        let answer = client.describe_groups(version, &["busy", "never", "simple", "waits", "busy", "left"]);
        let shown: Vec<_> = (answer.groups.iter())
            .map(|group| (&*group.group_id.0, &*group.group_state, &*group.protocol_type, &*group.protocol_data))
            .collect();
        let expected = [
            ("busy", "Stable", "consumer", "range"),
            ("never", "Dead", "", ""),
            ("simple", "Empty", "", ""),
            ("waits", "CompletingRebalance", "connect", ""),
            ("left", "Empty", "consumer", ""),
        ];
        assert_eq!(shown, expected, "G-461, G-462, version {version}");
        let codes: Vec<_> = answer.groups.iter().map(|group| group.error_code).collect();
        let unknown = if version >= 6 { 69 } else { 0 };
        assert_eq!(codes, [0, unknown, 0, 0, 0], "G-462, version {version}");
        let told: Vec<_> = answer.groups.iter().map(|group| group.error_message.is_some()).collect();
        assert_eq!(told, [false, version >= 6, false, false, false], "G-462, version {version}");
        let members: Vec<_> = answer.groups.iter().map(|group| group.members.len()).collect();
        assert_eq!(members, [1, 0, 0, 1, 0], "G-461, version {version}");
        let member = &answer.groups[0].members[0];
        assert_eq!((&*member.member_id, &*member.client_id, &*member.client_host), (&*busy.id, "raw", "/127.0.0.1"));
        assert_eq!((&*member.member_metadata, &*member.member_assignment), (&*reads("t"), &b"share"[..]));
        let waiting = &answer.groups[3].members[0];
        assert!(waiting.member_metadata.is_empty() && waiting.member_assignment.is_empty(), "G-461");
        let operations: Vec<_> = answer.groups.iter().map(|group| group.authorized_operations).collect();
        let all = if version >= 3 { 3400 } else { i32::MIN };
        let of_none = if version >= 6 { i32::MIN } else { all };
        assert_eq!(operations, [all, of_none, all, all, all], "M-215, version {version}");
    }
    assert!(client.describe_groups(6, &[]).groups.is_empty(), "who names none is shown none");
}

/// G-463, G-464, in every version.
#[test]
fn groups_are_listed() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.list_groups(5, &[], &[]), [] as [[String; 4]; 0]);
    stage(&mut client);
    for version in 0..=5 {
        let state = |state: &'static str| if version >= 4 { state } else { "" };
        let kind = if version >= 5 { "classic" } else { "" };
        let expected = [
            row("busy", "consumer", state("Stable"), kind),
            row("left", "consumer", state("Empty"), kind),
            row("simple", "", state("Empty"), kind),
            row("waits", "connect", state("CompletingRebalance"), kind),
        ];
        assert_eq!(client.list_groups(version, &[], &[]), expected, "G-463, G-464, version {version}");
    }
    let ids = |client: &mut Client, version, states: &[&str], types: &[&str]| {
        client.list_groups(version, states, types).into_iter().map(|[id, ..]| id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&mut client, 4, &["empty"], &[]), ["left", "simple"], "G-463");
    assert_eq!(ids(&mut client, 5, &["Empty", "Stable"], &["Classic"]), ["busy", "left", "simple"], "G-463");
    assert_eq!(ids(&mut client, 5, &[], &["consumer"]), [] as [&str; 0], "G-463");
    assert_eq!(ids(&mut client, 5, &["Dead"], &[]), [] as [&str; 0], "G-463");
}

/// G-465, in every version; what is deleted stays so over a crash.
#[test]
fn groups_are_deleted_and_stay_so() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    stage(&mut client);
    for version in 0..=2 {
        assert_eq!(client.offset_commit("simple", &Member::default(), ("t", 0, 5)), 0, "version {version}");
        let deleted = client.delete_groups(version, &["busy", "simple", "never", "simple", "waits"]);
        let expected = [("busy", 68), ("never", 69), ("simple", 0), ("waits", 68)];
        assert_eq!(deleted, expected.map(|(id, code)| (id.to_owned(), code)), "G-465, version {version}");
        assert_eq!(client.offset_fetch("simple", ("t", 0), true), (0, -1), "G-465, version {version}");
    }
    assert_eq!(client.delete_groups(2, &["left"]), [("left".to_owned(), 0)], "G-465");
    drop(client);
    broker.crash();
    broker.start_again(|_| {});
    let mut client = broker.connect();
    let ids: Vec<_> = client.list_groups(0, &[], &[]).into_iter().map(|[id, ..]| id).collect();
    assert_eq!(ids, ["busy"], "G-481: what never synced was never stored");
    assert_eq!(client.offset_fetch("simple", ("t", 0), true), (0, -1));
}

/// T-824, T-825: the group goes though a transaction carries an offset of it, and the commit brings nothing back.
#[test]
fn a_group_is_deleted_under_a_transaction() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    stage(&mut client);
    let owner = client.owner("id");
    assert_eq!(client.add_offsets("id", owner, "simple"), 0);
    let position = ("t", 0, 9);
    assert_eq!(client.txn_offset_commit(("id", owner), ("simple", &Member::default()), position), 0);
    assert_eq!(client.offset_fetch("simple", ("t", 0), true), (88, -1), "T-821");
    assert_eq!(client.delete_groups(2, &["simple"]), [("simple".to_owned(), 0)], "T-825");
    assert_eq!(client.offset_fetch("simple", ("t", 0), true), (0, -1), "T-824: nothing is pending");
    client.end_txn_surely("id", owner, true);
    for _ in 0..2 {
        assert_eq!(client.offset_fetch("simple", ("t", 0), true), (0, -1), "T-824");
        assert_eq!(client.delete_groups(2, &["simple"]), [("simple".to_owned(), 69)], "T-824");
        drop(client);
        broker.crash();
        broker.start_again(|_| {});
        client = broker.connect();
    }
}

/// G-466, T-824.
#[test]
fn offsets_are_deleted() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let busy = stage(&mut client);
    assert_eq!(client.offset_commit("busy", &busy, ("t", 0, 1)), 0);
    assert_eq!(client.offset_commit("busy", &busy, ("u", 0, 2)), 0);
    let refused = |code: i16| (code, Vec::new());
    assert_eq!(client.offset_delete("", &[("t", &[0])]), refused(24), "G-466");
    assert_eq!(client.offset_delete("never", &[("t", &[0])]), refused(69), "G-466");
    assert_eq!(client.offset_delete("never", &[("none", &[0])]), refused(69), "G-466: the group is judged first");
    assert_eq!(client.offset_delete("waits", &[("u", &[0])]), refused(68), "G-466");
    let deleted = client.offset_delete("simple", &[("none", &[0, 1]), ("t", &[0, 9, 1, 0]), ("u", &[])]);
    let expected = vec![
        ("none".to_owned(), vec![(0, 3), (1, 3)]),
        ("t".to_owned(), vec![(0, 0), (9, 3), (1, 0), (0, 0)]),
        ("u".to_owned(), Vec::new()),
    ];
    assert_eq!(deleted, (0, expected), "G-466: also where there is no offset");
    assert_eq!(client.offset_fetch("simple", ("t", 0), true), (0, -1));
    let deleted = client.offset_delete("busy", &[("t", &[0, 1]), ("u", &[0])]);
    let expected = vec![("t".to_owned(), vec![(0, 86), (1, 86)]), ("u".to_owned(), vec![(0, 0)])];
    assert_eq!(deleted, (0, expected), "G-466: what is read stays");
    assert_eq!(client.offset_fetch("busy", ("t", 0), true), (0, 1));
    assert_eq!(client.offset_fetch("busy", ("u", 0), true), (0, -1));
}
