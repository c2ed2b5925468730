"""The status of a network as text for people: lines, and the problems among them. No I/O.

`details` yields pairs of a name and a text. `/readyz?verbose` shows all of them; `status` and
`watch` select by name.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from foreblock.status.network_status import (
    AuditStatus,
    CanonicalStatus,
    ChainStatus,
    FeedStatus,
    FollowStatus,
    LogStatus,
    MessageStatus,
    NetworkStatus,
    PendingStatus,
    SourceStatus,
    UpstreamStatus,
    WorkingSetStatus,
)

Detail = tuple[str, str]

NO_FLASHBLOCK: Final = "no flashblock came in time, so pending means latest"
NOT_WRITTEN: Final = "nothing is written to this chain, so pending means latest"

_PROBLEMS: Final = ("store", "failed", "missing", "last error")  # details that always are

# The outcomes that are summed up in the line `following`.
_SUMMARY: Final[Mapping[str, tuple[str, ...]]] = {
    "applied": ("Applied",),
    "duplicates": ("Duplicate",),
    "gaps": ("Gap", "Orphan", "BrokenLink"),
    "divergences": ("Diverged", "Undecodable", "Unsupported", "CanonicalDiverged"),
    "overruns": ("Overrun", "CanonicalOverrun"),
    "resyncs": ("SealForeign", "Reorg"),
}


def status_lines(status: NetworkStatus) -> tuple[str, ...]:
    """The lines of `/readyz?verbose`, the most important first."""
    return tuple(f"{name}: {text}" for name, text in details(status))


def details(status: NetworkStatus) -> Iterator[Detail]:
    """Each detail with its name."""
    if status.store_error:
        yield "store", status.store_error
    if status.chain is not None:
        yield from _chain(status.chain, moves=status.moves)
    if status.source is not None:
        yield "source", f"as it was {status.source_age:.1f} s ago"
        yield from source_details(status.source)


def problems(status: NetworkStatus) -> list[str]:
    """The conditions that need attention, the most important first; details as they are."""
    found = []
    if not status.ready:
        waits = status.chain is not None and status.chain.pending is None
        found.append(f"not ready: {NO_FLASHBLOCK}" if waits else "not ready")
    found += [f"{name}: {text}" for name, text in details(status) if name in _PROBLEMS]
    if status.source is not None:
        found += [f"feed: {_feed(each)}" for each in status.source.feeds if not each.connected]
        log = status.source.log
        if log is not None and (not log.is_open or log.waits or log.is_silent):
            found.append(f"log: {_log(log)}")
    return found


def counted(number: int, noun: str) -> str:
    """A number of things in words, such as `1 block` and `2,000 blocks`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# --- The chain -----------------------------------------------------------------------------


def _chain(chain: ChainStatus, *, moves: bool) -> Iterator[Detail]:
    latest, pending = chain.latest, chain.pending
    yield "commit", f"{chain.commit}"
    yield "latest", f"block {latest.number}, {latest.age:.1f} s old, {latest.hash}"
    if pending is None:
        yield "pending", f"none; {NO_FLASHBLOCK if moves else NOT_WRITTEN}"
    else:
        yield "pending", _pending(pending)
        yield "distance", f"pending is {pending.number - latest.number} above latest"
    if chain.too_old is not None:
        yield "behind", f"latest is older than {chain.too_old:g} s"
    if chain.base is not None:
        base = chain.base
        yield "base", f"block {base.number}, epoch {base.epoch}, {base.hash}"
        yield "trust", base.trust
    if chain.rules_end is not None:
        end = chain.rules_end
        yield "rules", f"not known since block {end.block} ({end.why}); no calls, no pending"
    yield "states", f"from block {chain.earliest_state} on"
    yield "logs", f"{counted(chain.logs_to_index, 'block')} to index"
    if chain.addresses_to_index is not None:
        yield "addresses", f"{counted(chain.addresses_to_index, 'block')} to index"
    if moves:
        backlog = f"{counted(chain.to_fold, 'block')} to fold, "
        backlog += f"{counted(chain.to_clear, 'item')} to clear"
        yield "maintenance", backlog if chain.to_fold or chain.to_clear else "up to date"
    if chain.first_edit is not None:
        needed = "followers need accept_state_edits for them"
        yield "state edits", f"from block {chain.first_edit} on; {needed}"


def _pending(pending: PendingStatus) -> str:
    at = f"block {pending.number}, flashblock {pending.flashblock}"
    return f"{at}, {pending.age:.2f} s old, {pending.hash}"


# --- The source ----------------------------------------------------------------------------


def source_details(source: SourceStatus) -> Iterator[Detail]:
    """Each detail of a source with its name."""
    if not source.is_running:
        yield "failed", f"{source.failure}; it will be restarted"
    elif source.failure:
        yield "restarted", f"after {source.failure}"
    if source.log is not None:
        yield "log", _log(source.log)
    for feed in source.feeds:
        yield "feed", _feed(feed)
    if source.messages is not None:
        yield from _messages(source.messages, is_fetched=source.canonical is not None)
    if source.canonical is not None:
        yield "canonical", _canonical(source.canonical)
    if source.messages is not None:
        yield "outcomes", _counted(source.messages.outcomes) or "none yet"
    if source.follow is not None:
        yield from _follow(source.follow)


def _counted(counters: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {counters[name]}" for name in sorted(counters) if counters[name])


def _feed(feed: FeedStatus) -> str:
    parts = [
        "connected" if feed.connected else "not connected",
        "no message yet" if feed.age is None else f"last message {feed.age:.1f} s ago",
        f"{feed.messages} messages",
        f"{feed.connections} connections",
        f"{feed.malformed} malformed",
        f"{feed.dropped} dropped",
    ]
    error = f"; last lost: {feed.last_error}" if feed.last_error else ""
    return f"{feed.url}: {', '.join(parts)}{error}"


def _messages(messages: MessageStatus, *, is_fetched: bool) -> Iterator[Detail]:
    """The outcomes; `is_fetched` says that there is a source of missing blocks."""
    outcomes = messages.outcomes
    sums = {name: sum(outcomes.get(e, 0) for e in kinds) for name, kinds in _SUMMARY.items()}
    yield "following", ", ".join(f"{name} {count}" for name, count in sums.items())
    if messages.missing:
        hint = "" if is_fetched else "; no canonical source is set, so it cannot be fetched"
        yield "missing", f"block {messages.missing}{hint}"
    if messages.last_error:
        yield "last error", messages.last_error


def _canonical(canonical: CanonicalStatus) -> str:
    at = "not reached yet" if canonical.tip is None else f"at block {canonical.tip}"
    error = f"; last: {canonical.last_error}" if canonical.last_error else ""
    counts = f"{canonical.fetched} blocks fetched, {canonical.failures} failures"
    return f"{canonical.url}: {at}, {counts}{error}"


def _log(log: LogStatus) -> str:
    if not log.is_open:
        return "not connected yet; the local store is served"
    noun = "message" if log.skipped == 1 else "messages"
    skipped = f", {log.skipped} {noun} skipped ({log.last_skipped})" if log.skipped else ""
    at = f"epoch {log.epoch}, sequence {log.sequence}, commit {log.commit}"
    return f"{at}, {log.behind:.2f} s behind, {_writer(log)}{skipped}"


def _writer(log: LogStatus) -> str:
    if log.writes:
        return "this node writes" + (", and waits for the log" if log.waits else "")
    if log.silence is None:
        return "no message of the writer yet"
    return f"writer silent for {log.silence:.1f} s" if log.is_silent else "writer reachable"


# --- A followed chain ----------------------------------------------------------------------


def _follow(follow: FollowStatus) -> Iterator[Detail]:
    if follow.anchorings:
        yield "anchored again", f"{follow.anchorings} times; last: {follow.last_anchoring}"
    error = f"; last: {follow.last_error}" if follow.last_error else ""
    yield "state", (_counted(follow.state) or "nothing fetched yet") + error
    if follow.audit is not None:
        yield "audit", _audit(follow.audit)
    for upstream in follow.upstreams:
        yield "upstream", _upstream(upstream)
    roots = follow.roots
    yield (
        "roots",
        (
            f"{roots.computed} computed, the last of block {roots.last}; "
            f"{roots.requested} proofs requested, {roots.refused} requests failed"
            if roots.computed
            else "none computed"
        ),
    )
    yield "hot set", _working_set(follow.working_set)
    yield "templates", f"of {follow.templates} kinds of calls"


def _audit(audit: AuditStatus) -> str:
    parts = [f"{name} {count}" for name, count in sorted(audit.counters.items())]
    parts.append(f"{audit.waiting} wait for proofs")
    if audit.waiting:
        parts.append(f"the oldest for {audit.oldest:.1f} s")
    if not audit.accepts_unproven:
        parts.append("unproven values are refused for now")
    last = f"; last: {audit.last_untrue}" if audit.last_untrue else ""
    return ", ".join(parts) + last


def _upstream(upstream: UpstreamStatus) -> str:
    parts = [
        upstream.client or "not reached yet",
        "proves state" if upstream.can_prove else "does not prove state",
        f"{upstream.requests} requests",
        f"{upstream.units} units",
    ]
    if upstream.latency is not None:
        parts.append(f"{upstream.latency * 1e3:.0f} ms")
    if upstream.rests_for:
        parts.append(f"rests for {upstream.rests_for:.1f} s")
    if upstream.paused_for:
        parts.append(f"paused for {upstream.paused_for:.1f} s")
    if upstream.short:
        parts.append(upstream.short)
    refused = _counted(upstream.refusals)
    return f"{upstream.url}: {', '.join(parts)}" + (f"; refused: {refused}" if refused else "")


def _working_set(found: WorkingSetStatus) -> str:
    size = f"{found.accounts} accounts with {found.slots} slots"
    if not found.wanted:
        return size
    so_far = " so far" if found.is_fetching else ""
    return f"{size}; {found.known} of {found.wanted} keys fetched again{so_far}"
