use super::*;
use crate::engine::catalog::tests::{defaults, topic};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;

fn held() -> Catalog {
    let mut kept = topic("t", 1, &[1]);
    kept.settings = kept.settings.set("retention.ms", "5").unwrap();
    Catalog::default().with(kept).with(topic("u", 2, &[2]))
}

fn keys(kind: i8, name: &str, changes: &[(&str, i8, Option<&str>)]) -> ChangeConfigs {
    let changes = changes.iter().map(|(key, op, value)| ((*key).to_owned(), *op, value.map(str::to_owned)));
    ChangeConfigs { kind, name: name.to_owned(), change: Change::Keys(changes.collect()) }
}

fn all(kind: i8, name: &str, given: &[(&str, Option<&str>)]) -> ChangeConfigs {
    let given = given.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned)));
    ChangeConfigs { kind, name: name.to_owned(), change: Change::All(given.collect()) }
}

/// What comes of each resource: "name: settings" of a topic that changes, "" where nothing does.
fn plan(resources: &[ChangeConfigs]) -> Vec<Result<String, Refusal>> {
    let judged = held().plan_change(resources, &defaults()).into_iter();
    let shown = |changed: Changed| {
        changed.map_or_else(String::new, |(topic, settings)| {
            let given: Vec<_> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("{}: {}", topic.name, given.join(" "))
        })
    };
    judged
        .map(|judged| {
            judged.map(shown).map_err(|refused| {
                assert!(!refused.message.is_empty() && refused.message.len() < 1_000, "{}", refused.message);
                refused.refusal
            })
        })
        .collect()
}

fn check(rule: &str, resource: ChangeConfigs, expected: Result<&str, Refusal>) {
    let expected = expected.map(str::to_owned);
    assert_eq!(plan(std::slice::from_ref(&resource)), [expected], "{rule}: {resource:?}");
}

const REQUEST: Result<&str, Refusal> = Err(Refusal::InvalidRequest);
const CONFIG: Result<&str, Refusal> = Err(Refusal::InvalidConfig);

#[test]
fn topics_key_by_key() {
    check("A-316", keys(2, "t", &[("segment.ms", SET, Some("9"))]), Ok("t: retention.ms=5 segment.ms=9"));
    check("A-316", keys(2, "t", &[("retention.ms", DELETE, None)]), Ok("t: "));
    check("A-317", keys(2, "t", &[]), Ok("t: retention.ms=5"));
    check("A-315 name", keys(2, "", &[]), REQUEST);
    check("A-315 name", keys(2, "a b", &[("no.such", SET, Some("1"))]), Err(Refusal::InvalidTopic));
    check("A-315 values first", keys(2, "nobody", &[("no.such", SET, Some("1"))]), CONFIG);
    check("A-315", keys(2, "nobody", &[("retention.ms", SET, Some("1"))]), Err(Refusal::UnknownTopicOrPartition));
    check("A-315", keys(2, "nobody", &[]), Err(Refusal::UnknownTopicOrPartition));
    check("A-312", keys(2, "t", &[("retention.ms", SET, Some("1")), ("retention.ms", DELETE, None)]), REQUEST);
    check("A-312 R", keys(2, "t", &[("retention.ms", 4, Some("1"))]), REQUEST);
}

#[test]
fn topics_as_a_whole() {
    check("A-318", all(2, "t", &[("segment.ms", Some("9"))]), Ok("t: segment.ms=9"));
    check("A-318", all(2, "t", &[]), Ok("t: "));
    check("A-318 null", all(2, "t", &[("no.such", None)]), REQUEST);
    check("A-318", all(2, "t", &[("no.such", Some("1"))]), CONFIG);
    check("A-312", all(2, "t", &[("segment.ms", Some("9")), ("segment.ms", Some("9"))]), REQUEST);
    check("A-315", all(2, "nobody", &[]), Err(Refusal::UnknownTopicOrPartition));
}

#[test]
fn what_is_no_topic() {
    let set = ("log.retention.ms", SET, Some("1"));
    for name in ["1", ""] {
        check("A-313", keys(4, name, &[]), Ok(""));
        check("A-313", keys(4, name, &[("log.retention.ms", DELETE, None)]), Ok(""));
        check("A-313, A-342", keys(4, name, &[set]), REQUEST);
        check("A-313, A-342", keys(4, name, &[("node.id", SET, Some("2"))]), REQUEST);
        check("A-313, A-342", all(4, name, &[("log.retention.ms", Some("1"))]), REQUEST);
        check("A-318", all(4, name, &[]), Ok(""));
    }
    check("A-313", keys(4, "7", &[]), REQUEST);
    check("A-313", keys(4, "x", &[]), REQUEST);
    check("A-301", keys(8, "1", &[]), Ok(""));
    check("A-301", keys(8, "7", &[]), REQUEST);
    check("A-301", keys(8, "", &[]), REQUEST);
    check("A-301", keys(8, "1", &[("some.logger", SET, Some("INFO"))]), CONFIG);
    check("A-301", keys(8, "1", &[("some.logger", DELETE, None)]), CONFIG);
    check("A-301", keys(8, "1", &[("some.logger", APPEND, Some("INFO"))]), REQUEST);
    check("A-301", all(8, "1", &[]), REQUEST);
    for (kind, unknown) in [(16, REQUEST), (32, CONFIG)] {
        check("A-302", keys(kind, "", &[]), REQUEST);
        check("A-302", keys(kind, "x", &[]), Ok(""));
        check("A-317", keys(kind, "x", &[("no.such", DELETE, None)]), Ok(""));
        check("A-315", keys(kind, "x", &[("no.such", SET, Some("1"))]), unknown);
        check("A-315", all(kind, "x", &[("no.such", Some("1"))]), unknown);
        check("A-312", keys(kind, "x", &[("no.such", SET, None)]), REQUEST);
    }
    for kind in [0, 1, 3, 127, -1] {
        check("A-312", keys(kind, "t", &[]), REQUEST);
    }
}

/// one resource's mistake is not another's, but what stands there twice is done not even once.
#[test]
fn a_request_is_judged_resource_by_resource() {
    let set = |name: &str, ms| keys(2, name, &[("segment.ms", SET, Some(ms))]);
    let twice = Err(Refusal::InvalidRequest);
    let done = |text: &str| Ok(text.to_owned());
    let judged = plan(&[set("t", "9"), set("u", "9"), set("nobody", "9"), set("t", "8")]);
    let unknown = Err(Refusal::UnknownTopicOrPartition);
    assert_eq!(judged, [twice.clone(), done("u: segment.ms=9"), unknown, twice], "A-312, A-317");
    let kinds = plan(&[keys(4, "1", &[]), keys(8, "1", &[]), keys(0, "1", &[])]);
    assert_eq!(kinds, [done(""), done(""), Err(Refusal::InvalidRequest)], "A-312: of one name, but not the same");
    assert_eq!(plan(&[]), []);
}
