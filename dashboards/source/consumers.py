"""Consumers: how far behind groups are, and whether that is theirs or a transaction's doing."""

from grafana import GROUP, TOPIC, YELLOW, bars, dashboard, quantile, series, stat, steps

LAG = "oncelog_group_lag_records"
STABLE, WATERMARK = 'to="last_stable_offset"', 'to="watermark"'
REQUESTS = "oncelog_requests_total"
MINE = '@,group=~"$group"'


def held_back(by=""):
    return (
        f"clamp_min(sum{by} ({LAG}{{{MINE},{WATERMARK}}}) - sum{by} ({LAG}{{{MINE},{STABLE}}}), 0)"
    )


GLANCE = [
    stat(
        "Groups",
        "Groups with members.",
        'sum(oncelog_groups{@,state=~"stable|preparing_rebalance|completing_rebalance"})',
    ),
    stat(
        "Members",
        "Members of all groups. A static member counts once.",
        "sum(oncelog_group_members{@})",
    ),
    stat(
        "Rebalancing",
        "Groups that are handing out their partitions at this moment; their members do not read meanwhile.",
        'sum(oncelog_groups{@,state=~"preparing_rebalance|completing_rebalance"})',
        at=steps((1, YELLOW)),
    ),
    stat(
        "Furthest behind",
        "Records that the worst group could read with read_committed and has not.",
        f"max(sum by (group) ({LAG}{{{MINE},{STABLE}}}))",
    ),
    stat(
        "Held back by transactions",
        "Records that groups cannot have yet because a transaction is open, in all groups together.",
        held_back(),
    ),
    stat(
        "Fetches held",
        "Partitions a second of which a read_committed fetch brought nothing, though records lie above the last stable "
        "offset.",
        "sum(rate(oncelog_read_committed_fetches_held_total{@}[~]))",
        unit="ops",
    ),
]

BEHIND = [
    series(
        "Lag to the last stable offset",
        "Records that a read_committed group could have and has not read: its own slowness. Markers take an offset "
        "and count, "
        "so that a group that has read everything may show 1 a partition for a moment. The ten groups with most.",
        [(f"topk(10, sum by (group) ({LAG}{{{MINE},{STABLE}}}))", "{{group}}")],
        width=8,
    ),
    series(
        "Lag to the watermark",
        "Records that are written and that the group has not read, those of open transactions with them. The ten "
        "groups with most.",
        [(f"topk(10, sum by (group) ({LAG}{{{MINE},{WATERMARK}}}))", "{{group}}")],
        width=8,
    ),
    series(
        "The difference: held back by transactions",
        "What no read_committed group can have yet. If it grows, see the dashboard of transactions, not the consumers.",
        [(f"topk(10, {held_back(' by (group)')})", "{{group}}")],
        width=8,
    ),
    bars(
        "Furthest behind now",
        "The ten groups with most records to read.",
        (f"topk(10, sum by (group) ({LAG}{{{MINE},{STABLE}}}))", "{{group}}"),
    ),
    series(
        "Offsets stored",
        "Requests a second that store offsets: by themselves, or as part of a transaction.",
        [(f'sum by (api) (rate({REQUESTS}{{@,api=~"OffsetCommit|TxnOffsetCommit"}}[~]))', "{{api}}")],
        unit="reqps",
        width=6,
    ),
    series(
        "Offsets in open transactions",
        "Offsets handed to a transaction that is not decided. They count when it commits.",
        [("sum(oncelog_pending_transactional_offset_commits{@})", "offsets")],
        width=6,
    ),
]

GROUPS = [
    series(
        "Groups by state",
        "empty: offsets and no members.",
        [("sum by (state) (oncelog_groups{@})", "{{state}}")],
        width=8,
        stack=True,
    ),
    series(
        "Members by broker",
        "Members of all groups.",
        [("sum by (instance) (oncelog_group_members{@})", "{{instance}}")],
        width=8,
    ),
    series(
        "Coming, going, staying",
        "Requests a second of members. Joins that do not end mean that members take too long or die.",
        [(f'sum by (api) (rate({REQUESTS}{{@,api=~"JoinGroup|SyncGroup|LeaveGroup|Heartbeat"}}[~]))', "{{api}}")],
        unit="reqps",
        width=8,
    ),
]

READING = [
    series(
        "Read",
        "Bytes of batches a second that were sent to readers. The ten topics with most.",
        [('topk(10, sum by (topic) (rate(oncelog_fetched_bytes_total{@,topic=~"$topic"}[~])))', "{{topic}}")],
        unit="Bps",
        width=8,
    ),
    series(
        "Records that readers wait for",
        "Records between the last stable offset and the watermark, in the worst partition of each topic. The ten "
        "topics with "
        "most.",
        [('topk(10, max by (topic) (oncelog_partition_lso_lag_records{@,topic=~"$topic"}))', "{{topic}}")],
        width=8,
    ),
    series(
        "Held fetches, and what they pass over",
        "Partitions a second of which a read_committed fetch brought nothing because of an open transaction, and "
        "ranges of aborted transactions a second that were sent for clients to pass over.",
        [
            ("sum(rate(oncelog_read_committed_fetches_held_total{@}[~]))", "fetches held"),
            ("sum(rate(oncelog_aborted_ranges_sent_total{@}[~]))", "aborted ranges sent"),
        ],
        unit="ops",
        width=8,
    ),
    series(
        "Time of Fetch",
        "With the time it waits for records.",
        [(quantile(q, "oncelog_request_duration_seconds", matchers='@,api="Fetch"'), name)
         for q, name in ((0.5, "p50"), (0.99, "p99"))],
        unit="s",
        width=8,
    ),
    series(
        "Fetch sessions",
        "Readers that name only what has changed since their last fetch (KIP-227).",
        [("sum(oncelog_fetch_sessions{@})", "sessions")],
        width=8,
    ),
    series(
        "Sessions that had to make room",
        "Sessions a second given up for another. Their readers name all their partitions once more.",
        [("sum(rate(oncelog_fetch_sessions_evicted_total{@}[~]))", "given up")],
        unit="ops",
        width=8,
    ),
]

DASHBOARD = dashboard(
    "consumers",
    "Groups and readers: lag to the last stable offset and to the watermark, side by side.",
    [
        ("At a glance", GLANCE),
        ("How far behind", BEHIND),
        ("Groups", GROUPS),
        ("Reading", READING),
    ],
    more=[TOPIC, GROUP],
)
