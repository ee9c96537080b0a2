use super::*;

fn wanted(topic: &str, index: i32, offset: i64) -> Wanted {
    let position = Position { offset, leader_epoch: -1, last_epoch: -1 };
    Wanted { topic: topic.into(), index, position, max_bytes: 100 }
}

fn name(topic: &str, index: i32) -> (TopicName, i32) {
    (topic.into(), index)
}

/// Partitions in their order, with the offsets wanted.
fn order(session: &Session) -> Vec<(&str, i32, i64)> {
    session.wanted().map(|wanted| (wanted.topic.as_str(), wanted.index, wanted.position.offset)).collect()
}

const PART: PartId = PartId(7);
const BOUNDS: Bounds = Bounds { log_start: 5, watermark: 50, last_stable: 40 };
const TOLD: Told = Told { part: PART, bounds: BOUNDS };

#[test]
fn what_a_request_changes() {
    let mut session = Session::of(vec![wanted("b", 0, 1), wanted("a", 1, 2), wanted("b", 0, 3), wanted("a", 0, 4)]);
    assert_eq!(order(&session), [("b", 0, 3), ("a", 1, 2), ("a", 0, 4)], "the later of two wishes counts");
    let whole = session.bytes();
    let changes =
        |changed: Vec<Wanted>, forgotten: Vec<(TopicName, i32)>, expected: &[(&str, i32, i64)], rule: &str| {
            session.apply(changed, forgotten);
            assert_eq!(order(&session), expected, "{rule}");
            assert_eq!(session.bytes(), whole / 3 * expected.len(), "what it takes is counted: {rule}");
            assert_eq!((session.len(), session.is_empty()), (expected.len(), expected.is_empty()));
        };
    let mut changes = changes;
    changes(vec![], vec![], &[("b", 0, 3), ("a", 1, 2), ("a", 0, 4)], "F-709 nothing is changed");
    changes(
        vec![wanted("c", 9, 0), wanted("a", 1, 7)],
        vec![],
        &[("b", 0, 3), ("a", 1, 7), ("a", 0, 4), ("c", 9, 0)],
        "F-709 changed where they stand, new ones at the end",
    );
    changes(
        vec![wanted("d", 0, 1), wanted("a", 0, 5)],
        vec![name("a", 1), name("d", 0), name("never", 1)],
        &[("b", 0, 3), ("a", 0, 5), ("c", 9, 0)],
        "F-709 what is forgotten goes, also what came with it",
    );
    changes(vec![], vec![name("b", 0), name("a", 0), name("c", 9)], &[], "F-710");
}

/// F-712, T-517: what was told, what there is now, whether it is told.
#[test]
fn only_what_the_client_knows_is_left_out() {
    use Answered::{Diverged, Empty, Records, Refused};
    let changed = |bounds| Told { bounds, ..TOLD };
    let lines = [
        ("the same", vec![Empty(TOLD)], Empty(TOLD), false),
        ("after records", vec![Records(TOLD)], Empty(TOLD), false),
        ("records", vec![Empty(TOLD)], Records(TOLD), true),
        ("watermark", vec![Empty(TOLD)], Empty(changed(Bounds { watermark: 51, ..BOUNDS })), true),
        ("log start", vec![Empty(TOLD)], Empty(changed(Bounds { log_start: 6, ..BOUNDS })), true),
        ("last stable offset", vec![Empty(TOLD)], Empty(changed(Bounds { last_stable: 41, ..BOUNDS })), true),
        ("another partition under the name", vec![Empty(TOLD)], Empty(Told { part: PartId(8), ..TOLD }), true),
        ("an error", vec![Empty(TOLD)], Refused, true),
        ("the same error again", vec![Refused], Refused, true),
        ("an error is over", vec![Empty(TOLD), Refused], Empty(TOLD), true),
        ("and was told to be", vec![Empty(TOLD), Refused, Empty(TOLD)], Empty(TOLD), false),
        ("diverged", vec![Empty(TOLD)], Diverged(TOLD), true),
        ("and again", vec![Diverged(TOLD)], Diverged(TOLD), true),
        ("nothing was told", vec![], Empty(TOLD), true),
    ];
    for (why, before, now, told) in lines {
        let mut session = Session::of(vec![wanted("t", 0, 1)]);
        before.into_iter().for_each(|answered| session.note(&[answered]));
        assert_eq!(session.news(&[now]), [told], "F-712 {why}");
    }
}

#[test]
fn a_partition_that_comes_back_is_told_of() {
    let mut session = Session::of(vec![wanted("t", 0, 1), wanted("t", 1, 1)]);
    session.note(&[Answered::Empty(TOLD), Answered::Empty(TOLD)]);
    session.apply(vec![wanted("t", 1, 9)], []);
    assert_eq!(session.news(&[Answered::Empty(TOLD), Answered::Empty(TOLD)]), [false, false], "F-709 only moved on");
    session.apply(vec![], [name("t", 0)]);
    session.apply(vec![wanted("t", 0, 1)], []);
    assert_eq!(order(&session), [("t", 1, 9), ("t", 0, 1)]);
    assert_eq!(session.news(&[Answered::Empty(TOLD), Answered::Empty(TOLD)]), [false, true]);
}

/// F-712: whoever had records comes last, in the order in which they were served.
#[test]
fn each_has_its_turn() {
    let mut session = Session::of((0..4).map(|index| wanted("t", index, 0)).collect());
    let (empty, records) = (Answered::Empty(TOLD), Answered::Records(TOLD));
    for (answered, expected) in [
        ([empty, empty, empty, empty], [0, 1, 2, 3]),
        ([records, empty, records, empty], [1, 3, 0, 2]),
        ([records, records, records, records], [1, 3, 0, 2]),
        ([empty, Answered::Refused, empty, records], [1, 3, 0, 2]),
        ([empty, Answered::Refused, records, empty], [1, 3, 2, 0]),
    ] {
        session.note(&answered);
        let found: Vec<i32> = session.wanted().map(|wanted| wanted.index).collect();
        assert_eq!(found, expected, "{answered:?}");
    }
    let bytes = session.bytes();
    session.apply((0..4).map(|index| wanted("t", index, 9)).collect(), []);
    assert_eq!((session.len(), session.bytes()), (4, bytes), "names lead to their places still");
}
