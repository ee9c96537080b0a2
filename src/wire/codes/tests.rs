use super::{code, code_for, fenced};
use crate::engine::refusal::Refusal;
use crate::wire::Api;
use kafka_protocol::ResponseError;

/// Our numbers against another's: the codec's name of each number is our variant's name.
#[test]
fn the_names_behind_the_numbers_agree_with_the_codec() {
    for refusal in ALL {
        let name = ResponseError::try_from_code(code(*refusal)).map(|error| format!("{error:?}"));
        let ours = format!("{refusal:?}")
            .replace("InvalidTopic", "InvalidTopicException")
            .replace("OutOfOrderSequence", "OutOfOrderSequenceNumber");
        assert_eq!(name, Some(ours), "code {}", code(*refusal));
    }
}

#[test]
fn old_clients_are_told_what_they_know() {
    use Refusal as R;
    let check = |api, version, refusal, expected: i16, rule: &str| {
        assert_eq!(code_for(api, version, refusal), expected, "{api} {version} {refusal}: {rule}");
    };
    check(Api::InitProducerId, 3, R::ProducerFenced, 47, "T-116");
    check(Api::InitProducerId, 4, R::ProducerFenced, 90, "T-116");
    check(Api::AddPartitionsToTxn, 1, R::ProducerFenced, 47, "T-212");
    check(Api::AddPartitionsToTxn, 2, R::ProducerFenced, 90, "T-212");
    check(Api::EndTxn, 1, R::ProducerFenced, 47, "T-251");
    check(Api::EndTxn, 3, R::ProducerFenced, 90, "T-251");
    check(Api::TxnOffsetCommit, 3, R::ProducerFenced, 47, "T-243");
    check(Api::TxnOffsetCommit, 1, R::CoordinatorLoadInProgress, 15, "T-243");
    check(Api::TxnOffsetCommit, 2, R::CoordinatorLoadInProgress, 14, "T-243");
    check(Api::TxnOffsetCommit, 3, R::KafkaStorageError, 16, "T-243");
    check(Api::TxnOffsetCommit, 3, R::ConcurrentTransactions, 51, "T-243");
    check(Api::Produce, 9, R::ProducerFenced, 47, "T-361");
    check(Api::Produce, 9, R::ConcurrentTransactions, 19, "T-373");
    check(Api::Produce, 9, R::NotCoordinator, 19, "T-373");
    check(Api::Produce, 9, R::InvalidTxnState, 48, "T-373");
    check(Api::Produce, 9, R::KafkaStorageError, 56, "plain");
    check(Api::EndTxn, 3, R::NotCoordinator, 16, "plain");
    check(Api::WriteTxnMarkers, 1, R::NotCoordinator, 6, "T-409");
    check(Api::WriteTxnMarkers, 1, R::ConcurrentTransactions, 6, "T-840");
    check(Api::WriteTxnMarkers, 1, R::InvalidProducerEpoch, 47, "T-840");
    assert_eq!((fenced(true), fenced(false)), (90, 47));
}

const ALL: &[Refusal] = &{
    use Refusal::*;
    [
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
    ]
};
