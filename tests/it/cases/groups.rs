//! Groups of several members, made by hand; and what groups commit.

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    JoinGroupRequest, JoinGroupResponse, OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest, SyncGroupResponse,
};

use crate::broker::TestBroker;
use crate::oracle::until;
use crate::raw::txn::Member;
use crate::raw::{Client, Sent, text};

const GROUP: &str = "group";

/// A member on its own connection.
struct Joined {
    client: Client,
    member: Member,
    version: i16,
}

fn broker() -> TestBroker {
    TestBroker::with(|config| config.groups.initial_rebalance_delay_ms = 0)
}

impl Joined {
    /// Somebody who has not joined yet. Versions up to 3 need no member id first.
    fn new(broker: &TestBroker, instance: Option<&str>, version: i16) -> Self {
        let member = Member { instance: instance.map(str::to_owned), ..Member::default() };
        Self { client: broker.connect(), member, version }
    }

    fn send_join(&mut self) -> Sent {
        let mut request = Client::join_request(GROUP, &self.member);
        if self.version < 5 {
            request.group_instance_id = None;
        }
        self.client.send(self.version, &request)
    }

    fn joined(&mut self, sent: Sent) -> JoinGroupResponse {
        let answer = self.client.receive::<JoinGroupRequest>(sent);
        assert_eq!(answer.error_code, 0, "JoinGroup");
        self.member.generation = answer.generation_id;
        self.member.id = answer.member_id.to_string();
        answer
    }

    fn send_sync(&mut self, assignments: &[(&str, &'static [u8])]) -> Sent {
        let assignment = |(id, bytes): &(&str, &'static [u8])| {
            SyncGroupRequestAssignment::default().with_member_id(text(id)).with_assignment(Bytes::from_static(bytes))
        };
        let request = SyncGroupRequest::default()
            .with_group_id(text(GROUP).into())
            .with_generation_id(self.member.generation)
            .with_member_id(text(&self.member.id))
            .with_group_instance_id(self.member.instance.as_deref().filter(|_| self.version >= 5).map(text))
            .with_assignments(assignments.iter().map(assignment).collect());
        self.client.send(3, &request)
    }

    fn synced(&mut self, sent: Sent) -> SyncGroupResponse {
        self.client.receive::<SyncGroupRequest>(sent)
    }

    fn heartbeat(&mut self) -> i16 {
        self.client.heartbeat(GROUP, &self.member)
    }
}

/// Everyone joins, the first one first; the others make it join again. Its answers: the leader's first.
fn join_all(members: &mut [Joined]) -> Vec<JoinGroupResponse> {
    let sent = members[0].send_join();
    members[0].joined(sent);
    let sent: Vec<Sent> = members[1..].iter_mut().map(Joined::send_join).collect();
    until("a rebalance", || members[0].heartbeat() == 27);
    let again = members[0].send_join();
    let mut answers = vec![members[0].joined(again)];
    answers.extend(members[1..].iter_mut().zip(sent).map(|(member, sent)| member.joined(sent)));
    answers
}

/// Three who join together are one generation. What others than the leader give away counts for nothing; whom the leader
/// forgets gets nothing, and everyone his own.
#[test]
fn c_81_c_82_a_generation_and_what_each_gets_in_it() {
    let broker = broker();
    let mut members: Vec<Joined> = (0..3).map(|_| Joined::new(&broker, None, 3)).collect();
    let answers = join_all(&mut members);
    let generation = answers[0].generation_id;
    assert!(answers.iter().all(|answer| answer.generation_id == generation), "one for all");
    let leader = &answers[0].leader;
    assert!(answers.iter().all(|answer| answer.leader == *leader && *leader == answers[0].member_id));
    assert_eq!(answers.iter().map(|answer| answer.members.len()).collect::<Vec<_>>(), [3, 0, 0]);
    let ids: Vec<String> = members.iter().map(|member| member.member.id.clone()).collect();
    let usurped = members[1].send_sync(&[(&ids[1], b"everything"), (&ids[0], b"nothing")]);
    let asked = members[2].send_sync(&[]);
    let led = members[0].send_sync(&[(&ids[0], b"one"), (&ids[1], b"two"), ("stranger", b"three")]);
    let got = [members[0].synced(led), members[1].synced(usurped), members[2].synced(asked)];
    let got = got.map(|answer| (answer.error_code, answer.assignment.to_vec()));
    assert_eq!(got, [(0, b"one".to_vec()), (0, b"two".to_vec()), (0, Vec::new())]);
    for member in &mut members {
        assert_eq!((member.heartbeat(), member.member.generation), (0, generation), "it stands");
    }
    // A fourth comes: until everyone has come again nobody is given anything.
    let mut fourth = Joined::new(&broker, None, 3);
    let sent = fourth.send_join();
    until("a rebalance", || members[0].heartbeat() == 27);
    let early = members[0].send_sync(&[]);
    assert_eq!(members[0].synced(early).error_code, 27);
    let again: Vec<Sent> = members.iter_mut().map(Joined::send_join).collect();
    for (member, sent) in members.iter_mut().zip(again) {
        assert_eq!(member.joined(sent).generation_id, generation + 1, "one more, however many come");
    }
    assert_eq!(fourth.joined(sent).generation_id, generation + 1);
}

/// A leader of an old version is told of members, not of instances it has no field for.
#[test]
fn c_84_an_instance_beside_an_old_leader() {
    let broker = broker();
    let mut members = [Joined::new(&broker, None, 2), Joined::new(&broker, Some("instance"), 5)];
    let answers = join_all(&mut members);
    assert_eq!(answers[0].leader, answers[0].member_id);
    assert_eq!(answers[0].members.len(), 2);
    assert!(answers[0].members.iter().all(|member| member.group_instance_id.is_none()));
    let ids: Vec<String> = members.iter().map(|member| member.member.id.clone()).collect();
    let [leader, other] = &mut members;
    let asked = other.send_sync(&[]);
    let led = leader.send_sync(&[(&ids[0], b"one"), (&ids[1], b"two")]);
    assert_eq!((leader.synced(led).error_code, other.synced(asked).assignment.to_vec()), (0, b"two".to_vec()));
    assert_eq!((leader.heartbeat(), other.heartbeat()), (0, 0));
}

/// Three members, one of them an instance, over a stop and a kill: they go on, and are fenced as before.
#[test]
fn c_75_members_go_on_after_a_restart() {
    let mut broker = broker();
    assert_eq!(broker.connect().create_topic("t", 3), 0);
    let mut members =
        [Joined::new(&broker, None, 3), Joined::new(&broker, None, 3), Joined::new(&broker, Some("instance"), 5)];
    join_all(&mut members);
    let ids: Vec<String> = members.iter().map(|member| member.member.id.clone()).collect();
    let sent = [members[1].send_sync(&[]), members[2].send_sync(&[])];
    let led = members[0].send_sync(&[(&ids[0], b"0"), (&ids[1], b"1"), (&ids[2], b"2")]);
    assert_eq!(members[0].synced(led).error_code, 0);
    for (member, sent) in members[1..].iter_mut().zip(sent) {
        assert_eq!(member.synced(sent).error_code, 0);
    }
    let generation = members[0].member.generation;
    for (round, kill) in (0..).zip([true, false, true]) {
        if kill {
            broker.crash();
        } else {
            broker.stop();
        }
        broker.start_again(|_| {});
        for (part, (joined, id)) in (0..).zip(members.iter_mut().zip(&ids)) {
            joined.client = broker.connect();
            let (client, member) = (&mut joined.client, &joined.member);
            assert_eq!(client.heartbeat(GROUP, member), 0, "{id}, kill {kill}");
            assert_eq!(client.offset_commit(GROUP, member, ("t", part, round)), 0, "{id}, kill {kill}");
            for (generation, code) in [(generation - 1, 22), (generation + 1, 22)] {
                let other = Member { generation, ..member.clone() };
                assert_eq!(client.offset_commit(GROUP, &other, ("t", part, 99)), code, "{id}, kill {kill}");
                assert_eq!(client.heartbeat(GROUP, &other), code, "{id}, kill {kill}");
            }
            let stranger = Member { id: "stranger".to_owned(), instance: None, ..member.clone() };
            assert_eq!(client.offset_commit(GROUP, &stranger, ("t", part, 99)), 25, "{id}, kill {kill}");
            assert_eq!(client.offset_fetch(GROUP, ("t", part), true), (0, round), "{id}, kill {kill}");
        }
        let impostor = Member { id: ids[0].clone(), ..members[2].member.clone() };
        assert_eq!(members[2].client.offset_commit(GROUP, &impostor, ("t", 2, 99)), 82, "kill {kill}");
        let synced = members[2].send_sync(&[]);
        assert_eq!(members[2].synced(synced).assignment.to_vec(), b"2", "kill {kill}");
    }
}

/// One partition's line of an OffsetCommit with this metadata.
fn line(part: i32, offset: i64, metadata: &str) -> OffsetCommitRequestPartition {
    OffsetCommitRequestPartition::default()
        .with_partition_index(part)
        .with_committed_offset(offset)
        .with_committed_metadata(Some(text(metadata)))
}

#[test]
fn c_86_offsets_of_partitions_that_are_not_there() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 3), 0);
    let (fits, long) = ("m".repeat(4096), "m".repeat(5000));
    for version in 2..=8 {
        let group = format!("group-{version}");
        let topic = |name: &str, lines: &[OffsetCommitRequestPartition]| {
            OffsetCommitRequestTopic::default().with_name(text(name).into()).with_partitions(lines.to_vec())
        };
        let request = OffsetCommitRequest::default()
            .with_group_id(text(&group).into())
            .with_generation_id_or_member_epoch(-1)
            .with_topics(vec![
                topic("missing", &[line(0, 5, "")]),
                topic("t", &[line(0, 5, &fits), line(99, 5, ""), line(1, 5, &long), line(2, -1, "")]),
            ]);
        let answer = client.call(version, &request);
        let codes: Vec<Vec<i16>> =
            (answer.topics.iter()).map(|topic| topic.partitions.iter().map(|part| part.error_code).collect()).collect();
        assert_eq!(codes, [vec![3], vec![0, 3, 12, 0]], "version {version}");
    }
    drop(client);
    broker.crash();
    broker.start_again(|_| {});
    let mut client = broker.connect();
    let everything = OffsetFetchRequestGroup::default().with_group_id(text("group-8").into()).with_topics(None);
    let answer = client.call(8, &OffsetFetchRequest::default().with_groups(vec![everything]));
    let [topic] = answer.groups[0].topics.as_slice() else { panic!("one topic") };
    let kept: Vec<_> = topic.partitions.iter().map(|part| (part.partition_index, part.committed_offset)).collect();
    assert_eq!((topic.name.as_str(), kept), ("t", vec![(0, 5), (2, -1)]), "and nothing else is stored");
    assert_eq!(topic.partitions[0].metadata.as_deref(), Some(fits.as_str()));
}

/// What is not there is said with fields that every client can read, and all there is is given without being named.
#[test]
fn c_87_offsets_that_are_not_there() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 2), 0);
    assert_eq!(client.offset_commit("some", &Member::default(), ("t", 1, 7)), 0);
    for (group, committed) in [("some", 7), ("none", -1)] {
        for version in 1..=7 {
            let named =
                OffsetFetchRequestTopic::default().with_name(text("t").into()).with_partition_indexes(vec![0, 1]);
            let request = OffsetFetchRequest::default().with_group_id(text(group).into());
            let answer = client.call(version, &request.clone().with_topics(Some(vec![named])));
            let lines = &answer.topics[0].partitions;
            for line in lines {
                assert_eq!((line.error_code, line.metadata.as_deref()), (0, Some("")), "{group}, version {version}");
                assert_eq!(line.committed_leader_epoch, -1, "{group}, version {version}");
            }
            let offsets: Vec<i64> = lines.iter().map(|line| line.committed_offset).collect();
            assert_eq!((answer.error_code, offsets), (0, vec![-1, committed]), "{group}, version {version}");
            if version >= 2 {
                let answer = client.call(version, &request.with_topics(None));
                let all: Vec<_> = (answer.topics.iter())
                    .flat_map(|topic| topic.partitions.iter().map(|line| (line.partition_index, line.committed_offset)))
                    .collect();
                let expected = if committed < 0 { vec![] } else { vec![(1, 7)] };
                assert_eq!((answer.error_code, all), (0, expected), "{group}, version {version}");
            }
        }
        let named = OffsetFetchRequestTopics::default().with_name(text("t").into()).with_partition_indexes(vec![0]);
        let asked = OffsetFetchRequestGroup::default().with_group_id(text(group).into()).with_topics(Some(vec![named]));
        let answer = client.call(8, &OffsetFetchRequest::default().with_groups(vec![asked]));
        let line = &answer.groups[0].topics[0].partitions[0];
        assert_eq!((line.committed_offset, line.committed_leader_epoch, line.error_code), (-1, -1, 0), "{group}");
        assert_eq!((line.metadata.as_deref(), answer.groups[0].error_code), (Some(""), 0), "{group}");
    }
}

/// What protocols a member offers, in its order.
fn offers(broker: &TestBroker, protocols: &[&str]) -> (Client, Sent) {
    let protocols = protocols.iter().map(|name| JoinGroupRequestProtocol::default().with_name(text(name)));
    let request = Client::join_request(GROUP, &Member::default()).with_protocols(protocols.collect());
    let mut client = broker.connect();
    let sent = client.send(3, &request);
    (client, sent)
}

#[test]
fn c_85_assignors_that_have_nothing_in_common() {
    let broker = broker();
    let (mut first, sent) = offers(&broker, &["range", "roundrobin"]);
    let joined = first.receive::<JoinGroupRequest>(sent);
    assert_eq!((joined.error_code, joined.protocol_name.as_deref()), (0, Some("range")));
    let (mut other, sent) = offers(&broker, &["sticky"]);
    assert_eq!(other.receive::<JoinGroupRequest>(sent).error_code, 23, "and nobody is disturbed");
    let member = Member { generation: joined.generation_id, id: joined.member_id.to_string(), instance: None };
    assert_eq!(first.heartbeat(GROUP, &member), 0);
    let (mut third, sent) = offers(&broker, &["roundrobin", "sticky"]);
    until("a rebalance", || first.heartbeat(GROUP, &member) == 27);
    let protocols = ["range", "roundrobin"].map(|name| JoinGroupRequestProtocol::default().with_name(text(name)));
    let again = first.call(3, &Client::join_request(GROUP, &member).with_protocols(protocols.to_vec()));
    assert_eq!((again.error_code, again.protocol_name.as_deref()), (0, Some("roundrobin")), "what both know");
    assert_eq!(third.receive::<JoinGroupRequest>(sent).protocol_name.as_deref(), Some("roundrobin"));
}
