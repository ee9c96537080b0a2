//! Refusal to Kafka's error code.

use kafka_protocol::ResponseError;

use super::apis::Api;
use crate::engine::refusal::Refusal;

/// No error.
pub const NONE: i16 = 0;

/// UNKNOWN_SERVER_ERROR: ours, not the client's (V-107).
pub const UNKNOWN_SERVER_ERROR: i16 = -1;

#[cfg(not(feature = "mutant"))]
const INVALID_TXN_STATE: i16 = 48;

/// Wrong, to show that it would be noticed.
#[cfg(feature = "mutant")]
const INVALID_TXN_STATE: i16 = 49;

#[cfg(all(feature = "mutant", not(debug_assertions)))]
compile_error!("the feature `mutant` is for tests of the tests and is not shipped");

/// Kafka's number of each refusal, whoever asks.
#[must_use]
#[expect(clippy::too_many_lines, reason = "a table: one line for each refusal")]
pub const fn code(refusal: Refusal) -> i16 {
    match refusal {
        Refusal::OffsetOutOfRange => 1,
        Refusal::CorruptMessage => 2,
        Refusal::UnknownTopicOrPartition => 3,
        Refusal::LeaderNotAvailable => 5,
        Refusal::NotLeaderOrFollower => 6,
        Refusal::RequestTimedOut => 7,
        Refusal::MessageTooLarge => 10,
        Refusal::OffsetMetadataTooLarge => 12,
        Refusal::CoordinatorLoadInProgress => 14,
        Refusal::CoordinatorNotAvailable => 15,
        Refusal::NotCoordinator => 16,
        Refusal::InvalidTopic => 17,
        Refusal::RecordListTooLarge => 18,
        Refusal::NotEnoughReplicas => 19,
        Refusal::InvalidRequiredAcks => 21,
        Refusal::IllegalGeneration => 22,
        Refusal::InconsistentGroupProtocol => 23,
        Refusal::InvalidGroupId => 24,
        Refusal::UnknownMemberId => 25,
        Refusal::InvalidSessionTimeout => 26,
        Refusal::RebalanceInProgress => 27,
        Refusal::TopicAuthorizationFailed => 29,
        Refusal::InvalidTimestamp => 32,
        Refusal::UnsupportedVersion => 35,
        Refusal::TopicAlreadyExists => 36,
        Refusal::InvalidPartitions => 37,
        Refusal::InvalidReplicationFactor => 38,
        Refusal::InvalidReplicaAssignment => 39,
        Refusal::InvalidConfig => 40,
        Refusal::InvalidRequest => 42,
        Refusal::PolicyViolation => 44,
        Refusal::OutOfOrderSequence => 45,
        Refusal::InvalidProducerEpoch => 47,
        Refusal::InvalidTxnState => INVALID_TXN_STATE,
        Refusal::InvalidProducerIdMapping => 49,
        Refusal::InvalidTransactionTimeout => 50,
        Refusal::ConcurrentTransactions => 51,
        Refusal::TransactionCoordinatorFenced => 52,
        Refusal::TransactionalIdAuthorizationFailed => 53,
        Refusal::OperationNotAttempted => 55,
        Refusal::KafkaStorageError => 56,
        Refusal::NonEmptyGroup => 68,
        Refusal::GroupIdNotFound => 69,
        Refusal::FetchSessionIdNotFound => 70,
        Refusal::InvalidFetchSessionEpoch => 71,
        Refusal::TopicDeletionDisabled => 73,
        Refusal::FencedLeaderEpoch => 74,
        Refusal::UnknownLeaderEpoch => 75,
        Refusal::UnsupportedCompressionType => 76,
        Refusal::MemberIdRequired => 79,
        Refusal::GroupMaxSizeReached => 81,
        Refusal::FencedInstanceId => 82,
        Refusal::GroupSubscribedToTopic => 86,
        Refusal::InvalidRecord => 87,
        Refusal::UnstableOffsetCommit => 88,
        Refusal::ProducerFenced => 90,
        Refusal::UnknownTopicId => 100,
        Refusal::TransactionalIdNotFound => 105,
        Refusal::MismatchedEndpointType => 114,
        Refusal::UnsupportedEndpointType => 115,
    }
}

/// Kafka's name of each refusal, as its documentation has it: `CONCURRENT_TRANSACTIONS`.
#[must_use]
pub fn name(refusal: Refusal) -> String {
    let known = ResponseError::try_from_code(code(refusal));
    let camel = known.map_or_else(|| format!("{refusal:?}"), |error| format!("{error:?}"));
    let mut name = String::with_capacity(camel.len().saturating_add(6));
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// What a fenced producer is told: PRODUCER_FENCED where the version of its request knows it, else
/// INVALID_PRODUCER_EPOCH ([`Api::knows_producer_fenced`]).
#[must_use]
pub const fn fenced(version_knows_90: bool) -> i16 {
    if version_knows_90 { code(Refusal::ProducerFenced) } else { code(Refusal::InvalidProducerEpoch) }
}

/// The number that a request of this API and version is answered with: [`code`], but for what old clients do not know
/// and what the transaction coordinator's answers become on their way through Produce (T-373), TxnOffsetCommit (T-243)
/// and WriteTxnMarkers (T-409, T-840).
#[must_use]
pub fn code_for(api: Api, version: i16, refusal: Refusal) -> i16 {
    let said = match (api, refusal) {
        (_, Refusal::ProducerFenced) => return fenced(api.knows_producer_fenced(version)),
        (
            Api::Produce,
            Refusal::ConcurrentTransactions
            | Refusal::CoordinatorLoadInProgress
            | Refusal::CoordinatorNotAvailable
            | Refusal::NotCoordinator,
        ) => Refusal::NotEnoughReplicas,
        // A tool asks again for this one alone.
        (
            Api::WriteTxnMarkers,
            Refusal::ConcurrentTransactions
            | Refusal::CoordinatorLoadInProgress
            | Refusal::CoordinatorNotAvailable
            | Refusal::NotCoordinator,
        ) => Refusal::NotLeaderOrFollower,
        (Api::TxnOffsetCommit, Refusal::CoordinatorLoadInProgress) if version < 2 => Refusal::CoordinatorNotAvailable,
        (Api::TxnOffsetCommit, Refusal::NotEnoughReplicas | Refusal::RequestTimedOut) => {
            Refusal::CoordinatorNotAvailable
        }
        (Api::TxnOffsetCommit, Refusal::NotLeaderOrFollower | Refusal::KafkaStorageError) => Refusal::NotCoordinator,
        (_, other) => other,
    };
    code(said)
}

#[cfg(test)]
mod tests;
