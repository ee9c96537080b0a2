//! The broker as its edges see it: ask, be answered. Holds addresses, decides nothing.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::engine::batch::Header;
use crate::engine::batch::check::Times;
use crate::engine::catalog::{Catalog, CreateTopic, Defaults, LogSettings, Topic};
use crate::engine::group::{GroupAnswer, Join, JoinAnswer, LeaveAnswer, LeavingMember, Sync, SyncAnswer};
use crate::engine::ledger::offsets::Seen;
use crate::engine::ledger::show::Described;
use crate::engine::partition::ProducerState;
use crate::engine::txn::Addition;
use crate::engine::{
    Claim, GroupId, MemberId, Offset, Outcome, PartId, Producer, Refusal, ReplyTo, TopicId, TopicName, TransactionalId,
};
use crate::metrics::{Metrics, Verified};
use crate::runtime::callers::Callers;
use crate::runtime::events::sequence_error;
use crate::runtime::mailroom::Waiting;
use crate::runtime::post::{
    Answer, Append, Command, CommitOffsets, Created, LedgerGauges, LedgerLetter, PartLetter, Post, Produced, Show,
    StageOffsets, TopicKey,
};
pub use crate::runtime::readable::Readable;
use crate::runtime::reading::Reads;
use crate::runtime::router::Router;
use crate::runtime::sessions::FetchSessions;
use crate::runtime::settings::InEffect;
use crate::store::space::Room;

/// Every owner's address, and what no owner is needed for.
pub struct Broker {
    router: Arc<Router>,
    clock: Clock,
    identity: Identity,
    defaults: Defaults,
    pub(super) reads: Reads,
    pub(super) fetches: FetchSessions,
    pub(super) callers: Callers,
    settings: InEffect,
    stopping: watch::Sender<bool>,
}

/// Who this broker is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The cluster's id.
    pub cluster_id: String,
    /// Node id.
    pub node_id: i32,
    /// This start's number: the leader epoch.
    pub incarnation: i32,
    /// Whether Metadata makes topics that are asked for.
    pub auto_create: bool,
}

/// One batch to be stored.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its header, checked.
    pub header: Header,
    /// Its bytes.
    pub bytes: Bytes,
    /// The transactional id that the request named.
    pub id: Option<TransactionalId>,
    /// Whether the answer waits for the disk (acks=all).
    pub durable: bool,
    /// Whose timestamps the topic keeps.
    pub times: Times,
}

/// Why a batch was not stored, and whether the partition's first offset is shown with it (T-318).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotProduced {
    /// Why.
    pub refusal: Refusal,
    /// The first offset, where it is shown.
    pub log_start: Option<Offset>,
}

impl Broker {
    /// A broker over these addresses.
    #[must_use]
    pub fn new(router: Arc<Router>, clock: Clock, identity: Identity, defaults: Defaults) -> Self {
        Self {
            router,
            clock,
            identity,
            defaults,
            reads: Reads::default(),
            fetches: FetchSessions::default(),
            callers: Callers::default(),
            settings: InEffect::default(),
            stopping: watch::Sender::new(false),
        }
    }

    /// Lets go whoever waits for something that may never come: the broker is about to end.
    pub fn let_go(&self) {
        self.stopping.send_replace(true);
    }

    /// Comes when the broker is about to end.
    pub async fn stopping(&self) {
        // An error means that the broker is gone.
        let mut stopping = self.stopping.subscribe();
        drop(stopping.wait_for(|stopping| *stopping).await);
    }

    /// Who this is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What a topic gets that does not say, and the broker's settings as clients see them.
    #[must_use]
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// The settings that a topic's batches are held to.
    #[must_use]
    pub fn settings_of(&self, topic: &Arc<Topic>) -> Arc<LogSettings> {
        self.settings.of(topic, &self.defaults.levels, || self.catalog())
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Figures.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        self.router.metrics()
    }

    /// Topics, as they are on disk.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.router.catalog()
    }

    /// The posts' carrier, for whoever starts and stops things.
    #[must_use]
    pub fn router(&self) -> &Arc<Router> {
        &self.router
    }

    /// Asks the ledger.
    ///
    /// # Errors
    /// As the command; `NotCoordinator` when the process stops.
    pub async fn ask(&self, command: Command) -> Result<Answer, Refusal> {
        let waiting = self.router.mailroom.wait();
        self.router.to_ledger(LedgerLetter::Ask(waiting.to, command));
        answered(waiting, Refusal::NotCoordinator).await
    }

    /// InitProducerId.
    ///
    /// # Errors
    /// T-104 to T-148.
    pub async fn init_producer(
        &self,
        id: Option<TransactionalId>,
        timeout_ms: i32,
        expected: Option<Producer>,
    ) -> Result<Producer, Refusal> {
        let Answer::Producer(producer) = self.ask(Command::InitProducer { id, timeout_ms, expected }).await? else {
            return Err(misplaced());
        };
        Ok(producer)
    }

    /// AddPartitionsToTxn, AddOffsetsToTxn.
    ///
    /// # Errors
    /// T-212.
    pub async fn add_to_txn(&self, id: TransactionalId, producer: Producer, addition: Addition) -> Result<(), Refusal> {
        self.ask(Command::Add { id, producer, addition }).await.map(drop)
    }

    /// TxnOffsetCommit.
    ///
    /// # Errors
    /// T-242 to T-244.
    pub async fn stage_offsets(&self, stage: StageOffsets) -> Result<(), Refusal> {
        self.ask(Command::StageOffsets(stage)).await.map(drop)
    }

    /// EndTxn.
    ///
    /// # Errors
    /// T-253.
    pub async fn end_txn(&self, id: TransactionalId, producer: Producer, outcome: Outcome) -> Result<(), Refusal> {
        self.ask(Command::EndTxn { id, producer, outcome }).await.map(drop)
    }

    /// DescribeTransactions.
    ///
    /// # Errors
    /// Only when the process stops; each id has its own result.
    pub async fn describe_txns(
        &self,
        ids: Vec<TransactionalId>,
    ) -> Result<Vec<Result<Described, (TransactionalId, Refusal)>>, Refusal> {
        let Answer::Txns(txns) = self.ask(Command::Show(Show::Txns(ids))).await? else { return Err(misplaced()) };
        Ok(txns)
    }

    /// ListTransactions, unfiltered.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn list_txns(&self) -> Result<Vec<Described>, Refusal> {
        let Answer::Txns(txns) = self.ask(Command::Show(Show::AllTxns)).await? else { return Err(misplaced()) };
        Ok(txns.into_iter().flatten().collect())
    }

    /// JoinGroup. A refusal is in the answer.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn join(&self, group: GroupId, join: Join) -> Result<JoinAnswer, Refusal> {
        match self.ask_group(Command::Join(group, Box::new(join))).await? {
            GroupAnswer::Joined(answer) => Ok(answer),
            GroupAnswer::Synced(_) | GroupAnswer::Heartbeat(_) | GroupAnswer::Left(_) => Err(Refusal::NotCoordinator),
        }
    }

    /// SyncGroup. A refusal is in the answer.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn sync(&self, group: GroupId, sync: Sync) -> Result<SyncAnswer, Refusal> {
        match self.ask_group(Command::Sync(group, sync)).await? {
            GroupAnswer::Synced(answer) => Ok(answer),
            GroupAnswer::Joined(_) | GroupAnswer::Heartbeat(_) | GroupAnswer::Left(_) => Err(Refusal::NotCoordinator),
        }
    }

    /// Heartbeat.
    ///
    /// # Errors
    /// G-451.
    pub async fn heartbeat(&self, group: GroupId, claim: Claim) -> Result<(), Refusal> {
        match self.ask_group(Command::Heartbeat(group, claim)).await? {
            GroupAnswer::Heartbeat(verdict) => verdict,
            GroupAnswer::Joined(_) | GroupAnswer::Synced(_) | GroupAnswer::Left(_) => Err(Refusal::NotCoordinator),
        }
    }

    /// LeaveGroup: one result for each entry.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn leave(&self, group: GroupId, leaving: Vec<LeavingMember>) -> Result<Vec<LeaveAnswer>, Refusal> {
        match self.ask_group(Command::Leave(group, leaving)).await? {
            GroupAnswer::Left(left) => Ok(left),
            GroupAnswer::Joined(_) | GroupAnswer::Synced(_) | GroupAnswer::Heartbeat(_) => Err(Refusal::NotCoordinator),
        }
    }

    async fn ask_group(&self, command: Command) -> Result<GroupAnswer, Refusal> {
        let Answer::Group(answer) = self.ask(command).await? else { return Err(misplaced()) };
        Ok(*answer)
    }

    /// OffsetCommit.
    ///
    /// # Errors
    /// O-606, O-607.
    pub async fn commit_offsets(&self, commit: CommitOffsets) -> Result<(), Refusal> {
        self.ask(Command::CommitOffsets(commit)).await.map(drop)
    }

    /// OffsetFetch of one group; all its partitions for `None`.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn fetch_offsets(
        &self,
        group: GroupId,
        parts: Option<Vec<PartId>>,
        require_stable: bool,
    ) -> Result<Vec<(PartId, Seen)>, Refusal> {
        let Answer::Offsets(offsets) = self.ask(Command::FetchOffsets { group, parts, require_stable }).await? else {
            return Err(misplaced());
        };
        Ok(offsets)
    }

    /// CreateTopics; ids are drawn here.
    ///
    /// # Errors
    /// Only when the process stops; each name has its own result.
    pub async fn create_topics(&self, specs: Vec<CreateTopic>) -> Result<Vec<Created>, Refusal> {
        if self.is_short_of_room() && specs.iter().any(|spec| !spec.validate_only) {
            let why = "the disk is nearly full: delete topics, or make room".to_owned();
            return Ok(specs
                .into_iter()
                .map(|spec| (spec.name, Err((Refusal::KafkaStorageError, why.clone()))))
                .collect());
        }
        let drawn = specs.into_iter().map(|spec| (spec, fresh_topic_id())).collect();
        let Answer::Created(created) = self.ask(Command::CreateTopics(drawn)).await? else { return Err(misplaced()) };
        Ok(created)
    }

    /// DeleteTopics.
    ///
    /// # Errors
    /// Only when the process stops; each key has its own result.
    pub async fn delete_topics(
        &self,
        keys: Vec<TopicKey>,
    ) -> Result<Vec<Result<(TopicId, TopicName), Refusal>>, Refusal> {
        let Answer::Deleted(deleted) = self.ask(Command::DeleteTopics(keys)).await? else { return Err(misplaced()) };
        Ok(deleted)
    }

    /// The ledger in figures.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn gauges(&self) -> Result<LedgerGauges, Refusal> {
        let Answer::Gauges(gauges) = self.ask(Command::Show(Show::Gauges)).await? else { return Err(misplaced()) };
        Ok(*gauges)
    }

    /// Stores a batch; answered when it is on disk if it is to be durable or transactional. Up to the first await the
    /// letter is in the partition's mailbox, so calls made in order are stored in order.
    ///
    /// # Errors
    /// T-352 to T-385.
    pub async fn produce(&self, part: PartId, batch: Batch) -> Result<Produced, NotProduced> {
        if self.is_short_of_room() {
            return Err(NotProduced { refusal: Refusal::KafkaStorageError, log_start: None });
        }
        for _ in 0..VERIFIED_AGAIN {
            match self.append(part, &batch).await? {
                Some(produced) => return Ok(produced),
                None => self.verify(part, &batch).await?,
            }
        }
        Err(NotProduced { refusal: Refusal::ConcurrentTransactions, log_start: None })
    }

    /// Whether the disk has less room than records may use: offsets, decisions and markers must go on fitting.
    pub(super) fn is_short_of_room(&self) -> bool {
        self.router.partitions.space().room() == Room::Low
    }

    async fn append(&self, part: PartId, batch: &Batch) -> Result<Option<Produced>, NotProduced> {
        let waiting = self.router.mailroom.wait();
        self.router.deliver(Post::Part(part, letter(Some(waiting.to), batch)));
        let refused = |refusal, log_start| NotProduced { refusal, log_start };
        match waiting.answer().await {
            None => Err(refused(Refusal::NotLeaderOrFollower, None)),
            Some(Answer::Produced(produced)) => Ok(Some(produced)),
            Some(Answer::Unverified) => Ok(None),
            Some(Answer::RefusedAt(refusal, log_start)) => Err(refused(refusal, Some(log_start))),
            Some(Answer::Refused(refusal)) => Err(refused(refusal, None)),
            Some(_) => Err(refused(misplaced(), None)),
        }
    }

    /// The partition knows of no permission: the coordinator says why, or gives it anew (T-373).
    async fn verify(&self, part: PartId, batch: &Batch) -> Result<(), NotProduced> {
        let refused = |refusal| NotProduced { refusal, log_start: None };
        let (Some(id), Some(producer)) = (batch.id.clone(), batch.header.producer()) else {
            return Err(refused(Refusal::InvalidTxnState));
        };
        let began = self.clock.exact();
        let verdict = self.ask(Command::Verify { id, producer, part }).await;
        let result = if verdict.is_ok() { Verified::Ok } else { Verified::Refused };
        self.metrics().verified(result, self.clock.exact().saturating_sub(began));
        verdict.map(drop).map_err(|refusal| {
            let fenced = refusal == Refusal::ProducerFenced;
            let refusal = if fenced { Refusal::InvalidProducerEpoch } else { refusal };
            sequence_error(refusal).into_iter().for_each(|error| self.metrics().sequence_error(error));
            refused(refusal)
        })
    }

    /// DescribeProducers.
    ///
    /// # Errors
    /// `UnknownTopicOrPartition`, `KafkaStorageError`.
    pub async fn describe_producers(&self, part: PartId) -> Result<Vec<ProducerState>, Refusal> {
        let waiting = self.router.mailroom.wait();
        self.router.deliver(Post::Part(part, PartLetter::Describe(waiting.to)));
        let Answer::Producers(producers) = answered(waiting, Refusal::NotLeaderOrFollower).await? else {
            return Err(misplaced());
        };
        Ok(producers)
    }

    /// DeleteRecords: everything of the partition below `offset` goes, -1 for everything that readers may have. Gives the
    /// partition's first offset, which is stored when this returns; files go afterwards.
    ///
    /// # Errors
    /// `OffsetOutOfRange` beyond the watermark (T-540), `UnknownTopicOrPartition`, `KafkaStorageError`.
    pub async fn delete_records(&self, part: PartId, offset: Offset) -> Result<Offset, Refusal> {
        let waiting = self.router.mailroom.wait();
        self.router.deliver(Post::Part(part, PartLetter::DeleteRecords { offset, to: waiting.to }));
        let Answer::LogStart(log_start) = answered(waiting, Refusal::NotLeaderOrFollower).await? else {
            return Err(misplaced());
        };
        Ok(log_start)
    }

    /// A member id never used before (G-414).
    #[must_use]
    pub fn fresh_member(&self, front: &str) -> MemberId {
        MemberId::from(format!("{front}-{}", uuid::Uuid::new_v4()))
    }
}

/// How often a batch asks the coordinator for its permission before it is told to come again.
const VERIFIED_AGAIN: u32 = 3;

fn letter(to: Option<ReplyTo>, batch: &Batch) -> PartLetter {
    PartLetter::Append(Box::new(Append {
        to,
        header: batch.header,
        batch: batch.bytes.clone(),
        id: batch.id.clone(),
        durable: batch.durable,
        times: batch.times,
    }))
}

fn fresh_topic_id() -> TopicId {
    loop {
        let id = TopicId(*uuid::Uuid::new_v4().as_bytes());
        if crate::engine::catalog::is_fit_topic_id(id) {
            return id;
        }
    }
}

pub(super) async fn answered(waiting: Waiting<'_>, gone: Refusal) -> Result<Answer, Refusal> {
    match waiting.answer().await {
        None => Err(gone),
        Some(Answer::Refused(refusal)) => Err(refusal),
        Some(answer) => Ok(answer),
    }
}

/// An answer of another kind than was asked for: ours is the mistake, and the client may ask again.
pub(super) fn misplaced() -> Refusal {
    tracing::error!("an owner answered with another kind of answer");
    Refusal::CoordinatorNotAvailable
}
