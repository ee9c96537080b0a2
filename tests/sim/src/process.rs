//! A process that consumes, processes and produces in transactions, as careful as real ones are, or as hasty.
//!
//! It is the one member of its group that is assigned the input, or it waits to be. Each transaction takes a few
//! positions of the input, writes batches to some partitions, stages the new position and ends. It knows only what it is
//! told; what it is told may be late, doubled or lost.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::dice::Dice;
use crate::edge::{Edge, Reply, Request, Who};
use crate::engine::ledger::offsets::Seen;
use crate::engine::{Claim, MemberId, Offset, Outcome, PartId, Producer, Refusal};
use crate::history::{Attempt, Batch, History, Of};
use crate::swarm::Swarm;

/// How long a process waits for an answer before it asks again, in milliseconds.
const PATIENCE_MS: i64 = 900;
/// How long it waits to be let into its group, in milliseconds: a rebalance takes its time.
const JOIN_PATIENCE_MS: i64 = 4_000;
/// How often a member says that it lives, in milliseconds.
const BEAT_MS: i64 = 1_500;

/// What a transaction still has to do.
#[derive(Debug, Clone)]
enum Step {
    Add(Vec<PartId>),
    Produce(u64),
    AddGroup,
    Stage,
    End,
}

/// The transaction it is in.
#[derive(Debug)]
struct Tx {
    attempt: usize,
    steps: VecDeque<Step>,
    outcome: Outcome,
    /// It does not wait for answers before it goes on.
    hasty: bool,
}

/// The process.
#[derive(Debug)]
pub struct Process {
    /// Its number among all clients.
    pub who: Who,
    /// Its transactional id.
    pub id: String,
    group: String,
    input: PartId,
    outputs: Vec<PartId>,
    claim: Option<Claim>,
    /// The member id it had last.
    member: MemberId,
    members: Vec<MemberId>,
    assigned: Option<bool>,
    producer: Option<Producer>,
    position: Option<Offset>,
    sequences: BTreeMap<PartId, i32>,
    tx: Option<Tx>,
    /// Exchanges without an answer, and since when.
    pending: BTreeMap<u64, (i64, Request)>,
    beat_ms: i64,
    asleep_until_ms: i64,
    joins: u64,
    /// What became of a batch, or of an end, is not known: a new epoch is needed before the next transaction.
    unsure: bool,
    /// It is over: another process takes its place.
    pub dead: bool,
    /// It begins nothing new.
    pub closing: bool,
}

/// What a process acts with.
pub struct Around<'a> {
    /// Virtual time since the run began, in milliseconds.
    pub now_ms: i64,
    /// The network.
    pub edge: &'a mut Edge,
    /// What is written down.
    pub history: &'a mut History,
    /// What the run is like.
    pub swarm: &'a Swarm,
    /// Chance.
    pub dice: &'a mut Dice,
}

impl Process {
    /// A process that has just begun.
    #[must_use]
    pub fn new(who: Who, id: &str, group: &str, input: PartId, outputs: &[PartId]) -> Self {
        Self {
            who,
            id: id.to_owned(),
            group: group.to_owned(),
            input,
            outputs: outputs.to_vec(),
            claim: None,
            member: MemberId::from(""),
            members: Vec::new(),
            assigned: None,
            producer: None,
            position: None,
            sequences: BTreeMap::new(),
            tx: None,
            pending: BTreeMap::new(),
            beat_ms: 0,
            asleep_until_ms: 0,
            joins: 0,
            unsure: false,
            dead: false,
            closing: false,
        }
    }

    /// Whether it has a transaction that is not over.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.dead && self.tx.is_some()
    }

    /// Its connections are gone: what it asked may or may not have been done.
    pub fn disconnected(&mut self, now_ms: i64) {
        for (since_ms, _) in self.pending.values_mut() {
            *since_ms = (*since_ms).min(now_ms - JOIN_PATIENCE_MS + 20);
        }
    }

    /// Does the next thing, if there is one to do now.
    pub fn act(&mut self, around: &mut Around<'_>) {
        if self.dead || around.now_ms < self.asleep_until_ms {
            return;
        }
        if around.dice.once_in(around.swarm.stall) {
            self.asleep_until_ms = around.now_ms + around.dice.ms(9_000);
            return;
        }
        self.ask_again(around);
        let hasty = self.tx.as_ref().is_some_and(|tx| tx.hasty);
        if !(self.pending.is_empty() || hasty && self.may_run_ahead()) {
            return;
        }
        if let Some(request) = self.next(around) {
            let step = self.taken_step(hasty);
            self.send(request, around);
            drop(step);
        }
    }

    /// A hasty process sends batches, and the end behind them, without waiting for what it sent before.
    fn may_run_ahead(&self) -> bool {
        let only_batches = self.pending.values().all(|(_, request)| matches!(request, Request::Produce { .. }));
        let next = self.tx.as_ref().and_then(|tx| tx.steps.front());
        only_batches && matches!(next, Some(Step::Produce(_) | Step::End))
    }

    /// In a hurry a batch counts as done when it is sent.
    fn taken_step(&mut self, hasty: bool) -> Option<Step> {
        let tx = self.tx.as_mut()?;
        if hasty && matches!(tx.steps.front(), Some(Step::Produce(_))) { tx.steps.pop_front() } else { None }
    }

    fn send(&mut self, request: Request, around: &mut Around<'_>) {
        let attempt = self.tx.as_ref().map(|tx| tx.attempt);
        if let (Request::End { outcome, .. }, Some(attempt)) = (&request, attempt) {
            around.history.attempts[attempt].asked = Some(*outcome);
        }
        let number = around.edge.send((self.who, attempt), request.clone(), around.now_ms, (around.swarm, around.dice));
        self.pending.insert(number, (around.now_ms, request));
    }

    fn ask_again(&mut self, around: &mut Around<'_>) {
        let patience = |request: &Request| match request {
            Request::Join { .. } | Request::Sync { .. } => JOIN_PATIENCE_MS,
            _ => PATIENCE_MS,
        };
        let late: Vec<u64> = (self.pending.iter())
            .filter(|(_, (since_ms, request))| around.now_ms - since_ms > patience(request))
            .map(|(number, _)| *number)
            .collect();
        for number in late {
            let Some((_, request)) = self.pending.remove(&number) else { continue };
            match request {
                // Whether it was let in is found out by the next heartbeat or commit.
                Request::Heartbeat { .. } => {}
                Request::Join { .. } | Request::Sync { .. } => self.leave(),
                request => self.send(request, around),
            }
        }
    }

    fn leave(&mut self) {
        (self.claim, self.assigned, self.position) = (None, None, None);
    }

    /// What it would ask next.
    fn next(&mut self, around: &mut Around<'_>) -> Option<Request> {
        if let Some(tx) = &self.tx {
            let step = tx.steps.front()?.clone();
            return Some(self.step(&step, around.history));
        }
        let group = self.group.clone();
        let Some(claim) = self.claim.clone() else {
            if self.closing {
                return None;
            }
            self.joins += 1;
            let fresh = MemberId::from(format!("m{}-{}", self.who, self.joins));
            return Some(Request::Join { group, member: self.member.clone(), fresh });
        };
        let Some(assigned) = self.assigned else {
            return Some(Request::Sync { group, claim, assignments: self.assignments() });
        };
        if around.now_ms - self.beat_ms > BEAT_MS {
            self.beat_ms = around.now_ms;
            return Some(Request::Heartbeat { group, claim });
        }
        if !assigned || self.closing {
            return None;
        }
        if self.producer.is_none() || self.unsure {
            return Some(Request::Init { id: Some(self.id.clone()), timeout_ms: around.swarm.timeout_ms });
        }
        let Some(from) = self.position else {
            return Some(Request::Position { group, part: self.input });
        };
        self.begin(from, around);
        None
    }

    /// The leader gives the input to itself: of it alone it knows that it lives.
    fn assignments(&self) -> Vec<(MemberId, Bytes)> {
        let all = |member: &MemberId| {
            let own = *member == self.member;
            (member.clone(), if own { Bytes::from_static(b"all") } else { Bytes::new() })
        };
        self.members.iter().map(all).collect()
    }

    fn begin(&mut self, from: Offset, around: &mut Around<'_>) {
        let Some(producer) = self.producer else { return };
        let dice = &mut *around.dice;
        let number = around.history.attempts.len();
        let hasty = dice.once_in(around.swarm.hasty);
        let mut steps = VecDeque::new();
        let mut batches = Vec::new();
        let mut chosen: Vec<PartId> = Vec::new();
        for _ in 0..=dice.index(3) {
            let part = dice.pick(&self.outputs);
            if !chosen.contains(&part) {
                chosen.push(part);
            }
        }
        steps.push_back(Step::Add(chosen.clone()));
        for _ in 0..=dice.index(4) {
            let part = dice.pick(&chosen);
            let records = 1 + i32::try_from(dice.roll(3)).unwrap();
            let sequence = self.sequences.entry(part).or_default();
            let batch = Batch {
                of: Of::Attempt(number),
                part,
                producer: Some(producer),
                sequence: *sequence,
                records,
                acked: None,
            };
            *sequence += records;
            let batch = around.history.batch(batch);
            batches.push(batch);
            steps.push_back(Step::Produce(batch));
        }
        let group_at = if dice.once_in(2) { 1 } else { steps.len() };
        steps.insert(group_at, Step::Stage);
        steps.insert(group_at, Step::AddGroup);
        steps.push_back(Step::End);
        let outcome = if dice.once_in(around.swarm.abort) { Outcome::Abort } else { Outcome::Commit };
        around.history.attempts.push(Attempt {
            id: self.id.clone(),
            producer,
            group: self.group.clone(),
            input: self.input,
            from,
            to: from + 1 + dice.ms(3),
            batches,
            asked: None,
            told: None,
            aborted: false,
        });
        self.tx = Some(Tx { attempt: number, steps, outcome, hasty });
    }

    fn step(&self, step: &Step, history: &History) -> Request {
        let (id, group) = (self.id.clone(), self.group.clone());
        let producer = self.producer.expect("in a transaction");
        let tx = self.tx.as_ref().expect("in a transaction");
        match step {
            Step::Add(parts) => Request::Add { id, producer, parts: parts.clone() },
            Step::Produce(number) => {
                let batch = history.of(*number);
                Request::Produce {
                    id: Some(id),
                    producer: Some(producer),
                    sequence: batch.sequence,
                    records: batch.records,
                    part: batch.part,
                    batch: *number,
                }
            }
            Step::AddGroup => Request::AddGroup { id, producer, group },
            Step::Stage => {
                let claim = self.claim.clone().unwrap_or(Claim {
                    generation: 0,
                    member: MemberId::from("nobody"),
                    instance: None,
                });
                let to = history.attempts[tx.attempt].to;
                Request::Stage { id, producer, group, claim, offset: (self.input, to) }
            }
            Step::End => Request::End { id, producer, outcome: tx.outcome },
        }
    }

    /// Takes an answer, if it still waits for it.
    pub fn hear(&mut self, exchange: u64, reply: &Reply, around: &mut Around<'_>) {
        let Some((_, request)) = self.pending.remove(&exchange) else { return };
        if self.dead {
            return;
        }
        match reply {
            Reply::Refused(refusal) => self.refused(&request, *refusal, around),
            Reply::Producer(producer) => {
                (self.producer, self.unsure) = (Some(*producer), false);
                self.sequences.clear();
            }
            Reply::Joined(claim, members) => {
                self.member = claim.member.clone();
                (self.claim, self.members) = (Some(claim.clone()), members.clone());
                (self.assigned, self.position) = (None, None);
            }
            Reply::Synced(assignment) => {
                (self.assigned, self.beat_ms) = (Some(!assignment.is_empty()), around.now_ms);
                self.position = None;
            }
            Reply::Position(seen) => match seen {
                Seen::Absent => self.position = Some(0),
                Seen::At(position) => self.position = Some(position.offset),
                Seen::Unstable => self.asleep_until_ms = around.now_ms + around.dice.ms(100),
            },
            Reply::Produced(_) | Reply::Done => self.done(&request, around),
        }
    }

    fn done(&mut self, request: &Request, around: &mut Around<'_>) {
        let Some(tx) = &mut self.tx else { return };
        match request {
            Request::Heartbeat { .. } => {}
            Request::End { outcome, .. } => {
                let attempt = &around.history.attempts[tx.attempt];
                self.position = if *outcome == Outcome::Commit { Some(attempt.to) } else { Some(attempt.from) };
                // Batches nobody answered leave a hole in the sequence that only a new epoch closes.
                self.unsure |= attempt.batches.iter().any(|batch| around.history.of(*batch).acked.is_none());
                self.pending.clear();
                self.tx = None;
            }
            Request::Produce { batch, .. } => {
                if matches!(tx.steps.front(), Some(Step::Produce(next)) if next == batch) {
                    tx.steps.pop_front();
                }
            }
            _ => drop(tx.steps.pop_front()),
        }
    }

    fn refused(&mut self, request: &Request, refusal: Refusal, around: &mut Around<'_>) {
        match refusal {
            Refusal::ConcurrentTransactions
            | Refusal::NotCoordinator
            | Refusal::KafkaStorageError
            | Refusal::CoordinatorLoadInProgress => self.again_later(around),
            Refusal::IllegalGeneration
            | Refusal::UnknownMemberId
            | Refusal::RebalanceInProgress
            | Refusal::MemberIdRequired => {
                if matches!(refusal, Refusal::UnknownMemberId) {
                    self.member = MemberId::from("");
                }
                self.shut_out(request, around);
            }
            Refusal::ProducerFenced
            | Refusal::InvalidProducerEpoch
            | Refusal::InvalidProducerIdMapping
            | Refusal::InvalidTxnState
            | Refusal::OutOfOrderSequence
            | Refusal::UnknownTopicOrPartition => self.dead = true,
            other => panic!("{request:?} of {} is refused: {other:?}", self.id),
        }
    }

    fn again_later(&mut self, around: &mut Around<'_>) {
        self.asleep_until_ms = around.now_ms + around.dice.ms(60);
    }

    /// The group went on without it. Now and then it does not care.
    fn shut_out(&mut self, request: &Request, around: &mut Around<'_>) {
        if matches!(request, Request::Heartbeat { .. }) && around.dice.once_in(3) {
            return;
        }
        self.leave();
        if let Some(tx) = &mut self.tx
            && around.history.attempts[tx.attempt].asked.is_none()
        {
            tx.outcome = Outcome::Abort;
            tx.steps = VecDeque::from([Step::End]);
            tx.hasty = false;
            self.unsure = true;
            self.pending.clear();
        }
    }
}
