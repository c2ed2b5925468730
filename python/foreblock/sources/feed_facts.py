"""The status of a followed network, in lines that people read.

They go to the workers as hints, once a second and only while they change, and from there
to `/readyz?verbose`, without the secrets of URLs. No I/O.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from foreblock.clock import SECOND_NS
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
