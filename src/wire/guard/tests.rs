use super::shapes::{Field, Kind, Shape, of};
use super::{MAX_DECODED_BYTES, Malformed, Passed, STRUCT_BYTES, TEXT_BYTES, check};
use crate::wire::Api;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use proptest::prelude::*;

/// What the codec made of a body: the bytes it read, and what it writes for what it read.
#[derive(Debug)]
struct Decoded {
    consumed: usize,
    again: Bytes,
}

fn decode_as<T: Decodable + Encodable>(version: i16, body: &Bytes) -> Result<Decoded, String> {
    let mut rest = body.clone();
    let request = T::decode(&mut rest, version).map_err(|error| error.to_string())?;
    let mut again = BytesMut::new();
    request.encode(&mut again, version).map_err(|error| error.to_string())?;
    Ok(Decoded { consumed: body.len() - rest.len(), again: again.freeze() })
}

/// The independent codec that `api` decodes with.
fn codec(api: Api, version: i16, body: &Bytes) -> Result<Decoded, String> {
    match api {
        Api::Produce => decode_as::<ProduceRequest>(version, body),
        Api::Fetch => decode_as::<FetchRequest>(version, body),
        Api::ListOffsets => decode_as::<ListOffsetsRequest>(version, body),
        Api::Metadata => decode_as::<MetadataRequest>(version, body),
        Api::OffsetCommit => decode_as::<OffsetCommitRequest>(version, body),
        Api::OffsetFetch => decode_as::<OffsetFetchRequest>(version, body),
        Api::FindCoordinator => decode_as::<FindCoordinatorRequest>(version, body),
        Api::JoinGroup => decode_as::<JoinGroupRequest>(version, body),
        Api::Heartbeat => decode_as::<HeartbeatRequest>(version, body),
        Api::LeaveGroup => decode_as::<LeaveGroupRequest>(version, body),
        Api::SyncGroup => decode_as::<SyncGroupRequest>(version, body),
        Api::DescribeGroups => decode_as::<DescribeGroupsRequest>(version, body),
        Api::ListGroups => decode_as::<ListGroupsRequest>(version, body),
        Api::ApiVersions => decode_as::<ApiVersionsRequest>(version, body),
        Api::CreateTopics => decode_as::<CreateTopicsRequest>(version, body),
        Api::DeleteTopics => decode_as::<DeleteTopicsRequest>(version, body),
        Api::DeleteRecords => decode_as::<DeleteRecordsRequest>(version, body),
        Api::InitProducerId => decode_as::<InitProducerIdRequest>(version, body),
        Api::OffsetForLeaderEpoch => decode_as::<OffsetForLeaderEpochRequest>(version, body),
        Api::AddPartitionsToTxn => decode_as::<AddPartitionsToTxnRequest>(version, body),
        Api::AddOffsetsToTxn => decode_as::<AddOffsetsToTxnRequest>(version, body),
        Api::EndTxn => decode_as::<EndTxnRequest>(version, body),
        Api::WriteTxnMarkers => decode_as::<WriteTxnMarkersRequest>(version, body),
        Api::TxnOffsetCommit => decode_as::<TxnOffsetCommitRequest>(version, body),
        Api::DescribeConfigs => decode_as::<DescribeConfigsRequest>(version, body),
        Api::AlterConfigs => decode_as::<AlterConfigsRequest>(version, body),
        Api::DescribeLogDirs => decode_as::<DescribeLogDirsRequest>(version, body),
        Api::CreatePartitions => decode_as::<CreatePartitionsRequest>(version, body),
        Api::DeleteGroups => decode_as::<DeleteGroupsRequest>(version, body),
        Api::IncrementalAlterConfigs => decode_as::<IncrementalAlterConfigsRequest>(version, body),
        Api::OffsetDelete => decode_as::<OffsetDeleteRequest>(version, body),
        Api::DescribeCluster => decode_as::<DescribeClusterRequest>(version, body),
        Api::DescribeProducers => decode_as::<DescribeProducersRequest>(version, body),
        Api::DescribeTransactions => decode_as::<DescribeTransactionsRequest>(version, body),
        Api::ListTransactions => decode_as::<ListTransactionsRequest>(version, body),
    }
}

fn every_version() -> impl Iterator<Item = (Api, i16)> {
    Api::ALL.iter().flat_map(|&api| (api.versions().lowest..=api.versions().highest).map(move |version| (api, version)))
}

/// Writes a body from its shape, and remembers where its lengths and counts are.
struct Writer {
    bytes: BytesMut,
    api: Api,
    version: i16,
    /// Elements of every array.
    elements: usize,
    /// Whether what may be null is null.
    nulls: bool,
    noise: u8,
    counts: Vec<usize>,
    lengths: Vec<usize>,
    tag_counts: Vec<usize>,
}

impl Writer {
    fn write(api: Api, version: i16, elements: usize, nulls: bool) -> Self {
        let mut writer = Self {
            bytes: BytesMut::new(),
            api,
            version,
            elements,
            nulls,
            noise: 0,
            counts: vec![],
            lengths: vec![],
            tag_counts: vec![],
        };
        writer.shape(of(api));
        writer
    }

    fn flexible(&self) -> bool {
        self.api.is_flexible(self.version)
    }

    fn body(&self) -> Bytes {
        self.bytes.clone().freeze()
    }

    /// Bytes that are neither zero nor alike, and text when read as text.
    fn noise(&mut self, length: usize) {
        for _ in 0..length {
            self.noise = (self.noise + 1) % 26;
            self.bytes.put_u8(b'a' + self.noise);
        }
    }

    fn shape(&mut self, shape: &'static Shape) {
        for field in shape.fields_in(self.version) {
            self.field(field);
        }
        if self.flexible() {
            self.tag_counts.push(self.bytes.len());
            self.bytes.put_u8(0);
        }
    }

    fn field(&mut self, field: &'static Field) {
        let null = self.nulls && self.version >= field.null_since;
        match field.kind {
            Kind::Fixed(1) => self.bytes.put_u8(1),
            Kind::Fixed(width) => self.noise(width),
            Kind::Text | Kind::Blob => {
                self.lengths.push(self.bytes.len());
                let length = if null { None } else { Some(3 + usize::from(self.noise % 4)) };
                self.length(length, matches!(field.kind, Kind::Text));
                self.noise(length.unwrap_or(0));
            }
            Kind::FixedList(_) | Kind::TextList | Kind::List(_) => {
                self.counts.push(self.bytes.len());
                let count = if null { None } else { Some(self.elements) };
                self.length(count, false);
                for _ in 0..count.unwrap_or(0) {
                    self.element(field.kind);
                }
            }
        }
    }

    fn element(&mut self, kind: Kind) {
        match kind {
            Kind::List(shape) => self.shape(shape),
            Kind::TextList => {
                self.lengths.push(self.bytes.len());
                self.length(Some(4), true);
                self.noise(4);
            }
            Kind::FixedList(width) => self.noise(width),
            Kind::Fixed(_) | Kind::Text | Kind::Blob => unreachable!("not an array"),
        }
    }

    fn length(&mut self, length: Option<usize>, short: bool) {
        let value = length.map_or(-1, |length| i32::try_from(length).unwrap());
        if self.flexible() {
            self.bytes.put_u8(u8::try_from(value + 1).unwrap());
        } else if short {
            self.bytes.put_i16(i16::try_from(value).unwrap());
        } else {
            self.bytes.put_i32(value);
        }
    }
}

/// Bodies that the codec itself wrote, for every API and version, arrays of 0, 1 and 3 elements, with and without
/// nulls: the guard walks each to its last byte, and cutting it anywhere is refused.
#[test]
fn whole_bodies_pass_and_cut_ones_do_not() {
    for (api, version) in every_version() {
        for (elements, nulls) in [(0, false), (0, true), (1, false), (1, true), (3, false), (3, true)] {
            let name = format!("{api} {version} with {elements} elements, nulls: {nulls}");
            let body = Writer::write(api, version, elements, nulls).body();
            let decoded = codec(api, version, &body).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(decoded.consumed, body.len(), "{name}: the codec stopped early");
            assert_eq!(decoded.again, body, "{name}: the codec read something else");
            let passed = check(api, version, &decoded.again);
            assert_eq!(passed.map(|passed| passed.consumed), Ok(body.len()), "{name}");
            for cut in 0..body.len() {
                let short = check(api, version, &body[..cut]);
                assert!(short.is_err(), "{name}: cut at {cut} of {} it passes", body.len());
            }
            let mut longer = BytesMut::from(&body[..]);
            longer.put_slice(b"behind");
            assert_eq!(check(api, version, &longer), passed, "{name}: V-105, trailing bytes are ignored");
        }
    }
}

/// Puts another length in the place of the one at `at`, which is one byte long where lengths are compact.
fn replace(body: &Bytes, at: usize, old_bytes: usize, new: &[u8]) -> Bytes {
    [&body[..at], new, &body[at + old_bytes..]].concat().into()
}

const VARINT_MAX_I32: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x07];
const VARINT_MAX_U32: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x0f];
const VARINT_TOO_LONG: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0xff];

/// C-107, V-105, V-106.
#[test]
fn no_count_is_believed_beyond_the_frame() {
    for (api, version) in every_version() {
        let writer = Writer::write(api, version, 3, false);
        let body = writer.body();
        let refused = |at: usize, old: usize, new: &[u8], expected: Malformed| {
            let hostile = replace(&body, at, old, new);
            assert_eq!(check(api, version, &hostile), Err(expected), "{api} {version} at {at}: {new:x?}");
        };
        for &at in &writer.counts {
            if writer.flexible() {
                refused(at, 1, &VARINT_MAX_I32, Malformed::CountBeyondFrame);
                refused(at, 1, &VARINT_MAX_U32, Malformed::CountBeyondFrame);
                refused(at, 1, &VARINT_TOO_LONG, Malformed::VarintTooLong);
            } else {
                refused(at, 4, &i32::MAX.to_be_bytes(), Malformed::CountBeyondFrame);
                refused(at, 4, &(-2_i32).to_be_bytes(), Malformed::NegativeLength);
                refused(at, 4, &i32::MIN.to_be_bytes(), Malformed::NegativeLength);
            }
        }
        for &at in &writer.tag_counts {
            refused(at, 1, &VARINT_MAX_U32, Malformed::TooManyTags);
            refused(at, 1, &[65], Malformed::TooManyTags);
        }
    }
}

#[test]
fn no_length_is_believed_beyond_the_frame() {
    for (api, version) in every_version() {
        let writer = Writer::write(api, version, 1, false);
        let body = writer.body();
        for &at in &writer.lengths {
            let hostile: &[(usize, &[u8])] = if writer.flexible() {
                &[(1, &VARINT_MAX_I32), (1, &VARINT_MAX_U32), (1, &VARINT_TOO_LONG), (1, &[0xff, 0xff, 0x03])]
            } else {
                &[(2, &[0x7f, 0xff]), (2, &[0x80, 0]), (2, &[0xff, 0xfe])]
            };
            for (old, new) in hostile {
                let refused = check(api, version, &replace(&body, at, *old, new));
                assert!(refused.is_err(), "{api} {version} at {at}: {new:x?} passes");
            }
        }
    }
}

/// Every null that a version does not have (V-108): the codec refuses it too, or would read a null where we expect
/// none.
#[test]
fn forbidden_nulls_are_refused() {
    use Malformed::ForbiddenNull;
    let check_null = |api, version, body: &[u8], expected: Result<usize, Malformed>, rule: &str| {
        let found = check(api, version, body).map(|passed| passed.consumed);
        assert_eq!(found, expected, "{api} {version}: {rule}");
    };
    let null_list = (-1_i32).to_be_bytes();
    check_null(Api::Metadata, 0, &null_list, Err(ForbiddenNull), "V-108");
    check_null(Api::Metadata, 1, &null_list, Ok(4), "M-204");
    check_null(Api::OffsetFetch, 1, &[&[0, 1, b'g'][..], &null_list].concat(), Err(ForbiddenNull), "V-108");
    check_null(Api::OffsetFetch, 2, &[&[0, 1, b'g'][..], &null_list].concat(), Ok(7), "O-6xx");
    check_null(Api::Heartbeat, 4, &[0, 0, 0, 0, 0, 2, b'm', 0, 0], Err(ForbiddenNull), "compact 0 is null");
    check_null(Api::DescribeTransactions, 0, &[2, 0, 0], Err(ForbiddenNull), "a null id in a list");
}

/// Requests as the codec's own builders write them.
#[test]
fn requests_built_with_the_codec_pass() {
    fn check_built<T: Encodable>(api: Api, version: i16, request: &T) {
        let mut body = BytesMut::new();
        request.encode(&mut body, version).unwrap();
        let passed = check(api, version, &body).map(|passed| passed.consumed);
        assert_eq!(passed, Ok(body.len()), "{api} {version}");
    }
    let text = StrBytes::from_static_str;
    let topic = || TopicName(text("orders"));
    for version in 3..=9 {
        let partitions = vec![
            produce_request::PartitionProduceData::default().with_records(Some(Bytes::from(vec![7; 70_000]))),
            produce_request::PartitionProduceData::default().with_index(1).with_records(None),
        ];
        let topics = vec![
            produce_request::TopicProduceData::default().with_name(topic()).with_partition_data(partitions),
            produce_request::TopicProduceData::default(),
        ];
        let request = ProduceRequest::default()
            .with_transactional_id(Some(TransactionalId(text("t"))))
            .with_acks(-1)
            .with_topic_data(topics);
        check_built(Api::Produce, version, &request);
    }
    let partition = || fetch_request::FetchPartition::default().with_partition(3).with_fetch_offset(1 << 40);
    let fetched = fetch_request::FetchTopic::default().with_topic(topic()).with_partitions(vec![partition(); 3]);
    let fetch = FetchRequest::default()
        .with_cluster_id(Some(text("a cluster id in a tagged field")))
        .with_topics(vec![fetched.clone(), fetched])
        .with_forgotten_topics_data(vec![
            fetch_request::ForgottenTopic::default().with_topic(topic()).with_partitions(vec![1, 2, 3]),
        ])
        .with_rack_id(text("rack"));
    check_built(Api::Fetch, 12, &fetch);
    let group = offset_fetch_request::OffsetFetchRequestGroup::default().with_group_id(GroupId(text("g")));
    let all = group.clone().with_topics(None);
    let some = group.with_topics(Some(vec![
        offset_fetch_request::OffsetFetchRequestTopics::default().with_name(topic()).with_partition_indexes(vec![0]),
    ]));
    let several = OffsetFetchRequest::default().with_groups(vec![all, some]).with_require_stable(true);
    check_built(Api::OffsetFetch, 8, &several);
}

/// Unknown tags pass up to their number, in the body and inside a struct, and their sizes are checked.
#[test]
fn unknown_tags_are_bounded() {
    let with_tags = |count: u8, size: u8| {
        let mut body = BytesMut::from(&[2, 2, b't'][..]);
        body.put_u8(count);
        for tag in 0..count {
            body.put_u8(tag);
            body.put_u8(size);
            body.put_bytes(b'x', usize::from(size));
        }
        body.put_slice(&[1, 0, 0, 0]);
        body.freeze()
    };
    for (count, size, passes) in [(0, 0, true), (1, 3, true), (64, 0, true), (64, 9, true), (65, 0, false)] {
        let body = with_tags(count, size);
        let found = check(Api::Metadata, 9, &body).map(|passed| passed.consumed);
        let expected = if passes { Ok(body.len()) } else { Err(Malformed::TooManyTags) };
        assert_eq!(found, expected, "{count} tags of {size} bytes: C-107");
        if passes {
            assert_eq!(codec(Api::Metadata, 9, &body).unwrap().consumed, body.len());
        }
    }
    let truncated = [1, 0, 0, 0, 1, 9, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(check(Api::Metadata, 9, &truncated), Err(Malformed::Truncated));
}

/// The codec ignores the size of a tag it knows; where size and value differ, the two would read different requests.
#[test]
fn a_known_tag_has_the_size_of_its_value() {
    let mut head = BytesMut::new();
    head.put_bytes(0, 25);
    head.put_slice(&[1, 1, 1]);
    let body = |tags: &[u8]| [&head[..], tags].concat();
    assert_eq!(check(Api::Fetch, 12, &body(&[1, 0, 3, 3, b'i', b'd'])).map(|passed| passed.consumed), Ok(34));
    for size in [0, 2, 4, 90] {
        assert_eq!(check(Api::Fetch, 12, &body(&[1, 0, size, 3, b'i', b'd'])), Err(Malformed::TagSize), "{size}");
    }
}

/// A frame of a few hundred kilobytes may not become tens of megabytes (P8).
#[test]
fn small_elements_do_not_multiply_into_much_memory() {
    let count = MAX_DECODED_BYTES / STRUCT_BYTES;
    let topics = |count: usize| {
        let mut body = BytesMut::new();
        body.put_i32(i32::try_from(count).unwrap());
        for _ in 0..count {
            body.put_slice(&[0, 1, b't']);
        }
        body.freeze()
    };
    let most = topics(count);
    let passed = Passed { consumed: most.len(), decoded_bytes: MAX_DECODED_BYTES };
    assert_eq!(check(Api::Metadata, 0, &most), Ok(passed));
    assert_eq!(check(Api::Metadata, 0, &topics(count + 1)), Err(Malformed::TooManyElements));
}

/// The charge for an element is not less than what the codec makes of it.
#[test]
fn decoded_elements_take_no_more_than_they_are_charged() {
    macro_rules! structs {
        ($($module:ident :: $name:ident),+ $(,)?) => {$(
            let size = std::mem::size_of::<$module::$name>();
            assert!(size <= STRUCT_BYTES, "{} takes {size}", stringify!($name));
        )+};
    }
    structs!(
        produce_request::TopicProduceData,
        produce_request::PartitionProduceData,
        fetch_request::FetchTopic,
        fetch_request::FetchPartition,
        fetch_request::ForgottenTopic,
        list_offsets_request::ListOffsetsTopic,
        list_offsets_request::ListOffsetsPartition,
        metadata_request::MetadataRequestTopic,
        offset_commit_request::OffsetCommitRequestTopic,
        offset_commit_request::OffsetCommitRequestPartition,
        offset_fetch_request::OffsetFetchRequestTopic,
        offset_fetch_request::OffsetFetchRequestTopics,
        offset_fetch_request::OffsetFetchRequestGroup,
        join_group_request::JoinGroupRequestProtocol,
        leave_group_request::MemberIdentity,
        sync_group_request::SyncGroupRequestAssignment,
        create_topics_request::CreatableTopic,
        create_topics_request::CreatableReplicaAssignment,
        create_topics_request::CreatableTopicConfig,
        delete_records_request::DeleteRecordsTopic,
        delete_records_request::DeleteRecordsPartition,
        offset_for_leader_epoch_request::OffsetForLeaderTopic,
        offset_for_leader_epoch_request::OffsetForLeaderPartition,
        add_partitions_to_txn_request::AddPartitionsToTxnTopic,
        write_txn_markers_request::WritableTxnMarker,
        write_txn_markers_request::WritableTxnMarkerTopic,
        txn_offset_commit_request::TxnOffsetCommitRequestTopic,
        txn_offset_commit_request::TxnOffsetCommitRequestPartition,
        describe_configs_request::DescribeConfigsResource,
        alter_configs_request::AlterConfigsResource,
        alter_configs_request::AlterableConfig,
        create_partitions_request::CreatePartitionsTopic,
        create_partitions_request::CreatePartitionsAssignment,
        incremental_alter_configs_request::AlterConfigsResource,
        incremental_alter_configs_request::AlterableConfig,
        offset_delete_request::OffsetDeleteRequestTopic,
        offset_delete_request::OffsetDeleteRequestPartition,
        describe_log_dirs_request::DescribableLogDirTopic,
        describe_producers_request::TopicRequest,
    );
    assert!(std::mem::size_of::<StrBytes>() <= TEXT_BYTES);
}

/// The shapes are tables, so their depth bounds the walk's recursion.
#[test]
fn shapes_are_shallow() {
    fn depth(shape: &'static Shape, version: i16) -> usize {
        let inner = shape.fields_in(version).map(|field| match field.kind {
            Kind::List(inner) => depth(inner, version),
            Kind::Fixed(_) | Kind::Text | Kind::Blob | Kind::FixedList(_) | Kind::TextList => 0,
        });
        1 + inner.max().unwrap_or(0)
    }
    for (api, version) in every_version() {
        assert!(depth(of(api), version) <= 4, "{api} {version}");
    }
}

/// What the guard lets through, the codec reads from the very same bytes or refuses; a count the guard had not seen
/// would end this process in a failed allocation.
fn agrees(api: Api, version: i16, body: &Bytes) -> Result<(), TestCaseError> {
    if let Ok(passed) = check(api, version, body)
        && let Ok(decoded) = codec(api, version, body)
    {
        prop_assert_eq!(passed.consumed, decoded.consumed, "{} {}: {:x?}", api, version, body);
    }
    Ok(())
}

fn any_version() -> impl Strategy<Value = (Api, i16)> {
    proptest::sample::select(every_version().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes((api, version) in any_version(), body in proptest::collection::vec(any::<u8>(), 0..200)) {
        agrees(api, version, &body.into())?;
    }

    /// Small numbers are lengths and counts that fit, so these go deeper.
    #[test]
    fn random_small_bytes((api, version) in any_version(), body in proptest::collection::vec(0_u8..4, 0..300)) {
        agrees(api, version, &body.into())?;
    }

    #[test]
    fn damaged_bodies(
        (api, version) in any_version(),
        elements in 0_usize..4,
        nulls in any::<bool>(),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 0_u8..3), 1..4),
    ) {
        let mut body = Writer::write(api, version, elements, nulls).body().to_vec();
        for (index, byte, deed) in edits {
            let at = index.index(body.len() + 1);
            match (deed, at < body.len()) {
                (0, true) => body[at] = byte,
                (1, true) => drop(body.remove(at)),
                _ => body.insert(at, byte),
            }
        }
        agrees(api, version, &body.into())?;
    }
}
