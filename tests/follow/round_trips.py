"""How many round trips to an upstream one question takes: waves, not requests.

Requests that overlap in time are one wave. The number is the longest chain of requests of which
each began after the one before it had ended, which is what latency has to be multiplied with.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from follow.proxied import Proxy
from support.servers.waiting import LOOK_SECONDS

Interval = tuple[float, float]
SLACK = LOOK_SECONDS / 10  # seconds; two clocks of one machine agree far better
# What followers ask for now and then, whatever they are asked: the heads of the chain.
HEADS = {"eth_getBlockByNumber", "eth_getBlockByHash"}


def waves(intervals: Iterable[Interval]) -> int:
    """The length of the longest chain."""
    count, end = 0, float("-inf")
    for begun, ended in sorted(intervals, key=lambda each: each[1]):
        if begun >= end - SLACK:
            count, end = count + 1, ended
    return count


class Trips(NamedTuple):
    """What one question cost."""

    waves: int
    requests: int  # of HTTP
    items: int  # of JSON-RPC


def trips_of(proxy: Proxy, question: Callable[[], object]) -> Trips:
    """Ask, while nobody else asks, and count what the upstream behind the proxy is asked."""
    since = proxy.now()
    question()
    asked = [each for each in proxy.exchanges(since) if not HEADS.issuperset(each[2])]
    items = sum(len(methods) for _, _, methods in asked)
    return Trips(waves([each[:2] for each in asked]), len(asked), items)
