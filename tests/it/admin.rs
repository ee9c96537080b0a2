//! Topics made, found, described and deleted, as operators and their tools see it.

use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiVersionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest, DescribeConfigsRequest,
    FindCoordinatorRequest, MetadataRequest,
};
use oncelog::wire::Api;

use crate::broker::TestBroker;
use crate::raw::batch::Batch;
use crate::raw::data::Isolation;
use crate::raw::txn::Member;
use crate::raw::{Client, text};

/// V-123, V-124 and the empty list of features: what keeps clients on the classic protocol.
#[test]
fn api_versions_lists_what_is_served() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for version in 0..=3 {
        let request = ApiVersionsRequest::default();
        let request = if version == 3 {
            request.with_client_software_name(text("x")).with_client_software_version(text("1"))
        } else {
            request
        };
        let answer = client.call(version, &request);
        assert_eq!(answer.error_code, 0, "version {version}");
        assert!(answer.supported_features.is_empty() && answer.finalized_features.is_empty());
        assert_eq!(answer.finalized_features_epoch, -1);
        let listed: Vec<_> =
            answer.api_keys.iter().map(|row| (row.api_key, row.min_version, row.max_version)).collect();
        let expected: Vec<_> =
            (Api::ALL.iter()).map(|api| (api.key(), api.versions().listed, api.versions().highest)).collect();
        assert_eq!(listed, expected, "version {version}");
    }
}

/// C-109, V-121.
#[test]
fn api_versions_refuses_odd_software() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for (name, version, code) in
        [("", "1", 42), ("a b", "1", 42), ("ok-1.0", "1.0", 0), ("ok", "1\n2", 42), ("ok", "", 42), ("ok", "1", 0)]
    {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(text(name))
            .with_client_software_version(text(version));
        let answer = client.call(3, &request);
        assert_eq!(answer.error_code, code, "{name:?} {version:?}");
        assert_eq!(answer.api_keys.is_empty(), code != 0, "{name:?} {version:?}");
    }
}

/// M-204, M-208, M-209, in every version.
#[test]
fn metadata_shows_topics_and_the_listener() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("b", 2), 0);
    assert_eq!(client.create_topic("a", 1), 0);
    for version in 0..=9 {
        let all = if version == 0 { Some(Vec::new()) } else { None };
        let answer = client.call(version, &MetadataRequest::default().with_topics(all));
        let names: Vec<_> = answer.topics.iter().map(|topic| topic.name.as_ref().unwrap().as_str()).collect();
        assert_eq!(names, ["a", "b"], "M-204, version {version}");
        assert_eq!(answer.brokers.len(), 1);
        assert_eq!(answer.brokers[0].port, i32::from(broker.address().port()), "M-209");
        assert_eq!(answer.brokers[0].host.as_str(), "127.0.0.1");
        let parts = &answer.topics[1].partitions;
        assert_eq!(parts.iter().map(|part| part.partition_index).collect::<Vec<_>>(), [0, 1]);
        for part in parts {
            assert_eq!((part.error_code, part.leader_id), (0, answer.brokers[0].node_id), "M-208");
            assert_eq!(part.replica_nodes, vec![answer.brokers[0].node_id]);
            assert_eq!(part.leader_epoch >= 0, version >= 7, "version {version}");
        }
        if version >= 1 {
            assert_eq!(answer.controller_id, answer.brokers[0].node_id);
            let none = client.call(version, &MetadataRequest::default().with_topics(Some(Vec::new())));
            assert!(none.topics.is_empty(), "M-204, version {version}");
        }
        if version >= 8 {
            assert_eq!(answer.topics[0].topic_authorized_operations, i32::MIN, "M-215");
            assert_eq!(answer.cluster_authorized_operations, i32::MIN, "M-215");
            let asked = MetadataRequest::default()
                .with_topics(None)
                .with_include_cluster_authorized_operations(true)
                .with_include_topic_authorized_operations(true);
            let answer = client.call(version, &asked);
            assert_eq!(answer.topics[0].topic_authorized_operations, 3576, "M-215");
            assert_eq!(answer.cluster_authorized_operations, 8096, "M-215");
        }
    }
}

/// M-206, M-207, M-210, M-211, M-213.
#[test]
fn metadata_makes_topics() {
    let broker = TestBroker::with(|config| config.topics.default_partitions = 3);
    let mut client = broker.connect();
    let forbidden = client.metadata(Some(&["x"]), false);
    assert_eq!((forbidden.topics[0].error_code, forbidden.topics[0].partitions.len()), (3, 0), "M-206");
    let made = client.metadata(Some(&["x", "bad name", "x", "y", ".."]), true);
    let shown: Vec<_> = (made.topics.iter())
        .map(|topic| (topic.name.as_ref().unwrap().as_str(), topic.error_code, topic.partitions.len()))
        .collect();
    assert_eq!(shown, [("x", 0, 3), ("bad name", 17, 0), ("y", 0, 3), ("..", 17, 0)], "M-207, M-211, M-213");
    let again = client.metadata(Some(&["x", "y"]), false);
    assert!(again.topics.iter().all(|topic| topic.error_code == 0 && topic.partitions.len() == 3));
    let colliding = client.metadata(Some(&["p.q", "p_q", "__transaction_state"]), true);
    let codes: Vec<_> = colliding.topics.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [0, 17, 3], "M-201, M-225 R");
    let topics = (0..2).map(|n| MetadataRequestTopic::default().with_name(Some(text(&format!("old-{n}")).into())));
    let old = client.call(0, &MetadataRequest::default().with_topics(Some(topics.collect())));
    assert!(old.topics.iter().all(|topic| topic.error_code == 0), "M-207: below version 4 the flag is true");

    let closed = TestBroker::with(|config| config.topics.auto_create = false);
    let answer = closed.connect().metadata(Some(&["x"]), true);
    assert_eq!(answer.topics[0].error_code, 3, "M-210");
}

/// Many clients mention the same topics at once: each is made once and everybody is told the same (M-213).
#[test]
fn metadata_makes_a_topic_once() {
    let broker = TestBroker::start();
    let ask = || {
        let mut client = broker.connect();
        let answer = client.metadata(Some(&["one", "two", "three"]), true);
        answer.topics.iter().map(|topic| (topic.error_code, topic.partitions.len())).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        for answer in asking {
            assert_eq!(answer.join().unwrap(), [(0, 1); 3]);
        }
    });
    assert_eq!(broker.connect().metadata(None, false).topics.len(), 3);
}

fn topic(name: &str, partitions: i32, factor: i16) -> CreatableTopic {
    let topic = CreatableTopic::default().with_name(text(name).into()).with_num_partitions(partitions);
    topic.with_replication_factor(factor)
}

/// M-220 to M-230.
#[test]
fn topics_are_created_one_by_one() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let config = CreatableTopicConfig::default().with_name(text("cleanup.policy")).with_value(Some(text("compact")));
    let unknown = CreatableTopicConfig::default().with_name(text("no.such.key")).with_value(Some(text("1")));
    for version in 2..=7 {
        let name = |name: &str| format!("{name}-v{version}");
        let topics = vec![
            topic(&name("good"), 3, 1).with_configs(vec![config.clone()]),
            topic("bad name", 1, 1),
            topic(&name("twice"), 1, 1),
            topic(&name("three"), 1, 3),
            topic(&name("none"), 0, 1),
            topic(&name("twice"), 1, 1),
            topic(&name("config"), 1, 1).with_configs(vec![unknown.clone()]),
            topic(&name("default"), -1, -1),
        ];
        let request = CreateTopicsRequest::default().with_topics(topics).with_timeout_ms(0);
        let only = client.call(version, &request.clone().with_validate_only(true));
        let answer = client.call(version, &request.clone());
        for answer in [&only, &answer] {
            let codes: Vec<_> = answer.topics.iter().map(|topic| topic.error_code).collect();
            assert_eq!(codes, [0, 17, 42, 38, 37, 40, 0], "version {version}");
            let said = answer.topics.iter().all(|topic| topic.error_message.is_some() == (topic.error_code != 0));
            assert!(said, "M-220, version {version}");
            let good = &answer.topics[0];
            if version >= 5 {
                assert_eq!((good.num_partitions, good.replication_factor), (3, 1), "M-226");
                let configs = good.configs.as_ref().unwrap();
                let policy = configs.iter().find(|config| config.name.as_str() == "cleanup.policy").unwrap();
                assert_eq!((policy.value.as_deref(), policy.config_source), (Some("compact"), 1), "M-226");
            }
            assert_eq!(good.topic_id.is_nil(), version < 7, "M-227, version {version}");
        }
        let again = client.call(version, &request);
        assert_eq!(again.topics[0].error_code, 36, "M-222, version {version}");
    }
    assert_eq!(client.metadata(None, false).topics.len(), 12, "validated alone, nothing is made (M-227)");
    let many = CreateTopicsRequest::default().with_topics(vec![topic("m1", 6000, 1), topic("m2", 6000, 1)]);
    let codes: Vec<_> = client.call(7, &many).topics.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [44, 44], "M-221");
}

/// M-231, M-232; and what was deleted stays deleted, what was made stays made.
#[test]
fn topics_are_deleted_and_stay_so() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    for version in 1..=5 {
        for name in ["gone", "twice"] {
            assert!(matches!(client.create_topic(name, 2), 0 | 36));
        }
        let names = ["gone", "twice", "never", "twice"].map(|name| text(name).into());
        let request = DeleteTopicsRequest::default().with_topic_names(names.to_vec());
        let answer = client.call(version, &request);
        let mut codes: Vec<_> =
            (answer.responses.iter()).map(|topic| (topic.name.as_ref().unwrap().as_str(), topic.error_code)).collect();
        codes.sort_unstable();
        assert_eq!(codes, [("gone", 0), ("never", 3), ("twice", 42)], "M-231, M-232, version {version}");
        assert_eq!(client.metadata(Some(&["gone"]), false).topics[0].error_code, 3);
    }
    drop(client);
    broker.stop();
    broker.start_again(|_| {});
    let answer = broker.connect().metadata(None, false);
    let names: Vec<_> = answer.topics.iter().map(|topic| topic.name.as_ref().unwrap().as_str()).collect();
    assert_eq!(names, ["twice"]);
}

///
#[test]
fn configs_are_described() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic_with("t", 1, &[("retention.ms", "5")]), 0);
    let resource = |code: i8, name: &str, keys: Option<&[&str]>| {
        DescribeConfigsResource::default()
            .with_resource_type(code)
            .with_resource_name(text(name))
            .with_configuration_keys(keys.map(|keys| keys.iter().map(|key| text(key)).collect()))
    };
    let ask = |resources: &[DescribeConfigsResource]| {
        let request = DescribeConfigsRequest::default().with_resources(resources.to_vec());
        request.with_include_synonyms(true)
    };
    for version in 1..=4 {
        let answer = client.call(
            version,
            &ask(&[
                resource(2, "t", Some(&["retention.ms", "no.such.key"])),
                resource(2, "none", None),
                resource(2, "a b", None),
                resource(4, "1", Some(&[])),
                resource(4, "77", None),
                resource(4, "", None),
            ]),
        );
        let codes: Vec<_> = answer.results.iter().map(|result| result.error_code).collect();
        assert_eq!(codes, [0, 3, 17, 0, 42, 0], "A-302, version {version}");
        let [retention] = answer.results[0].configs.as_slice() else { panic!("A-304: one key") };
        assert_eq!((retention.value.as_deref(), retention.config_source), (Some("5"), 1), "A-306");
        assert!(retention.synonyms.len() >= 2, "A-306: the broker's level stands behind the topic's");
        assert!(answer.results[3].configs.len() > 20, "A-304: an empty list asks for all");
        let odd = client.call(version, &ask(&[resource(2, "t", None), resource(3, "t", None)]));
        assert!(odd.results.iter().all(|result| result.error_code == 42), "A-303, version {version}");
    }
}

/// M-216 to M-219.
#[test]
fn the_cluster_is_described() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for version in 0..=1 {
        let answer = client.call(version, &DescribeClusterRequest::default());
        assert_eq!((answer.error_code, answer.brokers.len()), (0, 1));
        assert_eq!(answer.brokers[0].port, i32::from(broker.address().port()), "M-218");
        assert_eq!(answer.controller_id, answer.brokers[0].broker_id, "M-219");
        assert_eq!(answer.cluster_authorized_operations, i32::MIN, "M-218");
        assert!(!answer.cluster_id.is_empty());
        let metadata = client.metadata(Some(&[]), false);
        assert_eq!(metadata.cluster_id.as_ref(), Some(&answer.cluster_id));
    }
    let asked = DescribeClusterRequest::default().with_include_cluster_authorized_operations(true);
    assert_eq!(client.call(1, &asked).cluster_authorized_operations, 8096, "M-215");
    for (endpoint_type, code) in [(2, 114), (3, 115)] {
        let answer = client.call(1, &DescribeClusterRequest::default().with_endpoint_type(endpoint_type));
        assert_eq!(answer.error_code, code, "M-216, M-217");
    }
}

/// M-202, M-233, P7: a topic made again under its old name has nothing of the old one, before and after a restart.
#[test]
fn a_topic_made_again_is_another() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    for round in 0..3 {
        assert_eq!(client.create_topic("t", 1), 0, "round {round}");
        assert_eq!(client.read_all("t", 0, Isolation::ReadUncommitted), Vec::<String>::new(), "round {round}");
        assert_eq!(client.offset_fetch("g", ("t", 0), false), (0, -1), "M-233, round {round}");
        let batch = Batch::plain(2).values(&format!("round-{round}"), 2);
        let appended = client.produce("t", 0, None, &batch);
        assert_eq!((appended.code, appended.base_offset), (0, 0), "round {round}");
        assert_eq!(client.offset_commit("g", &Member::default(), ("t", 0, 1)), 0, "round {round}");
        if round == 1 {
            drop(client);
            broker.crash();
            broker.start_again(|_| {});
            client = broker.connect();
            assert_eq!(client.read_all("t", 0, Isolation::ReadUncommitted), ["round-1-0", "round-1-1"]);
        }
        assert_eq!(client.delete_topic("t"), 0, "round {round}");
        assert_eq!(client.produce("t", 0, None, &batch).code, 3, "round {round}");
    }
}

/// M-243: sizes are those of the files, whether or not the partition has been used since the start.
#[test]
fn the_log_dir_is_described() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic_with("t", 3, &[("internal.segment.bytes", "300")]), 0);
    assert_eq!(client.create_topic("u", 1), 0);
    for _ in 0..10 {
        assert_eq!(client.produce("t", 1, None, &Batch::plain(1)).code, 0);
    }
    assert_eq!(client.produce("u", 0, None, &Batch::plain(1)).code, 0);
    for used in [true, false] {
        if !used {
            drop(client);
            broker.stop();
            broker.start_again(|_| {});
            client = broker.connect();
        }
        let dir = broker.config().data_dir.clone();
        let size = |name: &str| {
            let files = std::fs::read_dir(dir.join(name)).map(|files| files.map(Result::unwrap).collect());
            let files: Vec<_> = files.unwrap_or_default();
            let logs = files.iter().filter(|file| file.file_name().to_string_lossy().ends_with(".log"));
            logs.map(|file| i64::try_from(file.metadata().unwrap().len()).unwrap()).sum::<i64>()
        };
        assert!(size("t-1") > 600 && size("u-0") > 60);
        for version in 1..=4 {
            let answer = client.log_dirs(version, None);
            assert_eq!((answer.error_code, answer.results.len()), (0, 1), "M-243");
            let result = &answer.results[0];
            assert_eq!((result.error_code, result.log_dir.as_str()), (0, dir.to_str().unwrap()), "M-243");
            let found =
                result.topics.iter().flat_map(|topic| topic.partitions.iter().map(|part| (&topic.name.0, part)));
            let found: Vec<_> =
                found.map(|(topic, part)| (topic.as_str(), part.partition_index, part.partition_size)).collect();
            let expected = [("t", 0, 0), ("t", 1, size("t-1")), ("t", 2, 0), ("u", 0, size("u-0"))];
            assert_eq!(found, expected, "M-243, version {version}, used: {used}");
            let lags = result.topics.iter().flat_map(|topic| topic.partitions.iter());
            assert!(lags.into_iter().all(|part| part.offset_lag == 0 && !part.is_future_key), "M-243");
            let bytes = (result.usable_bytes, result.total_bytes);
            assert!(
                if version >= 4 { 0 < bytes.0 && bytes.0 <= bytes.1 } else { bytes == (-1, -1) },
                "M-243: {bytes:?}"
            );
        }
    }
    for (asked, expected) in [
        (&[][..], vec![]),
        (&[("none", &[0][..])][..], vec![]),
        (&[("t", &[1, 9, 1][..]), ("t", &[2])][..], vec![1, 2]),
    ] {
        let answer = client.log_dirs(4, Some(asked));
        let found = answer.results[0].topics.iter().flat_map(|topic| &topic.partitions);
        assert_eq!(found.map(|part| part.partition_index).collect::<Vec<_>>(), expected, "M-243: {asked:?}");
    }
}

/// As in Kafka it is there when the first group is, holds nothing, and is no client's to write to or delete.
#[test]
fn the_topic_of_offsets_comes_with_the_first_group() {
    const NAME: &str = "__consumer_offsets";
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let seen = |client: &mut Client| {
        let request = MetadataRequest::default().with_topics(None);
        let found = client.call(8, &request).topics;
        found.iter().map(|topic| (topic.name.as_ref().unwrap().to_string(), topic.is_internal)).collect::<Vec<_>>()
    };
    assert_eq!(client.create_topic(NAME, 1), 42, "M-211");
    assert_eq!(seen(&mut client), []);
    let ask = |kind: i8| FindCoordinatorRequest::default().with_key(text("g")).with_key_type(kind);
    assert_eq!(client.call(3, &ask(1)).error_code, 0);
    assert_eq!(seen(&mut client), [], "a transactional id wants none");
    for _ in 0..2 {
        assert_eq!(client.call(3, &ask(0)).error_code, 0);
        assert_eq!(seen(&mut client), [(NAME.to_owned(), true)], "M-201, M-211");
    }
    assert_eq!(client.produce(NAME, 0, None, &Batch::plain(1)).code, 17, "T-309");
    assert_eq!(client.create_topic(NAME, 1), 36);
    let name = vec![text(NAME).into()];
    let deleted = client.call(3, &DeleteTopicsRequest::default().with_topic_names(name));
    assert_eq!(deleted.responses[0].error_code, 42, "M-232 R");
}
