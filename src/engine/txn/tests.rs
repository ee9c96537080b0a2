//! Table tests of the transaction steps.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of tests")]
#![expect(clippy::type_complexity, reason = "a table says its columns where it stands")]

use super::end::{Cause, Verdict, end, judge};
use super::init::{Init, Initialised, check_timeout, expected, init};
use super::work::{Owed, OwedPart, PARKED_FREE_MS, RETRY_FIRST_MS, RETRY_MAX_MS, Stage, after_failure};
use super::*;

const P: i64 = 7;
const FRESH: i64 = 900;

fn now(mono_ms: i64) -> Now {
    Now { mono_ms, wall_ms: 1_000_000 + mono_ms }
}

fn producer(epoch: Epoch) -> Producer {
    Producer { id: P, epoch }
}

fn ongoing(parts: &[i64], groups: &[&str]) -> Ongoing {
    Ongoing {
        number: 5,
        parts: Arc::new(parts.iter().copied().map(PartId).collect()),
        groups: Arc::new(groups.iter().copied().map(GroupId::from).collect()),
        staged: Arc::default(),
        started_wall_ms: 1_000_010,
        since_mono_ms: 10,
    }
}

fn ended(outcome: Outcome) -> State {
    State::Ended { outcome, started_wall_ms: 77 }
}

fn txn(epoch: Epoch, last_epoch: Epoch, state: State) -> Txn {
    let producer = producer(epoch);
    Txn { producer, last_epoch, previous_producer_id: -1, timeout_ms: 60_000, state, updated_wall_ms: 1 }
}

/// What InitProducerId comes to, in a line: who owns the id, the last epoch, the producer id before, and whether a
/// fresh id was used.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Owns(i64, Epoch, Epoch, i64, bool),
    EndFirst,
    Refused(Refusal),
}

fn run(before: Option<&Txn>, pair: Option<(i64, Epoch)>) -> Line {
    let expected = pair.map(|(id, epoch)| Producer { id, epoch });
    match init(before, Init { timeout_ms: 5_000, expected }, FRESH, now(3)) {
        Ok(Initialised::Owned { next, used_fresh }) => {
            assert_eq!((next.state, next.timeout_ms), (State::Empty, 5_000), "T-143");
            let Producer { id, epoch } = next.producer;
            Line::Owns(id, epoch, next.last_epoch, next.previous_producer_id, used_fresh)
        }
        Ok(Initialised::EndFirst) => Line::EndFirst,
        Err(refusal) => Line::Refused(refusal),
    }
}

#[test]
fn init_by_state_and_pair() {
    use Line::{EndFirst, Owns, Refused};
    let fenced = Refused(Refusal::ProducerFenced);
    let idle = |epoch, last| txn(epoch, last, State::Empty);
    let done = |epoch, last| txn(epoch, last, ended(Outcome::Commit));
    let open = |epoch, last| txn(epoch, last, State::Ongoing(ongoing(&[1], &[])));
    let rotated = Txn { previous_producer_id: 3, ..txn(0, 32_766, State::Empty) };
    let table: &[(&str, Option<Txn>, Option<(i64, Epoch)>, Line)] = &[
        ("T-111", None, None, Owns(FRESH, 0, -1, -1, true)),
        ("T-119, T-123", None, Some((P, 4)), Owns(FRESH, 0, -1, -1, true)),
        ("T-122 Empty", Some(idle(4, 3)), None, Owns(P, 5, -1, P, false)),
        ("T-122 Complete", Some(done(4, 3)), None, Owns(P, 5, -1, P, false)),
        ("T-122 last that is left", Some(idle(32_765, -1)), None, Owns(P, 32_766, -1, P, false)),
        ("T-124", Some(idle(4, 3)), Some((P, 4)), Owns(P, 5, 4, P, false)),
        ("T-124 Complete", Some(done(4, -1)), Some((P, 4)), Owns(P, 5, 4, P, false)),
        ("T-125", Some(idle(5, 4)), Some((P, 4)), Owns(P, 5, 4, -1, false)),
        ("T-125 once more", Some(idle(5, 4)), Some((P, 4)), Owns(P, 5, 4, -1, false)),
        ("T-126 lower", Some(idle(5, 4)), Some((P, 3)), Refused(Refusal::ProducerFenced)),
        ("T-126 higher", Some(idle(5, 4)), Some((P, 6)), Refused(Refusal::ProducerFenced)),
        ("T-113 another id", Some(idle(5, 4)), Some((P + 1, 5)), Refused(Refusal::ProducerFenced)),
        ("T-117 an older instance", Some(idle(5, -1)), Some((P, 4)), Refused(Refusal::ProducerFenced)),
        ("T-127", Some(idle(32_766, -1)), None, Owns(FRESH, 0, -1, P, true)),
        ("T-127 fenced at the end", Some(done(32_767, -1)), None, Owns(FRESH, 0, -1, P, true)),
        ("T-128", Some(idle(32_766, 4)), Some((P, 32_766)), Owns(FRESH, 0, 32_766, P, true)),
        ("T-129 R repeat", Some(idle(32_766, 32_765)), Some((P, 32_765)), Owns(P, 32_766, 32_765, -1, false)),
        ("T-129 R other", Some(idle(32_767, -1)), Some((P, 32_766)), Refused(Refusal::ProducerFenced)),
        ("T-120 rotation again", Some(rotated.clone()), Some((3, 32_766)), Owns(P, 0, 32_766, 3, false)),
        ("T-120 not exhausted", Some(rotated), Some((3, 32_765)), Refused(Refusal::ProducerFenced)),
        ("T-130", Some(open(4, 3)), None, EndFirst),
        ("T-144", Some(open(4, 3)), Some((P, 4)), EndFirst),
        ("T-144 last epoch", Some(open(4, 3)), Some((P, 3)), EndFirst),
        ("T-145 R lower", Some(open(4, 3)), Some((P, 2)), Refused(Refusal::ProducerFenced)),
        ("T-145 R higher", Some(open(4, 3)), Some((P, 5)), fenced),
        ("T-147 32766 Ongoing", Some(open(32_766, -1)), None, EndFirst),
    ];
    for (rule, before, pair, line) in table {
        assert_eq!(run(before.as_ref(), *pair), *line, "{rule}");
    }
}

#[test]
fn epochs_that_an_application_sees() {
    // T-147, classic column: each line a list of what happens, and the epochs that InitProducerId gives.
    #[derive(Clone, Copy)]
    enum Do {
        Init,
        Commit,
        Begin,
        TakeOver,
    }
    use Do::{Begin, Commit, Init as I, TakeOver};
    let table: &[(&[Do], &[(i64, Epoch)])] = &[
        (&[I], &[(FRESH, 0)]),
        (&[I, I], &[(FRESH, 0), (FRESH, 1)]),
        (&[I, Begin, Commit, I], &[(FRESH, 0), (FRESH, 1)]),
        (&[I, Begin, TakeOver, I], &[(FRESH, 0), (FRESH, 2)]),
    ];
    for (deeds, wanted) in table {
        let mut id: Option<Txn> = None;
        let mut given = Vec::new();
        for deed in *deeds {
            let holder = id.as_ref().map(|txn| txn.producer);
            match deed {
                I => {
                    let step = init(id.as_ref(), Init { timeout_ms: 1, expected: None }, FRESH, now(0)).unwrap();
                    let Initialised::Owned { next, .. } = step else { panic!("open") };
                    given.push((next.producer.id, next.producer.epoch));
                    id = Some(next);
                }
                Begin => {
                    let addition = Addition::Parts(BTreeSet::from([PartId(1)]));
                    id = id.unwrap().add(holder.unwrap(), &addition, 9, now(0)).unwrap();
                }
                Commit => id = Some(end(&id.unwrap(), 9, Outcome::Commit, Cause::Client, now(0)).unwrap().next),
                TakeOver => id = Some(end(&id.unwrap(), 9, Outcome::Abort, Cause::NewOwner, now(0)).unwrap().next),
            }
        }
        assert_eq!(given, *wanted);
    }
    // The last epoch: the fence is 32767, which nobody is ever given; then a new id.
    let open = txn(32_766, -1, State::Ongoing(ongoing(&[1], &[])));
    let fence = end(&open, 5, Outcome::Abort, Cause::NewOwner, now(0)).unwrap();
    assert_eq!(fence.marker.epoch, 32_767);
    assert_eq!(run(Some(&fence.next), None), Line::Owns(FRESH, 0, -1, P, true));
    assert_eq!(fence.next.owned_by(producer(32_767)), Err(Refusal::ProducerFenced), "nobody holds it");
}

#[test]
fn pairs_and_timeouts_of_a_request() {
    let pairs: &[((i64, i16), Result<Option<Producer>, Refusal>)] = &[
        ((-1, -1), Ok(None)),
        ((7, 0), Ok(Some(producer(0)))),
        ((0, 0), Ok(Some(Producer { id: 0, epoch: 0 }))),
        ((7, -1), Err(Refusal::InvalidRequest)),
        ((-1, 0), Err(Refusal::InvalidRequest)),
        ((-5, -5), Err(Refusal::InvalidRequest)),
        ((7, -2), Err(Refusal::InvalidRequest)),
        ((i64::MIN, i16::MAX), Err(Refusal::InvalidRequest)),
    ];
    for ((id, epoch), wanted) in pairs {
        assert_eq!(expected(*id, *epoch), *wanted, "T-104 ({id}, {epoch})");
    }
    let refused = Err(Refusal::InvalidTransactionTimeout);
    for (timeout, wanted) in
        [(1, Ok(())), (900, Ok(())), (901, refused), (0, refused), (-1, refused), (i32::MIN, refused)]
    {
        assert_eq!(check_timeout(timeout, 900), wanted, "T-109 {timeout}");
    }
}

#[test]
fn adding_to_a_transaction() {
    let parts = |parts: &[i64]| Addition::Parts(parts.iter().copied().map(PartId).collect());
    let open = txn(3, -1, State::Ongoing(ongoing(&[1, 2], &["g"])));
    let owners: &[(&str, Producer, Refusal)] = &[
        ("T-212 row 5", Producer { id: P + 1, epoch: 3 }, Refusal::InvalidProducerIdMapping),
        ("T-212 rows 5, 6", Producer { id: P + 1, epoch: 2 }, Refusal::InvalidProducerIdMapping),
        ("T-212 row 6 lower", producer(2), Refusal::ProducerFenced),
        ("T-212 row 6 higher", producer(4), Refusal::ProducerFenced),
    ];
    for (rule, claimed, refusal) in owners {
        assert_eq!(open.add(*claimed, &parts(&[9]), 6, now(20)), Err(*refusal), "{rule}");
        assert_eq!(open.may_write(*claimed, PartId(1)), Err(*refusal), "{rule}");
        assert_eq!(open.may_stage(*claimed, &GroupId::from("g")), Err(*refusal), "{rule}");
    }
    assert_eq!(open.add(producer(3), &parts(&[1]), 6, now(20)), Ok(None), "T-212 row 8");
    assert_eq!(open.add(producer(3), &Addition::Group("g".into()), 6, now(20)), Ok(None), "T-232");
    let grown = open.add(producer(3), &parts(&[2, 3]), 6, now(20)).unwrap().unwrap();
    let after = grown.ongoing().unwrap();
    assert_eq!((after.number, after.parts.len(), after.since_mono_ms), (5, 3, 10), "T-212 row 9, T-602");
    for state in [State::Empty, ended(Outcome::Commit), ended(Outcome::Abort)] {
        let begun = txn(3, -1, state.clone()).add(producer(3), &parts(&[4]), 6, now(20)).unwrap().unwrap();
        let begun = begun.ongoing().unwrap();
        assert_eq!((begun.number, begun.since_mono_ms, begun.started_wall_ms), (6, 20, 1_000_020), "T-019 {state:?}");
    }
    assert_eq!(open.may_write(producer(3), PartId(3)), Err(Refusal::InvalidTxnState), "T-222");
    assert!(open.may_write(producer(3), PartId(2)).is_ok());
}

#[test]
fn staging_offsets() {
    let group = GroupId::from("g");
    let staged = |order| Staged { order, position: Position { offset: 4, leader_epoch: -1, metadata: String::new() } };
    let open = txn(3, -1, State::Ongoing(ongoing(&[1], &["g"])));
    assert_eq!(open.may_stage(producer(3), &"h".into()), Err(Refusal::InvalidTxnState), "T-242, T-243");
    for state in [State::Empty, ended(Outcome::Commit)] {
        let none = txn(3, -1, state);
        assert_eq!(none.stage(producer(3), &group, Vec::new(), now(0)), Err(Refusal::InvalidTxnState), "T-242");
    }
    let once = open.stage(producer(3), &group, vec![(PartId(1), staged(7))], now(30)).unwrap();
    let twice = once.stage(producer(3), &group, vec![(PartId(1), staged(8))], now(30)).unwrap();
    let held = &twice.ongoing().unwrap().staged;
    assert_eq!(held.get(&(group, PartId(1))).map(|staged| staged.order), Some(8), "T-247: the later one");
    assert_eq!(twice.deadline_mono_ms(), Some(60_010), "T-602: nothing prolongs it");
}

#[test]
fn what_an_end_meets() {
    use Outcome::{Abort, Commit};
    let invalid = Err(Refusal::InvalidTxnState);
    let under = |same| Ok(Verdict::UnderWay { same });
    let table: &[(&str, State, bool, Outcome, Result<Verdict, Refusal>)] = &[
        ("Empty", State::Empty, false, Commit, invalid),
        ("Empty", State::Empty, false, Abort, invalid),
        ("Ongoing", State::Ongoing(ongoing(&[], &[])), false, Commit, Ok(Verdict::Decide)),
        ("Ongoing", State::Ongoing(ongoing(&[], &[])), false, Abort, Ok(Verdict::Decide)),
        ("PrepareCommit", ended(Commit), true, Commit, under(true)),
        ("PrepareCommit", ended(Commit), true, Abort, under(false)),
        ("PrepareAbort", ended(Abort), true, Commit, under(false)),
        ("PrepareAbort", ended(Abort), true, Abort, under(true)),
        ("CompleteCommit", ended(Commit), false, Commit, Ok(Verdict::Repeated)),
        ("CompleteCommit", ended(Commit), false, Abort, invalid),
        ("CompleteAbort", ended(Abort), false, Commit, invalid),
        ("CompleteAbort", ended(Abort), false, Abort, Ok(Verdict::Repeated)),
    ];
    for (state_name, state, owed, asked, verdict) in table {
        let id = txn(3, -1, state.clone());
        assert_eq!(judge(&id, producer(3), *asked, *owed), *verdict, "T-253 {state_name} {asked:?}");
        for (rule, claimed, refusal) in [
            ("T-253 step 4", Producer { id: 1, epoch: 3 }, Refusal::InvalidProducerIdMapping),
            ("T-253 step 5, X-7", producer(4), Refusal::ProducerFenced),
            ("T-253 step 5", producer(2), Refusal::ProducerFenced),
        ] {
            assert_eq!(judge(&id, claimed, *asked, *owed), Err(refusal), "{rule} {state_name}");
        }
    }
}

#[test]
fn the_one_step_of_every_end() {
    let open = txn(3, 2, State::Ongoing(ongoing(&[1], &[])));
    let table: &[(&str, Cause, Epoch, Epoch)] =
        &[("T-404", Cause::Client, 3, 2), ("T-141", Cause::NewOwner, 4, -1), ("T-603", Cause::Timeout, 4, -1)];
    for (rule, cause, epoch, last_epoch) in table {
        let ended = end(&open, 5, Outcome::Abort, *cause, now(50)).unwrap();
        assert_eq!((ended.marker, ended.next.producer), (producer(*epoch), producer(*epoch)), "{rule}");
        assert_eq!(ended.next.last_epoch, *last_epoch, "{rule}");
        let kept = State::Ended { outcome: Outcome::Abort, started_wall_ms: 1_000_010 };
        assert_eq!(ended.next.state, kept, "T-019, T-803 {rule}");
    }
    assert!(end(&open, 4, Outcome::Commit, Cause::Client, now(50)).is_err(), "another transaction's seal is void");
    let over = txn(3, 2, ended(Outcome::Abort));
    assert!(end(&over, 5, Outcome::Commit, Cause::Client, now(50)).is_err());
}

#[test]
fn timeouts_count_from_the_first_add() {
    assert_eq!(txn(1, -1, State::Empty).deadline_mono_ms(), None);
    assert_eq!(txn(1, -1, ended(Outcome::Abort)).deadline_mono_ms(), None, "T-605");
    let open = txn(1, -1, State::Ongoing(ongoing(&[], &[])));
    assert_eq!(open.deadline_mono_ms(), Some(60_010), "T-601, T-602");
    let far = Txn { timeout_ms: i32::MAX, ..open };
    assert_eq!(far.deadline_mono_ms(), Some(10 + i64::from(i32::MAX)));
}

fn owed(stages: &[Stage]) -> Owed {
    let parts = (0..).zip(stages).map(|(n, stage)| (PartId(n), OwedPart { sealed_end: 1, stage: *stage }));
    Owed {
        id: "a".into(),
        number: 5,
        marker: producer(3),
        outcome: Outcome::Commit,
        parts: parts.collect(),
        offsets: Vec::new(),
        since_mono_ms: 100,
    }
}

#[test]
fn pauses_double_up_to_a_second() {
    let mut stage = Stage::Asked { tries: 0 };
    let mut pauses = Vec::new();
    for _ in 0..10 {
        stage = after_failure(stage, 0);
        let Stage::Due { at_mono_ms, .. } = stage else { panic!("{stage:?}") };
        pauses.push(at_mono_ms);
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000], "C-135");
    assert_eq!((pauses[0], pauses[9]), (RETRY_FIRST_MS, RETRY_MAX_MS));
    let at_last = after_failure(Stage::Due { at_mono_ms: 0, tries: u32::MAX }, i64::MAX);
    assert_eq!(at_last, Stage::Due { at_mono_ms: i64::MAX, tries: u32::MAX });
    for over in [Stage::Parked, Stage::Left, Stage::Appended, Stage::Synced] {
        assert_eq!(after_failure(over, 0), over);
    }
}

#[test]
fn when_a_debt_is_over_done_and_due() {
    let due = |at_mono_ms| Stage::Due { at_mono_ms, tries: 1 };
    // Stages; over under answer, over under redo, done, next moment.
    let table: &[(&[Stage], bool, bool, bool, Option<i64>)] = &[
        (&[Stage::Synced, Stage::Synced], true, true, true, None),
        (&[Stage::Synced, Stage::Appended], false, true, false, None),
        (&[Stage::Synced, Stage::Asked { tries: 0 }], false, false, false, None),
        (&[Stage::Synced, due(130)], false, false, false, Some(130)),
        (&[due(150), due(130)], false, false, false, Some(130)),
        (&[Stage::Synced, Stage::Parked], false, false, false, Some(100 + PARKED_FREE_MS)),
        (&[Stage::Synced, Stage::Left], true, true, false, None),
    ];
    for (stages, over, redone, done, deadline) in table {
        let debt = owed(stages);
        assert_eq!((debt.is_over(false), debt.is_over(true)), (*over, *redone), "{stages:?}");
        assert_eq!((debt.is_done(), debt.deadline_mono_ms()), (*done, *deadline), "{stages:?}");
    }
    let mut parked = owed(&[Stage::Parked, due(9_000)]);
    assert!(!parked.leave_parked(100 + PARKED_FREE_MS - 1));
    assert!(parked.leave_parked(100 + PARKED_FREE_MS));
    assert!(!parked.leave_parked(100 + PARKED_FREE_MS), "once");
    assert_eq!(parked.deadline_mono_ms(), Some(9_000), "the parked one asks for nothing any more");
    let asked: Vec<PartId> = owed(&[due(100), due(101)]).due(100).map(|(part, _)| part).collect();
    assert_eq!(asked, [PartId(0)]);
}
