use std::collections::{BTreeMap, BTreeSet};

use super::topics::{CAP, OTHER};
use super::*;
use crate::engine::{Now, Outcome};

const APIS: &[(i16, &str)] = &[(0, "Produce"), (26, "EndTxn")];

fn metrics() -> Metrics {
    Metrics::new(&Config::builtin(), APIS).unwrap()
}

fn text(metrics: &Metrics) -> String {
    String::from_utf8(metrics.render().unwrap()).unwrap()
}

/// Series → value, comments left out.
fn series(metrics: &Metrics) -> BTreeMap<String, f64> {
    let text = text(metrics);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

#[test]
fn every_series_of_a_closed_set_is_there_from_the_start() {
    let series = series(&metrics());
    let zero = [
        "oncelog_partition_lso_lag_records{topic=\"(other)\"}",
        "oncelog_partition_lso_lag_seconds{topic=\"(other)\"}",
        "oncelog_transaction_oldest_open_start_timestamp_seconds",
        "oncelog_transaction_open_age_seconds_max",
        "oncelog_fencing_events_total{reason=\"init_producer_id\"}",
        "oncelog_fencing_events_total{reason=\"stale_epoch\"}",
        "oncelog_fencing_events_total{reason=\"stale_coordinator_epoch\"}",
        "oncelog_fencing_events_total{reason=\"timeout_bump\"}",
        "oncelog_fencing_events_total{reason=\"id_expired\"}",
        "oncelog_fencing_events_total{reason=\"admin\"}",
        "oncelog_transaction_marker_write_retries_total{error=\"storage_full\"}",
        "oncelog_transaction_marker_write_retries_total{error=\"partition_damaged\"}",
        "oncelog_transaction_marker_writes_total{result=\"ok\",type=\"commit\"}",
        "oncelog_transaction_marker_writes_total{result=\"error\",type=\"abort\"}",
        "oncelog_transaction_commit_phase_seconds_count{phase=\"prepare\"}",
        "oncelog_transaction_verifications_total{result=\"refused\"}",
        "oncelog_invariant_violations_total{invariant=\"orphan_transaction\"}",
        "oncelog_operator_actions_total{action=\"abort\"}",
        "oncelog_pending_transactional_offset_commits",
        "oncelog_produced_bytes_total{topic=\"(other)\"}",
        "oncelog_group_lag_records{group=\"(other)\",to=\"last_stable_offset\"}",
        "oncelog_groups{state=\"stable\"}",
        "oncelog_fetch_sessions",
        "oncelog_ready",
        "oncelog_requests_total{api=\"Produce\"}",
        "oncelog_requests_total{api=\"EndTxn\"}",
        "oncelog_requests_total{api=\"unknown\"}",
        "oncelog_request_duration_seconds_count{api=\"EndTxn\"}",
        "oncelog_transactions_completed_total{outcome=\"commit\",reason=\"client\"}",
        "oncelog_transactions_completed_total{outcome=\"abort\",reason=\"timeout\"}",
        "oncelog_transactions_completed_total{outcome=\"abort\",reason=\"failover\"}",
        "oncelog_transaction_duration_seconds_count{outcome=\"abort\"}",
        "oncelog_transactions{state=\"ongoing\"}",
        "oncelog_transactions{state=\"prepare_commit\"}",
        "oncelog_transaction_markers_pending",
        "oncelog_transaction_marker_oldest_pending_seconds",
        "oncelog_producer_duplicate_batches_total",
        "oncelog_producer_sequence_errors_total{error=\"out_of_order\"}",
        "oncelog_connections{listener=\"external\"}",
        "oncelog_connections{listener=\"internal\"}",
        "oncelog_fsync_duration_seconds_count{file=\"log\"}",
        "oncelog_fsync_duration_seconds_count{file=\"ledger\"}",
        "oncelog_partitions_offline",
        "oncelog_log_verified_bytes_total",
        "oncelog_partitions_with_late_transactions",
        "oncelog_disk_free_bytes",
        "oncelog_disk_space_low",
        "oncelog_disk_reserve_spent_total",
        "oncelog_trace_spans_dropped_total",
    ];
    for name in zero {
        assert_eq!(series.get(name), Some(&0.0), "{name}");
    }
    assert_eq!(series.get("oncelog_durability_info{durability=\"strict\",marker_sync=\"answer\"}"), Some(&1.0));
    assert!(series.keys().any(|name| name.starts_with("oncelog_build_info{") && name.contains("version=\"0.1.0\"")));
    assert!(series.contains_key("process_resident_memory_bytes"));
}

/// Something that is told to the metrics.
type Deed = fn(&Metrics);

/// One deed, one series, by one.
fn moved(table: &[(Deed, &str)]) {
    for (deed, name) in table {
        let metrics = metrics();
        deed(&metrics);
        assert_eq!(series(&metrics).get(*name), Some(&1.0), "{name}");
    }
}

#[test]
fn each_deed_moves_its_own_series() {
    let table: &[(Deed, &str)] = &[
        (|m| m.fenced(FencingReason::InitProducerId), "oncelog_fencing_events_total{reason=\"init_producer_id\"}"),
        (Metrics::duplicate_batch, "oncelog_producer_duplicate_batches_total"),
        (
            |m| m.sequence_error(SequenceError::Concurrent),
            "oncelog_producer_sequence_errors_total{error=\"concurrent\"}",
        ),
        (
            |m| m.transaction_completed(Outcome::Abort, EndReason::Fenced, Some(Duration::ZERO)),
            "oncelog_transactions_completed_total{outcome=\"abort\",reason=\"fenced\"}",
        ),
        (
            |m| m.marker_retried(MarkerError::StorageFull),
            "oncelog_transaction_marker_write_retries_total{error=\"storage_full\"}",
        ),
        (
            |m| m.marker_written(Outcome::Commit, MarkerResult::Ok),
            "oncelog_transaction_marker_writes_total{result=\"ok\",type=\"commit\"}",
        ),
        (
            |m| m.phase(Phase::Markers, Duration::ZERO),
            "oncelog_transaction_commit_phase_seconds_count{phase=\"markers\"}",
        ),
        (
            |m| m.verified(Verified::Refused, Duration::ZERO),
            "oncelog_transaction_verifications_total{result=\"refused\"}",
        ),
        (|m| m.request_queued(Duration::ZERO), "oncelog_request_queue_seconds_count"),
        (|m| m.ledger_refused(), "oncelog_transaction_log_append_retries_total"),
        (
            |m| m.invariant_violated(Invariant::WatermarkMovedBack),
            "oncelog_invariant_violations_total{invariant=\"watermark_moved_back\"}",
        ),
        (|m| m.operator_acted(OperatorAction::Fence), "oncelog_operator_actions_total{action=\"fence\"}"),
    ];
    moved(table);
}

#[test]
fn each_look_sets_its_own_series() {
    let table: &[(Deed, &str)] = &[
        (|m| m.fetch_held(), "oncelog_read_committed_fetches_held_total"),
        (|m| m.aborted_ranges(1), "oncelog_aborted_ranges_sent_total"),
        (|m| m.set_fetch_sessions(1, 0), "oncelog_fetch_sessions"),
        (|m| m.set_fetch_sessions(0, 1), "oncelog_fetch_sessions_evicted_total"),
        (|m| m.set_groups(&[(GroupState::Stable, 1)], 0), "oncelog_groups{state=\"stable\"}"),
        (|m| m.set_groups(&[], 1), "oncelog_group_members"),
        (|m| m.set_ready(true), "oncelog_ready"),
        (|m| m.started(Duration::from_secs(1)), "oncelog_start_duration_seconds"),
        (|m| m.set_catalog(1, 0), "oncelog_topics"),
        (|m| m.set_catalog(0, 1), "oncelog_partitions"),
        (|m| m.set_held_back(&HeldBack { partitions: 1, ..HeldBack::default() }), "oncelog_partitions_held_back"),
        (
            |m| m.set_held_back(&HeldBack { late: 1, ..HeldBack::default() }),
            "oncelog_partitions_with_late_transactions",
        ),
        (|m| m.set_held_back(&HeldBack { producers: 1, ..HeldBack::default() }), "oncelog_producer_ids"),
        (|m| m.set_log_sizes(&LogSizes { bytes: 1, ..LogSizes::default() }), "oncelog_log_bytes"),
        (|m| m.set_log_sizes(&LogSizes { segments: 1, ..LogSizes::default() }), "oncelog_log_segments"),
        (|m| m.set_log_sizes(&LogSizes { debt_bytes: 1, ..LogSizes::default() }), "oncelog_checkpoint_debt_bytes"),
        (|m| m.topic(&TopicName::from("t")).produced(1, 7), "oncelog_produced_records_total{topic=\"t\"}"),
        (|m| m.topic(&TopicName::from("t")).fetched(1), "oncelog_fetched_bytes_total{topic=\"t\"}"),
        (|m| m.topic(&TopicName::from("t")).aborted(1, 7), "oncelog_aborted_batches_total{topic=\"t\"}"),
        (|m| m.request_answered(26, Duration::ZERO), "oncelog_requests_total{api=\"EndTxn\"}"),
        (|m| m.request_answered(999, Duration::ZERO), "oncelog_requests_total{api=\"unknown\"}"),
        (
            |m| m.request_refused(26, Refusal::ConcurrentTransactions),
            "oncelog_request_errors_total{api=\"EndTxn\",error=\"concurrent_transactions\"}",
        ),
        (|m| m.connection_opened(ListenerName::Internal), "oncelog_connections{listener=\"internal\"}"),
        (|m| m.synced(SyncedFile::Ledger, Duration::ZERO), "oncelog_fsync_duration_seconds_count{file=\"ledger\"}"),
        (|m| m.set_partitions_offline(1), "oncelog_partitions_offline"),
        (|m| m.log_verified(1), "oncelog_log_verified_bytes_total"),
        (|m| m.set_disk(1, 0, false), "oncelog_disk_total_bytes"),
        (|m| m.set_disk(9, 1, false), "oncelog_disk_free_bytes"),
        (|m| m.set_disk(9, 0, true), "oncelog_disk_space_low"),
        (Metrics::disk_reserve_spent, "oncelog_disk_reserve_spent_total"),
        (|m| m.trace_spans_dropped(1), "oncelog_trace_spans_dropped_total"),
        (|m| m.set_transactions(&[(TransactionState::Ongoing, 1)]), "oncelog_transactions{state=\"ongoing\"}"),
    ];
    moved(table);
}

#[test]
fn what_is_open_shows_while_it_is_open() {
    let metrics = metrics();
    let since = Now { mono_ms: 1_000, wall_ms: 1_700_000_000_500 };
    let now = Now { mono_ms: 3_500, wall_ms: 5 };
    metrics.set_open(
        &OpenTransactions { markers_pending: 2, oldest_marker_ms: 250, ..Default::default() }.with_oldest(since, now),
    );
    let open = series(&metrics);
    for (name, want) in [
        ("oncelog_transaction_oldest_open_start_timestamp_seconds", 1_700_000_000.5),
        ("oncelog_transaction_open_age_seconds_max", 2.5),
        ("oncelog_transaction_markers_pending", 2.0),
        ("oncelog_transaction_marker_oldest_pending_seconds", 0.25),
    ] {
        assert_eq!(open.get(name), Some(&want), "{name}");
    }
    metrics.set_open(&OpenTransactions { oldest_age_ms: 77, ..Default::default() });
    let over = series(&metrics);
    assert_eq!(over.get("oncelog_transaction_open_age_seconds_max"), Some(&0.0));
    assert_eq!(over.get("oncelog_transaction_oldest_open_start_timestamp_seconds"), Some(&0.0));
}

#[test]
fn a_topic_keeps_its_counters_while_it_exists_and_late_ones_share_one_series() {
    let metrics = metrics();
    let names: Vec<TopicName> = (0..=CAP).map(|i| TopicName::from(format!("t-{i}"))).collect();
    names.iter().for_each(|name| metrics.topic(name).produced(2, 30));
    let full = series(&metrics);
    let of = |series: &BTreeMap<String, f64>, topic: &str| {
        series.get(&format!("oncelog_produced_records_total{{topic=\"{topic}\"}}")).copied()
    };
    assert_eq!((of(&full, "t-0"), of(&full, "t-199"), of(&full, "t-200")), (Some(2.0), Some(2.0), None));
    assert_eq!(of(&full, OTHER), Some(2.0));
    metrics.keep_topics(|name| *name != names[3]);
    metrics.topic(&names[CAP]).produced(5, 1);
    let after = series(&metrics);
    assert_eq!((of(&after, "t-3"), of(&after, "t-200")), (None, Some(5.0)));
}

#[test]
fn groups_beyond_the_cap_share_one_sum() {
    let metrics = metrics();
    let lag = |n: usize| GroupLag { to_stable: 1, to_watermark: u64::try_from(n).unwrap() };
    let many = (0..CAP + 3).map(|n| (GroupId::from(format!("g-{n}").as_str()), lag(n))).collect();
    metrics.set_group_lag(many).unwrap();
    let full = series(&metrics);
    let of = |group: &str, to: &str| {
        full.get(&format!("oncelog_group_lag_records{{group=\"{group}\",to=\"{to}\"}}")).copied()
    };
    assert_eq!((of("g-202", "watermark"), of("g-2", "watermark")), (Some(202.0), None));
    assert_eq!((of(OTHER, "watermark"), of(OTHER, "last_stable_offset")), (Some(3.0), Some(3.0)));
}

#[test]
fn topics_beyond_the_cap_share_one_series() {
    let metrics = metrics();
    let lag = |records: i64| StableLag { records, seconds: 0.5 };
    let many = (0..CAP + 3).map(|i| (TopicName::from(format!("t-{i}")), lag(i64::try_from(i).unwrap()))).collect();
    metrics.set_stable_lag(many).unwrap();
    let full = series(&metrics);
    let of = |series: &BTreeMap<String, f64>, topic: &str| {
        series.get(&format!("oncelog_partition_lso_lag_records{{topic=\"{topic}\"}}")).copied()
    };
    assert_eq!(of(&full, "t-202"), Some(202.0));
    assert_eq!((of(&full, "t-2"), of(&full, OTHER)), (None, Some(2.0)));
    assert_eq!(full.get("oncelog_metrics_series_dropped_total"), Some(&3.0));
    assert_eq!(full.keys().filter(|name| name.starts_with("oncelog_partition_lso_lag_records")).count(), CAP + 1);
    metrics.set_stable_lag(vec![(TopicName::from("a"), lag(7))]).unwrap();
    let few = series(&metrics);
    assert_eq!((of(&few, "a"), of(&few, "t-202"), of(&few, OTHER)), (Some(7.0), None, Some(0.0)));
}

/// The text format's own rules: each family once, with help and type before its series; counters end in `_total`;
/// names and labels of the allowed letters.
#[test]
fn the_text_is_what_prometheus_reads() {
    let metrics = metrics();
    metrics.set_stable_lag(vec![(TopicName::from("a\"b\\"), StableLag::default())]).unwrap();
    metrics.request_refused(0, Refusal::NotCoordinator);
    let text = text(&metrics);
    assert!(text.ends_with('\n'));
    let (mut helped, mut typed) = (BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name), "{name} twice");
            assert!(help.len() > 8, "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(helped.contains(name) && typed.insert(name, kind).is_none(), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let name = line.split(['{', ' ']).next().unwrap();
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
            assert!(typed.contains_key(name) || typed.get(family) == Some(&"histogram"), "{line}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{line}");
            assert!(name.starts_with("oncelog_") || name.starts_with("process_"), "{line}");
        }
    }
}
