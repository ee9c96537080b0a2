//! What a request of each API begins with, up to the place where a lie about a size does most harm.

use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, AlterConfigsRequest, ApiVersionsRequest,
    CreatePartitionsRequest, CreateTopicsRequest, DeleteGroupsRequest, DeleteRecordsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest, DescribeLogDirsRequest,
    DescribeProducersRequest, DescribeTransactionsRequest, EndTxnRequest, FetchRequest, FindCoordinatorRequest,
    HeartbeatRequest, IncrementalAlterConfigsRequest, InitProducerIdRequest, JoinGroupRequest, LeaveGroupRequest,
    ListGroupsRequest, ListOffsetsRequest, ListTransactionsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest, ProduceRequest, SyncGroupRequest,
    TxnOffsetCommitRequest, WriteTxnMarkersRequest,
};
use kafka_protocol::protocol::Encodable;
use oncelog::wire::Api;

/// Where a request's first count or length is, behind these bytes of a right body.
pub(super) enum Weak {
    /// The count of an array.
    Array(Vec<u8>),
    /// The length of a text.
    Text(Vec<u8>),
    /// The version has neither.
    Nowhere,
}

/// A body in which everything is empty or what the protocol says it is when nothing is said.
pub(super) fn default_body(api: Api, version: i16) -> Vec<u8> {
    match api {
        Api::Produce => encoded::<ProduceRequest>(version),
        Api::Fetch => encoded::<FetchRequest>(version),
        Api::ListOffsets => encoded::<ListOffsetsRequest>(version),
        Api::Metadata => encoded::<MetadataRequest>(version),
        Api::OffsetCommit => encoded::<OffsetCommitRequest>(version),
        Api::OffsetFetch => encoded::<OffsetFetchRequest>(version),
        Api::FindCoordinator => encoded::<FindCoordinatorRequest>(version),
        Api::JoinGroup => encoded::<JoinGroupRequest>(version),
        Api::Heartbeat => encoded::<HeartbeatRequest>(version),
        Api::LeaveGroup => encoded::<LeaveGroupRequest>(version),
        Api::SyncGroup => encoded::<SyncGroupRequest>(version),
        Api::DescribeGroups => encoded::<DescribeGroupsRequest>(version),
        Api::ListGroups => encoded::<ListGroupsRequest>(version),
        Api::ApiVersions => encoded::<ApiVersionsRequest>(version),
        Api::CreateTopics => encoded::<CreateTopicsRequest>(version),
        Api::DeleteTopics => encoded::<DeleteTopicsRequest>(version),
        Api::DeleteRecords => encoded::<DeleteRecordsRequest>(version),
        Api::InitProducerId => encoded::<InitProducerIdRequest>(version),
        Api::OffsetForLeaderEpoch => encoded::<OffsetForLeaderEpochRequest>(version),
        Api::AddPartitionsToTxn => encoded::<AddPartitionsToTxnRequest>(version),
        Api::AddOffsetsToTxn => encoded::<AddOffsetsToTxnRequest>(version),
        Api::EndTxn => encoded::<EndTxnRequest>(version),
        Api::WriteTxnMarkers => encoded::<WriteTxnMarkersRequest>(version),
        Api::TxnOffsetCommit => encoded::<TxnOffsetCommitRequest>(version),
        Api::DescribeConfigs => encoded::<DescribeConfigsRequest>(version),
        Api::AlterConfigs => encoded::<AlterConfigsRequest>(version),
        Api::DescribeLogDirs => encoded::<DescribeLogDirsRequest>(version),
        Api::CreatePartitions => encoded::<CreatePartitionsRequest>(version),
        Api::DeleteGroups => encoded::<DeleteGroupsRequest>(version),
        Api::IncrementalAlterConfigs => encoded::<IncrementalAlterConfigsRequest>(version),
        Api::OffsetDelete => encoded::<OffsetDeleteRequest>(version),
        Api::DescribeCluster => encoded::<DescribeClusterRequest>(version),
        Api::DescribeProducers => encoded::<DescribeProducersRequest>(version),
        Api::DescribeTransactions => encoded::<DescribeTransactionsRequest>(version),
        Api::ListTransactions => encoded::<ListTransactionsRequest>(version),
    }
}

fn encoded<R: Encodable + Default>(version: i16) -> Vec<u8> {
    let mut body = BytesMut::new();
    R::default().encode(&mut body, version).unwrap();
    body.to_vec()
}

/// The most harmful place of this version.
pub(super) fn weak_spot(api: Api, version: i16) -> Weak {
    let text: &[u8] = if api.is_flexible(version) { &[1] } else { &[0, 0] };
    let null: &[u8] = if api.is_flexible(version) { &[0] } else { &[0xff, 0xff] };
    let since = |first: i16, bytes: &'static [u8]| if version >= first { bytes } else { &[] };
    let null_since = |first: i16| if version >= first { null } else { &[] };
    let front: Vec<&[u8]> = match api {
        Api::Produce => vec![null, &[0, 1], &[0; 4]],
        Api::Fetch => vec![&[0xff; 4], &[0; 4], &[0; 4], &[0, 1, 0, 0], &[0], since(7, &[0; 4]), since(7, &[0xff; 4])],
        Api::ListOffsets => vec![&[0xff; 4], since(2, &[0])],
        Api::Metadata
        | Api::CreateTopics
        | Api::DeleteTopics
        | Api::DescribeGroups
        | Api::AlterConfigs
        | Api::IncrementalAlterConfigs
        | Api::CreatePartitions
        | Api::DeleteGroups
        | Api::DeleteRecords
        | Api::DescribeConfigs
        | Api::DescribeLogDirs
        | Api::DescribeProducers
        | Api::DescribeTransactions
        | Api::ListTransactions
        | Api::WriteTxnMarkers => vec![],
        Api::OffsetCommit => {
            let retention: &[u8] = if version <= 4 { &[0xff; 8] } else { &[] };
            vec![text, &[0xff; 4], text, null_since(7), retention]
        }
        Api::OffsetFetch if version >= 8 => vec![],
        Api::OffsetFetch => vec![text],
        Api::FindCoordinator if version >= 4 => vec![&[0]],
        Api::JoinGroup => vec![text, &[0; 4], since(1, &[0; 4]), text, null_since(5), text],
        Api::LeaveGroup if version >= 3 => vec![text],
        Api::ListGroups if version >= 4 => vec![],
        Api::OffsetDelete => vec![text],
        Api::SyncGroup => vec![text, &[0; 4], text, null_since(3), null_since(5), null_since(5)],
        Api::OffsetForLeaderEpoch => vec![since(3, &[0xff; 4])],
        Api::AddPartitionsToTxn => vec![text, &[0; 8], &[0; 2]],
        Api::TxnOffsetCommit => {
            let member = if version >= 3 { text } else { &[] };
            vec![text, text, &[0; 8], &[0; 2], since(3, &[0xff; 4]), member, null_since(3)]
        }
        Api::ApiVersions if version < 3 => return Weak::Nowhere,
        Api::ListGroups | Api::DescribeCluster => return Weak::Nowhere,
        Api::FindCoordinator
        | Api::LeaveGroup
        | Api::Heartbeat
        | Api::ApiVersions
        | Api::InitProducerId
        | Api::AddOffsetsToTxn
        | Api::EndTxn => return Weak::Text(Vec::new()),
    };
    let mut bytes = Vec::new();
    for part in front {
        bytes.put_slice(part);
    }
    Weak::Array(bytes)
}
