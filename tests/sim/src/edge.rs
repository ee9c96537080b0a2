//! The network and the broker's edge: requests under way, answers on their way back, and what the edge does by itself
//! (a batch whose permission the partition does not know asks the ledger and goes again).

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::dice::Dice;
use crate::engine::batch::Header;
use crate::engine::batch::check::Times;
use crate::engine::batch::samples::{Entry, encode, header, seal};
use crate::engine::catalog::CreateTopic;
use crate::engine::group::{GroupAnswer, Join, JoinVersion, Sync};
use crate::engine::ledger::offsets::Seen;
use crate::engine::partition::{AdminMark, Protocol};
use crate::engine::txn::{Addition, Position};
use crate::engine::{
    Claim, GroupId, MemberId, Offset, Outcome, PartId, Producer, Refusal, ReplyTo, TopicId, TopicName, TransactionalId,
};
use crate::known_bugs::{Bug, is_in};
use crate::runtime::post::{
    Answer, Append, Command, CommitOffsets, LedgerLetter, PartLetter, Post, StageOffsets, TopicKey,
};
use crate::runtime::world::World;
use crate::swarm::Swarm;

/// What a client asks.
#[derive(Debug, Clone)]
pub enum Request {
    /// InitProducerId; an idempotent producer names no id.
    Init { id: Option<String>, timeout_ms: i32 },
    /// AddPartitionsToTxn.
    Add { id: String, producer: Producer, parts: Vec<PartId> },
    /// AddOffsetsToTxn.
    AddGroup { id: String, producer: Producer, group: String },
    /// TxnOffsetCommit.
    Stage { id: String, producer: Producer, group: String, claim: Claim, offset: (PartId, Offset) },
    /// Produce.
    Produce { id: Option<String>, producer: Option<Producer>, sequence: i32, records: i32, part: PartId, batch: u64 },
    /// EndTxn.
    End { id: String, producer: Producer, outcome: Outcome },
    /// JoinGroup, under a member id that is new if it has none.
    Join { group: String, member: MemberId, fresh: MemberId },
    /// SyncGroup.
    Sync { group: String, claim: Claim, assignments: Vec<(MemberId, Bytes)> },
    /// Heartbeat.
    Heartbeat { group: String, claim: Claim },
    /// OffsetFetch with `require_stable`.
    Position { group: String, part: PartId },
    /// OffsetCommit of somebody who is in no group.
    Commit { group: String, offset: (PartId, Offset) },
    /// CreateTopics.
    Create { topic: String, partitions: i32, id: TopicId },
    /// DeleteTopics.
    Delete { topic: String },
    /// An operator's abort of whatever is open under an id.
    AbortTxn { id: String },
    /// WriteTxnMarkers: a tool's abort in one partition.
    Mark { producer: Producer, part: PartId, coordinator_epoch: i32 },
}

/// What it is answered.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Success.
    Done,
    /// InitProducerId.
    Producer(Producer),
    /// Produce.
    Produced(Offset),
    /// JoinGroup: the claim, and all members if it leads.
    Joined(Claim, Vec<MemberId>),
    /// SyncGroup.
    Synced(Bytes),
    /// OffsetFetch.
    Position(Seen),
    /// No.
    Refused(Refusal),
}

/// A client by its number.
pub type Who = usize;

/// One request and where it stands. A copy, or a second try, is an exchange of its own.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Its number.
    pub number: u64,
    /// Who asks.
    pub who: Who,
    /// What.
    pub request: Request,
    /// Which attempt it is for.
    pub attempt: Option<usize>,
    /// The log's end, for a Produce, when it came to the broker.
    pub log_end: Offset,
    /// Whether a newer owner of its id had been told when it came to the broker.
    pub fenced: bool,
    /// For an operator's abort, what it must have found open when it came to the broker.
    pub open: Option<usize>,
    verifications: u32,
    /// Whether a verification is what is waited for.
    verifying: bool,
}

/// An answer as it leaves the broker.
#[derive(Debug, Clone)]
pub struct Answered {
    /// To what.
    pub exchange: Exchange,
    /// What.
    pub reply: Reply,
}

/// What is under way.
#[derive(Debug, Default)]
pub struct Edge {
    sent: u64,
    /// Virtual time, as of the last request that came.
    clock_ms: i64,
    /// By the time it arrives.
    to_broker: BTreeMap<(i64, u64), Exchange>,
    to_client: BTreeMap<(i64, u64), Answered>,
    waiting: BTreeMap<ReplyTo, Exchange>,
}

/// How often a batch asks for its permission, as at the real edge.
const VERIFIED_AGAIN: u32 = 3;

impl Edge {
    /// Sends a request; gives the exchange's number. The network may lose it, or carry it twice.
    pub fn send(
        &mut self,
        (who, attempt): (Who, Option<usize>),
        request: Request,
        now_ms: i64,
        (swarm, dice): (&Swarm, &mut Dice),
    ) -> u64 {
        self.sent += 1;
        let number = self.sent;
        let exchange = Exchange {
            number,
            who,
            request,
            attempt,
            log_end: 0,
            fenced: false,
            open: None,
            verifications: 0,
            verifying: false,
        };
        if dice.once_in(swarm.twice) {
            // The second copy may be late by far more than any patience.
            let late = now_ms + dice.ms(swarm.delay_ms * 20 + 1);
            self.sent += 1;
            self.to_broker.insert((late, self.sent), Exchange { number: self.sent, ..exchange.clone() });
        }
        if !dice.once_in(swarm.lost) {
            self.to_broker.insert((now_ms + dice.ms(swarm.delay_ms), number), exchange);
        }
        number
    }

    /// A request whose time has come, taken from the network.
    pub fn arrived(&mut self, now_ms: i64) -> Option<Exchange> {
        self.clock_ms = now_ms;
        let first = *self.to_broker.first_key_value()?.0;
        if first.0 <= now_ms { self.to_broker.remove(&first) } else { None }
    }

    /// An answer whose time has come.
    pub fn heard(&mut self, now_ms: i64) -> Option<Answered> {
        let first = *self.to_client.first_key_value()?.0;
        if first.0 <= now_ms { self.to_client.remove(&first) } else { None }
    }

    /// When the next thing arrives.
    #[must_use]
    pub fn next_ms(&self) -> Option<i64> {
        let next = |first: Option<i64>, second: Option<i64>| [first, second].into_iter().flatten().min();
        next(self.to_broker.keys().next().map(|key| key.0), self.to_client.keys().next().map(|key| key.0))
    }

    /// Gives a request to the broker.
    pub fn deliver(&mut self, world: &mut World, exchange: Exchange) {
        let to = world.reply();
        let mut exchange = exchange;
        if let Some(check) = checked_apart(&exchange) {
            exchange.verifying = true;
            self.waiting.insert(to, exchange);
            world.deliver(Post::Ledger(LedgerLetter::Ask(to, check)));
            return;
        }
        let post = match &exchange.request {
            Request::Produce { id, producer, sequence, records, part, batch } => {
                exchange.log_end = world.log_end(*part);
                let append = append(to, (id.as_deref(), *producer), (*sequence, *records), *batch);
                Post::Part(*part, PartLetter::Append(Box::new(append)))
            }
            Request::Mark { producer, part, coordinator_epoch } => {
                let mark = AdminMark {
                    producer: *producer,
                    outcome: Outcome::Abort,
                    coordinator_epoch: *coordinator_epoch,
                    protocol: Protocol::Classic,
                };
                let parts = vec![(*part, to)];
                Post::Ledger(LedgerLetter::Ask(to, Command::WriteMarkers { mark, parts }))
            }
            request => Post::Ledger(LedgerLetter::Ask(to, command(request))),
        };
        exchange.verifying = false;
        self.waiting.insert(to, exchange);
        world.deliver(post);
    }

    /// Takes what the broker answered since.
    pub fn collect(&mut self, world: &mut World) -> Vec<Answered> {
        let mut answered = Vec::new();
        for (to, answer) in std::mem::take(&mut world.answers) {
            let Some(mut exchange) = self.waiting.remove(&to) else { continue };
            if let Some(reply) = self.reply(world, &mut exchange, answer) {
                answered.push(Answered { exchange, reply });
            }
        }
        // What one step lets go has no order of its own. Of two owners told by it the older was there first.
        answered.sort_by_key(|answered| match answered.reply {
            Reply::Producer(producer) => (producer.id, producer.epoch),
            _ => (i64::MIN, 0),
        });
        answered
    }

    /// Puts an answer on its way back, unless the network loses it.
    pub fn give_back(&mut self, answered: Answered, now_ms: i64, (swarm, dice): (&Swarm, &mut Dice)) {
        if !dice.once_in(swarm.lost) {
            let at = now_ms + dice.ms(swarm.delay_ms);
            self.to_client.insert((at, answered.exchange.number), answered);
        }
    }

    /// The broker is gone: nobody it had heard is answered. What was under way may arrive at the next one.
    pub fn broker_gone(&mut self, dice: &mut Dice) {
        self.waiting.clear();
        self.to_broker.retain(|_, _| dice.once_in(2));
    }

    fn reply(&mut self, world: &mut World, exchange: &mut Exchange, answer: Answer) -> Option<Reply> {
        Some(match answer {
            Answer::Group(answer) if exchange.verifying => match group_reply(*answer) {
                // As for the real check, a rebalance that has not ended is no obstacle.
                Reply::Done | Reply::Refused(Refusal::RebalanceInProgress) => {
                    // The other owner's mailbox is long.
                    let mut exchange = exchange.clone();
                    if let Request::Stage { claim, .. } = &mut exchange.request {
                        *claim = nobody();
                    }
                    let later = self.clock_ms + i64::try_from(exchange.number % 16).unwrap_or(0) * 600;
                    self.to_broker.insert((later, exchange.number), exchange);
                    return None;
                }
                refused => refused,
            },
            Answer::Done if exchange.verifying => {
                self.deliver(world, exchange.clone());
                return None;
            }
            Answer::Refused(refusal) if exchange.verifying && refusal == Refusal::ProducerFenced => {
                Reply::Refused(Refusal::InvalidProducerEpoch)
            }
            Answer::Done => Reply::Done,
            Answer::Producer(producer) => Reply::Producer(producer),
            Answer::Produced(produced) => Reply::Produced(produced.base_offset),
            Answer::Unverified => {
                let Request::Produce { id: Some(id), producer: Some(producer), part, .. } = &exchange.request else {
                    return Some(Reply::Refused(Refusal::InvalidTxnState));
                };
                exchange.verifications += 1;
                if exchange.verifications > VERIFIED_AGAIN {
                    return Some(Reply::Refused(Refusal::ConcurrentTransactions));
                }
                let id = TransactionalId::from(id.as_str());
                let to = world.ask(Command::Verify { id, producer: *producer, part: *part });
                self.waiting.insert(to, Exchange { verifying: true, ..exchange.clone() });
                return None;
            }
            Answer::Group(answer) => group_reply(*answer),
            Answer::Offsets(offsets) => Reply::Position(offsets.into_iter().next().expect("one").1),
            Answer::Created(created) => match created.into_iter().next().expect("one").1 {
                Ok(_) => Reply::Done,
                Err((refusal, _)) => Reply::Refused(refusal),
            },
            Answer::Deleted(deleted) => match deleted.into_iter().next().expect("one") {
                Ok(_) => Reply::Done,
                Err(refusal) => Reply::Refused(refusal),
            },
            Answer::Refused(refusal) | Answer::RefusedAt(refusal, _) => Reply::Refused(refusal),
            other => panic!("{exchange:?} is answered {other:?}"),
        })
    }
}

fn nobody() -> Claim {
    Claim { generation: -1, member: MemberId::from(""), instance: None }
}

/// The bug of a broker whose groups and offsets have two owners: the one is asked about the generation, and the other
/// then takes the offset without asking again.
fn checked_apart(exchange: &Exchange) -> Option<Command> {
    match &exchange.request {
        Request::Stage { group, claim, .. } if is_in(Bug::GenerationCheckedApart) && claim.generation >= 0 => {
            Some(Command::Heartbeat(GroupId::from(group.as_str()), claim.clone()))
        }
        _ => None,
    }
}

fn group_reply(answer: GroupAnswer) -> Reply {
    match answer {
        GroupAnswer::Joined(answer) => match answer.refusal {
            Some(refusal) => Reply::Refused(refusal),
            None => {
                let claim = Claim { generation: answer.generation, member: answer.member, instance: None };
                Reply::Joined(claim, answer.members.into_iter().map(|joined| joined.member).collect())
            }
        },
        GroupAnswer::Synced(answer) => match answer.refusal {
            Some(refusal) => Reply::Refused(refusal),
            None => Reply::Synced(answer.assignment),
        },
        GroupAnswer::Heartbeat(verdict) => verdict.map_or_else(Reply::Refused, |()| Reply::Done),
        GroupAnswer::Left(_) => Reply::Done,
    }
}

fn append(
    to: ReplyTo,
    (id, producer): (Option<&str>, Option<Producer>),
    (sequence, records): (i32, i32),
    number: u64,
) -> Append {
    let entry = |n: i32| Entry { value: Some(format!("#{number}#{n}#").into_bytes()), ..Entry::default() };
    let entries: Vec<Entry> = (0..records).map(entry).collect();
    let plain = header(records);
    let header = Header {
        attributes: if id.is_some() { 0x10 } else { 0 },
        producer_id: producer.map_or(-1, |producer| producer.id),
        producer_epoch: producer.map_or(-1, |producer| producer.epoch),
        base_sequence: producer.map_or(-1, |_| sequence),
        ..plain
    };
    let batch = seal(&header, &encode(&entries));
    Append {
        to: Some(to),
        header: Header::read(&batch).expect("a batch"),
        batch: Bytes::from(batch),
        id: id.map(TransactionalId::from),
        durable: true,
        times: Times::CreateTime,
    }
}

/// The number of the batch whose records these are.
#[must_use]
pub fn number_in(payload: &[u8]) -> Option<u64> {
    let start = payload.iter().position(|byte| *byte == b'#')? + 1;
    let end = payload[start..].iter().position(|byte| *byte == b'#')? + start;
    std::str::from_utf8(&payload[start..end]).ok()?.parse().ok()
}

fn at(offset: Offset) -> Position {
    Position { offset, leader_epoch: -1, metadata: String::new() }
}

fn command(request: &Request) -> Command {
    let txn = |id: &String| TransactionalId::from(id.as_str());
    let group = |id: &String| GroupId::from(id.as_str());
    match request {
        Request::Init { id, timeout_ms } => {
            Command::InitProducer { id: id.as_ref().map(txn), timeout_ms: *timeout_ms, expected: None }
        }
        Request::Add { id, producer, parts } => {
            let addition = Addition::Parts(parts.iter().copied().collect());
            Command::Add { id: txn(id), producer: *producer, addition }
        }
        Request::AddGroup { id, producer, group: of } => {
            Command::Add { id: txn(id), producer: *producer, addition: Addition::Group(group(of)) }
        }
        Request::Stage { id, producer, group: of, claim, offset } => Command::StageOffsets(StageOffsets {
            id: txn(id),
            producer: *producer,
            group: group(of),
            claim: claim.clone(),
            offsets: vec![(offset.0, at(offset.1))],
        }),
        Request::End { id, producer, outcome } => {
            Command::EndTxn { id: txn(id), producer: *producer, outcome: *outcome }
        }
        Request::Join { group: of, member, fresh } => Command::Join(group(of), Box::new(join(member, fresh))),
        Request::Sync { group: of, claim, assignments } => {
            let assignments = assignments.clone();
            let sync = Sync { claim: claim.clone(), protocol_type: None, protocol: None, assignments };
            Command::Sync(group(of), sync)
        }
        Request::Heartbeat { group: of, claim } => Command::Heartbeat(group(of), claim.clone()),
        Request::Position { group: of, part } => {
            Command::FetchOffsets { group: group(of), parts: Some(vec![*part]), require_stable: true }
        }
        Request::Commit { group: of, offset } => Command::CommitOffsets(CommitOffsets {
            group: group(of),
            claim: nobody(),
            offsets: vec![(offset.0, at(offset.1))],
            retention_ms: None,
        }),
        Request::Create { topic, partitions, id } => {
            let spec = CreateTopic { partitions: Some(*partitions), ..CreateTopic::by_defaults(topic) };
            Command::CreateTopics(vec![(spec, *id)])
        }
        Request::Delete { topic } => Command::DeleteTopics(vec![TopicKey::Name(TopicName::from(topic.as_str()))]),
        Request::AbortTxn { id } => Command::AbortTxn { id: txn(id) },
        Request::Produce { .. } | Request::Mark { .. } => unreachable!("goes to a partition"),
    }
}

fn join(member: &MemberId, fresh: &MemberId) -> Join {
    Join {
        member: member.clone(),
        instance: None,
        client_id: "sim".to_owned(),
        client_host: "/10.0.0.1".to_owned(),
        session_timeout_ms: 6_000,
        rebalance_timeout_ms: 3_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![("range".to_owned(), Bytes::new())],
        version: JoinVersion::V0,
        fresh_member: fresh.clone(),
    }
}
