use kafka_protocol::messages::TopicName;
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::{GroupId, OffsetFetchRequest};
use kafka_protocol::protocol::StrBytes;

use super::show::{Line, lines};
use super::{Refused, Topic, all, distinct, put_back, questions, resolve};
use crate::api::words::tests::catalog;
use crate::engine::ledger::offsets::Seen;
use crate::engine::txn::Position;
use crate::engine::{PartId, Refusal as R};

fn name(text: &'static str) -> TopicName {
    TopicName(StrBytes::from_static_str(text))
}

fn topic<T: Clone>(text: &'static str, parts: &[T]) -> Topic<T> {
    Topic { name: name(text), parts: parts.to_vec() }
}

fn at(offset: i64) -> Seen {
    Seen::At(Position { offset, leader_epoch: 2, metadata: "m".to_owned() })
}

#[test]
fn the_named_form_keeps_the_order_of_the_request() {
    let asked = [topic("b", &[0]), topic("gone", &[0]), topic("a", &[1, 5, 0])];
    let ids = resolve(&catalog(), &asked);
    let known: Vec<PartId> = ids.iter().flat_map(|topic| topic.parts.iter().filter_map(|(_, part)| *part)).collect();
    assert_eq!(known, [7, 2, 1].map(PartId));
    let seen = vec![(PartId(7), at(70)), (PartId(2), Seen::Unstable), (PartId(1), Seen::Absent)];
    let expected = [
        topic("b", &[(0, at(70))]),
        topic("gone", &[(0, Seen::Absent)]),
        topic("a", &[(1, Seen::Unstable), (5, Seen::Absent), (0, Seen::Absent)]),
    ];
    assert_eq!(put_back(ids, seen), expected, "O-622");
}

#[test]
fn the_all_form_leaves_out_what_has_no_offset() {
    let seen = vec![(PartId(7), Seen::Unstable), (PartId(2), at(20)), (PartId(1), Seen::Absent), (PartId(99), at(1))];
    let expected = [topic("a", &[(1, at(20))]), topic("b", &[(0, Seen::Unstable)])];
    assert_eq!(all(&catalog(), seen), expected, "O-625, T-822");
}

#[test]
fn each_partition_is_answered_once() {
    let asked = [topic("a", &[0, 1, 0]), topic("b", &[0]), topic("a", &[1, 2])];
    assert_eq!(distinct(asked.into_iter()), [topic("a", &[0, 1]), topic("b", &[0]), topic("a", &[2])]);
}

#[test]
fn one_group_or_many() {
    let one = OffsetFetchRequest::default().with_group_id(GroupId("g".into())).with_topics(Some(vec![
        OffsetFetchRequestTopic::default().with_name(name("a")).with_partition_indexes(vec![1]),
    ]));
    let asked = questions(7, one.clone());
    assert_eq!((asked.len(), &*asked[0].group), (1, "g"), "O-631");
    assert_eq!(asked[0].topics, Some(vec![topic("a", &[1])]));
    assert_eq!(questions(2, one.with_topics(None))[0].topics, None, "O-625");

    let named = OffsetFetchRequestTopics::default().with_name(name("b")).with_partition_indexes(vec![0, 0]);
    let many = OffsetFetchRequest::default().with_groups(vec![
        OffsetFetchRequestGroup::default().with_group_id(GroupId("g".into())).with_topics(Some(vec![named])),
        OffsetFetchRequestGroup::default().with_group_id(GroupId("h".into())).with_topics(None),
        OffsetFetchRequestGroup::default().with_group_id(GroupId("i".into())).with_topics(Some(Vec::new())),
    ]);
    let asked: Vec<_> = questions(8, many).into_iter().map(|one| (one.group.to_string(), one.topics)).collect();
    let expected = [("g", Some(vec![topic("b", &[0])])), ("h", None), ("i", Some(Vec::new()))];
    assert_eq!(asked, expected.map(|(group, topics)| (group.to_owned(), topics)), "O-625, O-626, O-631");
}

#[test]
fn a_line_for_whatever_is_known() {
    let check = |seen, (offset, leader_epoch, metadata): (i64, i32, &str), refusal, rule: &str| {
        let expected = Line { index: 4, offset, leader_epoch, metadata: metadata.to_owned(), refusal };
        assert_eq!(Line::of(4, seen), expected, "{rule}");
    };
    check(at(9), (9, 2, "m"), None, "O-617");
    check(Seen::Absent, (-1, -1, ""), None, "O-622");
    check(Seen::Unstable, (-1, -1, ""), Some(R::UnstableOffsetCommit), "T-821");
}

#[test]
fn a_refused_group_says_so_where_its_version_can() {
    for (version, on_each) in [(1, true), (2, false), (7, false), (8, false)] {
        let refused = Refused { refusal: R::NotCoordinator, asked: vec![topic("a", &[0, 1])] };
        let (topics, refusal) = lines(version, Err(refused));
        let told: Vec<_> = topics.iter().flat_map(|topic| topic.parts.iter().map(|line| line.refusal)).collect();
        let expected = if on_each { vec![Some(R::NotCoordinator); 2] } else { Vec::new() };
        assert_eq!(told, expected, "O-621 version {version}");
        assert_eq!(refusal, (!on_each).then_some(R::NotCoordinator), "O-621 version {version}");
    }
}
