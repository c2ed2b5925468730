"""The snapshots that answers name, found again in what the feed has announced.

Commits are made in the order of the feed. Where a name fits two flashblocks, because a job
that was begun anew began alike, that order tells them apart.
"""

from collections.abc import Iterable
from dataclasses import dataclass

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
    # The newest flashblock of the commit, also where it has expired; none where unknown.
    tip: Place | None


Found = tuple[Snapshot, Sealed, Place | None]


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
    found: dict[str, Found] = {}
    tips: dict[int, Place] = {}
    last = -1
    for text, snapshot in sorted(read.items(), key=lambda item: item[1].commit):
        named = _find(truth, snapshot, last)
        if isinstance(named, Contradiction):
            contradictions.append(named)
            continue
        found[text] = named
        if named[2] is not None:
            last = max(last, named[2].order)
            tips[snapshot.commit] = named[2]
    moments = [
        Moment(each, *found[each.snapshot or ""], tips.get(found[each.snapshot or ""][0].commit))
        for each in kept
        if (each.snapshot or "") in found
    ]
    return moments, contradictions


def _find(truth: Truth, snapshot: Snapshot, last: int) -> Found | Contradiction:
    """What a snapshot names; `last` is the place that the commit before it was at."""
    evidence: dict[str, object] = {"snapshot": snapshot}
    latest = truth.sealed.get(snapshot.latest[1])
    if latest is None or latest.number != snapshot.latest[0]:
        return Contradiction(Kind.UNKNOWN, f"no block {snapshot.latest[0]} of that hash", evidence)
    if snapshot.pending is None:
        return snapshot, latest, None
    number, index, hash = snapshot.pending  # noqa: A001, its name
    places = [each for each in truth.by_place.get((number, index), ()) if each.hash == hash]
    if not places:
        return Contradiction(Kind.UNKNOWN, f"no flashblock {number}.{index} of that hash", evidence)
    place = next((each for each in places if each.order >= last), places[-1])
    if place.parent.hash != latest.hash:
        return Contradiction(
            Kind.SNAPSHOT, f"{place} is built on another block than its latest", evidence
        )
    return snapshot, latest, place
