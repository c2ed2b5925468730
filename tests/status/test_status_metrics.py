"""The status of sources as metrics: counted across restarts of the network, without URLs."""

from pathlib import Path

from foreblock.metrics.counter_file import CounterFile, CounterFileReader, SampledMetrics
from foreblock.metrics.exposition import Table
from foreblock.status.network_status import (
    UNTRUE,
    AuditStatus,
    CanonicalStatus,
    FeedStatus,
    FollowStatus,
    LogStatus,
    MessageStatus,
    RootStatus,
    SourceStatus,
    UpstreamStatus,
    WorkingSetStatus,
)
from foreblock.status.status_metrics import refusal_label, source_samples
from foreblock.upstream.json_rpc import RefusalKind

FEED = FeedStatus("ws://key@a/ws", True, 2, 40, 1, 3, 2.0, "gone")
QUIET = FeedStatus("ws://key@b/ws", False, 0, 0, 0, 0, None)
BUSY = UpstreamStatus("https://a", "geth", True, 10, 40, {"rate limited": 2}, 0.25, 0, 0)
RESTING = UpstreamStatus("https://b", "", False, 3, 9, {"another key's answer": 1}, None, 2.0, 0)


def follow(
    anchorings: int, *upstreams: UpstreamStatus, audit: AuditStatus | None = None
) -> SourceStatus:
    found = FollowStatus(
        anchorings, "", {}, "", upstreams, RootStatus(), WorkingSetStatus(0, 0), 0, audit
    )
    return SourceStatus(follow=found)


def series(file: Path) -> dict[tuple[str, ...], float]:
    """All non-zero series, by name and labels."""
    table = Table()
    for _ in table.add_rows(*CounterFileReader(file).read()):
        pass
    return {
        (name.removeprefix("foreblock_"), *labels): cells[0]
        for name, values in table.values.items()
        for labels, cells in values.items()
        if cells[0]
    }


def shown(folder: Path, *statuses: SourceStatus) -> dict[tuple[str, ...], float]:
    """The series after two runs of a network, each with these statuses."""
    counters = CounterFile(folder / "writer")
    for _ in range(2):
        metrics = SampledMetrics(counters, "main")
        for status in statuses:
            metrics.show(source_samples(status, 1_000.0))
    return series(folder / "writer")


def test_outcomes_and_feeds_are_counted_over_restarts_of_their_network(tmp_path: Path) -> None:
    statuses = [
        SourceStatus(
            feeds=(FEED, QUIET),
            messages=MessageStatus(
                {"Applied": applied, "FirstOnSealed": 1, "Invented": 1, "Unheard": 2}
            ),
            canonical=CanonicalStatus("http://c", 7, 5, 1),
        )
        for applied in (1, 5)  # seconds
    ]
    assert shown(tmp_path, *statuses) == {
        ("feed_messages_total", "main", "applied"): 10,
        ("feed_messages_total", "main", "first_on_sealed"): 2,
        ("feed_messages_total", "main", "other"): 6,
        ("feed_received_total", "main", "0"): 80,
        ("feed_dropped_total", "main", "0"): 2,
        ("feed_connected", "main", "0"): 1,
        ("feed_connections_total", "main", "0"): 4,
        ("feed_last_message_timestamp_seconds", "main", "0"): 998,
        ("canonical_block_number", "main"): 7,
        ("canonical_blocks_total", "main"): 10,
        ("canonical_failures_total", "main"): 2,
    }


def test_upstreams_are_counted_over_restarts_of_their_network(tmp_path: Path) -> None:
    assert shown(tmp_path, follow(0, BUSY, RESTING), follow(1, BUSY, RESTING)) == {
        ("upstream_requests_total", "main", "0"): 20,
        ("upstream_requests_total", "main", "1"): 6,
        ("upstream_units_total", "main", "0"): 80,
        ("upstream_units_total", "main", "1"): 18,
        ("upstream_refusals_total", "main", "0", "rate_limited"): 4,
        ("upstream_refusals_total", "main", "1", "another_keys_answer"): 2,
        ("upstream_available", "main", "0"): 1,
        ("anchorings_total", "main"): 2,
    }


def test_an_audit_has_what_waits_and_what_was_untrue(tmp_path: Path) -> None:
    audit = AuditStatus({UNTRUE: 3}, 5, 0.1, accepts_unproven=True)
    assert shown(tmp_path, follow(0, audit=audit)) == {
        ("audit_untrue_total", "main"): 6,
        ("audit_waiting_values", "main"): 5,
    }


def test_a_node_of_a_log_shows_its_position(tmp_path: Path) -> None:
    log = LogStatus(
        is_open=True, connected=True, epoch=3, sequence=8, commit=9, behind=0.5, writes=True,
        skipped=2,
    )  # fmt: skip
    assert shown(tmp_path, SourceStatus(log=log)) == {
        ("log_connected", "main"): 1,
        ("log_writes", "main"): 1,
        ("log_epoch", "main"): 3,
        ("log_sequence", "main"): 8,
        ("log_behind_seconds", "main"): 0.5,
        ("log_skipped_total", "main"): 4,
    }


def test_every_kind_of_refusal_has_a_label_of_its_own() -> None:
    labels = {refusal_label(each) for each in RefusalKind}
    assert len(labels) == len(RefusalKind)
    assert all(label.isascii() and label.replace("_", "").isalnum() for label in labels)
