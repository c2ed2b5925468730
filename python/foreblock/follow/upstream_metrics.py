"""The metrics of a network that follows a public chain: its upstreams, anchors and audit.

Upstreams are numbered in the order of the settings: a URL may hold a key, and is no label. What is
counted here is kept by others and looked at once a second.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from foreblock.follow.audit import UNTRUE, StateAudit
from foreblock.metrics.catalogue import (
    ANCHORINGS,
    AUDIT_UNTRUE,
    AUDIT_WAITING,
    UPSTREAM_AVAILABLE,
    UPSTREAM_LATENCY,
    UPSTREAM_REFUSALS,
    UPSTREAM_REQUESTS,
    UPSTREAM_UNITS,
)
from foreblock.metrics.counter_file import Count, CounterFile, Gauge
from foreblock.upstream.endpoint import UpstreamState
from foreblock.upstream.json_rpc import RefusalKind

OTHER: Final = "other"
LABELS: Final = {
    each.value: re.sub(r"[ -]", "_", each.value.lower().replace("'", "")) for each in RefusalKind
}


class UpstreamMetrics:
    """The metrics of one followed network, from its start to its end."""

    def __init__(
        self, counters: CounterFile, network: str, upstreams: int, *, audited: bool
    ) -> None:
        self._upstreams: Final = [_OneUpstream(counters, network, at) for at in range(upstreams)]
        self._anchorings: Final = Count(counters, ANCHORINGS, network)
        self._audit: Final = _Audit(counters, network) if audited else None

    def sample(
        self, upstreams: Sequence[UpstreamState], anchorings: int, audit: StateAudit | None
    ) -> None:
        """Look at all of it."""
        for one, state in zip(self._upstreams, upstreams, strict=True):
            one.sample(state)
        self._anchorings.follow(anchorings)
        if self._audit is not None and audit is not None:
            self._audit.sample(audit)


class _OneUpstream:
    def __init__(self, counters: CounterFile, network: str, number: int) -> None:
        self._counters: Final = counters
        labels = (network, str(number))
        self._labels: Final = labels
        self._available: Final = Gauge(counters, UPSTREAM_AVAILABLE, *labels)
        self._latency: Final = Gauge(counters, UPSTREAM_LATENCY, *labels)
        self._requests: Final = Count(counters, UPSTREAM_REQUESTS, *labels)
        self._units: Final = Count(counters, UPSTREAM_UNITS, *labels)
        self._refusals: Final[dict[str, Count]] = {}  # made when there is one of the kind

    def sample(self, state: UpstreamState) -> None:
        self._available.set(not (state.rests_for or state.paused_for))
        self._requests.follow(state.requests)
        self._units.follow(state.units)
        if state.latency is not None:
            self._latency.set(state.latency)
        for label, count in _by_label(state.refusals).items():
            self._refused(label).follow(count)

    def _refused(self, label: str) -> Count:
        if label not in self._refusals:
            self._refusals[label] = Count(self._counters, UPSTREAM_REFUSALS, *self._labels, label)
        return self._refusals[label]


class _Audit:
    def __init__(self, counters: CounterFile, network: str) -> None:
        self._waiting: Final = Gauge(counters, AUDIT_WAITING, network)
        self._untrue: Final = Count(counters, AUDIT_UNTRUE, network)

    def sample(self, audit: StateAudit) -> None:
        self._waiting.set(audit.waiting)
        self._untrue.follow(audit.counters[UNTRUE])


def _by_label(refusals: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind, count in refusals.items():
        label = LABELS.get(kind, OTHER)
        found[label] = found.get(label, 0) + count
    return found
