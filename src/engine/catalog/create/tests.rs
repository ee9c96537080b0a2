use super::*;
use crate::engine::catalog::GrowTopic;
use crate::engine::catalog::tests::{defaults, topic};

fn spec(name: &str) -> CreateTopic {
    CreateTopic::by_defaults(name)
}

fn sized(name: &str, partitions: i32, replication_factor: i16) -> CreateTopic {
    CreateTopic { partitions: Some(partitions), replication_factor, ..spec(name) }
}

fn assigned(assignments: &[(i32, &[i32])]) -> CreateTopic {
    let assignments = assignments.iter().map(|(part, brokers)| (*part, brokers.to_vec())).collect();
    CreateTopic { assignments, ..spec("new") }
}

fn set(configs: &[(&str, Option<&str>)]) -> CreateTopic {
    let configs = configs.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned))).collect();
    CreateTopic { configs, ..spec("new") }
}

fn held() -> Catalog {
    Catalog::default().with(topic("a.b", 1, &[1])).with(topic("__consumer_offsets", 2, &[2]))
}

/// One line: rule, what is asked for, partitions or the refusal.
fn check(rule: &str, spec: &CreateTopic, expected: Result<i32, Refusal>) {
    let got = held().check_create(spec, &defaults());
    if let Err(refused) = &got {
        assert!(!refused.message.is_empty() && refused.message.len() < 1000, "M-220 {rule}");
    }
    assert_eq!(got.map(|p| p.partitions).map_err(|r| r.refusal), expected, "{rule} {spec:?}");
    // M-227: the same rules whether it is meant or not.
    let asked = CreateTopic { validate_only: true, ..spec.clone() };
    assert_eq!(
        held().check_create(&asked, &defaults()).map_err(|r| r.refusal).map(|p| p.partitions),
        expected,
        "M-227"
    );
}

#[test]
fn names() {
    check("M-222 C-91", &spec("fresh"), Ok(3));
    for name in ["", ".", "..", "a/b", "a b", &"n".repeat(250)] {
        check("M-222 C-91", &spec(name), Err(Refusal::InvalidTopic));
    }
    check("M-222 exists wins", &spec("a.b"), Err(Refusal::TopicAlreadyExists));
    check("M-222 collides", &spec("a_b"), Err(Refusal::InvalidTopic));
    check("M-222", &spec("a-b"), Ok(3));
    check("M-221", &spec("__cluster_metadata"), Err(Refusal::InvalidRequest));
    check("M-211 exists", &spec("__consumer_offsets"), Err(Refusal::TopicAlreadyExists));
    check("M-211 reserved", &spec("__transaction_state"), Err(Refusal::InvalidRequest));
    let none = Catalog::default();
    let by_client = CreateTopic { by: Maker::Client, ..CreateTopic::offsets() };
    assert_eq!(
        none.check_create(&by_client, &defaults()).map_err(|r| r.refusal),
        Err(Refusal::InvalidRequest),
        "M-211"
    );
    assert_eq!(none.check_create(&CreateTopic::offsets(), &defaults()).map(|p| p.partitions), Ok(1), "M-211");
    let gone = held().without(&"a.b".into());
    assert!(gone.check_create(&spec("a_b"), &defaults()).is_ok(), "M-201 nothing is left of a deleted topic");
}

#[test]
fn counts() {
    check("M-229", &sized("new", -1, -1), Ok(3));
    check("M-229", &CreateTopic { partitions: None, ..sized("new", 0, 1) }, Ok(3));
    check("M-224", &sized("new", 6, 1), Ok(6));
    check("M-224", &sized("new", 0, 1), Err(Refusal::InvalidPartitions));
    check("M-224", &sized("new", -2, 1), Err(Refusal::InvalidPartitions));
    check("M-224", &sized("new", 1, 0), Err(Refusal::InvalidReplicationFactor));
    check("M-224", &sized("new", 1, -2), Err(Refusal::InvalidReplicationFactor));
    check("M-224 order", &sized("new", 0, 0), Err(Refusal::InvalidReplicationFactor));
    check("M-224 order", &sized("new", 0, 3), Err(Refusal::InvalidPartitions));
    check("M-230", &sized("new", 1, 3), Err(Refusal::InvalidReplicationFactor));
    check("M-221", &sized("new", 10_000, 1), Ok(10_000));
    check("M-221", &sized("new", 10_001, 1), Err(Refusal::PolicyViolation));
    check("M-221 C-91", &sized("new", i32::MAX, 1), Err(Refusal::PolicyViolation));
    let message = held().check_create(&sized("new", 1, 3), &defaults()).unwrap_err().message;
    assert_eq!(
        message,
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because \
         only 1 broker(s) are registered.",
        "M-224"
    );
    let clamping = Defaults { replication: Replication::Clamp, ..defaults() };
    assert_eq!(held().check_create(&sized("new", 2, 3), &clamping).map(|p| p.partitions), Ok(2), "M-230");
    assert!(held().check_create(&sized("new", 2, 0), &clamping).is_err(), "M-230");
}

#[test]
fn assignments() {
    let bad = Err(Refusal::InvalidReplicaAssignment);
    check("M-224", &assigned(&[(0, &[1]), (1, &[1])]), Ok(2));
    check("M-224", &assigned(&[(1, &[1]), (0, &[1])]), Ok(2));
    check("M-224 twice", &assigned(&[(0, &[1]), (0, &[1])]), bad);
    check("M-224 gap", &assigned(&[(0, &[1]), (2, &[1])]), bad);
    check("M-224 from 0", &assigned(&[(1, &[1])]), bad);
    check("M-224 negative", &assigned(&[(-1, &[1]), (0, &[1])]), bad);
    check("M-224 empty", &assigned(&[(0, &[])]), bad);
    check("M-224 duplicate", &assigned(&[(0, &[1, 1])]), bad);
    check("M-224 unknown", &assigned(&[(0, &[2])]), bad);
    check("M-224 unknown", &assigned(&[(0, &[1, -1])]), bad);
    check("M-224 lengths", &assigned(&[(0, &[1]), (1, &[1, 2])]), bad);
    let both = CreateTopic { replication_factor: 1, ..assigned(&[(0, &[1])]) };
    check("M-224", &both, Err(Refusal::InvalidRequest));
    let both = CreateTopic { partitions: Some(1), ..assigned(&[(0, &[1])]) };
    check("M-224", &both, Err(Refusal::InvalidRequest));
}

#[test]
fn configs() {
    check("M-223", &set(&[("retention.ms", Some("-1"))]), Ok(3));
    check("M-223 C-91", &set(&[("retention.ms", None)]), Err(Refusal::InvalidConfig));
    check("M-223 C-91", &set(&[("no.such.key", Some("1"))]), Err(Refusal::InvalidConfig));
    check("M-223", &set(&[("retention.ms", Some("soon"))]), Err(Refusal::InvalidConfig));
    check("M-223", &set(&[("compression.type", Some("brotli"))]), Err(Refusal::InvalidConfig));
    let contradiction = set(&[("min.compaction.lag.ms", Some("10")), ("max.compaction.lag.ms", Some("9"))]);
    check("M-223 A-331", &contradiction, Err(Refusal::InvalidConfig));
    // Configs are judged before counts, and names before both.
    let order = CreateTopic { partitions: Some(0), ..set(&[("x", Some("1"))]) };
    check("M-223 before M-224", &order, Err(Refusal::InvalidConfig));
    let order = CreateTopic { name: "a.b".into(), ..order };
    check("M-222 before M-223", &order, Err(Refusal::TopicAlreadyExists));
    // What Streams and Connect send.
    let repartition = [
        ("cleanup.policy", Some("delete")),
        ("segment.bytes", Some("52428800")),
        ("retention.ms", Some("-1")),
        ("message.timestamp.type", Some("CreateTime")),
    ];
    check("A-333", &set(&repartition), Ok(3));
    check("A-333", &set(&[("cleanup.policy", Some("compact,delete")), ("retention.ms", Some("86460000"))]), Ok(3));
}

/// A whole request: results as (name, refusal).
fn check_request(rule: &str, specs: &[CreateTopic], expected: &[(&str, Option<Refusal>)]) {
    let permit = |name: &str| match name {
        "secret" => Err(Refused::new(Refusal::OperationNotAttempted, "stands in for the answer of the permissions")),
        _ => Ok(()),
    };
    let results = held().plan_create(specs, permit, &defaults());
    let got: Vec<_> = results.iter().map(|(name, r)| (name.as_str(), r.as_ref().err().map(|e| e.refusal))).collect();
    assert_eq!(got, expected, "{rule}");
}

#[test]
fn requests() {
    check_request(
        "M-220",
        &[spec("x"), spec("."), spec("y")],
        &[("x", None), (".", Some(Refusal::InvalidTopic)), ("y", None)],
    );
    check_request("M-221", &[spec("x"), spec("y"), spec("x")], &[("x", Some(Refusal::InvalidRequest)), ("y", None)]);
    let (big, small) = (sized("x", 9_999, 1), sized("y", 2, 1));
    let over = Some(Refusal::PolicyViolation);
    check_request("M-221", &[big.clone(), small], &[("x", over), ("y", over)]);
    // The default of three counts too.
    check_request("M-221", &[big, spec("y")], &[("x", over), ("y", over)]);
    check_request("M-221", &[sized("x", i32::MAX, 1), sized("y", i32::MAX, 1)], &[("x", over), ("y", over)]);
    check_request("M-221 order", &[spec("secret")], &[("secret", Some(Refusal::OperationNotAttempted))]);
    let hidden = CreateTopic { name: "secret".into(), ..set(&[("bad", None)]) };
    check_request("M-221 before M-223", &[hidden], &[("secret", Some(Refusal::OperationNotAttempted))]);
    check_request("M-225 R", &[spec("p.q"), spec("p_q")], &[("p.q", None), ("p_q", Some(Refusal::InvalidTopic))]);
    check_request(
        "M-225 R",
        &[sized("p.q", 0, 1), spec("p_q")],
        &[("p.q", Some(Refusal::InvalidPartitions)), ("p_q", None)],
    );
    check_request("M-220", &[], &[]);
}

/// M-206, M-210, M-211: (name, may be made, what comes of it).
#[test]
fn mentioned_names() {
    use AutoCreate::{Allowed, Forbidden};
    let unknown = Err(Refusal::UnknownTopicOrPartition);
    let table = [
        ("a.b", Forbidden, Ok("exists")),
        ("a.b", Allowed, Ok("exists")),
        ("new", Allowed, Ok("make 3")),
        ("new", Forbidden, unknown),
        ("bad name", Allowed, Err(Refusal::InvalidTopic)),
        ("bad name", Forbidden, Err(Refusal::InvalidTopic)),
        ("", Allowed, Err(Refusal::InvalidTopic)),
        ("a_b", Allowed, Err(Refusal::InvalidTopic)),
        ("a_b", Forbidden, unknown),
        ("__consumer_offsets", Allowed, Ok("exists")),
        ("__transaction_state", Allowed, unknown),
        ("__cluster_metadata", Allowed, unknown),
    ];
    for (name, auto_create, expected) in table {
        let got = held().named(name, auto_create, &defaults()).map(|named| match named {
            Named::Exists(_) => "exists",
            Named::Make(Planned { partitions: 3, .. }) => "make 3",
            Named::Make(_) => "make another number",
        });
        assert_eq!(got, expected, "M-206 C-94 {name} {auto_create:?}");
    }
}

#[test]
fn growing_follows_m_234() {
    let one: &[i32] = &[1];
    type Line<'a> = (&'a str, i32, Option<&'a [&'a [i32]]>, Result<i32, Refusal>);
    let table: [Line<'_>; 11] = [
        ("a.b", 3, None, Ok(2)),
        ("a.b", 3, Some(&[one, one]), Ok(2)),
        ("nobody", 3, None, Err(Refusal::UnknownTopicOrPartition)),
        ("a.b", 1, None, Err(Refusal::InvalidPartitions)),
        ("a.b", 0, None, Err(Refusal::InvalidPartitions)),
        ("a.b", i32::MIN, None, Err(Refusal::InvalidPartitions)),
        ("a.b", i32::MAX, None, Err(Refusal::PolicyViolation)),
        ("a.b", 3, Some(&[one]), Err(Refusal::InvalidReplicaAssignment)),
        ("a.b", 2, Some(&[&[]]), Err(Refusal::InvalidReplicaAssignment)),
        ("a.b", 2, Some(&[&[1, 1]]), Err(Refusal::InvalidReplicaAssignment)),
        ("a.b", 2, Some(&[&[9]]), Err(Refusal::InvalidReplicaAssignment)),
    ];
    for (name, count, assignments, expected) in table {
        let owned = assignments.map(|lists| lists.iter().map(|list| list.to_vec()).collect::<Vec<_>>());
        let got = held().check_grow(name, count, owned.as_deref(), &defaults());
        assert_eq!(got.map_err(|r| r.refusal), expected, "M-234 {name} {count} {assignments:?}");
    }
}

/// M-234: each topic by itself, but what stands there twice is done not even once.
#[test]
fn a_request_to_grow_is_judged_as_a_whole() {
    let grow = |name: &str, count| GrowTopic { name: name.to_owned(), count, assignments: None };
    let plan = |specs: &[GrowTopic]| {
        let planned = held().plan_grow(specs, &defaults()).into_iter();
        planned.map(|(name, planned)| (name, planned.map_err(|refused| refused.refusal))).collect::<Vec<_>>()
    };
    let check = |specs: &[GrowTopic], expected: &[(&str, Result<i32, Refusal>)]| {
        let expected: Vec<_> = expected.iter().map(|(name, planned)| ((*name).to_owned(), *planned)).collect();
        assert_eq!(plan(specs), expected, "M-234: {specs:?}");
    };
    check(&[], &[]);
    let unknown = Err(Refusal::UnknownTopicOrPartition);
    check(&[grow("nobody", 3), grow("a.b", 4)], &[("nobody", unknown), ("a.b", Ok(3))]);
    let twice = Err(Refusal::InvalidRequest);
    let other = "__consumer_offsets";
    check(&[grow("a.b", 4), grow(other, 2), grow("a.b", 4)], &[("a.b", twice), (other, Ok(1))]);
    let much = Err(Refusal::PolicyViolation);
    check(&[grow("a.b", 6_000), grow(other, 6_000)], &[("a.b", much), (other, much)]);
    check(&[grow("a.b", 10_001)], &[("a.b", Ok(10_000))]);
}

#[test]
fn deleting_follows_m_232() {
    let catalog = held();
    let by_name = |name: &str| catalog.check_delete(name).map(|t| t.name.to_string()).map_err(|r| r.refusal);
    let by_id = |n: u8| {
        let id = crate::engine::TopicId([n; 16]);
        catalog.check_delete_by_id(id).map(|t| t.name.to_string()).map_err(|r| r.refusal)
    };
    assert_eq!(by_name("a.b"), Ok("a.b".to_owned()), "M-232");
    assert_eq!(by_id(1), Ok("a.b".to_owned()), "M-232");
    assert_eq!(by_name("nobody"), Err(Refusal::UnknownTopicOrPartition), "M-232");
    assert_eq!(by_id(9), Err(Refusal::UnknownTopicId), "M-232");
    assert_eq!(by_name("__consumer_offsets"), Err(Refusal::InvalidRequest), "M-232 R");
    assert_eq!(by_id(2), Err(Refusal::InvalidRequest), "M-232 R");
}
