"""The delay of a following service: from a commit at the source to its first response with it.

A flashblock is present once a response names a snapshot whose branch contains it. A flashblock
dropped by its chain before that is no longer required; its replacement is. No service is involved,
and no code is shared with one.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from checker.moment import Moment
from checker.place import Place


@dataclass(frozen=True, slots=True)
class Lateness:
    """The time until each flashblock was present, or was no longer required, in nanoseconds."""

    served: dict[int, int]  # by its order in the feed
    given_up: dict[int, int]  # never served; until the chain dropped it
    open: dict[int, int]  # until the end of the record

    @property
    def worst_ns(self) -> int:
        """The maximum."""
        return max((*self.served.values(), *self.given_up.values(), *self.open.values()), default=0)

    def share(self, part: float) -> int:
        """A quantile of the served ones."""
        times = sorted(self.served.values())
        return times[min(int(part * len(times)), len(times) - 1)] if times else 0


def lateness(places: Sequence[Place], moments: Sequence[Moment], end_ns: int) -> Lateness:
    """The delays of all flashblocks that were committed before `end_ns`."""
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
    """The time when each flashblock was first part of a response's branch, by its order."""
    jobs: dict[int, list[Place]] = defaultdict(list)
    for place in places:
        jobs[id(place.transactions)].append(place)
    seen: dict[int, int] = {}
    for moment in sorted(moments, key=lambda each: each.exchange.received_ns):
        end = moment.latest.place if moment.pending is None else moment.pending
        # The ancestors of a visible place became visible with it.
        while end is not None and end.order not in seen:
            for place in jobs[id(end.transactions)]:
                if place.index <= end.index:
                    seen.setdefault(place.order, moment.exchange.received_ns)
            end = end.parent.place
    return seen
