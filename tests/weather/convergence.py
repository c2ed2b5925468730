"""How late a service is that follows a chain: what was committed there, and first seen here.

A flashblock is here once an answer names a snapshot whose branch contains it. One that its
chain gave up before that is owed no longer; what took its place is. Nothing is asked of any
service, and no code is shared with one.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from checker.moment import Moment
from checker.place import Place


@dataclass(frozen=True, slots=True)
class Lateness:
    """How long each flashblock was not here yet, or not any more owed, in nanoseconds."""

    served: dict[int, int]  # by its order in the feed
    given_up: dict[int, int]  # never served; until the chain gave it up
    open: dict[int, int]  # until the end of the record

    @property
    def worst_ns(self) -> int:
        """The longest of all."""
        return max((*self.served.values(), *self.given_up.values(), *self.open.values()), default=0)

    def share(self, part: float) -> int:
        """What this part of those that were served did not exceed."""
        times = sorted(self.served.values())
        return times[min(int(part * len(times)), len(times) - 1)] if times else 0


def lateness(places: Sequence[Place], moments: Sequence[Moment], end_ns: int) -> Lateness:
    """Of all flashblocks that were committed before `end_ns`."""
    seen = _first_seen(places, moments)
    found = Lateness({}, {}, {})
    for place in places:
        if place.received_ns >= end_ns:
            continue
        gone_ns = end_ns if place.dropped_by is None else place.dropped_by.received_ns
        at = seen.get(place.order)
        if at is not None and at <= max(gone_ns, place.received_ns):
            found.served[place.order] = max(at - place.received_ns, 0)
        elif place.dropped_by is not None and gone_ns <= end_ns:
            found.given_up[place.order] = gone_ns - place.received_ns
        elif at is not None:
            found.served[place.order] = at - place.received_ns
        else:
            found.open[place.order] = end_ns - place.received_ns
    return found


def _first_seen(places: Sequence[Place], moments: Sequence[Moment]) -> dict[int, int]:
    """When each flashblock was first part of a branch that an answer named, by its order."""
    jobs: dict[int, list[Place]] = defaultdict(list)
    for place in places:
        jobs[id(place.transactions)].append(place)
    seen: dict[int, int] = {}
    for moment in sorted(moments, key=lambda each: each.exchange.received_ns):
        end = moment.latest.place if moment.pending is None else moment.pending
        # What a place that was seen stands on was seen with it.
        while end is not None and end.order not in seen:
            for place in jobs[id(end.transactions)]:
                if place.index <= end.index:
                    seen.setdefault(place.order, moment.exchange.received_ns)
            end = end.parent.place
    return seen
