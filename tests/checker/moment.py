"""The snapshots that answers name, found again in what the feed has announced.

Commits are made in the order of the feed. Where a name fits two flashblocks, because a job
that was begun anew began alike, that order tells them apart. Who follows the chain may hear
it in another order: there both are the same block, and which of them it is stays open.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from checker.branch import distance
from checker.contradiction import Contradiction, Kind
from checker.journal import Exchange
from checker.place import Place, Sealed
from checker.snapshot import Snapshot, read_snapshot
from checker.truth import Truth


@dataclass(frozen=True, slots=True)
class Moment:
    """An answer and what its snapshot names."""

    exchange: Exchange
    snapshot: Snapshot
    latest: Sealed
    pending: Place | None
    # The newest flashblock of the commit, also where it has expired; none where unknown, and
    # all that it may be where several have its name.
    tips: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a snapshot names."""

    snapshot: Snapshot
    latest: Sealed
    tips: tuple[Place, ...]

    @property
    def pending(self) -> Place | None:
        """Any of them: they are the same block."""
        return self.tips[-1] if self.tips else None


STACKED = 4  # blocks that a follower's pending may be above its latest


def find_moments(
    truth: Truth, exchanges: Iterable[Exchange]
) -> tuple[list[Moment], list[Contradiction]]:
    """What each answer's snapshot names, and those that name nothing there was."""
    kept = list(exchanges)
    contradictions: list[Contradiction] = []
    read: dict[str, Snapshot] = {}
    for text in dict.fromkeys(each.snapshot or "" for each in kept):
        try:
            read[text] = read_snapshot(text)
        except ValueError as why:
            contradictions.append(Contradiction(Kind.SNAPSHOT, str(why)))
    found: dict[str, _Found] = {}
    tips: dict[int, tuple[Place, ...]] = {}
    last = -1
    for text, snapshot in sorted(read.items(), key=lambda item: item[1].commit):
        named = _find(truth, snapshot, last)
        if isinstance(named, Contradiction):
            contradictions.append(named)
            continue
        found[text] = named
        if named.pending is not None:
            last = max(last, named.pending.order)
            tips[snapshot.commit] = named.tips
    moments = []
    for each in kept:
        at = found.get(each.snapshot or "")
        if at is not None:
            tip = tips.get(at.snapshot.commit, ())
            moments.append(Moment(each, at.snapshot, at.latest, at.pending, tip))
    return moments, contradictions


def names_lie(truth: Truth, exchange: Exchange) -> bool:
    """Whether an answer's pending is one of two flashblocks for a place, and the wrong one.

    Nobody can know before a later one tells which it was.
    """
    if not truth.lies or not exchange.snapshot:
        return False
    try:
        return read_snapshot(exchange.snapshot).pending in truth.lies
    except ValueError:
        return False


def _find(truth: Truth, snapshot: Snapshot, last: int) -> _Found | Contradiction:
    """What a snapshot names; `last` is the place that the commit before it was at."""
    evidence: dict[str, object] = {"snapshot": snapshot}
    latest = truth.sealed.get(snapshot.latest[1])
    if latest is None or latest.number != snapshot.latest[0]:
        return Contradiction(Kind.UNKNOWN, f"no block {snapshot.latest[0]} of that hash", evidence)
    if snapshot.pending is None:
        return _Found(snapshot, latest, ())
    number, index, hash = snapshot.pending  # noqa: A001, its name
    places = [each for each in truth.by_place.get((number, index), ()) if each.hash == hash]
    if not places:
        return Contradiction(Kind.UNKNOWN, f"no flashblock {number}.{index} of that hash", evidence)
    most = STACKED
    if not truth.chain.followed:
        most = 1
        places = [next((each for each in places if each.order >= last), places[-1])]
    tips = tuple(each for each in places if (distance(latest, each) or most + 1) <= most)
    if not tips:
        return Contradiction(
            Kind.SNAPSHOT, f"{places[0]} is built on another block than its latest", evidence
        )
    return _Found(snapshot, latest, tips)
