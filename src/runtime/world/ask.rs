//! What clients say to a world, and what they find in it.

#![expect(clippy::wildcard_enum_match_arm, reason = "any other answer fails the test")]

use bytes::Bytes;

use super::build::keeping;
use super::{Db, FakeDb, World};
use crate::engine::batch::check::Times;
use crate::engine::batch::samples::{Entry, encode, header, seal};
use crate::engine::batch::{Header, marker};
use crate::engine::catalog::CreateTopic;
use crate::engine::group::{GroupAnswer, Join, JoinVersion, Sync};
use crate::engine::ledger::offsets::Seen;
use crate::engine::ledger::rows::PartRow;
use crate::engine::ledger::show::Described;
use crate::engine::log::Retention;
use crate::engine::txn::{Addition, Position};
use crate::engine::{
    Claim, GroupId, MemberId, Offset, Outcome, PartId, Producer, Refusal, ReplyTo, TopicId, TopicName, TransactionalId,
};
use crate::runtime::post::{
    Answer, Append, Command, CommitOffsets, LedgerLetter, PartLetter, Post, Produced, Show, StageOffsets, TopicKey,
};
use crate::store::log::{ReadHow, ReadOutcome, ReadWish};
use crate::store::meta::LedgerStore;

/// One batch, as a reader finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) header: Header,
    /// For a marker, how the transaction ended.
    pub(crate) marker: Option<Outcome>,
    /// The records' bytes.
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn id(name: &str) -> TransactionalId {
    TransactionalId::from(name)
}

pub(crate) fn group(name: &str) -> GroupId {
    GroupId::from(name)
}

pub(crate) fn nobody() -> Claim {
    Claim { generation: -1, member: MemberId::from(""), instance: None }
}

pub(crate) fn at(offset: Offset) -> Position {
    Position { offset, leader_epoch: -1, metadata: String::new() }
}

impl World {
    pub(crate) fn ask(&mut self, command: Command) -> ReplyTo {
        let to = self.reply();
        self.deliver(Post::Ledger(LedgerLetter::Ask(to, command)));
        to
    }

    pub(crate) fn reply(&mut self) -> ReplyTo {
        self.asked += 1;
        ReplyTo(self.asked)
    }

    pub(crate) fn fake(&self) -> FakeDb {
        match &self.db {
            Db::Fake(db) => db.clone(),
            #[cfg(test)]
            Db::Real { .. } => panic!("this world writes into SQLite"),
            Db::Simulated { .. } => panic!("this world writes into SQLite"),
        }
    }

    // ---- questions, not yet answered ----

    pub(crate) fn ask_init(&mut self, name: &str, timeout_ms: i32) -> ReplyTo {
        self.ask(Command::InitProducer { id: Some(id(name)), timeout_ms, expected: None })
    }

    pub(crate) fn ask_add(&mut self, name: &str, producer: Producer, parts: &[PartId]) -> ReplyTo {
        let addition = Addition::Parts(parts.iter().copied().collect());
        self.ask(Command::Add { id: id(name), producer, addition })
    }

    pub(crate) fn ask_add_group(&mut self, name: &str, producer: Producer, of: &str) -> ReplyTo {
        self.ask(Command::Add { id: id(name), producer, addition: Addition::Group(group(of)) })
    }

    pub(crate) fn ask_stage(&mut self, name: &str, producer: Producer, of: &str, offset: (PartId, Offset)) -> ReplyTo {
        let offsets = vec![(offset.0, at(offset.1))];
        let (id, group, claim) = (id(name), group(of), nobody());
        self.ask(Command::StageOffsets(StageOffsets { id, producer, group, claim, offsets }))
    }

    pub(crate) fn ask_commit(&mut self, of: &str, part: PartId, offset: Offset) -> ReplyTo {
        let (group, claim, offsets) = (group(of), nobody(), vec![(part, at(offset))]);
        self.ask(Command::CommitOffsets(CommitOffsets { group, claim, offsets, retention_ms: None }))
    }

    pub(crate) fn ask_end(&mut self, name: &str, producer: Producer, outcome: Outcome) -> ReplyTo {
        self.ask(Command::EndTxn { id: id(name), producer, outcome })
    }

    pub(crate) fn ask_verify(&mut self, name: &str, producer: Producer, part: PartId) -> ReplyTo {
        self.ask(Command::Verify { id: id(name), producer, part })
    }

    pub(crate) fn ask_delete(&mut self, topic: &str) -> ReplyTo {
        self.ask(Command::DeleteTopics(vec![TopicKey::Name(TopicName::from(topic))]))
    }

    /// A transactional batch of one record on its way to its partition.
    pub(crate) fn ask_produce(&mut self, name: &str, (producer, sequence): (Producer, i32), part: PartId) -> ReplyTo {
        let value = format!("{name} {} {} {sequence}", producer.id, producer.epoch);
        let header = Header {
            attributes: 0x10,
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            base_sequence: sequence,
            ..header(1)
        };
        self.ask_append(header, Some(name), (&value, part))
    }

    /// A plain batch of one record.
    pub(crate) fn ask_plain(&mut self, value: &str, part: PartId) -> ReplyTo {
        self.ask_append(header(1), None, (value, part))
    }

    pub(crate) fn ask_append(&mut self, header: Header, name: Option<&str>, (value, part): (&str, PartId)) -> ReplyTo {
        let to = self.reply();
        let batch = seal(&header, &encode(&[Entry { value: Some(value.into()), ..Entry::default() }]));
        let append = Append {
            to: Some(to),
            header: Header::read(&batch).expect("a batch"),
            batch: Bytes::from(batch),
            id: name.map(id),
            durable: true,
            times: Times::CreateTime,
        };
        self.deliver(Post::Part(part, PartLetter::Append(Box::new(append))));
        to
    }

    // ---- answers ----

    pub(crate) fn is_answered(&self, to: ReplyTo) -> bool {
        self.answers.contains_key(&to)
    }

    /// The answer, taken away.
    pub(crate) fn answer(&mut self, to: ReplyTo) -> Answer {
        let answer = self.answers.remove(&to);
        answer.unwrap_or_else(|| panic!("{to:?} is not answered: {:#?}", self.trace))
    }

    /// The answer of a request that has nothing to tell but yes or no.
    pub(crate) fn verdict(&mut self, to: ReplyTo) -> Result<(), Refusal> {
        match self.answer(to) {
            Answer::Done => Ok(()),
            Answer::Refused(refusal) => Err(refusal),
            other @ (Answer::RefusedAt(..)
            | Answer::Producer(_)
            | Answer::Txns(_)
            | Answer::Group(_)
            | Answer::Offsets(_)
            | Answer::Groups(_)
            | Answer::GroupList(_)
            | Answer::Each(_)
            | Answer::Created(_)
            | Answer::Deleted(_)
            | Answer::Grown(_)
            | Answer::Changed(_)
            | Answer::Gauges(_)
            | Answer::Found(..)
            | Answer::SeenOffsets(_)
            | Answer::Produced(_)
            | Answer::Unverified
            | Answer::Producers(_)
            | Answer::LogStart(_)) => panic!("{to:?}: {other:?}"),
        }
    }

    /// The answer of a Produce; a batch whose permission the partition does not know asks the ledger why, and comes
    /// again, as at the edge.
    pub(crate) fn produced(&mut self, to: ReplyTo) -> Result<Produced, Refusal> {
        match self.answer(to) {
            Answer::Produced(produced) => Ok(produced),
            Answer::Refused(refusal) | Answer::RefusedAt(refusal, _) => Err(refusal),
            other => panic!("{to:?}: {other:?}"),
        }
    }

    // ---- questions with their answers, the world coming to rest in between ----

    pub(crate) fn topic(&mut self, name: &str, partitions: i32) -> Vec<PartId> {
        let mut topic_id = [7; 16];
        topic_id.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        self.topic_as(TopicId(topic_id), name, partitions)
    }

    pub(crate) fn topic_as(&mut self, topic_id: TopicId, name: &str, partitions: i32) -> Vec<PartId> {
        let spec = CreateTopic { partitions: Some(partitions), ..CreateTopic::by_defaults(name) };
        let to = self.ask(Command::CreateTopics(vec![(spec, topic_id)]));
        self.run_to_rest();
        let Answer::Created(created) = self.answer(to) else { panic!("not created") };
        assert!(created.iter().all(|(_, result)| result.is_ok()), "{created:?}");
        let topic = self.catalog.topic(name).expect("made").clone();
        topic.parts.clone()
    }

    pub(crate) fn init(&mut self, name: &str) -> Producer {
        self.init_with(name, 60_000)
    }

    pub(crate) fn init_with(&mut self, name: &str, timeout_ms: i32) -> Producer {
        let to = self.ask_init(name, timeout_ms);
        self.run_to_rest();
        self.owner_answered(to).expect("an owner")
    }

    pub(crate) fn owner_answered(&mut self, to: ReplyTo) -> Result<Producer, Refusal> {
        match self.answer(to) {
            Answer::Producer(producer) => Ok(producer),
            Answer::Refused(refusal) => Err(refusal),
            other => panic!("{to:?}: {other:?}"),
        }
    }

    pub(crate) fn add(&mut self, name: &str, producer: Producer, parts: &[PartId]) {
        let to = self.ask_add(name, producer, parts);
        self.run_to_rest();
        self.verdict(to).expect("added");
    }

    pub(crate) fn produce(&mut self, name: &str, batch: (Producer, i32), part: PartId) -> Offset {
        let to = self.ask_produce(name, batch, part);
        self.run_to_rest();
        self.produced(to).expect("produced").base_offset
    }

    pub(crate) fn stage(&mut self, name: &str, producer: Producer, of: &str, offset: (PartId, Offset)) {
        let added = self.ask_add_group(name, producer, of);
        self.run_to_rest();
        self.verdict(added).expect("added");
        let staged = self.ask_stage(name, producer, of, offset);
        self.run_to_rest();
        self.verdict(staged).expect("staged");
    }

    pub(crate) fn end(&mut self, name: &str, producer: Producer, outcome: Outcome) -> Result<(), Refusal> {
        let to = self.ask_end(name, producer, outcome);
        self.run_to_rest();
        self.verdict(to)
    }

    pub(crate) fn offset(&mut self, of: &str, part: PartId, stable: bool) -> Seen {
        let command = Command::FetchOffsets { group: group(of), parts: Some(vec![part]), require_stable: stable };
        let to = self.ask(command);
        self.run_to_rest();
        let Answer::Offsets(offsets) = self.answer(to) else { panic!("not offsets") };
        offsets.into_iter().next().expect("one").1
    }

    pub(crate) fn described(&mut self, name: &str) -> Described {
        let to = self.ask(Command::Show(Show::Txns(vec![id(name)])));
        self.run_to_rest();
        let Answer::Txns(txns) = self.answer(to) else { panic!("not transactions") };
        txns.into_iter().next().expect("one").expect("known")
    }

    pub(crate) fn grouped(&mut self, to: ReplyTo) -> GroupAnswer {
        match self.answer(to) {
            Answer::Group(answer) => *answer,
            other => panic!("{to:?}: {other:?}"),
        }
    }

    // ---- readers ----

    /// Everything a reader may have, up to what it may have.
    pub(crate) fn read(&self, part: PartId, committed: bool) -> Vec<Found> {
        let entry = self.parts.get(&part).expect("a partition");
        let view = entry.shared.published();
        if view.watermark < 0 {
            return Vec::new();
        }
        let limit = if committed { view.last_stable } else { view.watermark };
        self.read_span(part, view.log_start, limit)
    }

    /// Every batch from the one that holds `from` on, up to `limit`.
    pub(crate) fn read_span(&self, part: PartId, mut from: Offset, limit: Offset) -> Vec<Found> {
        let reader = self.parts.get(&part).and_then(|entry| entry.shared.reader()).expect("a reader");
        let mut found = Vec::new();
        while from < limit {
            let wish = ReadWish { from, limit, max_bytes: 1 << 20, at_least_one: true, how: ReadHow::Block };
            match reader.read(&wish).expect("readable") {
                ReadOutcome::Bytes { bytes, next_offset } => {
                    assert!(
                        next_offset > from,
                        "bytes missing at {from} below {limit} of {part:?}: {:#?}",
                        self.tail()
                    );
                    split(&bytes, &mut found);
                    from = next_offset;
                }
                ReadOutcome::WouldBlock | ReadOutcome::Gone => panic!("nothing at {from}"),
            }
        }
        found
    }

    /// What a read_committed consumer delivers: no marker, nothing of an aborted transaction.
    pub(crate) fn read_committed(&self, part: PartId) -> Vec<Found> {
        let Some(entry) = self.parts.get(&part) else { return Vec::new() };
        let view = entry.shared.published();
        if view.watermark < 0 {
            return Vec::new();
        }
        self.committed_span(part, view.log_start, view.last_stable)
    }

    /// As [`read_committed`](Self::read_committed), for one fetch of `from..limit`.
    pub(crate) fn committed_span(&self, part: PartId, from: Offset, limit: Offset) -> Vec<Found> {
        let reader = self.parts.get(&part).and_then(|entry| entry.shared.reader()).expect("a reader");
        let aborted = reader.aborted(from, limit, ReadHow::Block).unwrap().expect("in memory");
        let mut ends = std::collections::BTreeMap::new();
        let mut delivered = Vec::new();
        let mut waiting: std::collections::VecDeque<(i64, Offset)> = aborted.into();
        for found in self.read_span(part, from, limit) {
            while let Some((producer, first)) = waiting.front().copied()
                && first <= found.header.base_offset
            {
                ends.insert(producer, first);
                waiting.pop_front();
            }
            if found.header.is_control() {
                if found.marker == Some(Outcome::Abort) {
                    ends.remove(&found.header.producer_id);
                }
            } else if !(found.header.is_transactional() && ends.contains_key(&found.header.producer_id)) {
                delivered.push(found);
            }
        }
        delivered
    }

    /// The markers a reader meets: producer, outcome, offset.
    pub(crate) fn markers(&self, part: PartId) -> Vec<(Producer, Outcome, Offset)> {
        let found = self.read(part, false).into_iter();
        found
            .filter_map(|found| {
                let producer = found.header.producer()?;
                Some((producer, found.marker?, found.header.base_offset))
            })
            .collect()
    }
}

pub(crate) fn split(mut bytes: &[u8], found: &mut Vec<Found>) {
    while let Some(header) = Header::read(bytes) {
        let (batch, rest) = bytes.split_at(header.size().expect("a whole batch"));
        let marker = marker::read(batch).and_then(|marker| marker.outcome);
        found.push(Found { header, marker, payload: batch[61..].to_vec() });
        bytes = rest;
    }
}

impl World {
    /// Goes on until a request is answered.
    pub(crate) fn until_answered(&mut self, to: ReplyTo) -> Result<(), Refusal> {
        while !self.is_answered(to) {
            assert!(self.step_anything(), "{to:?} is never answered: {:#?}", self.trace);
        }
        self.verdict(to)
    }
}

impl World {
    /// Makes `member` the only member of a group; gives its claim.
    pub(crate) fn member(&mut self, of: &str, member: &str) -> Claim {
        let joined = self.ask_join(of, member);
        self.run_for(10);
        let GroupAnswer::Joined(answer) = self.grouped(joined) else { panic!("not joined") };
        let claim = Claim { generation: answer.generation, member: answer.member, instance: None };
        let assignments = vec![(claim.member.clone(), Bytes::from_static(b"all"))];
        let sync = Sync { claim: claim.clone(), protocol_type: None, protocol: None, assignments };
        let synced = self.ask(Command::Sync(group(of), sync));
        self.run_to_rest();
        assert!(matches!(self.grouped(synced), GroupAnswer::Synced(answer) if answer.refusal.is_none()));
        claim
    }

    pub(crate) fn ask_join(&mut self, of: &str, member: &str) -> ReplyTo {
        let join = Join {
            member: MemberId::from(""),
            instance: None,
            client_id: "client".to_owned(),
            client_host: "/10.0.0.1".to_owned(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 60_000,
            protocol_type: "consumer".to_owned(),
            protocols: vec![("range".to_owned(), Bytes::new())],
            version: JoinVersion::V0,
            fresh_member: MemberId::from(member),
        };
        self.ask(Command::Join(group(of), Box::new(join)))
    }
}

impl World {
    /// Makes it known, on disk, that partitions have been part of transactions.
    pub(crate) fn warm(&mut self, parts: &[PartId]) {
        let mut db = self.fake();
        let ledger = &mut self.owner.as_mut().expect("an owner").ledger;
        for part in parts {
            let row = *ledger.part(*part).expect("a row");
            ledger.put_part(*part, PartRow { transactional: true, ..row });
        }
        db.commit(ledger.rows()).expect("room");
        ledger.commit();
        db.flush();
    }
}

impl World {
    /// The topic is set to this retention, and a sweep finds that something has expired.
    pub(crate) fn retain(&mut self, part: PartId, retention: Retention) {
        self.deliver(Post::Part(part, PartLetter::Keep(keeping(&self.how, Some(retention)))));
        self.deliver(Post::Part(part, PartLetter::Retain));
    }

    /// Opens a partition that was not used since the start.
    pub(crate) fn load(&mut self, part: PartId) {
        self.deliver(Post::Part(part, PartLetter::Load));
        self.run_to_rest();
    }
}
