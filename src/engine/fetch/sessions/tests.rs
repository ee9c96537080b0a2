#![expect(clippy::arithmetic_side_effects, reason = "small numbers of tests")]

use super::*;
use crate::engine::fetch::Position;
use crate::engine::fetch::session::Wanted;

/// A session of so many partitions.
fn session(partitions: i32) -> Session {
    let position = Position { offset: 0, leader_epoch: -1, last_epoch: -1 };
    Session::of((0..partitions).map(|index| Wanted { topic: "t".into(), index, position, max_bytes: 1 }).collect())
}

fn one_more(session: &mut Session) {
    let wanted = session.wanted().next().cloned().unwrap();
    let index = i32::try_from(session.len()).unwrap();
    session.apply(vec![Wanted { index, ..wanted }], []);
}

/// What one partition takes.
fn unit() -> usize {
    session(1).bytes()
}

fn limits(slots: usize, partitions: usize) -> Limits {
    Limits { slots, bytes: partitions * unit(), safe_ms: 100 }
}

/// Keeps a session under this id.
fn keep(sessions: &mut Sessions, partitions: i32, now_ms: i64, id: i32) -> i32 {
    sessions.keep(session(partitions), now_ms, || id)
}

fn loan(sessions: &mut Sessions, id: i32, epoch: i32, now_ms: i64) -> Loan {
    match sessions.begin(id, epoch, now_ms) {
        Ok(Begun::Within(loan)) => loan,
        other => panic!("{other:?}"),
    }
}

fn is_known(sessions: &mut Sessions, id: i32) -> bool {
    // The epoch of no request.
    sessions.begin(id, i32::MIN, 0) == Err(Refusal::InvalidFetchSessionEpoch)
}

#[test]
fn ids_and_epochs() {
    let unknown = Err(Refusal::FetchSessionIdNotFound);
    let wrong = Err(Refusal::InvalidFetchSessionEpoch);
    // Session 5 stands, and its next request has epoch 1.
    for (rule, id, epoch, expected, stands) in [
        ("F-703", 0, -1, Ok(Begun::Alone), true),
        ("F-704", 5, -1, Ok(Begun::Alone), false),
        ("F-704 another", 6, -1, Ok(Begun::Alone), true),
        ("F-705", 0, 0, Ok(Begun::Fresh), true),
        ("F-706", 5, 0, Ok(Begun::Fresh), false),
        ("F-707", 6, 1, unknown, true),
        ("F-709 no session", 0, 1, Err(Refusal::FetchSessionIdNotFound), true),
        ("F-708 too high", 5, 2, wrong, true),
        ("F-708 negative", 5, -2, Err(Refusal::InvalidFetchSessionEpoch), true),
        ("F-707 negative", -5, 1, Err(Refusal::FetchSessionIdNotFound), true),
    ] {
        let mut sessions = Sessions::new(limits(10, 80));
        assert_eq!(keep(&mut sessions, 1, 0, 5), 5);
        assert_eq!(sessions.begin(id, epoch, 1), expected, "{rule}");
        assert_eq!(is_known(&mut sessions, 5), stands, "{rule}");
    }
}

#[test]
fn a_session_goes_from_request_to_request() {
    let mut sessions = Sessions::new(limits(10, 80));
    keep(&mut sessions, 1, 0, 5);
    for epoch in 1..4 {
        let mut lent = loan(&mut sessions, 5, epoch, 0);
        assert_eq!(lent.session.len(), usize::try_from(epoch).unwrap());
        for other in [epoch, epoch + 1] {
            let second = sessions.begin(5, other, 0);
            assert_eq!(second, Err(Refusal::InvalidFetchSessionEpoch), "F-713, and one request at a time");
        }
        one_more(&mut lent.session);
        assert_eq!(sessions.give_back(lent, 0), 5, "F-712");
        assert_eq!(sessions.begin(5, epoch, 0), Err(Refusal::InvalidFetchSessionEpoch), "F-713");
    }
    sessions.kept.get_mut(&5).unwrap().epoch = i32::MAX;
    let lent = loan(&mut sessions, 5, i32::MAX, 0);
    assert_eq!(sessions.give_back(lent, 0), 5);
    let lent = loan(&mut sessions, 5, 1, 0);
    sessions.forfeit(&lent);
    assert_eq!(sessions.begin(5, 2, 0), Err(Refusal::FetchSessionIdNotFound), "F-709 wraps to 1; its client hung up");
    assert_eq!(sessions.give_back(lent, 0), 0);
    assert_eq!(sessions.bytes, 0);
}

#[test]
fn a_session_without_partitions_ends_with_its_next_request() {
    let mut sessions = Sessions::new(limits(10, 80));
    assert_eq!(keep(&mut sessions, 0, 0, 5), 5, "F-711");
    let lent = loan(&mut sessions, 5, 1, 0);
    assert_eq!(sessions.give_back(lent, 0), 0, "F-710");
    assert!(!is_known(&mut sessions, 5));
}

#[test]
fn what_was_closed_meanwhile_does_not_come_back() {
    let mut sessions = Sessions::new(limits(10, 80));
    keep(&mut sessions, 2, 0, 5);
    let old = loan(&mut sessions, 5, 1, 0);
    assert_eq!(sessions.begin(5, -1, 0), Ok(Begun::Alone), "F-704");
    assert_eq!(keep(&mut sessions, 3, 0, 5), 5, "drawn again");
    let new = loan(&mut sessions, 5, 1, 0);
    sessions.forfeit(&old);
    assert_eq!(sessions.give_back(old, 0), 0, "another session has the number by now");
    assert_eq!(sessions.give_back(new, 0), 5);
    assert_eq!(sessions.bytes, 3 * unit());
}

#[test]
fn drawn_numbers_are_positive_and_not_in_use() {
    let mut sessions = Sessions::new(limits(10, 80));
    keep(&mut sessions, 1, 0, 5);
    let mut drawn = [0, -3, i32::MIN, 5, 9].into_iter();
    assert_eq!(sessions.keep(session(1), 0, || drawn.next().unwrap()), 9, "F-701");
}

/// Who is there (id, partitions, made, used), who comes (partitions, when), who gives way; `None` when there is no room.
#[test]
fn who_gives_way() {
    type There = (i32, i32, i64, i64);
    let check = |rule: &str, there: &[There], (partitions, now_ms): (i32, i64), expected: Option<&[i32]>| {
        let mut sessions = Sessions::new(limits(3, 80));
        for (id, partitions, made_ms, used_ms) in there {
            assert_eq!(keep(&mut sessions, *partitions, *made_ms, *id), *id);
            sessions.kept.get_mut(id).unwrap().used_ms = *used_ms;
        }
        let kept = keep(&mut sessions, partitions, now_ms, 99);
        assert_eq!(kept, if expected.is_some() { 99 } else { 0 }, "{rule}");
        let gone: Vec<i32> = there.iter().map(|one| one.0).filter(|id| !is_known(&mut sessions, *id)).collect();
        assert_eq!(gone, expected.unwrap_or_default(), "{rule}");
        let bytes: usize = sessions.kept.values().map(|kept| kept.bytes).sum();
        assert_eq!(sessions.bytes, bytes, "{rule}");
    };
    let young: [There; 3] = [(1, 2, 0, 90), (2, 1, 0, 80), (3, 3, 0, 95)];
    check("there is room", &young[..2], (1, 100), Some(&[]));
    check("F-711 all are in use and have not had their time", &young, (9, 100), None);
    check("F-711 unused for longest", &[(1, 2, 0, 90), (2, 9, 0, 80), (3, 1, 0, 95)], (1, 181), Some(&[2]));
    check("F-711 smaller, and had its time", &[(1, 2, 0, 150), (2, 1, 60, 150), (3, 3, 0, 150)], (3, 150), Some(&[1]));
    check("F-711 not as large", &[(1, 3, 0, 150), (2, 3, 0, 150), (3, 4, 0, 150)], (3, 150), None);
    check("F-711 the smallest of them", &[(1, 3, 0, 150), (2, 2, 0, 150), (3, 2, 0, 150)], (4, 150), Some(&[2]));
    check("memory: no session is larger than an eighth", &[], (11, 0), None);
}

#[test]
fn memory_is_bounded() {
    let mut sessions = Sessions::new(limits(100, 80));
    let kept: Vec<i32> = (1..=10).map(|id| keep(&mut sessions, 10, 0, id)).collect();
    assert_eq!(kept, [1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
    assert_eq!(keep(&mut sessions, 10, 101, 9), 9, "1 was not used for long");
    assert_eq!((is_known(&mut sessions, 1), is_known(&mut sessions, 2)), (false, true));
    // One that grows has to find room as well; the others have been used just now.
    let mut sessions = Sessions::new(limits(100, 80));
    (1..=8).for_each(|id| assert_eq!(keep(&mut sessions, if id == 1 { 9 } else { 10 }, 0, id), id));
    let mut lent = loan(&mut sessions, 1, 1, 50);
    one_more(&mut lent.session);
    assert_eq!(sessions.give_back(lent, 50), 1);
    let mut lent = loan(&mut sessions, 1, 2, 50);
    one_more(&mut lent.session);
    assert_eq!(sessions.give_back(lent, 50), 0, "larger than an eighth");
    assert!(!is_known(&mut sessions, 1));
    assert_eq!(sessions.bytes, 70 * unit());
    for (id, partitions) in [(1, 9), (9, 1)] {
        assert_eq!(keep(&mut sessions, partitions, 50, id), id);
    }
    let mut lent = loan(&mut sessions, 1, 1, 60);
    one_more(&mut lent.session);
    assert_eq!(sessions.give_back(lent, 60), 0, "nobody gives way to it yet");
    assert_eq!((keep(&mut sessions, 9, 50, 1), is_known(&mut sessions, 9)), (1, true));
    let mut lent = loan(&mut sessions, 1, 1, 160);
    one_more(&mut lent.session);
    assert_eq!((sessions.give_back(lent, 160), is_known(&mut sessions, 2)), (1, false), "now somebody does");
}
