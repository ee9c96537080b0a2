//! The list of cases: what each was, and where it is tried.

use std::fs::{read_dir, read_to_string};

use Tried::{By, Clients, Later, Words};

/// How a case is tried.
enum Tried {
    /// By these functions: a file and a name each.
    By(&'static [(&'static str, &'static str)]),
    /// By these programs of `conformance/clients`, which say so.
    Clients(&'static [&'static str]),
    /// It is a question, and a document answers it with these words.
    Words(&'static str, &'static str),
    /// It is not yet, for it needs this.
    Later(&'static str),
}

const COMPACTION: Tried = Later("compaction");
const SECOND_VERSION: Tried = Later("transaction.version 2");
const RULES_OF_ACCESS: Tried = Later("access control");
const ADD: (&str, &str) = ("oracle/add.rs", "every_row");
const END: (&str, &str) = ("oracle/end.rs", "every_row");
const FENCED: (&str, &str) = ("oracle/fenced.rs", "when_another_instance_came");
const TIMED_OUT: (&str, &str) = ("oracle/fenced.rs", "when_its_transaction_timed_out");
const FORGED: (&str, &str) = ("oracle/produce.rs", "forged_batches");
const INIT: (&str, &str) = ("oracle/init.rs", "of_an_idle_id");
const INIT_SHAPES: (&str, &str) = ("oracle/init.rs", "what_is_judged_before_the_state");
const OFFSETS: (&str, &str) = ("oracle/stage.rs", "offsets_move_with_a_commit_alone");
const MEMBERS: (&str, &str) = ("oracle/stage.rs", "members_are_fenced");
const SEQUENCES: (&str, &str) = ("oracle/sequences.rs", "every_row");
const KILLS: (&str, &str) = ("process/exactly_once.rs", "exactly_once_through_five_kills");

/// Case, what it was, where it is tried. Paths begin at the root of the tree, or else here in `tests/it`.
const LIST: &[(u8, &str, &[Tried])] = &[
    (
        1,
        "a late EndTxn ends the next transaction",
        &[
            By(&[
                ("cases/late.rs", "c_01_a_late_end_ends_nothing_of_another_owner"),
                ("cases/late.rs", "c_01_a_late_end_within_one_epoch_ends_the_next_transaction_as_a_whole"),
            ]),
            Words("docs/exactly-once.md", "a commit that was given up"),
        ],
    ),
    (2, "the first record of an open transaction is shown", &[By(&[("oracle/reading.rs", "nothing_open_is_shown")])]),
    (
        3,
        "no list of aborted transactions",
        &[By(&[
            ("oracle/reading.rs", "an_abort_and_then_a_commit"),
            ("retention.rs", "readers_are_never_shown_an_aborted_record_of_a_segment_that_goes"),
        ])],
    ),
    (
        4,
        "an abort that comes long after the records",
        &[By(&[("oracle/reading.rs", "a_waiting_fetch_is_answered_by_the_marker")])],
    ),
    (
        6,
        "transactions of several producers in one another",
        &[By(&[("oracle/reading.rs", "transactions_in_one_another")])],
    ),
    (7, "an abort where nothing was written", &[By(&[("oracle/reading.rs", "an_abort_without_records")])]),
    (
        8,
        "a waiting fetch without the abort",
        &[By(&[("oracle/reading.rs", "a_waiting_fetch_is_answered_by_the_marker")])],
    ),
    (10, "read_uncommitted sees aborted records", &[By(&[("oracle/reading.rs", "nothing_open_is_shown")])]),
    (
        11,
        "a late Produce opens a transaction nobody knows",
        &[By(&[
            ("cases/late.rs", "c_11_a_late_produce_opens_nothing"),
            ("oracle/produce.rs", "a_late_copy_leaves_no_trace"),
        ])],
    ),
    (12, "who timed out writes on", &[By(&[("cases/late.rs", "c_12_who_timed_out_writes_no_more"), TIMED_OUT])]),
    (
        13,
        "a new owner leaves the old transaction open",
        &[By(&[
            ("cases/late.rs", "c_13_who_comes_next_ends_what_is_open_once"),
            ("oracle/init.rs", "of_an_id_with_an_open_transaction"),
        ])],
    ),
    (14, "an abort moves offsets", &[By(&[OFFSETS, KILLS])]),
    (
        15,
        "a commit is taken for an empty one while the last one ends",
        &[By(&[("cases/late.rs", "c_15_the_next_transaction_begins_when_the_last_one_has_ended"), ADD, END])],
    ),
    (
        16,
        "an EndTxn asked again after a crash",
        &[By(&[
            ("cases/late.rs", "c_16_an_end_whose_answer_was_lost_is_asked_for_again"),
            ("oracle/crash.rs", "between_the_decision_and_the_last_marker"),
            ("oracle/crash.rs", "right_after_the_answer"),
        ])],
    ),
    (17, "a commit that comes just after the broker's abort", &[By(&[TIMED_OUT]), SECOND_VERSION]),
    (18, "an old epoch is told that its state is wrong", &[By(&[TIMED_OUT])]),
    (
        21,
        "a transaction without records",
        &[By(&[
            ("cases/stuck.rs", "c_21_empty_transactions"),
            ("cases/stuck.rs", "c_21_an_end_without_anything_to_end"),
        ])],
    ),
    (
        22,
        "what an old epoch leaves takes the new one along",
        &[By(&[("cases/stuck.rs", "c_22_the_first_epoch_is_forgotten_and_the_second_is_not")])],
    ),
    (
        23,
        "a wall clock that steps back",
        &[By(&[
            ("cases/late.rs", "c_23_a_wall_clock_that_jumps"),
            ("oracle/timeouts.rs", "nothing_lengthens_a_transaction"),
        ])],
    ),
    (25, "an abort marker compacted away before its records", &[COMPACTION]),
    (26, "compaction above the last stable offset", &[COMPACTION]),
    (
        27,
        "one transaction right behind the other",
        &[By(&[("oracle/back_to_back.rs", "over_one_partition"), ("oracle/back_to_back.rs", "over_fifty_partitions")])],
    ),
    (28, "each transaction costs a client's pause", &[By(&[("oracle/back_to_back.rs", "over_one_partition")])]),
    (29, "an old instance gets through somewhere", &[By(&[FENCED, TIMED_OUT])]),
    (30, "PRODUCER_FENCED to clients that do not know it", &[By(&[FENCED, INIT])]),
    (31, "shapes of InitProducerId", &[By(&[INIT_SHAPES, INIT])]),
    (
        32,
        "limits of the timeout",
        &[By(&[INIT_SHAPES]), Words("docs/exactly-once.md", "It counts from the transaction's first record or offset")],
    ),
    (34, "an epoch asked for twice fences itself", &[By(&[("cases/late.rs", "c_34_an_owner_asked_for_twice"), INIT])]),
    (35, "an abort after the broker's own", &[By(&[("cases/late.rs", "c_35_an_abort_after_the_timeout"), TIMED_OUT])]),
    (
        36,
        "an id that has expired",
        &[By(&[
            ("cases/stuck.rs", "c_36_an_id_with_an_open_transaction_is_not_forgotten"),
            ("oracle/fenced.rs", "when_its_id_was_forgotten"),
        ])],
    ),
    (37, "very many ids expire", &[By(&[("cases/stuck.rs", "c_37_c_54_a_crowd_of_ids_that_are_never_used")])]),
    (38, "a new id for everything", &[By(&[("cases/stuck.rs", "c_38_a_crowd_of_producers_of_one_record")])]),
    (39, "a partition added twice", &[By(&[("cases/stuck.rs", "c_39_a_partition_that_is_added_twice"), ADD])]),
    (41, "offsets for a group that is not there yet", &[By(&[MEMBERS, ADD])]),
    (
        43,
        "offsets that stay unstable",
        &[By(&[OFFSETS, MEMBERS, ("oracle/timeouts.rs", "an_open_transaction_is_aborted_when_it_times_out")])],
    ),
    (
        44,
        "an offset goes while a transaction carries it",
        &[By(&[
            ("cases/stuck.rs", "c_44_an_offset_of_an_open_transaction_is_not_forgotten"),
            ("cases/stuck.rs", "c_44_an_offset_deleted_under_a_transaction"),
            ("groups.rs", "a_group_is_deleted_under_a_transaction"),
        ])],
    ),
    (
        46,
        "the last offset is a marker",
        &[
            By(&[("cases/reading.rs", "c_46_the_last_offset_is_a_marker")]),
            Words("docs/exactly-once.md", "a lag of 1 that never goes away"),
        ],
    ),
    (
        47,
        "the bytes of a marker",
        &[By(&[("cases/reading.rs", "c_47_the_bytes_of_a_marker"), ("src/engine/batch/marker/tests.rs", "golden")])],
    ),
    (48, "a client sends a marker", &[By(&[FORGED])]),
    (49, "a plain batch inside a transaction", &[By(&[FORGED])]),
    (
        50,
        "a batch in another's name",
        &[By(&[("cases/stuck.rs", "c_50_who_writes_in_whose_name"), FORGED]), RULES_OF_ACCESS],
    ),
    (
        51,
        "an administrator fences an id or aborts a transaction",
        &[
            By(&[
                ("cases/tools.rs", "c_51_an_id_fenced_by_an_administrator"),
                ("tool_markers.rs", "an_open_transaction_is_aborted_in_all_its_partitions"),
            ]),
            RULES_OF_ACCESS,
        ],
    ),
    (
        52,
        "transactions and producers as they are described",
        &[By(&[("cases/tools.rs", "c_52_transactions_and_producers_as_tools_see_them")])],
    ),
    (53, "a commit by another process", &[By(&[("cases/late.rs", "c_53_a_commit_by_another_process")])]),
    (54, "thousands of ids are probed", &[By(&[("cases/stuck.rs", "c_37_c_54_a_crowd_of_ids_that_are_never_used")])]),
    (55, "Kafka Streams lives through fencing", &[Clients(&["streams"])]),
    (
        56,
        "a coordinator that is still loading",
        &[By(&[
            ("cases/tools.rs", "c_56_a_start_lets_nobody_in_before_it_knows_everything"),
            ("src/wire/codes/tests.rs", "old_clients_are_told_what_they_know"),
        ])],
    ),
    (
        57,
        "fenced, but only one instance runs",
        &[
            By(&[("cases/tools.rs", "c_57_why_a_producer_was_fenced")]),
            Words("docs/exactly-once.md", "\"Fenced, but only one instance runs.\""),
        ],
    ),
    (
        58,
        "after an abort the consumer does not go back",
        &[
            Words("docs/exactly-once.md", "**An abort does not move the consumer.**"),
            Clients(&["librdkafka", "franz-go"]),
            Words("examples/ledger/session.rs", "goes back to where the group stands"),
        ],
    ),
    (59, "what isolation is there", &[Words("docs/exactly-once.md", "aborted reads (G1a) are excluded")]),
    (60, "doubles after a restart", &[By(&[KILLS, ("process/exactly_once.rs", "exactly_once_through_five_stops")])]),
    (61, "a duplicate's offset", &[By(&[SEQUENCES, ("oracle/sequences.rs", "duplicates_are_known_over_a_restart")])]),
    (62, "gaps, and the wrap of sequences", &[By(&[SEQUENCES])]),
    (
        63,
        "a producer that was forgotten",
        &[By(&[
            ("cases/producers.rs", "c_63_a_producer_that_is_not_known_any_more"),
            ("src/runtime/world/retention.rs", "a_producer_that_is_forgotten_may_come_back_with_any_sequence"),
        ])],
    ),
    (
        64,
        "a producer whose records have gone",
        &[By(&[
            ("retention.rs", "old_records_go_and_an_open_transaction_holds_its_segments"),
            ("src/runtime/world/retention.rs", "a_resend_of_records_that_are_gone_is_a_duplicate"),
        ])],
    ),
    (
        66,
        "the disk fails under an append",
        &[By(&[
            ("full_disk.rs", "a_disk_that_fills_up_under_transactions_loses_nothing_c_66"),
            ("full_disk.rs", "below_the_low_mark_records_are_refused_and_all_else_goes_on_c_66"),
        ])],
    ),
    (
        67,
        "one offset, two values",
        &[By(&[("recovery.rs", "an_offset_has_one_value_for_every_reader_over_every_restart_c_67")])],
    ),
    (
        68,
        "an error for a batch that was stored",
        &[By(&[("recovery.rs", "an_answer_that_was_lost_is_given_again_c_68_c_72")])],
    ),
    (
        69,
        "a gap begins another transaction",
        &[By(&[("recovery.rs", "a_gap_inside_a_transaction_does_not_begin_another_one_c_69")])],
    ),
    (
        70,
        "a torn or flipped log",
        &[By(&[
            ("recovery.rs", "a_torn_tail_is_cut_and_the_producer_goes_on_c_70_a_b_c"),
            ("recovery.rs", "a_flipped_bit_in_the_middle_stops_that_partition_there_and_nothing_else_c_70_d"),
            ("recovery.rs", "index_files_may_be_lost_or_wrong_c_70_e_f"),
        ])],
    ),
    (
        71,
        "a crash while recovering",
        &[By(&[
            ("recovery.rs", "the_mark_of_a_clean_stop_is_gone_before_anything_is_loaded_c_71"),
            (
                "src/store/log/tests/again.rs",
                "a_recovery_cut_short_at_every_point_is_done_again_with_the_same_end_c_71",
            ),
        ])],
    ),
    (
        72,
        "acknowledged before it is on disk",
        &[By(&[
            ("src/store/log/tests/crash.rs", "nothing_synced_is_lost"),
            ("tests/sim.rs", "kept_seeds_then_fresh_ones"),
        ])],
    ),
    (
        73,
        "nothing but a marker is left",
        &[By(&[
            ("src/runtime/world/retention.rs", "a_fence_holds_when_nothing_but_its_marker_is_left"),
            ("src/store/log/tests/again.rs", "a_fence_outlives_the_data_it_came_with_c_73"),
        ])],
    ),
    (
        74,
        "an open transaction over a restart",
        &[By(&[
            ("recovery.rs", "an_open_transaction_is_open_after_a_restart_and_times_out_anew_c_74"),
            ("oracle/timeouts.rs", "a_restart_ends_no_transaction"),
        ])],
    ),
    (
        75,
        "a group over a restart",
        &[By(&[
            ("cases/groups.rs", "c_75_members_go_on_after_a_restart"),
            ("src/runtime/world/restarts.rs", "a_group_is_as_it_was_after_a_restart_c_75"),
        ])],
    ),
    (
        76,
        "a crash while files change",
        &[
            By(&[
                ("src/runtime/world/trims.rs", "a_crash_between_any_two_steps_loses_nothing_and_damages_nothing"),
                ("retention.rs", "topics_are_deleted_while_their_segments_go"),
            ]),
            COMPACTION,
        ],
    ),
    (77, "an offset inside a batch", &[By(&[("cases/reading.rs", "c_77_an_offset_inside_a_batch")]), COMPACTION]),
    (78, "records without a key are compacted", &[COMPACTION]),
    (
        79,
        "records from the future",
        &[By(&[
            ("cases/producers.rs", "c_79_records_from_the_future"),
            ("src/store/log/tests/retain.rs", "a_date_in_the_future_does_not_keep_a_segment_for_ever"),
        ])],
    ),
    (80, "probes end a long recovery", &[Words("conformance/chart/check.py", "def startup_budget")]),
    (
        81,
        "a follower without an assignment",
        &[By(&[
            ("cases/groups.rs", "c_81_c_82_a_generation_and_what_each_gets_in_it"),
            ("src/engine/group/tests/sync.rs", "the_leader_s_assignment_is_everyone_s"),
        ])],
    ),
    (
        82,
        "a generation for every join",
        &[By(&[("cases/groups.rs", "c_81_c_82_a_generation_and_what_each_gets_in_it")])],
    ),
    (83, "a member that never syncs", &[By(&[("src/engine/group/tests/rebalance.rs", "who_never_syncs_is_removed")])]),
    (84, "an instance beside an old leader", &[By(&[("cases/groups.rs", "c_84_an_instance_beside_an_old_leader")])]),
    (
        85,
        "assignors that do not fit together",
        &[By(&[
            ("cases/groups.rs", "c_85_assignors_that_have_nothing_in_common"),
            ("src/engine/group/tests/rebalance.rs", "choice_of_protocol"),
        ])],
    ),
    (
        86,
        "offsets of partitions that are not there",
        &[By(&[
            ("cases/groups.rs", "c_86_offsets_of_partitions_that_are_not_there"),
            ("src/api/positions/tests.rs", "each_partition_is_told_its_own"),
        ])],
    ),
    (87, "an offset that is not there", &[By(&[("cases/groups.rs", "c_87_offsets_that_are_not_there")])]),
    (
        88,
        "offsets by time",
        &[By(&[("cases/reading.rs", "c_88_offsets_by_time"), ("cases/reading.rs", "c_88_and_their_epochs")])],
    ),
    (89, "epochs that are not there", &[By(&[("cases/reading.rs", "c_89_epochs_that_are_not_there")])]),
    (
        90,
        "edges of DeleteRecords",
        &[By(&[
            ("retention.rs", "a_client_may_say_where_a_log_starts"),
            ("retention.rs", "not_every_log_may_be_cut"),
            ("retention.rs", "a_log_may_be_cut_into_an_open_transaction"),
        ])],
    ),
    (
        91,
        "topics that cannot be",
        &[By(&[
            ("src/engine/catalog/create/tests.rs", "names"),
            ("src/engine/catalog/create/tests.rs", "counts"),
            ("src/engine/catalog/create/tests.rs", "configs"),
            ("admin.rs", "topics_are_created_one_by_one"),
        ])],
    ),
    (
        92,
        "settings appended and subtracted",
        &[By(&[
            ("configs.rs", "settings_are_changed_key_by_key"),
            ("configs.rs", "settings_are_changed_resource_by_resource"),
            ("admin.rs", "configs_are_described"),
        ])],
    ),
    (93, "consoles that find something missing", &[Later("a run of the consoles")]),
    (
        94,
        "metadata without partitions and without an error",
        &[By(&[
            ("cases/tools.rs", "c_56_a_start_lets_nobody_in_before_it_knows_everything"),
            ("admin.rs", "metadata_makes_topics"),
        ])],
    ),
    (95, "a deleted topic's name is told", &[RULES_OF_ACCESS]),
    (
        120,
        "a dashboard bound to one data source",
        &[Words("conformance/observe/style.py", "a variable `datasource` lists the data sources of type prometheus")],
    ),
    (
        121,
        "panels without data on a fresh install",
        &[
            By(&[("src/metrics/tests.rs", "every_series_of_a_closed_set_is_there_from_the_start")]),
            Words("conformance/observe/README.md", "every query of every panel must have given a number"),
        ],
    ),
    (122, "to which end a group's lag is counted", &[By(&[("operators.rs", "a_groups_lag_is_counted_to_both_ends")])]),
    (
        123,
        "series that only grow",
        &[By(&[
            ("src/metrics/tests.rs", "groups_beyond_the_cap_share_one_sum"),
            ("src/metrics/tests.rs", "a_topic_keeps_its_counters_while_it_exists_and_late_ones_share_one_series"),
            ("operators.rs", "figures_of_topics_sizes_and_starts"),
        ])],
    ),
    (
        124,
        "an alert for transactions that hang",
        &[
            By(&[
                ("operators.rs", "a_late_transaction_and_markers_that_fail_are_counted_until_they_are_written"),
                ("src/server/ops/late.rs", "a_late_partition_is_told_of_once"),
            ]),
            Words("alerts/oncelog.rules.test.yml", "OncelogLateTransactions"),
        ],
    ),
    (
        125,
        "clients in a container that are told localhost",
        &[
            By(&[
                ("doctor.rs", "a_broker_that_sends_clients_elsewhere"),
                ("src/server/wrong_door.rs", "only_strangers_at_a_door_for_friends_are_counted"),
            ]),
            Words("conformance/docker/run", "the wrong door, oncelog:9092 from inside"),
        ],
    ),
    (
        126,
        "a health check that is green too early",
        &[
            By(&[("src/http/tests.rs", "not_ready_is_503_with_the_reasons_and_the_probe_repeats_them")]),
            Words("docs/docker.md", "healthy means that transactions can be served"),
        ],
    ),
    (127, "a stop that is not clean", &[By(&[("process/stop.rs", "a_stop_is_clean_whoever_is_connected")])]),
    (
        128,
        "a root that may only be read, and any user",
        &[
            By(&[("process/bad_starts.rs", "ports_and_directories_that_cannot_be_used")]),
            Words("docs/docker.md", "Any user works with a new volume"),
        ],
    ),
    (
        129,
        "a Pod that may not be root",
        &[Words("docs/kubernetes.md", "It installs the chart under the Pod security standard `restricted`")],
    ),
    (
        131,
        "passwords that an upgrade makes anew",
        &[Words("helm/oncelog/README.md", "nothing is generated that an upgrade could change")],
    ),
    (
        132,
        "probes, and addresses for outside",
        &[Words("docs/kubernetes.md", "bootstrap at the Service `…-external`, whose clients are told")],
    ),
    (133, "a monitor that selects nothing", &[Words("conformance/chart/check.py", "{\"scheme\": \"HTTP\"}")]),
];

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Whether some file below this folder holds the text.
fn any_file(folder: &str, text: &str) -> bool {
    read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}")).any(|entry| {
        let path = entry.unwrap().path();
        let name = path.to_str().unwrap();
        if path.is_dir() { any_file(name, text) } else { read_to_string(&path).is_ok_and(|found| found.contains(text)) }
    })
}

/// The file of a path in the list.
fn read(path: &str) -> String {
    let from_root = ["src/", "docs/", "examples/", "tests/", "conformance/", "alerts/", "helm/"]
        .iter()
        .any(|part| path.starts_with(part));
    let path = if from_root { format!("{ROOT}/{path}") } else { format!("{ROOT}/tests/it/{path}") };
    read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_list_is_true() {
    let mut wrong = Vec::new();
    for (case, what, tried) in LIST {
        for how in *tried {
            match how {
                By(tests) => wrong.extend((tests.iter()).filter_map(|(path, name)| {
                    let is_there = read(path).contains(&format!("fn {name}()"));
                    (!is_there).then(|| format!("C-{case:02} ({what}): no test {name} in {path}"))
                })),
                // A document's lines end where they end.
                Words(path, words) => {
                    let text = read(path).split_whitespace().collect::<Vec<_>>().join(" ");
                    wrong.extend((!text.contains(words)).then(|| format!("C-{case:02} ({what}): {path}: {words:?}")));
                }
                Clients(names) => wrong.extend((names.iter()).filter_map(|name| {
                    let says_so = any_file(&format!("{ROOT}/conformance/clients/{name}"), &format!("C-{case:02}"));
                    (!says_so).then(|| format!("C-{case:02} ({what}): not in conformance/clients/{name}"))
                })),
                Later(needs) => assert!(!needs.is_empty()),
            }
        }
    }
    assert!(LIST.is_sorted_by(|a, b| a.0 < b.0) && LIST.iter().all(|(_, _, tried)| !tried.is_empty()));
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Every test here that is named after a case is in the list under it.
#[test]
fn the_list_is_whole() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cases");
    for path in read_dir(here).unwrap().map(|entry| entry.unwrap().path()) {
        let file = format!("cases/{}", path.file_name().unwrap().to_string_lossy());
        let text = read(&file);
        for name in text.lines().filter_map(|line| line.strip_prefix("fn ")?.strip_suffix("() {")) {
            let mut rest = name;
            while let Some((number, behind)) = rest.strip_prefix("c_").and_then(|rest| rest.split_once('_')) {
                let Ok(number) = number.parse::<u8>() else { break };
                let line = LIST.iter().find(|(case, ..)| *case == number);
                let tried = line.map_or(&[][..], |(_, _, tried)| tried);
                let named = tried.iter().any(|how| match how {
                    By(tests) => tests.contains(&(file.as_str(), name)),
                    Clients(_) | Words(..) | Later(_) => false,
                });
                assert!(named, "C-{number:02} does not name {file}: {name}");
                rest = behind;
            }
        }
    }
}
