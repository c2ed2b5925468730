"""What upstreams did, as metrics: counted over restarts of the network, without their URLs."""

from pathlib import Path

from foreblock.clock import DrivenClock
from foreblock.follow.audit import UNTRUE, StateAudit
from foreblock.follow.upstream_metrics import LABELS, UpstreamMetrics
from foreblock.metrics.counter_file import CounterFile
from foreblock.upstream.endpoint import UpstreamState
from sources.test_feed_metrics import series

BUSY = UpstreamState("https://a", "geth", True, 10, 40, {"rate limited": 2, "?": 1}, 0.25, 0, 0)
RESTING = UpstreamState("https://b", "", False, 3, 9, {"another key's answer": 1}, None, 2.0, 0)


def test_upstreams_are_counted_over_restarts_of_their_network(tmp_path: Path) -> None:
    counters = CounterFile(tmp_path / "writer")
    for _ in range(2):  # lives of the network
        metrics = UpstreamMetrics(counters, "main", 2, audited=False)
        for anchorings in (0, 1):  # seconds
            metrics.sample([BUSY, RESTING], anchorings, None)
    assert series(tmp_path / "writer") == {
        ("upstream_requests_total", "main", "0"): 20,
        ("upstream_requests_total", "main", "1"): 6,
        ("upstream_units_total", "main", "0"): 80,
        ("upstream_units_total", "main", "1"): 18,
        ("upstream_refusals_total", "main", "0", "rate_limited"): 4,
        ("upstream_refusals_total", "main", "0", "other"): 2,
        ("upstream_refusals_total", "main", "1", "another_keys_answer"): 2,
        ("upstream_available", "main", "0"): 1,
        ("upstream_latency_seconds", "main", "0"): 0.25,
        ("anchorings_total", "main"): 2,
    }


def test_an_audit_has_what_waits_and_what_was_untrue(tmp_path: Path) -> None:
    audit = StateAudit(None, DrivenClock(), 5.0)  # type: ignore[arg-type]
    audit.counters[UNTRUE] = 3
    metrics = UpstreamMetrics(CounterFile(tmp_path / "writer"), "main", 0, audited=True)
    metrics.sample([], 0, audit)
    assert series(tmp_path / "writer") == {("audit_untrue_total", "main"): 3}


def test_every_kind_has_a_label_of_its_own() -> None:
    assert len(set(LABELS.values())) == len(LABELS)
    assert all(label.isascii() and label.replace("_", "").isalnum() for label in LABELS.values())
