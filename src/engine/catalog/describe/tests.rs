use super::*;
use crate::engine::catalog::settings::excerpt;
use crate::engine::catalog::tests::{defaults, topic};
use crate::engine::catalog::{BrokerLevels, Topic};
use std::collections::BTreeMap;

fn held() -> Catalog {
    let given = [("cleanup.policy", " compact, delete "), ("preallocate", "TRUE"), ("min.cleanable.dirty.ratio", "1")];
    let given: Vec<_> = given.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned()))).collect();
    let settings = TopicSettings::of(&given, &BrokerLevels::default()).unwrap();
    Catalog::default().with(Topic { settings, ..topic("t", 1, &[1]) })
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

fn one(kind: ResourceKind, name: &str, key: &str, defaults: &Defaults) -> ConfigEntry {
    let mut entries = held().describe(kind, name, Some(&owned(&[key])), defaults).unwrap();
    assert_eq!(entries.len(), 1, "A-304 {key}");
    entries.remove(0)
}

fn synonyms(entry: &ConfigEntry) -> Vec<(&str, &str, i8)> {
    entry.synonyms.iter().map(|s| (s.name.as_str(), s.value.as_str(), s.source.code())).collect()
}

fn text(value: &str) -> ConfigValue {
    ConfigValue::Text(value.to_owned())
}

/// (kind, name, the refusal or whether there is anything).
#[test]
fn resources_follow_a_302() {
    use ResourceKind::{Broker, BrokerLogger, ClientMetrics, Group};
    let table = [
        (ResourceKind::Topic, "t", Ok(true)),
        (ResourceKind::Topic, "u", Err(Refusal::UnknownTopicOrPartition)),
        (ResourceKind::Topic, "", Err(Refusal::InvalidTopic)),
        (ResourceKind::Topic, "a b", Err(Refusal::InvalidTopic)),
        (Broker, "1", Ok(true)),
        (Broker, "", Ok(false)),
        (Broker, "2", Err(Refusal::InvalidRequest)),
        (Broker, "one", Err(Refusal::InvalidRequest)),
        (BrokerLogger, "1", Ok(false)),
        (BrokerLogger, "", Err(Refusal::InvalidRequest)),
        (BrokerLogger, "2", Err(Refusal::InvalidRequest)),
        (ClientMetrics, "", Err(Refusal::InvalidRequest)),
        (ClientMetrics, "m", Ok(false)),
        (Group, "", Err(Refusal::InvalidRequest)),
        (Group, "g", Ok(false)),
    ];
    for (kind, name, expected) in table {
        let got = held().describe(kind, name, None, &defaults());
        assert_eq!(got.map(|e| !e.is_empty()).map_err(|r| r.refusal), expected, "A-302 {kind:?} {name:?}");
    }
    let codes =
        [(2, true), (4, true), (8, true), (16, true), (32, true), (0, false), (1, false), (3, false), (-1, false)];
    for (code, known) in codes {
        assert_eq!(ResourceKind::from_code(code).is_some(), known, "A-303 {code}");
    }
}

#[test]
fn keys_follow_a_304() {
    let describe = |keys: Option<&[String]>| held().describe(ResourceKind::Topic, "t", keys, &defaults()).unwrap();
    let all = describe(None);
    assert_eq!(describe(Some(&[])), all, "A-304: an empty list means all");
    assert!(all.is_sorted_by(|a, b| a.name < b.name), "M-226");
    assert!(all.len() > 30 && all.iter().all(|entry| !entry.read_only && entry.documentation.is_some()), "A-305");
    assert!(all.iter().all(|entry| entry.name != "internal.segment.bytes"), "A-331: hidden unless set");
    let some = describe(Some(&owned(&["retention.ms", "no.such", "cleanup.policy", "retention.ms"])));
    assert_eq!(some.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["cleanup.policy", "retention.ms"], "A-304");
    assert_eq!(describe(Some(&owned(&["no.such"]))), [], "A-304");
}

#[test]
fn topic_entries_follow_a_305_and_a_306() {
    let entry = |key: &str| one(ResourceKind::Topic, "t", key, &defaults());
    let policy = entry("cleanup.policy");
    assert_eq!(
        (policy.value.clone(), policy.source, policy.kind),
        (text("compact,delete"), ConfigSource::Topic, ConfigType::List)
    );
    let levels = [("cleanup.policy", "compact,delete", 1), ("log.cleanup.policy", "delete", 5)];
    assert_eq!(synonyms(&policy), levels, "A-306");
    assert_eq!(entry("preallocate").value, text("true"), "A-305");
    assert_eq!(entry("min.cleanable.dirty.ratio").value, text("1.0"), "A-305");
    let age = entry("retention.ms");
    assert_eq!((age.value.clone(), age.source, age.kind), (text("604800000"), ConfigSource::Default, ConfigType::Long));
    assert_eq!(synonyms(&age), [("log.retention.hours", "168", 5)], "A-306, A-307");
    let alone = entry("remote.storage.enable");
    assert_eq!(
        (alone.value, alone.source, alone.synonyms),
        (text("false"), ConfigSource::Default, Vec::new()),
        "A-306"
    );
}

#[test]
fn sources_name_the_level() {
    let level = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let levels = BrokerLevels {
        dynamic: BTreeMap::new(),
        dynamic_default: level("log.retention.ms", "60000"),
        stated: level("log.retention.minutes", "2"),
    };
    let defaults = Defaults { levels, ..defaults() };
    let age = one(ResourceKind::Topic, "t", "retention.ms", &defaults);
    assert_eq!((age.value.clone(), age.source), (text("60000"), ConfigSource::DynamicDefaultBroker), "A-306, A-308");
    let expected =
        [("log.retention.ms", "60000", 3), ("log.retention.minutes", "2", 4), ("log.retention.hours", "168", 5)];
    assert_eq!(synonyms(&age), expected, "A-306");

    let common = held().describe(ResourceKind::Broker, "", None, &defaults).unwrap();
    let common: Vec<_> = common.iter().map(|e| (e.name.as_str(), &e.value, e.source.code())).collect();
    assert_eq!(common, [("log.retention.ms", &text("60000"), 3)], "A-302: only what was set for all brokers");

    let own = |key: &str| one(ResourceKind::Broker, "1", key, &defaults);
    let (ms, minutes, hours) = (own("log.retention.ms"), own("log.retention.minutes"), own("log.retention.hours"));
    assert_eq!((ms.value, ms.source, ms.read_only), (text("60000"), ConfigSource::DynamicDefaultBroker, true));
    assert_eq!((minutes.value, minutes.source, minutes.read_only), (text("2"), ConfigSource::StaticBroker, true));
    assert_eq!((hours.value, hours.source, hours.kind), (text("168"), ConfigSource::Default, ConfigType::Int));
}

#[test]
fn a_broker_shows_what_tools_look_at() {
    let stated = [("listeners", "EXTERNAL://:9092"), ("auto.create.topics.enable", "false")];
    let stated = stated.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let defaults = Defaults { levels: BrokerLevels { stated, ..BrokerLevels::default() }, ..defaults() };
    let all = held().describe(ResourceKind::Broker, "1", None, &defaults).unwrap();
    assert!(all.is_sorted_by(|a, b| a.name < b.name), "A-341: each key once");
    let table = [
        ("node.id", "1", 4, true),
        ("num.partitions", "3", 4, true),
        ("listeners", "EXTERNAL://:9092", 4, true),
        ("auto.create.topics.enable", "false", 4, true),
        ("delete.topic.enable", "true", 5, true),
        ("default.replication.factor", "1", 5, true),
        ("min.insync.replicas", "1", 5, true),
        ("log.retention.hours", "168", 5, true),
        ("log.segment.bytes", "1073741824", 5, true),
        ("message.max.bytes", "1048588", 5, true),
        ("compression.type", "producer", 5, true),
        ("log.cleanup.policy", "delete", 5, true),
        ("offsets.retention.minutes", "10080", 5, true),
        ("transaction.max.timeout.ms", "900000", 5, true),
        ("unclean.leader.election.enable", "false", 5, true),
        ("socket.request.max.bytes", "104857600", 5, true),
    ];
    for (name, value, source, read_only) in table {
        let entry = all.iter().find(|entry| entry.name == name).unwrap();
        let got = (&entry.value, entry.source.code(), entry.read_only);
        assert_eq!(got, (&text(value), source, read_only), "A-341 {name}");
    }
    let absent = one(ResourceKind::Broker, "1", "log.retention.ms", &defaults);
    assert_eq!((absent.value, absent.source), (ConfigValue::Absent, ConfigSource::Default), "A-305");
    assert!(all.iter().all(|entry| entry.name != "log.dirs"), "a fact nobody stated is not made up");
}

#[test]
fn a_key_nobody_knows_is_shown_without_its_value() {
    let settings = TopicSettings::stored(BTreeMap::from([("message.format.version".to_owned(), "2.8".to_owned())]));
    let entries = settings.describe(Some(&owned(&["message.format.version"])), &defaults());
    assert_eq!(entries.len(), 1);
    assert_eq!((&entries[0].value, entries[0].kind), (&ConfigValue::Secret, ConfigType::Unknown), "A-305");
}

#[test]
fn a_message_shows_the_start_of_a_long_name() {
    assert_eq!(excerpt("short"), "short");
    assert_eq!(excerpt(&"é".repeat(300)).chars().count(), 200);
}
