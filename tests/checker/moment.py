"""Finds the snapshots of responses in the announced flashblocks.

Commits are made in the order of the feed. If a name matches two flashblocks, because a restarted
job began equally, that order distinguishes them. A follower of the chain may receive them in
another order: there both are the same block, and the choice stays open.
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
    """A response and the meaning of its snapshot."""

    exchange: Exchange
    snapshot: Snapshot
    latest: Sealed
    pending: Place | None
    # The newest flashblock of the commit, even if expired; None if unknown, and all candidates if
    # several have its name.
    tips: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """The meaning of a snapshot."""

    snapshot: Snapshot
    latest: Sealed
    tips: tuple[Place, ...]

    @property
    def pending(self) -> Place | None:
        """Any of them: they are the same block."""
        return self.tips[-1] if self.tips else None


STACKED = 4  # maximum number of blocks from latest to pending on a follower


def find_moments(
    truth: Truth, exchanges: Iterable[Exchange]
) -> tuple[list[Moment], list[Contradiction]]:
    """Resolve each response's snapshot, and list those that match nothing."""
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
    """Return whether a response's pending is the wrong one of two flashblocks for a position.

    Only a later flashblock decides which is right.
    """
    if not truth.lies or not exchange.snapshot:
        return False
    try:
        return read_snapshot(exchange.snapshot).pending in truth.lies
    except ValueError:
        return False


def _find(truth: Truth, snapshot: Snapshot, last: int) -> _Found | Contradiction:
    """Resolve a snapshot; `last` is the place of the previous commit."""
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
