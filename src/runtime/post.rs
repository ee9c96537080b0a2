//! What owners say to one another and to those who wait: letters, answers, and the post that carries both.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::batch::Header;
use crate::engine::batch::check::Times;
use crate::engine::catalog::{Catalog, ChangeConfigs, CreateTopic, GrowTopic, Refused};
use crate::engine::group::{GroupAnswer, GroupDescription, GroupListing, Join, LeavingMember, Sync};
use crate::engine::ledger::offsets::Seen;
use crate::engine::ledger::rows::{PartRow, RecoveryPoint};
use crate::engine::ledger::show::{Described, Find};
use crate::engine::log::{LogSettings, Retention};
use crate::engine::partition::{AdminMark, Grant, MarkOrder, ProducerState};
use crate::engine::txn::{Addition, Position};
use crate::engine::{
    Claim, GroupId, Offset, Outcome, PartId, Producer, Refusal, ReplyTo, TopicId, TopicName, TransactionalId,
};

/// One thing to deliver. What must be on disk first is the sender's business (`store::tickets`).
#[derive(Debug)]
pub enum Post {
    /// To whoever waits under this number.
    Answer(ReplyTo, Answer),
    /// To the ledger's owner.
    Ledger(LedgerLetter),
    /// To a partition's owner.
    Part(PartId, PartLetter),
    /// To everyone: topics and partitions as they are now.
    Catalog(CatalogNews),
}

/// The catalog after a change, on disk.
#[derive(Debug, Clone)]
pub struct CatalogNews {
    /// All topics.
    pub catalog: Arc<Catalog>,
    /// Partitions that are new.
    pub created: Vec<(PartId, PartRow)>,
    /// Partitions that are gone; their owners drop their logs.
    pub deleted: Vec<PartId>,
    /// Topics whose settings are others now.
    pub changed: Vec<TopicId>,
}

/// To the ledger's owner.
#[derive(Debug)]
pub enum LedgerLetter {
    /// A request.
    Ask(ReplyTo, Command),
    /// A partition closed a transaction's permission at this place of its mailbox; comes again when what lies below is
    /// on disk, and the two may overtake each other.
    Sealed(Sealed),
    /// Markers of these debts are on disk, or will never be (the partition is gone).
    Marked(PartId, Vec<u64>, MarkResult),
    /// A partition's new recovery point, or first offset; stored lazily.
    Checkpoint(PartId, RecoveryPoint, Offset),
    /// A partition's first offset is to move: answered to the partition once that is on disk.
    MoveLogStart(MoveLogStart),
    /// The row that says of these partitions that they hold transactions is on disk.
    FirstFlushed(Vec<PartId>),
    /// A clock moved (tests), or a moment came that only the shell knows of.
    Wake,
    /// There is room on the disk again, by measure: who refused to store for want of it has no reason to any more.
    Room,
    /// The process is about to stop: everyone who is parked or waits for an end is told to come again.
    Settle,
    /// Stop after this turn, settled.
    Stop,
}

/// A new first offset of a partition, to be stored before anything below it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveLogStart {
    /// Which partition.
    pub part: PartId,
    /// The new first offset; a lower one than is stored moves nothing.
    pub log_start: Offset,
    /// A recovery point whose snapshot lies at or above it, where segments go with the move.
    pub point: Option<RecoveryPoint>,
    /// Who waits.
    pub to: Option<ReplyTo>,
}

/// A seal's answer.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// The id whose transaction is sealed.
    pub id: TransactionalId,
    /// Its transaction's number.
    pub number: u64,
    /// Which gather of that transaction asked: an undone one's late answers count for nothing.
    pub round: u64,
    /// Where.
    pub part: PartId,
    /// How it stands there.
    pub state: SealState,
}

/// How a transaction stands in a partition that was asked to seal it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealState {
    /// The letter is on its way.
    Asked,
    /// Closed; all of the transaction lies below this log end, perhaps not on disk yet.
    Closed(Offset),
    /// Closed, and all of it is on disk.
    Durable(Offset),
    /// The partition was deleted: counts as sealed.
    Gone,
}

/// How it went with a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkResult {
    /// Written and visible to readers, its decision being on disk (`marker_sync = "redo"`).
    Appended,
    /// On disk and visible.
    Synced,
    /// The partition is gone: nothing is owed there.
    Gone,
    /// Could not be written; the decision stands, try again.
    Failed(Refusal),
    /// The partition is damaged and takes nothing.
    Parked,
}

/// A request to the ledger.
#[derive(Debug, Clone)]
pub enum Command {
    /// InitProducerId.
    InitProducer {
        /// Absent for an idempotent producer.
        id: Option<TransactionalId>,
        /// Transaction timeout in milliseconds.
        timeout_ms: i32,
        /// The pair the caller holds, if it recovers.
        expected: Option<Producer>,
    },
    /// AddPartitionsToTxn, AddOffsetsToTxn.
    Add {
        /// Whose transaction.
        id: TransactionalId,
        /// Who asks.
        producer: Producer,
        /// What joins.
        addition: Addition,
    },
    /// Why a partition knows of no permission of this producer; grants it anew if there is one.
    Verify {
        /// The transactional id that the Produce request named.
        id: TransactionalId,
        /// Who writes.
        producer: Producer,
        /// Where.
        part: PartId,
    },
    /// TxnOffsetCommit.
    StageOffsets(StageOffsets),
    /// EndTxn.
    EndTxn {
        /// Whose transaction.
        id: TransactionalId,
        /// Who asks.
        producer: Producer,
        /// How it is to end.
        outcome: Outcome,
    },
    /// WriteTxnMarkers: one marker in these partitions, all judged on one state. Each is answered by itself.
    WriteMarkers {
        /// The marker that the tool asks for.
        mark: AdminMark,
        /// Where, and who waits.
        parts: Vec<(PartId, ReplyTo)>,
    },
    /// An operator wants an open transaction aborted, whoever owns it.
    AbortTxn {
        /// Whose transaction.
        id: TransactionalId,
    },
    /// A question: nothing changes by it.
    Show(Show),
    /// JoinGroup.
    Join(GroupId, Box<Join>),
    /// SyncGroup.
    Sync(GroupId, Sync),
    /// Heartbeat.
    Heartbeat(GroupId, Claim),
    /// LeaveGroup.
    Leave(GroupId, Vec<LeavingMember>),
    /// OffsetCommit.
    CommitOffsets(CommitOffsets),
    /// OffsetFetch of one group; `None` for all partitions.
    FetchOffsets {
        /// The group.
        group: GroupId,
        /// Which partitions.
        parts: Option<Vec<PartId>>,
        /// Whether to be told of offsets that a transaction carries (T-821).
        require_stable: bool,
    },
    /// DeleteGroups.
    DeleteGroups(Vec<GroupId>),
    /// OffsetDelete.
    DeleteOffsets(GroupId, Vec<PartId>),
    /// CreateTopics and auto-creation; each with the id it will have.
    CreateTopics(Vec<(CreateTopic, TopicId)>),
    /// DeleteTopics.
    DeleteTopics(Vec<TopicKey>),
    /// CreatePartitions.
    GrowTopics {
        /// The topics.
        specs: Vec<GrowTopic>,
        /// Whether only the answer is wanted.
        validate_only: bool,
    },
    /// AlterConfigs, IncrementalAlterConfigs.
    ChangeConfigs {
        /// What is to change.
        resources: Vec<ChangeConfigs>,
        /// Whether only the answer is wanted.
        validate_only: bool,
    },
}

/// What tools, operators and metrics ask the ledger.
#[derive(Debug, Clone)]
pub enum Show {
    /// DescribeTransactions.
    Txns(Vec<TransactionalId>),
    /// ListTransactions, unfiltered.
    AllTxns,
    /// Some transactions, for an operator.
    Find(Find),
    /// Whose these producer ids are.
    Owners(Vec<i64>),
    /// Committed offsets as readers see them, so many from this key on.
    Offsets(Option<(GroupId, PartId)>),
    /// DescribeGroups.
    Groups(Vec<GroupId>),
    /// ListGroups, unfiltered.
    AllGroups,
    /// The ledger in figures.
    Gauges,
}

/// A topic by one of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicKey {
    /// By name.
    Name(TopicName),
    /// By id.
    Id(TopicId),
}

/// TxnOffsetCommit.
#[derive(Debug, Clone)]
pub struct StageOffsets {
    /// Whose transaction.
    pub id: TransactionalId,
    /// Who asks.
    pub producer: Producer,
    /// For which group.
    pub group: GroupId,
    /// Its place in the group.
    pub claim: Claim,
    /// The positions.
    pub offsets: Vec<(PartId, Position)>,
}

/// OffsetCommit.
#[derive(Debug, Clone)]
pub struct CommitOffsets {
    /// For which group.
    pub group: GroupId,
    /// The member's place in it.
    pub claim: Claim,
    /// The positions.
    pub offsets: Vec<(PartId, Position)>,
    /// How long to keep them, if the request says so (O-617).
    pub retention_ms: Option<i64>,
}

/// An answer to a waiting request.
#[derive(Debug)]
pub enum Answer {
    /// The request is refused; for every kind.
    Refused(Refusal),
    /// Produce refused where the partition's first offset is shown (T-318).
    RefusedAt(Refusal, Offset),
    /// Success without more to say.
    Done,
    /// InitProducerId.
    Producer(Producer),
    /// DescribeTransactions, ListTransactions.
    Txns(Vec<Result<Described, (TransactionalId, Refusal)>>),
    /// Some transactions, and how many there are.
    Found(usize, Vec<Described>),
    /// Committed offsets, by key.
    SeenOffsets(Vec<(GroupId, PartId, Offset)>),
    /// JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
    Group(Box<GroupAnswer>),
    /// OffsetFetch.
    Offsets(Vec<(PartId, Seen)>),
    /// DescribeGroups: in the order asked for; none for a group that there is not.
    Groups(Vec<(GroupId, Option<GroupDescription>)>),
    /// ListGroups.
    GroupList(Vec<(GroupId, GroupListing)>),
    /// DeleteGroups, OffsetDelete: each in the order asked for.
    Each(Vec<Result<(), Refusal>>),
    /// CreateTopics: per name, in the order they first appear, its id and partition count, or why not.
    Created(Vec<Created>),
    /// DeleteTopics: per topic.
    Deleted(Vec<Result<(TopicId, TopicName), Refusal>>),
    /// CreatePartitions: per name, in the order they first appear.
    Grown(Vec<(String, Result<(), Refused>)>),
    /// AlterConfigs, IncrementalAlterConfigs: per resource, in the order of the request.
    Changed(Vec<Result<(), Refused>>),
    /// What the metrics show.
    Gauges(Box<LedgerGauges>),
    /// Produce.
    Produced(Produced),
    /// A transactional batch without a permission here: the coordinator must be asked why.
    Unverified,
    /// DescribeProducers.
    Producers(Vec<ProducerState>),
    /// DeleteRecords: the partition's first offset now.
    LogStart(Offset),
}

/// What became of one name of a CreateTopics.
pub type Created = (String, Result<CreatedTopic, (Refusal, String)>);

/// A topic that now exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its name.
    pub name: TopicName,
    /// Its id.
    pub id: TopicId,
    /// How many partitions it has (or would have, if the request only validated).
    pub partitions: i32,
}

/// Where a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Produced {
    /// Offset of its first record; the original one for a duplicate.
    pub base_offset: Offset,
    /// The broker's timestamp, on LogAppendTime topics; -1 otherwise.
    pub append_time_ms: i64,
    /// The partition's first offset.
    pub log_start: Offset,
}

/// The ledger in figures.
#[derive(Debug, Clone, Default)]
pub struct LedgerGauges {
    /// Transactional ids by state, in the order of `Shown::ALL`.
    pub txns: [u64; 6],
    /// Start of the oldest open transaction, wall clock.
    pub oldest_open_wall_ms: Option<i64>,
    /// How long it has been open, in milliseconds of the monotonic clock.
    pub oldest_open_age_ms: i64,
    /// Markers not yet on disk.
    pub markers_pending: u64,
    /// Age of the oldest such, in milliseconds.
    pub oldest_marker_ms: i64,
    /// Offsets that wait for a decision or its markers.
    pub pending_offsets: u64,
    /// Transactional ids.
    pub ids: u64,
    /// Those with few epochs left.
    pub exhausted_soon: u64,
    /// Groups by state, in the order of `STATE_NAMES`.
    pub groups: [u64; 4],
    /// Their members.
    pub members: u64,
}

/// To a partition's owner.
#[derive(Debug)]
pub enum PartLetter {
    /// Store one batch.
    Append(Box<Append>),
    /// A transaction may write here.
    Grant(Grant),
    /// Close a transaction's permission, at this place of the mailbox.
    Seal {
        /// Its id.
        id: TransactionalId,
        /// Its producer id.
        producer_id: i64,
        /// Its number.
        number: u64,
        /// Which gather asks.
        round: u64,
    },
    /// No decision came of the seal: the permission is open again.
    Unseal {
        /// Its producer id.
        producer_id: i64,
        /// Its number.
        number: u64,
    },
    /// Write these markers; all of one commit travel in one letter.
    Mark(Vec<(u64, MarkOrder)>),
    /// Write a marker that a tool asks for; the ledger has nothing against it.
    AdminMark {
        /// The marker.
        mark: AdminMark,
        /// Who waits.
        to: ReplyTo,
    },
    /// DescribeProducers.
    Describe(ReplyTo),
    /// The topic wants its logs kept otherwise, from the next append on.
    Keep(Keeping),
    /// Let go what has expired, by what the topic wants when this is read: the sweep may have looked before a change.
    Retain,
    /// DeleteRecords: everything below this offset goes; -1 for all that readers may have.
    DeleteRecords {
        /// The first offset that stays.
        offset: Offset,
        /// Who waits.
        to: ReplyTo,
    },
    /// The log is on disk up to a snapshot's place: the snapshot is to be written, then the log start moved.
    Trim(Box<Trim>),
    /// A new log start is on disk: what lies below it goes.
    LogStartStored {
        /// The log start.
        log_start: Offset,
        /// Who waits.
        to: Option<ReplyTo>,
    },
    /// A new log start found no room: everything stays as it is.
    LogStartRefused {
        /// Who waits.
        to: Option<ReplyTo>,
    },
    /// Remove more files of segments that have left the log.
    Unlink,
    /// Make the partition ready to be read.
    Load,
    /// Its topic is deleted.
    Drop,
    /// Write what a clean stop writes.
    Close,
}

/// How a topic wants its partitions' logs kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// Segment and index settings in effect.
    pub log: LogSettings,
    /// Whose timestamps the topic keeps.
    pub times: Times,
    /// What goes by age or size, if anything does.
    pub retention: Option<Retention>,
}

/// A log start on its way up over whole segments. What is known of producers must outlive their records (T-542), so a
/// snapshot comes first.
#[derive(Debug)]
pub struct Trim {
    /// The new log start.
    pub log_start: Offset,
    /// The producers.
    pub snapshot: Vec<u8>,
    /// The log end that the snapshot stands for.
    pub at: Offset,
    /// Who waits.
    pub to: Option<ReplyTo>,
}

/// One batch on its way into a partition.
#[derive(Debug)]
pub struct Append {
    /// Who waits; nobody with acks=0.
    pub to: Option<ReplyTo>,
    /// The batch's header, checked.
    pub header: Header,
    /// Its bytes, exactly one batch.
    pub batch: Bytes,
    /// The transactional id that the request named.
    pub id: Option<TransactionalId>,
    /// Whether the answer must wait for the disk: acks=all; transactional batches always do.
    pub durable: bool,
    /// Whose timestamps the topic keeps.
    pub times: Times,
}
