//! Topics grown and set otherwise while they are in use.

use kafka_protocol::messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::{
    AlterConfigsRequest, BrokerId, CreatePartitionsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest,
    alter_configs_request, incremental_alter_configs_request,
};

use crate::broker::TestBroker;
use crate::raw::Client;
use crate::raw::batch::Batch;
use crate::raw::data::Isolation;
use crate::raw::text;
use crate::retention::{LOOK_MS, START_MS, by_hand, earliest, names, until};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn partitions(client: &mut Client, topic: &str) -> Vec<i32> {
    let answer = client.metadata(Some(&[topic]), false);
    let parts = answer.topics[0].partitions.iter();
    parts.map(|part| part.partition_index).collect()
}

/// M-234, in every version.
#[test]
fn partitions_are_added() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("other", 1), 0);
    for version in 0..=3 {
        let name = format!("t-v{version}");
        assert_eq!(client.create_topic(&name, 2), 0);
        let all = [(&*name, 4), ("none", 2), ("other", 2), ("other", 3)];
        for validate_only in [true, false] {
            let grown = client.create_partitions(version, &all, validate_only);
            let expected = [(&*name, 0, false), ("none", 3, true), ("other", 42, true)];
            let expected = expected.map(|(name, code, told)| (name.to_owned(), code, told));
            assert_eq!(grown, expected, "M-234, version {version}");
            let held = if validate_only { vec![0, 1] } else { vec![0, 1, 2, 3] };
            assert_eq!(partitions(&mut client, &name), held, "M-234, version {version}");
        }
        for count in [4, 3, 0, -1] {
            let code = client.create_partitions(version, &[(&name, count)], false)[0].1;
            assert_eq!(code, 37, "M-234: {count}, version {version}");
        }
        let code = client.create_partitions(version, &[(&name, i32::MAX)], false)[0].1;
        assert_eq!(code, 44, "M-221, version {version}");
    }
    assert_eq!(partitions(&mut client, "other"), [0], "M-234: twice is not even once");
    assert!(client.create_partitions(3, &[], false).is_empty());
}

/// M-234.
#[test]
fn partitions_are_added_where_they_are_assigned() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let mut grow = |brokers: &[&[i32]]| {
        let one = |ids: &&[i32]| {
            let ids = ids.iter().map(|id| BrokerId(*id)).collect();
            CreatePartitionsAssignment::default().with_broker_ids(ids)
        };
        let topic = CreatePartitionsTopic::default().with_name(text("t").into()).with_count(3);
        let topic = topic.with_assignments(Some(brokers.iter().map(one).collect()));
        client.call(3, &CreatePartitionsRequest::default().with_topics(vec![topic])).results[0].error_code
    };
    for bad in [&[&[1][..]][..], &[], &[&[1], &[]], &[&[1], &[7]], &[&[1], &[1, 1]]] {
        assert_eq!(grow(bad), 39, "M-234: {bad:?}");
    }
    assert_eq!(grow(&[&[1], &[1]]), 0, "M-234");
    assert_eq!(partitions(&mut client, "t"), [0, 1, 2]);
}

/// M-234: who writes within a transaction notices nothing, may join the new partitions, and all is there after a crash.
#[test]
fn a_topic_grows_under_a_transaction() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let owner = client.owner("id");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0), ("t", 1)]), [55, 3], "there is no such partition yet");
    assert_eq!(client.add_partitions("id", owner, &[("t", 0)]), [0]);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 0, 1).values("a", 1)).code, 0);
    assert_eq!(client.create_partitions(3, &[("t", 3)], false)[0].1, 0);
    assert_eq!(client.produce("t", 0, Some("id"), &Batch::transactional(owner, 1, 1).values("b", 1)).code, 0);
    let new = Batch::transactional(owner, 0, 1).values("c", 1);
    assert_eq!(client.produce("t", 2, Some("id"), &new).code, 48, "T-385: it is not in the transaction");
    assert_eq!(client.add_partitions("id", owner, &[("t", 2)]), [0]);
    let appended = client.produce("t", 2, Some("id"), &new);
    assert_eq!((appended.code, appended.base_offset), (0, 0), "M-234: new partitions are empty");
    let plain = Batch::plain(1).values("plain", 1);
    assert_eq!(client.produce("t", 1, None, &plain).base_offset, 0);
    client.end_txn_surely("id", owner, true);
    for _ in 0..2 {
        assert_eq!(partitions(&mut client, "t"), [0, 1, 2]);
        assert_eq!(client.read_all("t", 0, Isolation::ReadCommitted), ["a-0", "b-0"]);
        assert_eq!(client.read_all("t", 1, Isolation::ReadCommitted), ["plain-0"]);
        assert_eq!(client.read_all("t", 2, Isolation::ReadCommitted), ["c-0"]);
        drop(client);
        broker.crash();
        broker.start_again(|_| {});
        client = broker.connect();
    }
}

/// in every version of both requests.
#[test]
fn settings_are_changed_resource_by_resource() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for version in 0..=2 {
        let name = format!("t-v{version}");
        assert_eq!(client.create_topic_with(&name, 1, &[("retention.ms", "5")]), 0);
        let resources: [(i8, &str); 8] =
            [(2, &name), (2, "none"), (2, "a b"), (2, ""), (4, "1"), (4, "7"), (3, "x"), (4, "1")];
        for validate_only in [true, false] {
            let resource = |(kind, name): &(i8, &str)| {
                let given = alter_configs_request::AlterableConfig::default().with_name(text("segment.ms"));
                let given = if *kind == 2 { vec![given.with_value(Some(text("9")))] } else { Vec::new() };
                let resource = alter_configs_request::AlterConfigsResource::default().with_resource_type(*kind);
                resource.with_resource_name(text(name)).with_configs(given)
            };
            let request = AlterConfigsRequest::default().with_resources(resources.iter().map(resource).collect());
            let answer = client.call(version, &request.with_validate_only(validate_only));
            let said: Vec<_> = (answer.responses.iter())
                .map(|one| ((one.resource_type, &*one.resource_name), one.error_code, one.error_message.is_some()))
                .collect();
            let codes = [0, 3, 17, 42, 42, 42, 42, 42];
            let expected: Vec<_> =
                resources.iter().zip(codes).map(|(resource, code)| (*resource, code, code != 0)).collect();
            assert_eq!(said, expected, "A-312 to A-315, version {version}");
            let expected = if validate_only { ("retention.ms", "5") } else { ("segment.ms", "9") };
            let expected = [(expected.0.to_owned(), expected.1.to_owned())];
            assert_eq!(client.given_to(&name), expected, "A-317, A-318, version {version}");
        }
    }
    for version in 0..=1 {
        let key = incremental_alter_configs_request::AlterableConfig::default().with_name(text("segment.ms"));
        let resource = |name: &str, operation: i8| {
            let key = key.clone().with_config_operation(operation).with_value(Some(text("7")));
            incremental_alter_configs_request::AlterConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(text(name))
                .with_configs(vec![key])
        };
        let resources =
            vec![resource("t-v0", SET), resource("t-v1", 9), resource("none", SET), resource("t-v2", APPEND)];
        let request = IncrementalAlterConfigsRequest::default().with_resources(resources);
        let answer = client.call(version, &request.with_validate_only(version == 0));
        let codes: Vec<_> = answer.responses.iter().map(|one| one.error_code).collect();
        assert_eq!(codes, [0, 42, 3, 40], "A-312, A-315, version {version}");
        let value = if version == 0 { "9" } else { "7" };
        assert_eq!(client.given_to("t-v0"), [("segment.ms".to_owned(), value.to_owned())], "A-317");
    }
}

/// and that what was answered is there after a crash.
#[test]
fn settings_are_changed_key_by_key() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic_with("t", 1, &[("retention.ms", "5")]), 0);
    let topic = (2, "t");
    assert_eq!(client.alter_keys(topic, &[("cleanup.policy", APPEND, Some("compact"))]), 0);
    assert_eq!(
        client.alter_keys(topic, &[("cleanup.policy", SUBTRACT, Some("delete")), ("retention.ms", DELETE, None)]),
        0
    );
    assert_eq!(client.alter_keys(topic, &[("segment.ms", SET, Some("604800000"))]), 0);
    assert_eq!(client.alter_keys(topic, &[("segment.ms", SET, Some("1")), ("no.such", SET, Some("1"))]), 40, "A-317");
    assert_eq!(client.alter_keys(topic, &[("no.such", DELETE, None)]), 0, "A-317");
    assert_eq!(client.alter_keys((4, "1"), &[("log.retention.ms", SET, Some("1"))]), 42, "A-342");
    assert_eq!(client.alter_keys((4, ""), &[("log.retention.ms", DELETE, None)]), 0, "A-316");
    let expected = [("cleanup.policy", "compact"), ("segment.ms", "604800000")];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(client.given_to("t"), expected, "A-316: the default's own value is an override too");
    drop(client);
    broker.crash();
    broker.start_again(|_| {});
    assert_eq!(broker.connect().given_to("t"), expected);
}

/// who wants to know what was set is not told of what nobody set.
#[test]
fn only_what_the_configuration_changes_counts_as_stated() {
    for (retention_ms, source) in [(604_800_000, 5), (60_000, 4)] {
        let broker = TestBroker::with(|config| config.topics.retention_ms = retention_ms);
        let mut client = broker.connect();
        assert_eq!(client.create_topic("t", 1), 0);
        let resource = DescribeConfigsResource::default().with_resource_type(2).with_resource_name(text("t"));
        let resource = resource.with_configuration_keys(Some(vec![text("retention.ms")]));
        let answer = client.call(4, &DescribeConfigsRequest::default().with_resources(vec![resource]));
        let shown = &answer.results[0].configs[0];
        assert_eq!((shown.value.as_deref(), shown.config_source), (Some(&*retention_ms.to_string()), source), "A-306");
    }
}

/// appends are held to a change from the next one on, and after a start.
#[test]
fn a_change_holds_for_the_next_append() {
    let (mut broker, clock) = by_hand();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let long = Batch::plain(1).values(&"x".repeat(2_000), 1);
    let short = Batch::plain(1).values("s", 1);
    let put = |client: &mut Client, batch: &Batch| client.produce("t", 0, None, batch).code;
    assert_eq!((put(&mut client, &long), put(&mut client, &short)), (0, 0));
    assert_eq!(client.set_topic("t", &[("max.message.bytes", "1000")]), 0);
    assert_eq!((put(&mut client, &long), put(&mut client, &short)), (10, 0), "A-319");
    assert_eq!(client.set_topic("t", &[("message.timestamp.before.max.ms", "1000")]), 0);
    clock.advance(5_000);
    assert_eq!(put(&mut client, &short), 32, "A-319");
    assert_eq!(client.set_topic("t", &[("message.timestamp.type", "LogAppendTime")]), 0);
    let appended = client.produce("t", 0, None, &short);
    assert_eq!((appended.code, appended.log_append_time), (0, START_MS + 5_000), "A-319");
    assert_eq!(client.set_topic("t", &[("cleanup.policy", "compact")]), 0);
    assert_eq!(put(&mut client, &short), 87, "A-319: a record without a key");
    drop(client);
    broker.crash();
    let own = clock.clone();
    broker.start_again(|parts| parts.clock = own);
    let mut client = broker.connect();
    assert_eq!((put(&mut client, &long), put(&mut client, &short)), (10, 87));
    assert_eq!(client.alter_keys((2, "t"), &[("cleanup.policy", DELETE, None)]), 0);
    assert_eq!(put(&mut client, &short), 0, "A-319");
}

/// a log that is in use, one that was never opened, and one that is opened after a start are kept as set.
#[test]
fn a_change_holds_for_the_next_segment_and_look() {
    let (mut broker, clock) = by_hand();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 2), 0);
    let fill = |client: &mut Client, part: i32| {
        for _ in 0..6 {
            assert_eq!(client.produce("t", part, None, &Batch::plain(1)).code, 0);
        }
    };
    let logs = |broker: &TestBroker, part: i32| names(broker, &format!("t-{part}"), ".log").len();
    fill(&mut client, 0);
    assert_eq!((logs(&broker, 0), logs(&broker, 1)), (1, 0));
    assert_eq!(client.set_topic("t", &[("internal.segment.bytes", "100")]), 0);
    assert_eq!(logs(&broker, 1), 0, "a partition is not opened to be told how it is kept");
    fill(&mut client, 0);
    fill(&mut client, 1);
    assert!(logs(&broker, 0) > 4 && logs(&broker, 1) > 4, "A-319");
    drop(client);
    broker.stop();
    let own = clock.clone();
    broker.start_again(|parts| parts.clock = own);
    let mut client = broker.connect();
    let before = logs(&broker, 1);
    fill(&mut client, 1);
    assert!(logs(&broker, 1) > before + 4, "A-319");
    clock.advance(LOOK_MS);
    assert_eq!(earliest(&mut client, "t", 1), 0);
    assert_eq!(client.set_topic("t", &[("retention.ms", "1000")]), 0);
    clock.advance(LOOK_MS);
    until("what is too old now has gone", || earliest(&mut client, "t", 1) > 4);
}
