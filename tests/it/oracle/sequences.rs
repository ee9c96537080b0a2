//! Sequences and duplicates of a producer on a partition (T-350 to T-357, T-712 R).

use super::{FREE, Scene};
use crate::raw::Client;
use crate::raw::batch::{Batch, Pid};

/// What a batch is to get.
#[derive(Debug, Clone, Copy)]
enum Gets {
    /// A place at the end of the log.
    Stored,
    /// The place of an earlier batch, by its number.
    Repeat(usize),
    /// This error.
    Code(i16),
}

use Gets::{Code, Repeat, Stored};

/// Epoch, first sequence, records.
type Sent = (i16, i32, usize, Gets);

const END: i32 = i32::MAX;

const LINES: &[(&str, &[Sent])] = &[
    ("T-354: nothing known, any sequence", &[(0, 0, 1, Stored)]),
    ("T-354: nothing known, any sequence", &[(0, 77, 3, Stored), (0, 80, 1, Stored)]),
    ("T-354: nothing known, the last sequence", &[(0, END, 1, Stored), (0, 0, 1, Stored)]),
    ("T-354: nothing known, any epoch", &[(9, 5, 1, Stored), (8, 6, 1, Code(47)), (9, 6, 1, Stored)]),
    ("T-354: equal epoch, next", &[(0, 0, 3, Stored), (0, 3, 2, Stored), (0, 5, 1, Stored)]),
    ("T-354: equal epoch, gap", &[(0, 0, 3, Stored), (0, 4, 1, Code(45)), (0, 3, 1, Stored)]),
    ("T-354: equal epoch, back", &[(0, 10, 3, Stored), (0, 9, 1, Code(45)), (0, 0, 1, Code(45)), (0, 13, 1, Stored)]),
    ("T-354: greater epoch, 0", &[(0, 0, 3, Stored), (1, 0, 1, Stored), (1, 1, 1, Stored)]),
    ("T-354: greater epoch, not 0", &[(0, 0, 3, Stored), (1, 3, 1, Code(45)), (1, 1, 1, Code(45))]),
    ("T-359: refused, and nothing changed", &[(0, 0, 3, Stored), (1, 3, 1, Code(45)), (0, 3, 1, Stored)]),
    ("T-354: epochs may be left out", &[(0, 0, 1, Stored), (5, 0, 1, Stored), (4, 0, 1, Code(47))]),
    ("T-353: lower epoch", &[(1, 0, 1, Stored), (0, 0, 1, Code(47)), (0, 1, 1, Code(47)), (1, 1, 1, Stored)]),
    ("T-351: the wrap, at a batch's end", &[(0, END - 1, 2, Stored), (0, 0, 1, Stored)]),
    ("T-351: the wrap, within a batch", &[(0, END - 1, 4, Stored), (0, 2, 1, Stored)]),
    (
        "T-351: the wrap is of 2^31",
        &[(0, END - 1, 1, Stored), (0, 0, 1, Code(45)), (0, END, 1, Stored), (0, 0, 1, Stored)],
    ),
    ("T-351, X-20: no negative sequence", &[(0, END, 1, Stored), (0, 1, 1, Code(45)), (0, i32::MIN, 1, Code(87))]),
    ("T-352: a wrapped batch again", &[(0, END - 1, 4, Stored), (0, END - 1, 4, Repeat(0)), (0, 2, 1, Stored)]),
    (
        "T-352: five back",
        &[
            (0, 0, 2, Stored),
            (0, 2, 1, Stored),
            (0, 3, 3, Stored),
            (0, 6, 1, Stored),
            (0, 7, 2, Stored),
            (0, 9, 1, Stored),
            (0, 9, 1, Repeat(5)),
            (0, 2, 1, Repeat(1)),
            (0, 7, 2, Repeat(4)),
            (0, 3, 3, Repeat(2)),
            (0, 6, 1, Repeat(3)),
            // T-355: the sixth.
            (0, 0, 2, Code(45)),
            (0, 10, 1, Stored),
            (0, 2, 1, Code(45)),
        ],
    ),
    (
        "T-355: partial overlaps",
        &[
            (0, 0, 3, Stored),
            (0, 0, 2, Code(45)),
            (0, 0, 4, Code(45)),
            (0, 1, 2, Code(45)),
            (0, 2, 2, Code(45)),
            (0, 0, 3, Repeat(0)),
            (0, 3, 1, Stored),
            (0, 0, 4, Code(45)),
        ],
    ),
    (
        "T-356: a new epoch forgets the batches",
        &[(0, 0, 1, Stored), (1, 0, 1, Stored), (0, 0, 1, Code(47)), (1, 0, 1, Repeat(1)), (1, 1, 1, Stored)],
    ),
    ("T-335: a producer has sequences", &[(0, -1, 1, Code(87))]),
];

fn send(client: &mut Client, rule: &str, producer: i64, sent: &[Sent]) {
    let mut places = Vec::new();
    for (n, (epoch, sequence, count, gets)) in sent.iter().enumerate() {
        let batch = Batch::idempotent(Pid { id: producer, epoch: *epoch }, *sequence, *count);
        let said = client.produce(FREE, 0, None, &batch);
        places.push(said.base_offset);
        match gets {
            Stored => {
                assert_eq!(said.code, 0, "{rule}, batch {n}");
                let newest = places.iter().max();
                assert_eq!(newest, Some(&said.base_offset), "{rule}, batch {n}");
            }
            Repeat(of) => {
                assert_eq!((said.code, said.base_offset), (0, places[*of]), "{rule}, batch {n}");
                assert_eq!(said.log_append_time, -1, "T-352 R, X-90");
            }
            Code(code) => assert_eq!(said.code, *code, "{rule}, batch {n}"),
        }
    }
}

#[test]
fn every_row() {
    let scene = Scene::new();
    scene.check_all(LINES, |_, client, (rule, sent)| {
        let (code, producer) = client.init_producer(None, 1_000);
        assert_eq!(code, 0);
        send(client, rule, producer.id, sent);
    });
}

/// T-357: who is no producer has no sequences, and disturbs nobody's.
#[test]
fn plain_batches_are_never_judged() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let (_, producer) = client.init_producer(None, 1_000);
    for n in 0..4 {
        assert_eq!(client.produce(FREE, 0, None, &Batch::plain(1)).code, 0);
        assert_eq!(client.produce(FREE, 0, None, &Batch::idempotent(producer, n, 1)).code, 0);
    }
}

/// X-86, T-712 R, P5: all five are known after a kill and after a stop, with their places.
#[test]
fn duplicates_are_known_over_a_restart() {
    let mut scene = Scene::new();
    let mut client = scene.connect();
    let (_, idempotent) = client.init_producer(None, 1_000);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 1)]), [0]);
    let plain = |n: i32| (0, None, Batch::idempotent(idempotent, n, 1));
    let transactional = |n: i32| (1, Some("id"), Batch::transactional(owner, n, 1));
    let send =
        |client: &mut Client, (part, id, batch): (i32, Option<&str>, Batch)| client.produce(FREE, part, id, &batch);
    let mut known: Vec<_> =
        (0..6).map(|n| [send(&mut client, plain(n)), send(&mut client, transactional(n))]).collect();
    for kill in [true, false, true] {
        if kill {
            scene.crash_and_start(|_| {});
        } else {
            scene.broker.stop();
            scene.broker.start_again(|_| {});
        }
        client = scene.connect();
        let next = i32::try_from(known.len()).unwrap();
        for (n, places) in (0..next).zip(&known) {
            let said = [send(&mut client, plain(n)), send(&mut client, transactional(n))];
            if n + 5 < next {
                assert_eq!(said.map(|said| said.code), [45, 45], "T-355: {n} of {next}, kill {kill}");
            } else {
                assert_eq!(&said, places, "X-86: {n} of {next}, kill {kill}");
            }
        }
        let gap = [send(&mut client, plain(next + 1)), send(&mut client, transactional(next + 1))];
        assert_eq!(gap.map(|said| said.code), [45, 45], "T-354 over a restart");
        known.push([send(&mut client, plain(next)), send(&mut client, transactional(next))]);
        assert_eq!(known.last().unwrap().map(|said| said.code), [0, 0], "kill {kill}");
    }
    client.end_txn_surely("id", owner, true);
}
