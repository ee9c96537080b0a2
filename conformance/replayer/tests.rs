//! The replayer's own parts: the codec against another one, and the readers.

use bytes::{Bytes as Wire, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, Message};

use crate::codec::{Bytes, Form, complete};
use crate::compare::{Reason, differences};
use crate::normal::Names;
use crate::play::Exchange;
use crate::records;
use crate::run::{self, Options, Task};
use crate::schema::{Field, Kind, Range, Schema};
use crate::script::{Act, Script};
use crate::tree::{Tree, parse};

/// A tree with two entries in each list and something in each field.
fn filled(fields: &[Field], version: i16) -> Tree {
    let of = |field: &Field| (field.name.clone(), sample(&field.kind, version));
    Tree::Fields(fields.iter().filter(|field| field.versions.has(version)).map(of).collect())
}

fn sample(kind: &Kind, version: i16) -> Tree {
    match kind {
        Kind::Bool => Tree::Bool(true),
        Kind::Int8 => Tree::Int(-7),
        Kind::Int16 => Tree::Int(3_001),
        Kind::Int32 => Tree::Int(-70_001),
        Kind::Int64 => Tree::Int(1 << 40),
        Kind::Text => Tree::text("näme"),
        Kind::Bytes => Tree::text("00ff10"),
        Kind::Uuid => Tree::text("00010203-0405-0607-0809-0a0b0c0d0e0f"),
        Kind::Records => parse("[{producer: 5, producerEpoch: 1, seq: 2, time: 9, values: [a, b]}]").unwrap(),
        Kind::List(item) => match item.as_ref() {
            Kind::Fields(fields) => Tree::List(vec![filled(fields, version), filled(fields, version)]),
            plain => Tree::List(vec![sample(plain, version), sample(plain, version)]),
        },
        Kind::Fields(fields) => filled(fields, version),
    }
}

/// What the schema encodes the other codec decodes, and encodes to the same bytes again.
fn check<M: Message + Encodable + Decodable>(fields: &[Field], flexible: i16, what: &str) {
    for version in M::VERSIONS.min..=M::VERSIONS.max {
        let form = Form { version, flexible: version >= flexible, now_ms: 0 };
        let tree = complete(fields, version, &filled(fields, version)).unwrap();
        let mut bytes = Vec::new();
        form.encode(fields, &tree, &mut bytes).unwrap();
        let mut wire = Wire::from(bytes.clone());
        let message = M::decode(&mut wire, version).unwrap_or_else(|error| panic!("{what} {version}: {error}"));
        assert!(wire.is_empty(), "{what} {version}: {} bytes are left", wire.len());
        let mut again = BytesMut::new();
        message.encode(&mut again, version).unwrap_or_else(|error| panic!("{what} {version}: {error}"));
        assert_eq!(&again[..], &bytes[..], "{what} {version}");
        let mut rest = Bytes(&bytes);
        let read = form.decode(fields, &mut rest).unwrap();
        assert!(rest.0.is_empty(), "{what} {version}: {} bytes are left by our own", rest.0.len());
        let mut once_more = Vec::new();
        if !tree.compact().contains("seq") {
            form.encode(fields, &read, &mut once_more).unwrap();
            assert_eq!(once_more, bytes, "{what} {version}: read and written again");
        }
    }
}

macro_rules! check_all {
    ($schema:expr; $($name:literal, $request:ty, $response:ty;)+) => {{
        let mut left: Vec<String> = $schema.apis.keys().cloned().collect();
        $(
            let api = $schema.api($name).unwrap();
            check::<$request>(&api.request, api.flexible, concat!($name, " request"));
            check::<$response>(&api.response, api.flexible, concat!($name, " response"));
            left.retain(|name| name != $name);
        )+
        assert_eq!(left, Vec::<String>::new(), "APIs that nobody checks");
    }};
}

#[test]
fn the_schema_is_what_another_codec_says() {
    let schema = Schema::built_in().unwrap();
    check_all!(schema;
        "Produce", ProduceRequest, ProduceResponse;
        "Fetch", FetchRequest, FetchResponse;
        "ListOffsets", ListOffsetsRequest, ListOffsetsResponse;
        "Metadata", MetadataRequest, MetadataResponse;
        "OffsetCommit", OffsetCommitRequest, OffsetCommitResponse;
        "OffsetFetch", OffsetFetchRequest, OffsetFetchResponse;
        "FindCoordinator", FindCoordinatorRequest, FindCoordinatorResponse;
        "JoinGroup", JoinGroupRequest, JoinGroupResponse;
        "Heartbeat", HeartbeatRequest, HeartbeatResponse;
        "LeaveGroup", LeaveGroupRequest, LeaveGroupResponse;
        "SyncGroup", SyncGroupRequest, SyncGroupResponse;
        "DescribeGroups", DescribeGroupsRequest, DescribeGroupsResponse;
        "ListGroups", ListGroupsRequest, ListGroupsResponse;
        "ApiVersions", ApiVersionsRequest, ApiVersionsResponse;
        "CreateTopics", CreateTopicsRequest, CreateTopicsResponse;
        "DeleteTopics", DeleteTopicsRequest, DeleteTopicsResponse;
        "DeleteRecords", DeleteRecordsRequest, DeleteRecordsResponse;
        "InitProducerId", InitProducerIdRequest, InitProducerIdResponse;
        "OffsetForLeaderEpoch", OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
        "AddPartitionsToTxn", AddPartitionsToTxnRequest, AddPartitionsToTxnResponse;
        "AddOffsetsToTxn", AddOffsetsToTxnRequest, AddOffsetsToTxnResponse;
        "EndTxn", EndTxnRequest, EndTxnResponse;
        "WriteTxnMarkers", WriteTxnMarkersRequest, WriteTxnMarkersResponse;
        "TxnOffsetCommit", TxnOffsetCommitRequest, TxnOffsetCommitResponse;
        "DescribeConfigs", DescribeConfigsRequest, DescribeConfigsResponse;
        "AlterConfigs", AlterConfigsRequest, AlterConfigsResponse;
        "DescribeLogDirs", DescribeLogDirsRequest, DescribeLogDirsResponse;
        "CreatePartitions", CreatePartitionsRequest, CreatePartitionsResponse;
        "DeleteGroups", DeleteGroupsRequest, DeleteGroupsResponse;
        "IncrementalAlterConfigs", IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
        "OffsetDelete", OffsetDeleteRequest, OffsetDeleteResponse;
        "DescribeCluster", DescribeClusterRequest, DescribeClusterResponse;
        "DescribeProducers", DescribeProducersRequest, DescribeProducersResponse;
        "DescribeTransactions", DescribeTransactionsRequest, DescribeTransactionsResponse;
        "ListTransactions", ListTransactionsRequest, ListTransactionsResponse;
    );
    assert!(Range { first: 2, last: 4 }.has(4) && !Range { first: 2, last: 4 }.has(5));
}

#[test]
fn a_batch_is_read_as_it_was_written() {
    let text = "[{producer: 5, producerEpoch: 1, seq: 2, txn: true, time: 9, records: [{key: k, value: v, time: 3}]}]";
    let bytes = records::encode(&parse(text).unwrap(), 0).unwrap();
    let read = records::decode(&bytes).unwrap();
    for (path, wanted) in [
        ("/0/attributes", "16"),
        ("/0/maxTimestamp", "12"),
        ("/0/producerId", "5"),
        ("/0/baseSequence", "2"),
        ("/0/records/0/key", "\"k\""),
    ] {
        assert_eq!(read.at(path).map(Tree::compact).as_deref(), Some(wanted), "{path}");
    }
    assert_eq!(read.at("/0/crc"), None, "the checksum is right");
    let bad = records::encode(&parse("[{crc: 1, values: [a]}]").unwrap(), 0).unwrap();
    assert_eq!(records::decode(&bad).unwrap().at("/0/crc"), Some(&Tree::text("wrong")));
}

#[test]
fn a_script_is_spread_out() {
    let text = "# About it.\ndef ask(a, b)\n  EndTxn/@b {TransactionalId: @a} => p=/ProducerId retry 51,14\nend\n\
                for v,c in 0,\"x y\" 3,z\n  > title @v [T-1 T-2#3]\n  ask(@c, @v)\nend\nask(last, 2)\n";
    let script = Script::parse("s", "", text).unwrap();
    let titles: Vec<&str> = script.steps.iter().map(|step| step.title.as_str()).collect();
    assert_eq!(titles, ["title 0", "title 3", "(EndTxn 1)"]);
    assert_eq!(script.about, "About it.");
    assert_eq!(script.steps[1].rules, ["T-1", "T-2#3"]);
    let Act::Ask(ask) = &script.steps[0].act else { panic!("it asks") };
    assert_eq!(ask.body.as_ref().unwrap().compact(), r#"{"TransactionalId": "x y"}"#);
    assert_eq!((ask.version, ask.retry.as_slice(), ask.keep.len()), (0, [51, 14].as_slice(), 1));
}

#[test]
fn what_differs_from_run_to_run_has_a_name() {
    let mut names = Names::new("-1a".to_owned(), 1_700_000_000_000);
    names.keep("p", "/ProducerId", Tree::Int(77));
    let answer = parse(
        "{ProducerId: 77, Topics: [{Name: b-1a, ProducerId: 78}, {Name: a-1a, ProducerId: -1}], At: 1700000000123, \
          ErrorMessage: oh, Port: 9092, Partitions: [2, 1]}",
    );
    let (tree, changed) = names.normal(&answer.unwrap(), false);
    let wanted = r#"{"ProducerId": "$p", "Topics": [{"Name": "a~", "ProducerId": -1}, {"Name": "b~", "ProducerId": "<producer id>"}], "At": "<time>", "ErrorMessage": "<text>", "Port": "<port>", "Partitions": [1, 2]}"#;
    assert_eq!(tree.compact(), wanted);
    assert_eq!(changed.len(), 7, "{changed:?}");
    assert_eq!(names.resolve(&parse("{A: $p+1, B: x~}").unwrap()).unwrap().compact(), r#"{"A": 78, "B": "x-1a"}"#);
}

#[test]
fn a_difference_needs_a_reason() {
    let exchange = |code: i64| Exchange {
        step: "one, version 3".to_owned(),
        rules: Vec::new(),
        connection: "a".to_owned(),
        call: "EndTxn 3".to_owned(),
        request: Tree::Null,
        response: Tree::Fields(vec![("ErrorCode".to_owned(), Tree::Int(code))]),
        normalised: Vec::new(),
    };
    let same = differences("s", &[exchange(0)], &[exchange(0)]).unwrap();
    assert_eq!(same, []);
    let found = differences("s", &[exchange(0)], &[exchange(51)]).unwrap();
    assert_eq!(found.len(), 1);
    let reasons = parse(
        r#"[{"script": "s", "step": "one, *", "field": "/ErrorCode", "ours": 51, "why": "T-254"},
            {"script": "s", "step": "one, *", "field": "/ErrorCode", "ours": 48, "why": "T-254"},
            {"script": "s", "step": "two, *", "field": "*", "ours": "*", "why": "T-254"}]"#,
    );
    let reasons = Reason::all(&reasons.unwrap()).unwrap();
    let explained: Vec<bool> = reasons.iter().map(|reason| reason.explains(&found[0])).collect();
    assert_eq!(explained, [true, false, false]);
}

#[test]
fn the_page_about_what_is_covered_is_current() {
    let options = Options { task: Task::Coverage, check: true, ..Options::default() };
    assert_eq!(run::run(&options), Ok(true), "conformance/replay --coverage writes it");
}
