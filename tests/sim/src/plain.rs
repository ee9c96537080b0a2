//! Clients without transactions of their own: idempotent and plain producers, somebody who commits offsets, an
//! administrator, an operator who aborts what others have open.

use std::collections::BTreeMap;

use crate::dice::Dice;
use crate::edge::{Reply, Request, Who};
use crate::engine::{Offset, PartId, Producer, Refusal, TopicId};
use crate::history::{Batch, Of};
use crate::process::Around;

/// How long they wait before they ask again, in milliseconds.
const PATIENCE_MS: i64 = 700;

/// How long they are content with what they have done, at most, in milliseconds.
const PAUSE_MS: i64 = 1_200;

/// What one of them does.
#[derive(Debug)]
enum Trade {
    /// Writes in order, each batch until it is acknowledged.
    Idempotent { producer: Option<Producer>, next: BTreeMap<PartId, i32> },
    /// Writes and forgets.
    Plain,
    /// Commits ever higher offsets of one partition.
    Commits { group: String, part: PartId, next: Offset },
    /// Makes and deletes topics.
    Topics { made: u64 },
    /// Aborts what others have open.
    Aborts,
}

/// One of them.
#[derive(Debug)]
pub struct Plain {
    /// Its number among all clients.
    pub who: Who,
    trade: Trade,
    /// What it waits for, and since when; or what it will ask again.
    pending: Option<(u64, i64, Request)>,
    again: Option<Request>,
    asleep_until_ms: i64,
}

/// Names of topics that come and go.
pub const PASSING: [&str; 3] = ["s0", "s1", "s2"];

impl Plain {
    fn new(who: Who, trade: Trade) -> Self {
        Self { who, trade, pending: None, again: None, asleep_until_ms: 0 }
    }

    /// An idempotent producer.
    #[must_use]
    pub fn idempotent(who: Who) -> Self {
        Self::new(who, Trade::Idempotent { producer: None, next: BTreeMap::new() })
    }

    /// A plain one.
    #[must_use]
    pub fn writes(who: Who) -> Self {
        Self::new(who, Trade::Plain)
    }

    /// One that commits offsets.
    #[must_use]
    pub fn commits(who: Who, group: &str, part: PartId) -> Self {
        Self::new(who, Trade::Commits { group: group.to_owned(), part, next: 1 })
    }

    /// An administrator.
    #[must_use]
    pub fn topics(who: Who) -> Self {
        Self::new(who, Trade::Topics { made: 0 })
    }

    /// An operator.
    #[must_use]
    pub fn aborts(who: Who) -> Self {
        Self::new(who, Trade::Aborts)
    }

    /// Whether this commit is older than the newest one that was sent: its connection is gone.
    #[must_use]
    pub fn has_moved_on(&self, offset: Offset) -> bool {
        matches!(&self.trade, Trade::Commits { next, .. } if offset + 1 < *next)
    }

    /// Does the next thing, if there is one to do now. `parts` are those it may write to.
    pub fn act(&mut self, parts: &[PartId], around: &mut Around<'_>) {
        if around.now_ms < self.asleep_until_ms {
            return;
        }
        if let Some((_, since_ms, request)) = &self.pending {
            if around.now_ms - since_ms <= PATIENCE_MS {
                return;
            }
            self.again = Some(request.clone());
            self.pending = None;
        }
        let Some(request) = self.again.take().or_else(|| self.next(parts, around)) else { return };
        let number = around.edge.send((self.who, None), request.clone(), around.now_ms, (around.swarm, around.dice));
        self.pending = Some((number, around.now_ms, request));
    }

    fn next(&mut self, parts: &[PartId], around: &mut Around<'_>) -> Option<Request> {
        let dice = &mut *around.dice;
        match &mut self.trade {
            Trade::Idempotent { producer: None, .. } => Some(Request::Init { id: None, timeout_ms: 60_000 }),
            Trade::Idempotent { producer: Some(producer), next } => {
                let part = dice.pick(parts);
                let records = 1 + i32::try_from(dice.roll(3)).unwrap();
                let sequence = *next.entry(part).or_default();
                let (of, producer) = (Of::Idempotent, Some(*producer));
                let batch = around.history.batch(Batch { of, part, producer, sequence, records, acked: None });
                Some(Request::Produce { id: None, producer, sequence, records, part, batch })
            }
            Trade::Plain => {
                let (part, records) = (dice.pick(parts), 1 + i32::try_from(dice.roll(2)).unwrap());
                let (of, producer) = (Of::Plain, None);
                let batch = around.history.batch(Batch { of, part, producer, sequence: -1, records, acked: None });
                Some(Request::Produce { id: None, producer: None, sequence: -1, records, part, batch })
            }
            Trade::Commits { group, part, next } => {
                let offset = (*part, *next);
                *next += 1;
                Some(Request::Commit { group: group.clone(), offset })
            }
            Trade::Topics { made } => {
                if !dice.once_in(around.swarm.topics) {
                    return None;
                }
                let topic = dice.pick(&PASSING).to_owned();
                if dice.once_in(2) {
                    return Some(Request::Delete { topic });
                }
                *made += 1;
                let mut id = [3; 16];
                id[8..].copy_from_slice(&(around.dice.draw() | 1).to_be_bytes());
                Some(Request::Create { topic, partitions: 2, id: TopicId(id) })
            }
            Trade::Aborts => {
                if !dice.once_in(around.swarm.operator) {
                    return None;
                }
                if dice.once_in(2) {
                    let ids: Vec<&String> =
                        around.history.owners.keys().filter(|id| !id.starts_with("nobody")).collect();
                    return (!ids.is_empty()).then(|| Request::AbortTxn { id: dice.pick(&ids).clone() });
                }
                // By a pair that tools were told some time, seldom of the newest owner.
                let newest: Vec<Producer> = around.history.owners.values().copied().collect();
                let all: Vec<Producer> = around.history.handed_out.keys().copied().collect();
                let pairs = if dice.once_in(4) { all } else { newest };
                // A tool that has seen no marker of a producer believes in no coordinator epoch (T-407).
                let coordinator_epoch = dice.pick(&[0, i32::MAX, i32::MAX]);
                let mark = |dice: &mut Dice| Request::Mark {
                    producer: dice.pick(&pairs),
                    part: dice.pick(parts),
                    coordinator_epoch,
                };
                (!pairs.is_empty()).then(|| mark(dice))
            }
        }
    }

    /// Takes an answer, if it still waits for it.
    pub fn hear(&mut self, exchange: u64, reply: &Reply, around: &mut Around<'_>) {
        if self.pending.as_ref().is_none_or(|(number, _, _)| *number != exchange) {
            return;
        }
        let Some((_, _, request)) = self.pending.take() else { return };
        self.asleep_until_ms = around.now_ms + around.dice.ms(PAUSE_MS);
        match reply {
            Reply::Producer(told) => {
                if let Trade::Idempotent { producer, next } = &mut self.trade {
                    *producer = Some(*told);
                    next.clear();
                }
            }
            Reply::Produced(_) => {
                if let (Trade::Idempotent { next, .. }, Request::Produce { part, sequence, records, .. }) =
                    (&mut self.trade, &request)
                {
                    next.insert(*part, sequence + records);
                }
            }
            Reply::Refused(refusal) => self.refused(request, *refusal, around),
            Reply::Done | Reply::Joined(..) | Reply::Synced(_) | Reply::Position(_) => {}
        }
    }

    fn refused(&mut self, request: Request, refusal: Refusal, around: &mut Around<'_>) {
        match refusal {
            Refusal::NotCoordinator | Refusal::KafkaStorageError | Refusal::ConcurrentTransactions => {
                self.asleep_until_ms = around.now_ms + around.dice.ms(60);
                self.again = Some(request);
            }
            Refusal::UnknownTopicOrPartition | Refusal::TopicAlreadyExists => {}
            Refusal::InvalidTxnState
            | Refusal::InvalidProducerEpoch
            | Refusal::InvalidProducerIdMapping
            | Refusal::TransactionCoordinatorFenced
            | Refusal::TransactionalIdNotFound
                if matches!(self.trade, Trade::Aborts) => {}
            other => panic!("{request:?} is refused: {other:?}"),
        }
    }

    /// The partition is gone: what it was to get is not sent again.
    pub fn forget(&mut self, gone: impl Fn(PartId) -> bool) {
        if matches!(&self.again, Some(Request::Produce { part, .. }) if gone(*part)) {
            self.again = None;
        }
    }
}
