//! A checker that cannot fail proves nothing: for each anomaly the smallest history that has it.

use std::collections::BTreeMap;

use super::{History, Kind, Part, Rest, Told, Topic, Value, View, What};

const A: Part = Part { topic: Topic::Out, number: 0 };
const B: Part = Part { topic: Topic::Out, number: 1 };
const IN: Part = Part { topic: Topic::In, number: 0 };

/// A history under construction: readers and clients as a line says, and where everything stands in the end.
#[derive(Default)]
struct Story {
    history: History,
    rest: Rest,
}

impl Story {
    fn attempt(&mut self, kind: Kind, told: Told, parts: &[Part]) -> Vec<Value> {
        let attempt = self.history.begin("client", kind);
        self.history.end(attempt, told);
        parts.iter().map(|part| self.history.write(attempt, *part, None)).collect()
    }

    /// A record of `in`, and a transaction that holds its result at this place.
    fn processed(&mut self, source: i64, offset: i64) {
        let value = self.attempt(Kind::Plain, Told::Nothing, &[IN])[0];
        self.both(IN, source, value);
        let attempt = self.history.begin("processor", Kind::Transaction);
        self.history.end(attempt, Told::Committed);
        let value = self.history.write(attempt, A, Some((0, source)));
        self.both(A, offset, value);
    }

    /// Every reader is given it.
    fn both(&mut self, part: Part, offset: i64, value: Value) {
        self.seen(View::Committed, part, offset, value);
        self.seen(View::Uncommitted, part, offset, value);
    }

    fn seen(&mut self, view: View, part: Part, offset: i64, value: Value) {
        self.history.consumed(view, part, (offset, &format!("{value} and some more")));
    }

    fn stand(&mut self, processed: i64) {
        self.rest.processors = ("processors".to_owned(), BTreeMap::from([(0, processed)]));
    }
}

/// What is found in a history, each kind once.
fn check(name: &str, tell: impl Fn(&mut Story), expected: &[What]) {
    let mut story = Story::default();
    tell(&mut story);
    story.history.check(&story.rest.clone());
    let mut found: Vec<_> = story.history.anomalies().iter().map(|anomaly| anomaly.what).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, expected, "{name}: {:#?}", story.history.anomalies());
}

#[test]
fn what_may_be_is_found_right() {
    check("nothing at all", |_| (), &[]);
    check(
        "committed, aborted, unknown with and without its records",
        |story| {
            let done = story.attempt(Kind::Transaction, Told::Committed, &[A, B]);
            story.history.acknowledged(done[0], Some(3));
            story.both(A, 3, done[0]);
            story.both(B, 0, done[1]);
            let undone = story.attempt(Kind::Transaction, Told::Aborted, &[A]);
            story.history.acknowledged(undone[0], Some(5));
            story.seen(View::Uncommitted, A, 5, undone[0]);
            let all = story.attempt(Kind::Transaction, Told::Nothing, &[A, B]);
            story.both(A, 7, all[0]);
            story.both(B, 7, all[1]);
            let none = story.attempt(Kind::Transaction, Told::Nothing, &[A, B]);
            story.seen(View::Uncommitted, A, 9, none[0]);
        },
        &[],
    );
    check(
        "plain records, one without an answer",
        |story| {
            let values = story.attempt(Kind::Plain, Told::Nothing, &[A, A, A]);
            story.history.acknowledged(values[0], Some(0));
            story.history.acknowledged(values[1], None);
            story.both(A, 0, values[0]);
            story.both(A, 1, values[1]);
        },
        &[],
    );
    check(
        "two of three records processed",
        |story| {
            story.processed(0, 10);
            story.processed(1, 12);
            let value = story.attempt(Kind::Plain, Told::Nothing, &[IN])[0];
            story.both(IN, 2, value);
            story.stand(2);
        },
        &[],
    );
    check("fenced and refused", |story| drop(story.attempt(Kind::Fenced, Told::Nothing, &[A])), &[]);
    check(
        "ends and offsets that rise or stay",
        |story| {
            for end in [1, 1, 4] {
                let known = story.history.known_end(View::Committed, A);
                story.history.ends_at(View::Committed, A, (known, end));
                let known = story.history.known_stand("group", 0);
                story.history.group_stands(("group", 0), (known, end - 2));
            }
        },
        &[],
    );
}

#[test]
fn a_lost_write_is_found() {
    let lost = &[What::LostWrite];
    check(
        "acknowledged and nowhere",
        |story| {
            let values = story.attempt(Kind::Plain, Told::Nothing, &[A]);
            story.history.acknowledged(values[0], Some(0));
        },
        lost,
    );
    check(
        "acknowledged within a transaction that came to nothing",
        |story| {
            let values = story.attempt(Kind::Transaction, Told::Aborted, &[A]);
            story.history.acknowledged(values[0], Some(0));
        },
        lost,
    );
    check("committed and nowhere", |story| drop(story.attempt(Kind::Transaction, Told::Committed, &[A, B])), lost);
    check(
        "plain, and held back from readers of committed records",
        |story| {
            let values = story.attempt(Kind::Plain, Told::Nothing, &[A]);
            story.history.acknowledged(values[0], Some(0));
            story.seen(View::Uncommitted, A, 0, values[0]);
        },
        lost,
    );
    check(
        "read, and gone when it is read again",
        |story| {
            let values = story.attempt(Kind::Plain, Told::Nothing, &[A, A]);
            story.both(A, 0, values[0]);
            story.both(A, 1, values[1]);
            story.history.read(View::Uncommitted, A, (0, 2), &[(0, values[0].to_string())]);
        },
        lost,
    );
    check(
        "shown as committed, and not any more",
        |story| {
            let values = story.attempt(Kind::Transaction, Told::Committed, &[A]);
            story.both(A, 0, values[0]);
            story.history.read(View::Committed, A, (0, 1), &[]);
        },
        lost,
    );
}

#[test]
fn an_aborted_read_is_found() {
    let aborted = &[What::AbortedRead];
    let show = |story: &mut Story| {
        let values = story.attempt(Kind::Transaction, Told::Aborted, &[A]);
        story.both(A, 0, values[0]);
    };
    check("aborted and shown", show, aborted);
    check(
        "shown before its client was told",
        |story| {
            let values = story.attempt(Kind::Transaction, Told::Nothing, &[A]);
            story.both(A, 0, values[0]);
            story.history.end(0, Told::Aborted);
        },
        aborted,
    );
    check(
        "nothing by the one check, shown later",
        |story| {
            let values = story.attempt(Kind::Transaction, Told::Nothing, &[A]);
            story.history.check(&Rest::default());
            story.both(A, 0, values[0]);
        },
        aborted,
    );
}

#[test]
fn a_duplicate_is_found() {
    check(
        "stored twice in a partition",
        |story| {
            let values = story.attempt(Kind::Plain, Told::Nothing, &[A]);
            story.both(A, 0, values[0]);
            story.seen(View::Uncommitted, A, 1, values[0]);
        },
        &[What::Duplicate],
    );
}

#[test]
fn a_torn_transaction_is_found() {
    for told in [Told::Nothing, Told::Committed] {
        check(
            "one partition without the other",
            |story| {
                let values = story.attempt(Kind::Transaction, told, &[A, B]);
                story.both(A, 0, values[0]);
                story.seen(View::Uncommitted, B, 0, values[1]);
            },
            &[What::Torn],
        );
    }
}

#[test]
fn what_goes_back_is_found() {
    let back = &[What::WentBack];
    for view in [View::Committed, View::Uncommitted] {
        check(
            "an end",
            |story| {
                for end in [5, 4] {
                    let known = story.history.known_end(view, A);
                    story.history.ends_at(view, A, (known, end));
                }
            },
            back,
        );
    }
    let stands = |story: &mut Story| {
        for offset in [5, -1] {
            let known = story.history.known_stand("group", 0);
            story.history.group_stands(("group", 0), (known, offset));
        }
    };
    check(
        "an answer on its way while another asks",
        |story| {
            let known = story.history.known_end(View::Committed, A);
            story.history.ends_at(View::Committed, A, (known, 5));
            story.history.ends_at(View::Committed, A, (known, 4));
        },
        &[],
    );
    check("a committed offset", stands, back);
}

#[test]
fn divergence_is_found() {
    let divergent = &[What::Divergent];
    check(
        "two values at one place",
        |story| {
            let values = story.attempt(Kind::Plain, Told::Nothing, &[A, A]);
            story.both(A, 0, values[0]);
            story.both(A, 1, values[1]);
            story.history.read(View::Uncommitted, A, (0, 1), &[(0, values[0].to_string())]);
            story.history.read(View::Uncommitted, B, (0, 1), &[(0, "7.0 by nobody".to_owned())]);
        },
        divergent,
    );
    check(
        "a place reused",
        |story| {
            let values = story.attempt(Kind::Plain, Told::Nothing, &[A, A]);
            story.both(A, 0, values[0]);
            story.both(A, 0, values[1]);
        },
        divergent,
    );
    check(
        "not where the acknowledgement says",
        |story| {
            let values = story.attempt(Kind::Plain, Told::Nothing, &[A]);
            story.history.acknowledged(values[0], Some(4));
            story.both(A, 5, values[0]);
        },
        divergent,
    );
}

#[test]
fn offsets_apart_from_their_records_are_found() {
    check(
        "passed over",
        |story| {
            story.processed(0, 10);
            let value = story.attempt(Kind::Plain, Told::Nothing, &[IN])[0];
            story.both(IN, 1, value);
            story.stand(2);
        },
        &[What::OffsetsWithoutRecords],
    );
    check(
        "the offset stayed behind",
        |story| {
            story.processed(0, 10);
            story.processed(1, 12);
            story.stand(1);
        },
        &[What::RecordsWithoutOffsets],
    );
    check(
        "processed twice",
        |story| {
            story.processed(0, 10);
            let again = story.history.begin("processor", Kind::Transaction);
            story.history.end(again, Told::Committed);
            let value = story.history.write(again, B, Some((0, 0)));
            story.both(B, 0, value);
            story.stand(1);
        },
        &[What::RecordsWithoutOffsets],
    );
    for (stands, found) in [(2, vec![What::OffsetsWithoutRecords]), (1, vec![]), (0, vec![What::RecordsWithoutOffsets])]
    {
        check(
            "a client's own group",
            |story| {
                for (mark, shown) in [(1, true), (2, false)] {
                    let values = story.attempt(Kind::Transaction, Told::Nothing, &[A]);
                    story.history.stage(values[0].attempt, mark);
                    if shown {
                        story.both(A, mark, values[0]);
                    }
                }
                story.rest.own.insert("client".to_owned(), stands);
            },
            &found,
        );
    }
}

#[test]
fn what_hangs_is_found() {
    let stuck = &[What::Stuck];
    check("a last stable offset", |story| story.rest.ends.push((A, 3, 4)), stuck);
    check("an open transaction", |story| story.rest.open.push("id is Ongoing".to_owned()), stuck);
}

#[test]
fn a_fenced_write_is_found() {
    check(
        "stored, though nobody is shown it as committed",
        |story| {
            let values = story.attempt(Kind::Fenced, Told::Nothing, &[A]);
            story.seen(View::Uncommitted, A, 0, values[0]);
        },
        &[What::FencedWrite],
    );
}

#[test]
fn a_missed_record_is_found() {
    for view in [View::Committed, View::Uncommitted] {
        check(
            "there for one who reads again, passed over by the consumer",
            |story| {
                let values = story.attempt(Kind::Transaction, Told::Committed, &[A]);
                story.history.read(View::Uncommitted, A, (0, 1), &[(0, values[0].to_string())]);
                story.history.read(View::Committed, A, (0, 1), &[(0, values[0].to_string())]);
                story.seen(view, A, 0, values[0]);
            },
            &[What::Missed],
        );
    }
}
