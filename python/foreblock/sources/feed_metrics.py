"""The metrics of a followed network: its feeds and their messages, its canonical source.

Feeds are numbered in the order of the settings: a URL may hold a key, and is no label. What is
counted here is kept by others and looked at once a second.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

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
from foreblock.sources.feed_facts import CanonicalState, FeedState, Following

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
