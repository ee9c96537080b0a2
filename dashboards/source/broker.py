"""Broker: is it well, what do clients ask of it, and what do disk and machine have to say."""

from grafana import (
    GREEN,
    RED,
    TOPIC,
    YELLOW,
    bars,
    dashboard,
    nan_says,
    quantile,
    series,
    stat,
    steps,
    table,
    yes_or_no,
)

REQUESTS = "oncelog_requests_total"
ERRORS = "oncelog_request_errors_total"
TOOK = "oncelog_request_duration_seconds"
SYNC = "oncelog_fsync_duration_seconds"
# Those that answer when they can; the others wait for records or for other members.
WORKING = '@,api!~"Fetch|JoinGroup|SyncGroup"'

# No error has ever happened is 0, not nothing: the family has no series before its first one.
ERROR_RATE = f"(sum(rate({ERRORS}{{@}}[~])) or vector(0))"


WELL = [
    stat(
        "Ready",
        "Whether every broker that is looked at serves clients.",
        "min(oncelog_ready{@})",
        at=steps((1, GREEN), base=RED),
        mappings=yes_or_no(yes=GREEN, no=RED),
        spark=False,
        width=3,
    ),
    stat(
        "Up for",
        "Time since the youngest process began.",
        "min(time() - process_start_time_seconds{@})",
        unit="s",
        spark=False,
        width=3,
    ),
    stat(
        "Partitions offline",
        "Partitions that cannot be served because their files are damaged. /readyz names the file and the byte.",
        "sum(oncelog_partitions_offline{@})",
        at=steps((1, RED)),
        spark=False,
        width=3,
    ),
    stat(
        "Disk free",
        "Free share of the fullest disk.",
        "min(oncelog_disk_free_bytes{@} / oncelog_disk_total_bytes{@})",
        unit="percentunit",
        at=steps((0.1, YELLOW), (0.2, GREEN), base=RED),
        decimals=0,
        width=3,
    ),
    stat(
        "Records refused",
        "Whether records are refused for want of room on a disk.",
        "max(oncelog_disk_space_low{@})",
        at=steps((1, RED)),
        mappings=yes_or_no(yes=RED, no=GREEN),
        spark=False,
        width=3,
    ),
    stat(
        "Connections",
        "Clients that are connected.",
        "sum(oncelog_connections{@})",
        width=3,
    ),
    stat(
        "Requests",
        "Requests a second, of all kinds.",
        f"sum(rate({REQUESTS}{{@}}[~]))",
        unit="reqps",
        width=3,
    ),
    stat(
        "Answers with an error",
        "Share of the answers that carried an error. Fencing and rebalancing are errors too, so some are normal.",
        f"{ERROR_RATE} / sum(rate({REQUESTS}{{@}}[~]))",
        unit="percentunit",
        at=steps((0.05, YELLOW), (0.2, RED)),
        mappings=nan_says("no requests"),
        decimals=1,
        width=3,
    ),
]

TRAFFIC = [
    series(
        "Written",
        "Bytes of batches a second by topic, as they were sent: compressed if the client compresses. The ten topics "
        "with most.",
        [('topk(10, sum by (topic) (rate(oncelog_produced_bytes_total{@,topic=~"$topic"}[~])))', "{{topic}}")],
        unit="Bps",
        width=8,
    ),
    series(
        "Read",
        "Bytes of batches a second by topic that were sent to readers. The ten topics with most.",
        [('topk(10, sum by (topic) (rate(oncelog_fetched_bytes_total{@,topic=~"$topic"}[~])))', "{{topic}}")],
        unit="Bps",
        width=8,
    ),
    series(
        "Records written",
        "Records a second by topic. The ten topics with most.",
        [('topk(10, sum by (topic) (rate(oncelog_produced_records_total{@,topic=~"$topic"}[~])))', "{{topic}}")],
        unit="ops",
        width=8,
    ),
    series(
        "Records in a batch",
        "Mean of the batches that were written. Small batches cost a client and the broker most of their time.",
        [
            (
                'sum by (topic) (rate(oncelog_produced_records_total{@,topic=~"$topic"}[~])) / '
                '(sum by (topic) (rate(oncelog_produced_batches_total{@,topic=~"$topic"}[~])) > 0)',
                "{{topic}}",
            )
        ],
        width=8,
    ),
    series(
        "Topics and partitions",
        "What the catalog holds.",
        [("sum(oncelog_topics{@})", "topics"), ("sum(oncelog_partitions{@})", "partitions")],
        width=8,
    ),
    series(
        "Connections by listener",
        "Clients that are connected, by the listener they came through.",
        [("sum by (listener) (oncelog_connections{@})", "{{listener}}")],
        width=8,
    ),
    series(
        "Wrong doors",
        "Connections a second from other machines through a listener that sends its clients to their own: they will "
        "not find the broker there. The log names the setting.",
        [("sum by (listener) (rate(oncelog_wrong_door_connections_total{@}[~]))", "{{listener}}")],
        width=12,
    ),
    series(
        "Spans lost",
        "Spans a second that reached no collector: it is away, or slower than they come.",
        [("sum by (instance) (rate(oncelog_trace_spans_dropped_total{@}[~]))", "{{instance}}")],
        width=12,
    ),
]

REQUEST = [
    series(
        "Requests by kind",
        "Requests a second. The ten kinds with most.",
        [(f"topk(10, sum by (api) (rate({REQUESTS}{{@}}[~])))", "{{api}}")],
        unit="reqps",
        stack=True,
    ),
    series(
        "Errors by kind",
        "Answers a second that carried an error, by request and Kafka's name of the error; \"none\" is there so that "
        "no "
        "errors are seen as 0.",
        [
            (f"topk(10, sum by (api, error) (rate({ERRORS}{{@}}[~])))", "{{api}} {{error}}"),
            (f"0 * sum(rate({REQUESTS}{{@}}[~]))", "none"),
        ],
        unit="reqps",
    ),
    series(
        "Time of Produce",
        "From the request being read to its answer being ready: with acks=all its records are on disk then.",
        [
            (quantile(q, TOOK, matchers='@,api="Produce"'), name)
            for q, name in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"))
        ],
        unit="s",
        width=8,
    ),
    series(
        "Time of Fetch",
        "With the time it waits for records, so that an idle consumer shows its fetch.max.wait.ms.",
        [(quantile(q, TOOK, matchers='@,api="Fetch"'), name) for q, name in ((0.5, "p50"), (0.99, "p99"))],
        unit="s",
        width=8,
    ),
    series(
        "Time of EndTxn",
        "From the request to commit or abort being read to its answer: decided, and the markers on disk.",
        [(quantile(q, TOOK, matchers='@,api="EndTxn"'), name) for q, name in ((0.5, "p50"), (0.99, "p99"))],
        unit="s",
        width=8,
    ),
    bars(
        "Slowest kinds of request",
        "99th percentile by kind over the last few minutes, without those that wait on purpose.",
        (f"topk(10, {quantile(0.99, TOOK, by='api, le', matchers=WORKING)} > 0)", "{{api}}"),
        unit="s",
    ),
    series(
        "Waiting before being handled",
        "Time that requests wait for room in memory before they are read: all that are being handled share what "
        "net.request_memory_bytes allows.",
        [(quantile(q, "oncelog_request_queue_seconds"), name) for q, name in ((0.5, "p50"), (0.99, "p99"))],
        unit="s",
    ),
]

STORAGE = [
    series(
        "Time of a sync",
        "Of partitions' logs and of meta.db (the ledger). Every acknowledgement waits for at least one.",
        [
            (quantile(0.5, SYNC, by="file, le"), "{{file}} p50"),
            (quantile(0.99, SYNC, by="file, le"), "{{file}} p99"),
        ],
        unit="s",
        width=8,
        at=steps((0.1, YELLOW), (1, RED)),
    ),
    series(
        "Syncs",
        "Syncs a second.",
        [(f"sum by (file) (rate({SYNC}_count{{@}}[~]))", "{{file}}")],
        unit="ops",
        width=8,
    ),
    series(
        "Room on the disk",
        "Bytes that may still be written, and the size of the disk.",
        [
            ("min by (instance) (oncelog_disk_free_bytes{@})", "{{instance}} free"),
            ("max by (instance) (oncelog_disk_total_bytes{@})", "{{instance}} in all"),
        ],
        unit="bytes",
        width=8,
    ),
    series(
        "Logs",
        "Bytes of all partitions' logs.",
        [("sum by (instance) (oncelog_log_bytes{@})", "{{instance}}")],
        unit="bytes",
        width=6,
    ),
    series(
        "Segments",
        "Files of all partitions' logs.",
        [("sum by (instance) (oncelog_log_segments{@})", "{{instance}}")],
        width=6,
    ),
    series(
        "Bytes removed",
        "Bytes a second that have left logs: too old, too many, or because a client asked.",
        [("sum by (instance) (rate(oncelog_log_bytes_removed_total{@}[~]))", "{{instance}}")],
        unit="Bps",
        width=6,
    ),
    series(
        "Segments removed",
        "Segments a second that have left logs. Retention takes whole ones.",
        [("sum by (instance) (rate(oncelog_log_segments_removed_total{@}[~]))", "{{instance}}")],
        unit="ops",
        width=6,
    ),
    stat(
        "What a kill would cost",
        "Bytes that the next start would have to read again if the broker were killed now.",
        "sum(oncelog_checkpoint_debt_bytes{@})",
        unit="bytes",
        width=6,
    ),
    stat(
        "Verified by the last start",
        "Bytes of logs that were read again because the end before was not in order.",
        "sum(oncelog_log_verified_bytes_total{@})",
        unit="bytes",
        spark=False,
        width=6,
    ),
    stat(
        "Last start took",
        "From the process's start to the first client served.",
        "max(oncelog_start_duration_seconds{@})",
        unit="s",
        at=steps((10, YELLOW), (30, RED)),
        spark=False,
        width=6,
    ),
    stat(
        "Reserve given up",
        "Times, in the range shown, that a full disk made the broker give up the room it sets aside for decisions "
        "and markers.",
        "sum(increase(oncelog_disk_reserve_spent_total{@}[$__range]))",
        at=steps((1, YELLOW)),
        spark=False,
        decimals=0,
        width=6,
    ),
]

MACHINE = [
    series(
        "Processor",
        "Processor cores that the broker keeps busy.",
        [("sum by (instance) (rate(process_cpu_seconds_total{@}[~]))", "{{instance}}")],
        width=6,
    ),
    series(
        "Memory",
        "Resident, and reserved addresses.",
        [
            ("sum by (instance) (process_resident_memory_bytes{@})", "{{instance}} resident"),
            ("sum by (instance) (process_virtual_memory_bytes{@})", "{{instance}} addresses"),
        ],
        unit="bytes",
        width=6,
    ),
    series(
        "Open files",
        "Share of the files that the process may have open: segments that are read, and connections.",
        [("max by (instance) (process_open_fds{@} / process_max_fds{@})", "{{instance}}")],
        unit="percentunit",
        width=6,
        at=steps((0.6, YELLOW), (0.8, RED)),
        most=1,
    ),
    series(
        "Threads",
        "Threads of the process.",
        [("sum by (instance) (process_threads{@})", "{{instance}}")],
        width=6,
    ),
    table(
        "What is running",
        "Version and revision of each broker.",
        ["oncelog_build_info{@}"],
        hidden=["Value", "Value #A", "job"],
        height=4,
    ),
    table(
        "What it promises",
        "What an acknowledgement means: strict is on disk. When EndTxn answers: with its markers on disk (answer), "
        "or with "
        "its decision there (redo).",
        ["oncelog_durability_info{@}"],
        hidden=["Value", "Value #A", "job"],
        width=6,
        height=4,
    ),
    stat(
        "Series folded",
        "Series of topics or groups that were folded into \"other\" because there are too many, in the range shown.",
        "sum(increase(oncelog_metrics_series_dropped_total{@}[$__range]))",
        at=steps((1, YELLOW)),
        spark=False,
        decimals=0,
        width=6,
    ),
]

DASHBOARD = dashboard(
    "broker",
    "One broker: traffic, requests, disk and process.",
    [
        ("Is it well?", WELL),
        ("Traffic", TRAFFIC),
        ("Requests", REQUEST),
        ("Storage", STORAGE),
        ("Process", MACHINE),
    ],
    more=[TOPIC],
)
