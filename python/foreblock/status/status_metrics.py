"""The status of a network as metrics. No I/O.

A worker computes the series of a chain for each scrape. The writer shows the samples of a source in
its counter file once a second, so that counters survive a restart of the network. Feeds and
upstreams are numbered in the order of the settings, since a URL may contain a key. The label of the
network precedes those of a sample.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from foreblock.metrics import catalogue
from foreblock.metrics.catalogue import FEED_OUTCOMES, Series
from foreblock.metrics.counter_file import Sample
from foreblock.status.network_status import (
    UNTRUE,
    ChainStatus,
    FeedStatus,
    FollowStatus,
    LogStatus,
    NetworkStatus,
    SourceStatus,
    UpstreamStatus,
)

OTHER: Final = "other"
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


# --- The chain, in a worker ----------------------------------------------------------------


def chain_series(status: NetworkStatus) -> Iterator[Series]:
    """The series of a network's chain."""
    yield catalogue.STORE_AVAILABLE, (status.name,), [float(status.chain is not None)]
    yield catalogue.READY, (status.name,), [float(status.ready)]
    if status.chain is not None:
        for metric, labels, value in _chain(status.chain):
            yield metric, (status.name, *labels), [float(value)]


def _chain(chain: ChainStatus) -> Iterator[Sample]:
    latest, pending = chain.latest, chain.pending
    yield catalogue.COMMIT_NUMBER, (), chain.commit
    yield catalogue.LATEST_NUMBER, (), latest.number
    yield catalogue.LATEST_AGE, (), latest.age
    if pending is not None:
        yield catalogue.PENDING_NUMBER, (), pending.number
        yield catalogue.PENDING_INDEX, (), pending.flashblock
        yield catalogue.PENDING_AGE, (), pending.age
        yield catalogue.PENDING_DISTANCE, (), pending.number - latest.number
    yield catalogue.EARLIEST_STATE, (), chain.earliest_state
    yield catalogue.MAINTENANCE_ITEMS, (), chain.to_clear
    yield catalogue.MAINTENANCE_BLOCKS, ("fold",), chain.to_fold
    yield catalogue.MAINTENANCE_BLOCKS, ("log_index",), chain.logs_to_index
    if chain.addresses_to_index is not None:
        yield catalogue.MAINTENANCE_BLOCKS, ("address_index",), chain.addresses_to_index


# --- The source, in the writer -------------------------------------------------------------


def source_samples(status: SourceStatus, wall: float) -> Iterator[Sample]:
    """The samples of a source whose status was made at this wall time, in seconds."""
    for number, feed in enumerate(status.feeds):
        yield from _feed(feed, (str(number),), wall)
    if status.messages is not None:
        counted = _by_label(status.messages.outcomes)
        for label in FEED_OUTCOMES:
            yield catalogue.FEED_MESSAGES, (label,), counted[label]
    canonical = status.canonical
    if canonical is not None:
        yield catalogue.CANONICAL_BLOCKS, (), canonical.fetched
        yield catalogue.CANONICAL_FAILURES, (), canonical.failures
        if canonical.tip is not None:
            yield catalogue.CANONICAL_NUMBER, (), canonical.tip
    if status.follow is not None:
        yield from _follow(status.follow)
    if status.log is not None:
        yield from _log(status.log)


def _feed(feed: FeedStatus, number: tuple[str], wall: float) -> Iterator[Sample]:
    yield catalogue.FEED_CONNECTED, number, feed.connected
    yield catalogue.FEED_CONNECTIONS, number, feed.connections
    yield catalogue.FEED_RECEIVED, number, feed.messages
    yield catalogue.FEED_DROPPED, number, feed.dropped
    if feed.age is not None:
        yield catalogue.FEED_LAST_MESSAGE, number, wall - feed.age


def _follow(follow: FollowStatus) -> Iterator[Sample]:
    for number, upstream in enumerate(follow.upstreams):
        yield from _upstream(upstream, str(number))
    yield catalogue.ANCHORINGS, (), follow.anchorings
    if follow.audit is not None:
        yield catalogue.AUDIT_WAITING, (), follow.audit.waiting
        yield catalogue.AUDIT_UNTRUE, (), follow.audit.counters.get(UNTRUE, 0)


def _upstream(upstream: UpstreamStatus, number: str) -> Iterator[Sample]:
    is_available = not (upstream.rests_for or upstream.paused_for)
    yield catalogue.UPSTREAM_AVAILABLE, (number,), is_available
    yield catalogue.UPSTREAM_REQUESTS, (number,), upstream.requests
    yield catalogue.UPSTREAM_UNITS, (number,), upstream.units
    for kind, count in upstream.refusals.items():
        yield catalogue.UPSTREAM_REFUSALS, (number, refusal_label(kind)), count


def _log(log: LogStatus) -> Iterator[Sample]:
    yield catalogue.LOG_CONNECTED, (), log.connected
    yield catalogue.LOG_WRITES, (), log.writes
    yield catalogue.LOG_EPOCH, (), log.epoch
    yield catalogue.LOG_SEQUENCE, (), log.sequence
    yield catalogue.LOG_BEHIND, (), log.behind
    yield catalogue.LOG_SKIPPED, (), log.skipped


def outcome_label(name: str) -> str:
    """The label of an outcome: FirstOnSealed is first_on_sealed."""
    label = _CAPITAL.sub("_", name).lower()
    return label if label in FEED_OUTCOMES else OTHER


def _by_label(outcomes: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in outcomes.items():
        found[outcome_label(name)] += count
    return found


def refusal_label(kind: str) -> str:
    """The label of a kind of refusal: "no such method" is no_such_method."""
    return re.sub(r"[ -]", "_", kind.lower().replace("'", ""))
