"""Transactions: are they healthy, who holds readers back, and what became of them."""

from grafana import GREEN, RED, TOPIC, YELLOW, dashboard, nan_says, quantile, series, stat, steps, text, yes_or_no

ENDED = "oncelog_transactions_completed_total"
DURATION = "oncelog_transaction_duration_seconds"
PHASE = "oncelog_transaction_commit_phase_seconds"
VERIFYING = "oncelog_transaction_verification_seconds"
ASKED = "InitProducerId|AddPartitionsToTxn|AddOffsetsToTxn|TxnOffsetCommit|EndTxn"


HEALTHY = [
    stat(
        "Open now",
        "Transactions that have begun and are not decided. Steady numbers are normal; a number that only grows is not.",
        'sum(oncelog_transactions{@,state="ongoing"})',
    ),
    stat(
        "Oldest open, of its limit",
        "Age of the oldest open transaction, as a share of the longest time a transaction may take here. At 100 % the "
        "broker aborts it at the latest.",
        "max(oncelog_transaction_open_age_seconds_max{@} / oncelog_transaction_max_timeout_seconds{@})",
        unit="percentunit",
        at=steps((0.5, YELLOW), (0.8, RED)),
        decimals=1,
    ),
    stat(
        "Partitions held back",
        "Partitions in which a read_committed reader may not have all there is, because a transaction is open in them.",
        "sum(oncelog_partitions_held_back{@})",
    ),
    stat(
        "Markers waiting",
        "Markers of transactions that are decided and not yet written. A few for a moment are normal.",
        "sum(oncelog_transaction_markers_pending{@})",
        at=steps((100, YELLOW), (1000, RED)),
    ),
    stat(
        "Fenced a minute",
        "Producers refused because another has their transactional id, or because their time ran out. Many mean two "
        "live producers that share an id.",
        "60 * sum(rate(oncelog_fencing_events_total{@}[~]))",
        unit="opm",
        at=steps((10, YELLOW), (60, RED)),
        decimals=1,
    ),
    stat(
        "Committed",
        "Share of the transactions that ended with a commit.",
        f'sum(rate({ENDED}{{@,outcome="commit"}}[~])) / sum(rate({ENDED}{{@}}[~]))',
        unit="percentunit",
        at=steps((0.8, YELLOW), (0.95, GREEN), base=RED),
        mappings=nan_says("none ended"),
        decimals=1,
    ),
]

WHO = """The names are not here: an id that a client chooses is no label. The broker says who it is:

```sh
oncelog txn blocked          # partition, transactional id, client, age, time left
oncelog txn show ID          # one of them, with all its partitions
oncelog txn abort ID         # ends it; its producer is fenced
```

The same as JSON, from the admin port: `GET /v1/partitions/blocked`, `GET /v1/transactions`
([on this machine](http://localhost:9644/v1/partitions/blocked)).
"""

HOLDING = [
    series(
        "Records that readers wait for",
        "Records between the last stable offset and the watermark, in the worst partition of each topic: written, "
        "and not "
        "yet to be had with read_committed. The ten topics with most.",
        [('topk(10, max by (topic) (oncelog_partition_lso_lag_records{@,topic=~"$topic"}))', "{{topic}}")],
        width=8,
    ),
    series(
        "For how long they wait",
        "Age of the oldest record that is held back, in the worst partition of each topic. The ten topics with most.",
        [('topk(10, max by (topic) (oncelog_partition_lso_lag_seconds{@,topic=~"$topic"}))', "{{topic}}")],
        unit="s",
        width=8,
    ),
    text(
        "Who is it?",
        "Where to find the transactional id, the client and its address.",
        WHO,
        width=8,
    ),
    series(
        "Oldest open transaction",
        "Its age, and the longest time that a transaction may take (transactions.max_timeout_ms).",
        [
            ("max by (instance) (oncelog_transaction_open_age_seconds_max{@})", "{{instance}}"),
            ("max(oncelog_transaction_max_timeout_seconds{@})", "longest allowed"),
        ],
        unit="s",
        width=8,
        dashed=["longest allowed"],
    ),
    series(
        "Partitions held back, and late ones",
        "Late: a transaction has been open longer than any may be, with a margin (KIP-664). The broker should have "
        "aborted "
        "it; one is a reason to look.",
        [
            ("sum(oncelog_partitions_held_back{@})", "held back"),
            ("sum(oncelog_partitions_with_late_transactions{@})", "late"),
        ],
        width=8,
    ),
    series(
        "When the oldest one began",
        "How long ago, by the wall clock; 0 when none is open. It differs from the age when the clock was set.",
        [
            (
                "max by (instance) ((time() - oncelog_transaction_oldest_open_start_timestamp_seconds{@}) * "
                "(oncelog_transaction_oldest_open_start_timestamp_seconds{@} > bool 0))",
                "{{instance}}",
            )
        ],
        unit="s",
        width=8,
    ),
]

COMMITTING = [
    series(
        "Time of a transaction that commits",
        "From its first partition to its last marker, the application's own work included.",
        [
            (quantile(q, DURATION, matchers='@,outcome="commit"'), name)
            for q, name in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"))
        ],
        unit="s",
        width=8,
    ),
    series(
        "Where a transaction's end spends its time",
        "Mean of each phase, on top of each other. prepare: asked to end, until the decision is on disk. markers: "
        "until every marker is as safe as the answer promises (on disk, or appended with marker_sync = redo). "
        "complete: until every marker is on disk.",
        [
            (
                f"sum by (phase) (rate({PHASE}_sum{{@}}[~])) / sum by (phase) (rate({PHASE}_count{{@}}[~]))",
                "{{phase}}",
            )
        ],
        unit="s",
        width=8,
        stack=True,
    ),
    series(
        "The slowest of a hundred, by phase",
        "99th percentile of each phase of a transaction's end.",
        [(quantile(0.99, PHASE, by="phase, le"), "{{phase}}")],
        unit="s",
        width=8,
    ),
    series(
        "Markers written",
        "Markers a second by what they say and whether they could be written. Errors are tried again until they "
        "succeed.",
        [("sum by (type, result) (rate(oncelog_transaction_marker_writes_total{@}[~]))", "{{type}} {{result}}")],
        unit="ops",
        width=8,
    ),
    series(
        "Markers tried again",
        "Markers a second that could not be written, by why. The decision stands, and readers of the partition wait.",
        [("sum by (error) (rate(oncelog_transaction_marker_write_retries_total{@}[~]))", "{{error}}")],
        unit="ops",
        width=4,
    ),
    series(
        "Markers waiting to be written",
        "Markers of decided transactions that are not yet written.",
        [("sum(oncelog_transaction_markers_pending{@})", "waiting")],
        width=6,
    ),
    series(
        "Oldest of them",
        "How long the oldest marker has been waiting to be written.",
        [("max(oncelog_transaction_marker_oldest_pending_seconds{@})", "oldest")],
        unit="s",
        width=6,
        at=steps((10, YELLOW), (60, RED)),
    ),
]

OUTCOMES = [
    series(
        "Transactions that ended",
        "By outcome, and by who ended them: the client, its timeout, the next owner of its id (fenced), an operator "
        "(admin), "
        "or the broker at a start (failover).",
        [
            (f'sum(rate({ENDED}{{@,outcome="commit"}}[~]))', "commit"),
            (f'sum by (reason) (rate({ENDED}{{@,outcome="abort"}}[~]))', "abort, {{reason}}"),
        ],
        unit="ops",
        width=8,
        stack=True,
    ),
    series(
        "Ids by state",
        "Transactional ids by the state of their transaction. Many in prepare_commit or prepare_abort: markers "
        "cannot be "
        "written.",
        [("sum by (state) (oncelog_transactions{@})", "{{state}}")],
        width=8,
        stack=True,
    ),
    series(
        "Steps of transactions",
        "Requests a second that move a transaction from one state to the next.",
        [(f'sum by (api) (rate(oncelog_requests_total{{@,api=~"{ASKED}"}}[~]))', "{{api}}")],
        unit="reqps",
        width=8,
    ),
    series(
        "Bytes written in vain",
        "Share of the bytes written to a topic that belong to transactions which were aborted then. The ten topics "
        "with most.",
        [
            (
                'topk(10, sum by (topic) (rate(oncelog_aborted_bytes_total{@,topic=~"$topic"}[~])) / '
                '(sum by (topic) (rate(oncelog_produced_bytes_total{@,topic=~"$topic"}[~])) > 0))',
                "{{topic}}",
            )
        ],
        unit="percentunit",
        width=8,
    ),
    series(
        "Aborted batches",
        "Batches a second whose transaction was aborted: in the log, and never given to a read_committed reader.",
        [('topk(10, sum by (topic) (rate(oncelog_aborted_batches_total{@,topic=~"$topic"}[~])))', "{{topic}}")],
        unit="ops",
        width=8,
    ),
    series(
        "Time of a transaction that aborts",
        "From its first partition to its last marker. Timeouts show here as the timeout's length.",
        [(quantile(q, DURATION, matchers='@,outcome="abort"'), name) for q, name in ((0.5, "p50"), (0.99, "p99"))],
        unit="s",
        width=8,
    ),
]

ZOMBIES = [
    series(
        "Fencing by reason",
        "Producers fenced a second. init_producer_id: a new owner while a transaction was open. stale_epoch: the old "
        "one "
        "came back. timeout_bump: its time ran out.",
        [("sum by (reason) (rate(oncelog_fencing_events_total{@}[~]))", "{{reason}}")],
        unit="ops",
    ),
    series(
        "Batches refused",
        "Batches a second refused for their sequence, their epoch or their transaction.",
        [("sum by (error) (rate(oncelog_producer_sequence_errors_total{@}[~]))", "{{error}}")],
        unit="ops",
    ),
    stat(
        "Duplicates recognised",
        "Batches that came a second time within the range shown and were not stored again: idempotence at work.",
        "sum(increase(oncelog_producer_duplicate_batches_total{@}[$__range]))",
        width=6,
        spark=False,
        decimals=0,
    ),
    stat(
        "Epochs running out",
        "Producers whose epoch is near its largest value. They are given a new producer id at their next start.",
        "sum(oncelog_producer_epochs_near_exhaustion{@})",
        width=6,
        at=steps((1, YELLOW)),
    ),
    stat(
        "Producer ids",
        "Producers whose sequences are remembered in partitions. Growth without end: clients make new ones instead of "
        "keeping their transactional id.",
        "sum(oncelog_producer_ids{@})",
        width=6,
    ),
    stat(
        "Transactional ids",
        "Ids that the broker remembers. One that is not used is forgotten after transactions.id_expiration_ms.",
        "sum(oncelog_transactional_ids{@})",
        width=6,
    ),
]

CONSUMERS = [
    series(
        "Fetches held at the last stable offset",
        "Partitions a second of which a read_committed fetch brought nothing, though records lie above the last stable "
        "offset.",
        [("sum(rate(oncelog_read_committed_fetches_held_total{@}[~]))", "held")],
        unit="ops",
        width=6,
    ),
    series(
        "Aborted ranges sent",
        "Ranges of aborted transactions a second that were sent to readers, for their clients to pass over.",
        [("sum(rate(oncelog_aborted_ranges_sent_total{@}[~]))", "ranges")],
        unit="ops",
        width=6,
    ),
    series(
        "Lag of groups, to both ends",
        "Records that groups have not read. To the last stable offset: what they could have with read_committed. To "
        "the "
        "watermark: what is written. The difference is what open transactions hold back. Markers take an offset and "
        "count.",
        [('sum by (to) (oncelog_group_lag_records{@})', "to {{to}}")],
        width=6,
    ),
    series(
        "Offsets in open transactions",
        "Offsets that consumers have handed to a transaction that is not decided yet.",
        [("sum(oncelog_pending_transactional_offset_commits{@})", "offsets")],
        width=6,
    ),
]

COORDINATOR = [
    stat(
        "Coordinator ready",
        "Whether the coordinator has loaded its state and serves.",
        "min(oncelog_ready{@})",
        at=steps((1, GREEN), base=RED),
        mappings=yes_or_no(yes=GREEN, no=RED),
        spark=False,
        width=6,
    ),
    stat(
        "Last start took",
        "From the process's start to the first client served: the state loaded, logs recovered, owed markers written.",
        "max(oncelog_start_duration_seconds{@})",
        unit="s",
        at=steps((10, YELLOW), (30, RED)),
        spark=False,
        width=6,
    ),
    stat(
        "Invariants broken",
        "Times, since the process began, that something was found which can never be. Anything but 0 is a defect to "
        "report.",
        "sum(oncelog_invariant_violations_total{@})",
        at=steps((1, RED)),
        spark=False,
        width=6,
    ),
    stat(
        "Ended by operators",
        "Aborts and fencings asked for at the admin port within the range shown.",
        "sum(increase(oncelog_operator_actions_total{@}[$__range]))",
        spark=False,
        decimals=0,
        width=6,
    ),
    series(
        "Sync of the ledger",
        "Time of one sync of meta.db, where decisions are stored. Nothing is decided faster than this.",
        [(quantile(q, "oncelog_fsync_duration_seconds", matchers='@,file="ledger"'), name)
         for q, name in ((0.5, "p50"), (0.99, "p99"))],
        unit="s",
        width=6,
    ),
    series(
        "Decisions stored again",
        "Commits a second that the ledger's store refused at first: no room on the disk.",
        [("sum(rate(oncelog_transaction_log_append_retries_total{@}[~]))", "tried again")],
        unit="ops",
        width=6,
    ),
    series(
        "Produce requests verified",
        "Batches a second for which the coordinator had to be asked whether their transaction is open.",
        [("sum by (result) (rate(oncelog_transaction_verifications_total{@}[~]))", "{{result}}")],
        unit="ops",
        width=6,
    ),
    series(
        "Time of a verification",
        "Mean time from the question to the coordinator's answer; 0 when nothing was asked, which is usual.",
        [
            (
                f"sum(rate({VERIFYING}_sum{{@}}[~])) / (sum(rate({VERIFYING}_count{{@}}[~])) > 0) or vector(0)",
                "mean",
            )
        ],
        unit="s",
        width=6,
    ),
]

DASHBOARD = dashboard(
    "transactions",
    "Exactly-once transactions: their health, what holds readers back, how commits spend their time, and what was "
    "fenced.",
    [
        ("Are transactions healthy?", HEALTHY),
        ("Who is holding readers back?", HOLDING),
        ("The way of a commit", COMMITTING),
        ("Outcomes", OUTCOMES),
        ("Zombies and duplicates", ZOMBIES),
        ("Consumers", CONSUMERS),
        ("Coordinator", COORDINATOR),
    ],
    more=[TOPIC],
)
