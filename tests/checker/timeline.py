"""Snapshots in time: commits never go back, and neither lag nor outlive what was announced.

All times are of one clock. A flashblock is recorded after it was published, which is after
its commit returned: the recorded time is later than the commit, never earlier. So an answer
that was asked for after a flashblock came must know it, and one that was asked for two block
times after that must not call it pending any more, with no tolerance in either.
"""

from bisect import bisect_left
from collections.abc import Iterator

from checker.chain import Chain
from checker.contradiction import Contradiction, Kind
from checker.moment import Moment
from checker.place import Place

# How much later than its commit a flashblock may be recorded. It only matters for the claim
# that a pending block was still fresh.
RECORDING_LAG_NS = 10**9


def judge_times(
    chain: Chain, places: list[Place], moments: list[Moment]
) -> Iterator[Contradiction]:
    """What is wrong with when these snapshots were named."""
    yield from _never_back(moments)
    yield from _one_meaning(moments)
    received = [place.received_ns for place in places]
    for moment in moments:
        newest = bisect_left(received, moment.exchange.sent_ns) - 1
        known = places[newest] if newest >= 0 else None
        yield from _keeps_up(chain, moment, known)
        yield from _not_expired(chain, moment)


def _never_back(moments: list[Moment]) -> Iterator[Contradiction]:
    """Real time: what had arrived before something was asked for is not newer than its answer."""
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
                    "earlier answer": newest.exchange.snapshot,
                    "arrived, ns": newest.exchange.received_ns,
                    "later answer": moment.exchange.snapshot,
                    "asked for, ns": moment.exchange.sent_ns,
                    "clients": f"{newest.exchange.client}, then {moment.exchange.client}",
                },
            )


def _one_meaning(moments: list[Moment]) -> Iterator[Contradiction]:
    """A commit is one snapshot, and a later commit is at a later place of the feed."""
    meanings: dict[int, Moment] = {}
    for moment in moments:
        known = meanings.setdefault(moment.snapshot.commit, moment)
        if known.pending is None and moment.pending is not None:
            meanings[moment.snapshot.commit] = moment  # it had not expired yet
        pending = {id(each.pending) for each in (known, moment) if each.pending is not None}
        if known.latest.hash != moment.latest.hash or len(pending) > 1:
            yield _clash(known, moment, f"commit {moment.snapshot.commit} is two snapshots")
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
    """`known` is the newest flashblock that had come before the request went out."""
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


def _not_expired(chain: Chain, moment: Moment) -> Iterator[Contradiction]:
    place = moment.pending
    if place is None:
        return
    late_ns = moment.exchange.sent_ns - (place.received_ns + chain.freshness_ns)
    if late_ns > 0:
        yield Contradiction(
            Kind.EXPIRED,
            f"{place} is {late_ns / 1e9:.3f} s past its deadline",
            {
                "snapshot": moment.exchange.snapshot,
                "flashblock recorded, ns": place.received_ns,
                "asked, ns": moment.exchange.sent_ns,
            },
        )
