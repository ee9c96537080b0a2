//! Every "no" a client can be told. Each variant is exactly one Kafka error code (`wire/codes.rs`).

use std::fmt;

/// The client asked for something it may not have. Its state, and ours, are as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(
    missing_docs,
    reason = "each variant is Kafka's own name of its error; the table in wire/codes.rs has the number"
)]
pub enum Refusal {
    OffsetOutOfRange,
    CorruptMessage,
    UnknownTopicOrPartition,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    RequestTimedOut,
    MessageTooLarge,
    OffsetMetadataTooLarge,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    InvalidTopic,
    RecordListTooLarge,
    NotEnoughReplicas,
    InvalidRequiredAcks,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    UnknownMemberId,
    InvalidSessionTimeout,
    RebalanceInProgress,
    TopicAuthorizationFailed,
    InvalidTimestamp,
    UnsupportedVersion,
    TopicAlreadyExists,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidReplicaAssignment,
    InvalidConfig,
    InvalidRequest,
    PolicyViolation,
    OutOfOrderSequence,
    InvalidProducerEpoch,
    InvalidTxnState,
    InvalidProducerIdMapping,
    InvalidTransactionTimeout,
    ConcurrentTransactions,
    TransactionCoordinatorFenced,
    TransactionalIdAuthorizationFailed,
    OperationNotAttempted,
    KafkaStorageError,
    NonEmptyGroup,
    GroupIdNotFound,
    FetchSessionIdNotFound,
    InvalidFetchSessionEpoch,
    TopicDeletionDisabled,
    FencedLeaderEpoch,
    UnknownLeaderEpoch,
    UnsupportedCompressionType,
    MemberIdRequired,
    GroupMaxSizeReached,
    FencedInstanceId,
    GroupSubscribedToTopic,
    InvalidRecord,
    UnstableOffsetCommit,
    ProducerFenced,
    UnknownTopicId,
    TransactionalIdNotFound,
    MismatchedEndpointType,
    UnsupportedEndpointType,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Refusal {}
