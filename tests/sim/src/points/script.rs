//! The history: one transactional client's life, told chapter by chapter, and what it remembers of it.

use std::collections::BTreeMap;

use super::play::Play;
use crate::engine::batch::Header;
use crate::engine::batch::samples::header;
use crate::engine::catalog::CreateTopic;
use crate::engine::ledger::show::Shown as State;
use crate::engine::{Offset, Outcome, PartId, Producer, Refusal, ReplyTo, TopicId};
use crate::runtime::post::{Answer, Command, PartLetter, Post, Show};
use crate::runtime::world::World;

/// The transactional id.
pub(super) const ID: &str = "a";
/// The group whose offsets it carries.
pub(super) const GROUP: &str = "g";
/// The topic.
const TOPIC: &str = "t";
/// Timeout of a transaction that is to outlive it, in milliseconds.
const TIMEOUT_MS: i32 = 9_000;

/// How the first transaction of a history ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chapter {
    /// On a disk that has never been used.
    Birth,
    /// By its producer.
    Ends(Outcome),
    /// By its producer; if that is not answered another one takes over, which does not know that it was asked for.
    Abandoned,
    /// By its timeout.
    TimesOut,
    /// By somebody else who becomes the id's owner.
    NewOwner,
}

/// A batch that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) part: PartId,
    pub(super) sequence: i32,
    pub(super) acked: bool,
}

/// A transaction, as its client knows it.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) producer: Producer,
    pub(super) sent: Vec<Sent>,
    /// The offset it staged and for which partition, if that was acknowledged.
    pub(super) staged: Option<(PartId, Offset)>,
    /// Whether somebody asked for its commit who might have got it.
    pub(super) asked_commit: bool,
    /// What somebody was told of its end.
    pub(super) told: Option<Outcome>,
}

/// A producer and where it is in each partition.
struct Owner {
    producer: Producer,
    next: BTreeMap<PartId, i32>,
}

impl Play {
    /// The history from its beginning to the start after a stop in order.
    pub(super) fn chapter(&mut self, chapter: Chapter) {
        let parts = self.create();
        let timeout_ms = if chapter == Chapter::TimesOut { TIMEOUT_MS } else { 60_000 };
        let mut owner = self.init(timeout_ms);
        if chapter == Chapter::Birth {
            return self.short(&mut owner, &parts, Outcome::Commit).unwrap_or_else(|refusal| self.lost(refusal));
        }
        let (second, over) = match chapter {
            Chapter::Birth => return,
            Chapter::Ends(outcome) => {
                let over = self.work(&mut owner, &parts).and_then(|()| self.end(&owner, outcome));
                (if outcome == Outcome::Commit { Outcome::Abort } else { Outcome::Commit }, over)
            }
            Chapter::Abandoned => (Outcome::Commit, self.work(&mut owner, &parts).map(|()| self.abandon(&owner))),
            Chapter::TimesOut => (Outcome::Commit, self.work(&mut owner, &parts).map(|()| self.time_out(&owner))),
            Chapter::NewOwner => (Outcome::Commit, self.work(&mut owner, &parts)),
        };
        if let Err(refusal) = over {
            self.lost(refusal);
        }
        match chapter {
            Chapter::Birth | Chapter::Ends(_) if over.is_ok() => {}
            Chapter::Birth | Chapter::Ends(_) | Chapter::Abandoned | Chapter::TimesOut => owner = self.init(60_000),
            Chapter::NewOwner => {
                let zombie = std::mem::replace(&mut owner, self.init(60_000));
                self.fenced(zombie, &parts);
            }
        }
        // A permission that the power took: its transaction is begun anew.
        while let Err(refusal) = self.short(&mut owner, &parts, second) {
            self.lost(refusal);
            owner = self.init(60_000);
        }
        self.stop_and_start();
    }

    /// A fresh transaction of the same id, when all is well.
    pub(super) fn epilogue(&mut self) {
        let parts = self.create();
        let mut owner = self.init(60_000);
        self.short(&mut owner, &parts, Outcome::Commit).expect("nothing is in its way");
    }

    /// The power may take a permission that nobody built on; nothing else makes a transaction disappear.
    fn lost(&mut self, refusal: Refusal) {
        assert!(self.lossy && refusal == Refusal::InvalidTxnState, "an open transaction is refused: {refusal:?}");
        self.lossy = false;
    }

    // ---- its parts ----

    pub(super) fn create(&mut self) -> Vec<PartId> {
        let spec = CreateTopic { partitions: Some(3), ..CreateTopic::by_defaults(TOPIC) };
        let question =
            move |world: &mut World| world.ask(Command::CreateTopics(vec![(spec.clone(), TopicId([7; 16]))]));
        match self.ask(question).expect("no refusal as a whole") {
            Answer::Created(created) => assert!(created.iter().all(|(_, made)| {
                made.as_ref().map_or_else(|(refusal, _)| *refusal == Refusal::TopicAlreadyExists, |_| true)
            })),
            other => panic!("CreateTopics: {other:?}"),
        }
        self.world.catalog.topic(TOPIC).expect("it is there").parts.clone()
    }

    fn init(&mut self, timeout_ms: i32) -> Owner {
        let producer = match self.ask(|world| world.ask_init(ID, timeout_ms)) {
            Ok(Answer::Producer(producer)) => producer,
            other => panic!("InitProducerId: {other:?}"),
        };
        // Whoever asked for nothing is aborted now.
        for attempt in self.attempts.iter_mut().filter(|attempt| !attempt.asked_commit) {
            attempt.told = attempt.told.or(Some(Outcome::Abort));
        }
        Owner { producer, next: BTreeMap::new() }
    }

    /// A transaction over three partitions: batches together, a segment that rolls, a recovery point on the way, an
    /// offset.
    fn work(&mut self, owner: &mut Owner, parts: &[PartId]) -> Result<(), Refusal> {
        let (producer, [p, q, r]) = (owner.producer, [parts[0], parts[1], parts[2]]);
        self.begin(producer);
        self.done(|world| world.ask_add(ID, producer, &[p, q]))?;
        self.produce_together(owner, p, 3)?;
        self.done(|world| world.ask_add(ID, producer, &[r]))?;
        for _ in 0..3 {
            self.produce(owner, q, 500)?;
        }
        self.produce(owner, r, 10)?;
        self.plain(r);
        self.world.deliver(Post::Part(p, PartLetter::Close));
        self.wait(1);
        self.produce(owner, p, 10)?;
        self.produce_again(owner, p)?;
        self.stage(owner, p)
    }

    /// A transaction over two partitions, whole.
    fn short(&mut self, owner: &mut Owner, parts: &[PartId], outcome: Outcome) -> Result<(), Refusal> {
        let (producer, [p, q]) = (owner.producer, [parts[0], parts[1]]);
        self.begin(producer);
        self.done(|world| world.ask_add(ID, producer, &[p, q]))?;
        self.produce(owner, q, 10)?;
        self.produce(owner, p, 10)?;
        self.stage(owner, q)?;
        self.end(owner, outcome)
    }

    fn begin(&mut self, producer: Producer) {
        self.attempts.push(Attempt { producer, sent: Vec::new(), staged: None, asked_commit: false, told: None });
    }

    fn attempt(&mut self) -> &mut Attempt {
        self.attempts.last_mut().expect("one has begun")
    }

    fn done(&mut self, question: impl Fn(&mut World) -> ReplyTo) -> Result<(), Refusal> {
        match self.ask(question)? {
            Answer::Done => Ok(()),
            other => panic!("neither yes nor no: {other:?}"),
        }
    }

    fn next(&mut self, owner: &mut Owner, part: PartId) -> i32 {
        let next = owner.next.entry(part).or_default();
        let sequence = *next;
        *next += 1;
        self.attempt().sent.push(Sent { part, sequence, acked: false });
        sequence
    }

    fn acked(&mut self, part: PartId, sequence: i32) {
        let sent = self.attempt().sent.iter_mut().find(|sent| (sent.part, sent.sequence) == (part, sequence));
        sent.expect("it was sent").acked = true;
    }

    fn produce(&mut self, owner: &mut Owner, part: PartId, bytes: usize) -> Result<(), Refusal> {
        let sequence = self.next(owner, part);
        self.send(owner.producer, (part, sequence), bytes).map(drop)
    }

    /// One batch until it is acknowledged. Where the partition knows of no permission the coordinator is asked, as the
    /// edge does.
    fn send(&mut self, producer: Producer, (part, sequence): (PartId, i32), bytes: usize) -> Result<Offset, Refusal> {
        for _ in 0..5 {
            match self.ask(|world| append(world, producer, (part, sequence), bytes))? {
                Answer::Produced(produced) => {
                    self.acked(part, sequence);
                    return Ok(produced.base_offset);
                }
                Answer::Unverified => self.done(|world| world.ask_verify(ID, producer, part))?,
                other => panic!("Produce: {other:?}"),
            }
        }
        panic!("P6: a permission that is given and never there");
    }

    /// Batches that come before the first of them is answered.
    fn produce_together(&mut self, owner: &mut Owner, part: PartId, count: usize) -> Result<(), Refusal> {
        let producer = owner.producer;
        let sequences: Vec<i32> = (0..count).map(|_| self.next(owner, part)).collect();
        let asked: Vec<(i32, ReplyTo)> = (sequences.into_iter())
            .map(|sequence| (sequence, append(&mut self.world, producer, (part, sequence), 10)))
            .collect();
        for (sequence, to) in asked {
            match self.world.is_answered(to).then(|| self.world.answer(to)).or_else(|| self.heard(to)) {
                Some(Answer::Produced(_)) => self.acked(part, sequence),
                Some(_) | None => self.send(producer, (part, sequence), 10).map(drop)?,
            }
        }
        Ok(())
    }

    /// The answer to what was asked of this process; none if it was asked of the one before.
    fn heard(&mut self, to: ReplyTo) -> Option<Answer> {
        self.wait(1);
        self.world.is_answered(to).then(|| self.world.answer(to))
    }

    /// P5: the last batch once more.
    fn produce_again(&mut self, owner: &Owner, part: PartId) -> Result<(), Refusal> {
        let sequence = owner.next[&part] - 1;
        self.send(owner.producer, (part, sequence), 10).map(drop)
    }

    /// A batch of nobody.
    fn plain(&mut self, part: PartId) {
        let value = format!("plain {}", self.plain.len());
        self.plain.push((value.clone(), false));
        let answer = self.ask(|world| world.ask_plain(&value, part));
        assert!(matches!(answer, Ok(Answer::Produced(_))), "{answer:?}");
        self.plain.last_mut().expect("one").1 = true;
    }

    fn stage(&mut self, owner: &Owner, part: PartId) -> Result<(), Refusal> {
        let producer = owner.producer;
        let offset = i64::try_from(self.attempts.len()).expect("few") * 10;
        self.done(|world| world.ask_add_group(ID, producer, GROUP))?;
        self.done(|world| world.ask_stage(ID, producer, GROUP, (part, offset)))?;
        self.attempt().staged = Some((part, offset));
        Ok(())
    }

    fn end(&mut self, owner: &Owner, outcome: Outcome) -> Result<(), Refusal> {
        let producer = owner.producer;
        self.attempt().asked_commit = outcome == Outcome::Commit;
        self.done(|world| world.ask_end(ID, producer, outcome))?;
        self.attempt().told = Some(outcome);
        Ok(())
    }

    /// A commit asked for once.
    fn abandon(&mut self, owner: &Owner) {
        self.attempt().asked_commit = true;
        let to = self.world.ask_end(ID, owner.producer, Outcome::Commit);
        if matches!(self.answered(to), Some(Answer::Done)) {
            self.attempt().told = Some(Outcome::Commit);
        }
    }

    /// Nothing is said until the transaction has timed out; its producer then finds itself fenced (T-607).
    fn time_out(&mut self, owner: &Owner) {
        for round in 0.. {
            assert!(round < 60, "P6: a timeout that does not come");
            if round == 20 {
                self.make_space();
            }
            self.wait(1_000);
            let Ok(Answer::Txns(txns)) =
                self.ask(|world| world.ask(Command::Show(Show::Txns(vec![crate::runtime::world::ask::id(ID)]))))
            else {
                panic!("DescribeTransactions");
            };
            let state = txns.into_iter().next().and_then(Result::ok).map(|described| described.state);
            match state.expect("known") {
                State::Ongoing | State::PrepareAbort => {}
                State::CompleteAbort => break,
                state @ (State::Empty | State::PrepareCommit | State::CompleteCommit) => panic!("{state:?}"),
            }
        }
        self.attempt().told = Some(Outcome::Abort);
        let producer = owner.producer;
        let late = self.done(|world| world.ask_end(ID, producer, Outcome::Commit));
        assert_eq!(late, Err(Refusal::ProducerFenced), "P4");
    }

    /// P4: whoever was the owner before changes nothing.
    fn fenced(&mut self, mut zombie: Owner, parts: &[PartId]) {
        let producer = zombie.producer;
        let late = self.done(|world| world.ask_end(ID, producer, Outcome::Commit));
        assert_eq!(late, Err(Refusal::ProducerFenced), "P4");
        let late = self.produce(&mut zombie, parts[0], 10);
        assert!(matches!(late, Err(Refusal::InvalidProducerEpoch | Refusal::ProducerFenced)), "P4: {late:?}");
    }
}

fn append(world: &mut World, producer: Producer, (part, sequence): (PartId, i32), bytes: usize) -> ReplyTo {
    let header = Header {
        attributes: 0x10,
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        base_sequence: sequence,
        ..header(1)
    };
    world.ask_append(header, Some(ID), (&"x".repeat(bytes), part))
}
