use super::*;
use crate::engine::catalog::keys::KEYS;

fn given(pairs: &[(&str, &str)]) -> Result<TopicSettings, Refused> {
    given_over(pairs, &BrokerLevels::default())
}

fn given_over(pairs: &[(&str, &str)], levels: &BrokerLevels) -> Result<TopicSettings, Refused> {
    let pairs: Vec<_> = pairs.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned()))).collect();
    TopicSettings::of(&pairs, levels)
}

fn stated(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn the_table_is_sorted_and_its_defaults_are_valid() {
    assert!(KEYS.is_sorted_by(|a, b| a.name < b.name), "A-331");
    for key in KEYS {
        if let Some(default) = key.default {
            let parsed = key.check.parse(default).unwrap();
            assert_eq!(parsed.text(), default, "A-331 {}", key.name);
        }
        assert!(key.default.is_some() || key.behind.is_empty(), "A-331 {}", key.name);
    }
}

#[test]
fn what_nobody_sets_is_as_a_331_says() {
    let expected = LogSettings {
        cleanup: Cleanup::Delete,
        retention_ms: Some(604_800_000),
        retention_bytes: None,
        segment_bytes: 1_073_741_824,
        segment_ms: 604_800_000,
        segment_index_bytes: 10_485_760,
        index_interval_bytes: 4096,
        max_message_bytes: 1_048_588,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        delete_retention_ms: 86_400_000,
        min_compaction_lag_ms: 0,
        max_compaction_lag_ms: i64::MAX,
        min_cleanable_dirty_ratio: 0.5,
        file_delete_delay_ms: 60_000,
    };
    assert_eq!(TopicSettings::default().in_effect(&BrokerLevels::default()), expected, "A-331");
}

/// What is given changes the field it names: (key, value, the default with that field changed).
#[test]
fn what_is_given_is_in_effect() {
    type Change = fn(&mut LogSettings);
    let table: [(&str, &str, Change); 19] = [
        ("cleanup.policy", "compact", |s| s.cleanup = Cleanup::Compact),
        ("cleanup.policy", " delete , compact ", |s| s.cleanup = Cleanup::CompactAndDelete),
        ("cleanup.policy", "", |s| s.cleanup = Cleanup::Never),
        ("retention.ms", "-1", |s| s.retention_ms = None),
        ("retention.ms", " 5 ", |s| s.retention_ms = Some(5)),
        ("retention.bytes", "7", |s| s.retention_bytes = Some(7)),
        ("segment.bytes", "1048576", |s| s.segment_bytes = 1_048_576),
        ("internal.segment.bytes", "1000", |s| s.segment_bytes = 1000),
        ("segment.ms", "1", |s| s.segment_ms = 1),
        ("segment.index.bytes", "4", |s| s.segment_index_bytes = 4),
        ("index.interval.bytes", "0", |s| s.index_interval_bytes = 0),
        ("max.message.bytes", "0", |s| s.max_message_bytes = 0),
        ("message.timestamp.type", "LogAppendTime", |s| s.timestamp_type = TimestampType::LogAppendTime),
        ("message.timestamp.before.max.ms", "0", |s| s.timestamp_before_max_ms = 0),
        ("message.timestamp.after.max.ms", "0", |s| s.timestamp_after_max_ms = 0),
        ("delete.retention.ms", "0", |s| s.delete_retention_ms = 0),
        ("min.compaction.lag.ms", "9", |s| s.min_compaction_lag_ms = 9),
        ("min.cleanable.dirty.ratio", "1", |s| s.min_cleanable_dirty_ratio = 1.0),
        ("file.delete.delay.ms", "0", |s| s.file_delete_delay_ms = 0),
    ];
    let levels = BrokerLevels::default();
    for (key, value, change) in table {
        let mut expected = TopicSettings::default().in_effect(&levels);
        change(&mut expected);
        let settings = given(&[(key, value)]).unwrap();
        assert_eq!(settings.in_effect(&levels), expected, "A-331 {key}={value}");
        assert_eq!(settings.get(key), Some(value), "A-316: kept as given");
    }
}

/// (key, valid values, values that are refused).
const VALUES: [(&str, &[&str], &[&str]); 26] = [
    (
        "cleanup.policy",
        &["delete", "", " ", "compact , delete"],
        &["deletes", "delete,", ",", "delete,delete", "Delete"],
    ),
    ("retention.ms", &["-1", "0", "+5", "9223372036854775807"], &["-2", "", "1.5", "1h", "9223372036854775808"]),
    ("retention.bytes", &["-1", "-9", "0"], &["x"]),
    ("segment.bytes", &["1048576", "2147483647"], &["1048575", "14", "2147483648"]),
    ("internal.segment.bytes", &["14"], &["13"]),
    ("segment.ms", &["1"], &["0"]),
    ("segment.jitter.ms", &["0"], &["-1"]),
    ("segment.index.bytes", &["4"], &["3"]),
    ("index.interval.bytes", &["0"], &["-1"]),
    ("flush.messages", &["1"], &["0"]),
    ("flush.ms", &["0"], &["-1"]),
    ("max.message.bytes", &["0"], &["-1", "1e6"]),
    ("min.insync.replicas", &["1", "2"], &["0"]),
    ("compression.type", &["producer", "uncompressed", "zstd", "lz4", "snappy", "gzip"], &["none", "GZIP", ""]),
    ("compression.gzip.level", &["-1", "1", "9"], &["0", "10", "-2"]),
    ("compression.lz4.level", &["1", "17"], &["0", "18"]),
    ("compression.zstd.level", &["-131072", "22"], &["-131073", "23"]),
    ("message.timestamp.type", &["CreateTime", "LogAppendTime"], &["createtime"]),
    ("max.compaction.lag.ms", &["1"], &["0"]),
    ("min.cleanable.dirty.ratio", &["0", "1", "0.25", "1e-3"], &["-0.1", "1.1", "NaN", "inf", ""]),
    ("preallocate", &["true", "FALSE", " True "], &["yes", "1", ""]),
    ("leader.replication.throttled.replicas", &["*", "", "0:1,2:3"], &["0", "a:1", "0:1,"]),
    ("remote.storage.enable", &["false"], &["true", "TRUE"]),
    ("local.retention.ms", &["-2"], &["-3"]),
    ("remote.copy.lag.ms", &["-1"], &["-2"]),
    ("errors.deadletterqueue.group.enable", &["true"], &["maybe"]),
];

#[test]
fn values_follow_a_331_and_a_332() {
    for (key, valid, refused) in VALUES {
        for value in valid {
            assert!(given(&[(key, value)]).is_ok(), "A-331 {key}={value:?}: {:?}", given(&[(key, value)]));
        }
        for value in refused {
            let refused = given(&[(key, value)]).unwrap_err();
            assert_eq!(refused.refusal, Refusal::InvalidConfig, "A-331 {key}={value:?}");
            let start = format!("Invalid value {value} for configuration {key}: ");
            assert!(refused.message.starts_with(&start), "A-331 {}", refused.message);
        }
    }
    for key in
        ["message.format.version", "message.timestamp.difference.max.ms", "message.downconversion.enable", "", "x"]
    {
        let refused = given(&[(key, "1")]).unwrap_err();
        assert_eq!(refused.message, format!("Unknown topic config name: {key}"), "A-332");
    }
}

#[test]
fn long_texts_are_refused_and_not_repeated() {
    let (fits, too_long) = ("é".repeat(32_767), "é".repeat(32_768));
    let refused = given(&[("retention.ms", &fits)]).unwrap_err();
    assert!(refused.message.len() < 1000, "a message fits its answer");
    let blank = " ".repeat(32_767);
    assert!(given(&[("cleanup.policy", &blank)]).is_ok(), "A-315");
    assert!(given(&[("cleanup.policy", &too_long)]).unwrap_err().message.contains("longer than 32767"), "A-315");
    assert!(given(&[(&too_long, "1")]).unwrap_err().message.len() < 1000);
}

#[test]
fn the_last_of_two_values_counts() {
    let settings = given(&[("retention.ms", "1"), ("retention.ms", "2")]).unwrap();
    assert_eq!(settings.iter().collect::<Vec<_>>(), [("retention.ms", "2")]);
}

/// what the broker says reaches the topics that do not.
#[test]
fn the_broker_stands_behind_its_topics() {
    let hours = BrokerLevels {
        stated: stated(&[("log.retention.hours", "2"), ("log.roll.hours", "1"), ("message.max.bytes", "5")]),
        ..BrokerLevels::default()
    };
    let own = given(&[("max.message.bytes", "6")]).unwrap();
    let effect = own.in_effect(&hours);
    assert_eq!((effect.retention_ms, effect.segment_ms, effect.max_message_bytes), (Some(7_200_000), 3_600_000, 6));
    let mut finer = hours.clone();
    finer.stated.insert("log.retention.minutes".to_owned(), "3".to_owned());
    assert_eq!(own.in_effect(&finer).retention_ms, Some(180_000), "A-307");
    finer.stated.insert("log.retention.ms".to_owned(), "-1".to_owned());
    assert_eq!(own.in_effect(&finer).retention_ms, None, "A-307");
    finer.dynamic_default.insert("log.retention.ms".to_owned(), "4".to_owned());
    assert_eq!(own.in_effect(&finer).retention_ms, Some(4), "A-306");
    finer.dynamic.insert("log.retention.ms".to_owned(), "5".to_owned());
    assert_eq!(own.in_effect(&finer).retention_ms, Some(5), "A-306");
    assert_eq!(hours.check(), Ok(()));
    let lag = BrokerLevels { stated: stated(&[("log.cleaner.max.compaction.lag.ms", "5")]), ..BrokerLevels::default() };
    assert!(given_over(&[("min.compaction.lag.ms", "6")], &lag).is_err(), "A-331: values in effect are compared");
    assert!(given_over(&[("min.compaction.lag.ms", "5")], &lag).is_ok(), "A-331");
    let wrong = BrokerLevels { stated: stated(&[("log.roll.hours", "0")]), ..BrokerLevels::default() };
    let message = wrong.check().unwrap_err();
    assert_eq!(message, "Invalid value 0 for configuration log.roll.hours: Value must be at least 1");
    let forever = BrokerLevels { stated: stated(&[("log.retention.hours", "-1")]), ..BrokerLevels::default() };
    assert_eq!(own.in_effect(&forever).retention_ms, None, "A-307");
}

/// A row of another time: what is not valid now has no effect, and nothing is lost.
#[test]
fn stored_settings_that_are_not_valid_any_more_have_no_effect() {
    let old = TopicSettings::stored(stated(&[("message.format.version", "2.8"), ("segment.bytes", "14")]));
    assert_eq!(old.in_effect(&BrokerLevels::default()).segment_bytes, 1_073_741_824);
    assert_eq!(TopicSettings::decode(&old.encode()), Ok(old));
}
