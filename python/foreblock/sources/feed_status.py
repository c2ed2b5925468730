"""The status of a followed network: lines for people, and metrics. No I/O.

The lines go to the workers as hints, once a second, and from there to `/readyz?verbose`, without
the secrets of URLs. In metrics, feeds are numbered in the order of the settings, since a URL may
contain a key.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from foreblock.clock import SECOND_NS
from foreblock.metrics.catalogue import (
    CANONICAL_BLOCKS,
    CANONICAL_FAILURES,
    CANONICAL_NUMBER,
    FEED_CONNECTED,
    FEED_CONNECTIONS,
    FEED_DROPPED,
    FEED_LAST_MESSAGE,
    FEED_MESSAGES,
    FEED_OUTCOMES,
    FEED_RECEIVED,
)
from foreblock.metrics.counter_file import Count, CounterFile, Gauge
from foreblock.primitives import harmless
from foreblock.secret_urls import redact_urls

# What people ask about first, and the outcomes that count as it.
_SUMMARY: Final[Mapping[str, tuple[str, ...]]] = {
    "applied": ("Applied",),
    "duplicates": ("Duplicate",),
    "gaps": ("Gap", "Orphan", "BrokenLink"),
    "divergences": ("Diverged", "Undecodable", "Unsupported", "CanonicalDiverged"),
    "overruns": ("Overrun", "CanonicalOverrun"),
    "resyncs": ("SealForeign", "Reorg"),
}


class FeedState(NamedTuple):
    """One feed."""

    url: str
    connected: bool
    connections: int
    messages: int
    dropped: int
    malformed: int
    last_message_ns: int | None  # monotonic
    last_error: str


class CanonicalState(NamedTuple):
    """The canonical source."""

    url: str
    tip: int | None
    fetched: int
    failures: int
    last_error: str


class Following(NamedTuple):
    """The outcomes of the messages."""

    counters: Mapping[str, int]
    missing: bytes | None  # the block without which it cannot go on
    last_error: str


def feed_facts(
    feeds: Sequence[FeedState],
    following: Following,
    canonical: CanonicalState | None,
    now_ns: int,
) -> tuple[str, ...]:
    """The lines, the most important first."""
    lines = [_feed(each, now_ns) for each in feeds]
    counters = following.counters
    summary = [
        f"{name} {sum(counters.get(each, 0) for each in kinds)}" for name, kinds in _SUMMARY.items()
    ]
    lines.append(f"following: {', '.join(summary)}")
    if following.missing is not None:
        told = "" if canonical else "; no canonical source is set, so it cannot be fetched"
        lines.append(f"missing: block 0x{following.missing.hex()}{told}")
    if following.last_error:
        lines.append(f"last error: {harmless(following.last_error)}")
    if canonical is not None:
        lines.append(_canonical(canonical))
    counted = [f"{name} {counters[name]}" for name in sorted(counters) if counters[name]]
    lines.append(f"outcomes: {', '.join(counted) or 'none yet'}")
    return tuple(map(redact_urls, lines))


def _feed(feed: FeedState, now_ns: int) -> str:
    age = "nothing heard yet"
    if feed.last_message_ns is not None:
        age = f"last message {(now_ns - feed.last_message_ns) / SECOND_NS:.1f} s ago"
    facts = [
        "connected" if feed.connected else "not connected",
        age,
        f"{feed.messages} messages",
        f"{feed.connections} connections",
        f"{feed.malformed} malformed",
        f"{feed.dropped} dropped",
    ]
    error = f"; last lost: {feed.last_error}" if feed.last_error else ""
    return f"feed: {feed.url}: {', '.join(facts)}{error}"


def _canonical(canonical: CanonicalState) -> str:
    at = "not reached yet" if canonical.tip is None else f"at block {canonical.tip}"
    facts = [at, f"{canonical.fetched} blocks fetched", f"{canonical.failures} failures"]
    error = f"; last: {canonical.last_error}" if canonical.last_error else ""
    return f"canonical: {canonical.url}: {', '.join(facts)}{error}"


_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")
OTHER: Final = "other"


def outcome_label(name: str) -> str:
    """The label of an outcome: FirstOnSealed is first_on_sealed."""
    label = _CAPITAL.sub("_", name).lower()
    return label if label in FEED_OUTCOMES else OTHER


class OneFeed:
    """The metrics of one feed."""

    def __init__(self, counters: CounterFile, network: str, number: int) -> None:
        labels = (network, str(number))
        self._connected: Final = Gauge(counters, FEED_CONNECTED, *labels)
        self._last: Final = Gauge(counters, FEED_LAST_MESSAGE, *labels)
        self._connections: Final = Count(counters, FEED_CONNECTIONS, *labels)
        self._received: Final = Count(counters, FEED_RECEIVED, *labels)
        self._dropped: Final = Count(counters, FEED_DROPPED, *labels)

    def sample(self, feed: FeedState, now_ns: int, wall_ns: int) -> None:
        """Look at it, at this monotonic and wall time."""
        self._connected.set(feed.connected)
        self._connections.follow(feed.connections)
        self._received.follow(feed.messages)
        self._dropped.follow(feed.dropped)
        if feed.last_message_ns is not None:
            self._last.set((wall_ns - (now_ns - feed.last_message_ns)) / SECOND_NS)


class FeedMetrics:
    """The metrics of one followed network, from its start to its end."""

    def __init__(self, counters: CounterFile, network: str, feeds: int, *, canonical: bool) -> None:
        self._feeds: Final = [OneFeed(counters, network, number) for number in range(feeds)]
        self._outcomes: Final = {
            outcome: Count(counters, FEED_MESSAGES, network, outcome) for outcome in FEED_OUTCOMES
        }
        self._canonical: Final = _Canonical(counters, network) if canonical else None

    def sample(
        self,
        feeds: Sequence[FeedState],
        following: Following,
        canonical: CanonicalState | None,
        now_ns: int,
        wall_ns: int,
    ) -> None:
        """Look at all of it."""
        for one, state in zip(self._feeds, feeds, strict=True):
            one.sample(state, now_ns, wall_ns)
        for outcome, count in _by_label(following.counters).items():
            self._outcomes[outcome].follow(count)
        if self._canonical is not None and canonical is not None:
            self._canonical.sample(canonical)


class _Canonical:
    def __init__(self, counters: CounterFile, network: str) -> None:
        self._number: Final = Gauge(counters, CANONICAL_NUMBER, network)
        self._blocks: Final = Count(counters, CANONICAL_BLOCKS, network)
        self._failures: Final = Count(counters, CANONICAL_FAILURES, network)

    def sample(self, state: CanonicalState) -> None:
        if state.tip is not None:
            self._number.set(state.tip)
        self._blocks.follow(state.fetched)
        self._failures.follow(state.failures)


def _by_label(counters: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, count in counters.items():
        label = outcome_label(name)
        found[label] = found.get(label, 0) + count
    return found
