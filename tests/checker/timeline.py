"""Snapshots in time: commits never decrease, are visible in time, and expire in time.

All times are of one clock. A flashblock is recorded after it was published, which is after its
commit returned: the recorded time is later than the commit, never earlier. So a response to a
request sent after a flashblock came must include it, and one to a request sent two block times
after that must not call it pending any more, both without tolerance.

A follower receives it later, at an unrecorded time. There a flashblock has arrived at the latest
when a client first saw it, and `weather.convergence` measures the delay.
"""

from bisect import bisect_left
from collections.abc import Iterator

from checker.chain import Chain
from checker.contradiction import Contradiction, Kind
from checker.moment import Moment
from checker.place import Place

# The maximum delay between a flashblock's commit and its record. It only matters for the claim that
# a pending block was still fresh.
RECORDING_LAG_NS = 10**9


def judge_times(
    chain: Chain, places: list[Place], moments: list[Moment]
) -> Iterator[Contradiction]:
    """Return the errors in the times of these snapshots."""
    yield from _never_back(moments)
    yield from _one_meaning(moments, in_order=not chain.followed)
    if chain.followed:
        yield from _not_expired_there(chain, moments)
        return
    received = [place.received_ns for place in places]
    for moment in moments:
        newest = bisect_left(received, moment.exchange.sent_ns) - 1
        known = places[newest] if newest >= 0 else None
        yield from _keeps_up(chain, moment, known)
        if moment.pending is not None:
            yield from _not_expired(chain, moment, moment.pending, moment.pending.received_ns)


def _never_back(moments: list[Moment]) -> Iterator[Contradiction]:
    """Real time: a response received before a request was sent is not newer than its response."""
    arriving = sorted(moments, key=lambda moment: moment.exchange.received_ns)
    arrived, newest = 0, None
    for moment in sorted(moments, key=lambda moment: moment.exchange.sent_ns):
        while arriving[arrived].exchange.received_ns < moment.exchange.sent_ns:
            before = arriving[arrived]
            arrived += 1
            if newest is None or before.snapshot.commit > newest.snapshot.commit:
                newest = before
        if newest is not None and newest.snapshot.commit > moment.snapshot.commit:
            yield Contradiction(
                Kind.BACK,
                f"commit {moment.snapshot.commit} after commit {newest.snapshot.commit}",
                {
                    "earlier response": newest.exchange.snapshot,
                    "arrived, ns": newest.exchange.received_ns,
                    "later response": moment.exchange.snapshot,
                    "requested, ns": moment.exchange.sent_ns,
                    "clients": f"{newest.exchange.client}, then {moment.exchange.client}",
                },
            )


def _one_meaning(moments: list[Moment], *, in_order: bool) -> Iterator[Contradiction]:
    """A commit is one snapshot, and with `in_order` a later one is at a later place."""
    meanings: dict[int, Moment] = {}
    for moment in moments:
        known = meanings.setdefault(moment.snapshot.commit, moment)
        if known.pending is None and moment.pending is not None:
            meanings[moment.snapshot.commit] = moment  # it had not expired yet
        pending = {id(each.pending) for each in (known, moment) if each.pending is not None}
        if known.latest.hash != moment.latest.hash or len(pending) > 1:
            yield _clash(known, moment, f"commit {moment.snapshot.commit} is two snapshots")
    if not in_order:
        return
    last: Moment | None = None
    for _, moment in sorted(meanings.items()):
        if moment.pending is None:
            continue
        if (
            last is not None
            and last.pending is not None
            and moment.pending.order < last.pending.order
        ):
            yield _clash(last, moment, "a later commit names an earlier flashblock")
        last = moment


def _clash(one: Moment, other: Moment, what: str) -> Contradiction:
    return Contradiction(
        Kind.SNAPSHOT, what, {"one": one.exchange.snapshot, "other": other.exchange.snapshot}
    )


def _keeps_up(chain: Chain, moment: Moment, known: Place | None) -> Iterator[Contradiction]:
    """`known` is the newest flashblock that had arrived before the request was sent."""
    if known is None or known.dropped_by is not None:
        return
    evidence: dict[str, object] = {
        "snapshot": moment.exchange.snapshot,
        "flashblock": str(known),
        "recorded, ns": known.received_ns,
        "asked, ns": moment.exchange.sent_ns,
        "answered, ns": moment.exchange.received_ns,
    }
    if moment.pending is not None:
        if moment.pending.order < known.order:
            yield Contradiction(Kind.BEHIND, f"{moment.pending} though {known} had come", evidence)
        return
    if moment.latest.number < known.parent.number:
        yield Contradiction(Kind.BEHIND, f"{moment.latest.number} is not the latest", evidence)
    fresh_until = known.received_ns + chain.freshness_ns - RECORDING_LAG_NS
    if moment.exchange.received_ns < fresh_until:
        yield Contradiction(Kind.MISSING, f"{known} was pending", evidence)


def _not_expired_there(chain: Chain, moments: list[Moment]) -> Iterator[Contradiction]:
    """A flashblock is received before any client sees it, and never becomes fresh again.

    If two flashblocks share a name, the second may be fresh when the first is not.
    """
    told: dict[int, int] = {}
    named = [(moment, moment.pending) for moment in moments if len(moment.tips) == 1]
    for moment, place in named:
        if place is not None:
            at = moment.exchange.received_ns
            told[place.order] = min(told.get(place.order, at), at)
    for moment, place in named:
        if place is not None:
            yield from _not_expired(chain, moment, place, told[place.order])


def _not_expired(
    chain: Chain, moment: Moment, place: Place, known_ns: int
) -> Iterator[Contradiction]:
    """`known_ns` is a time at which the flashblock was already committed."""
    late_ns = moment.exchange.sent_ns - (known_ns + chain.freshness_ns)
    if late_ns > 0:
        yield Contradiction(
            Kind.EXPIRED,
            f"{place} is {late_ns / 1e9:.3f} s past its deadline",
            {
                "snapshot": moment.exchange.snapshot,
                "known since, ns": known_ns,
                "asked, ns": moment.exchange.sent_ns,
            },
        )
