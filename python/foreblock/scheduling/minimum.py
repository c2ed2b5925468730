"""The minimum state that a request demands, and whether a commit has it. No I/O.

A client that goes from one instance to another names the highest commit it has seen, or a
flashblock that it knows. The commit is exact: numbers of commits never fall. A flashblock
may be replaced by a reorganisation; it counts as here when its place in the chain is reached.

`server/checks.py` reads it from a request; `methods/events/commit_watch.py` waits for it.
"""

from typing import NamedTuple

Place = tuple[int, int]  # of a flashblock: the number of its block, its index there


class Minimum(NamedTuple):
    """The least that a request accepts."""

    commit: int = 0
    place: Place | None = None
    wait_ms: int | None = None  # the longest wait; None is the longest that is allowed


class Reached(NamedTuple):
    """The state that a commit has."""

    commit: int
    latest: int  # the number of the last sealed block
    pending: Place | None  # None if `pending` means the latest block


class Missing(NamedTuple):
    """Why a minimum is not met, in a sentence."""

    text: str


def is_met(minimum: Minimum, reached: Reached) -> bool:
    """Return whether a commit has all that a request demands."""
    return reached.commit >= minimum.commit and _has_place(minimum.place, reached)


def missing(minimum: Minimum, reached: Reached | None) -> Missing:
    """Say what is missing; without `reached` the store cannot be read."""
    commit, latest, pending = reached or Reached(0, 0, None)
    if minimum.place is None or commit < minimum.commit:
        wanted, at = f"commit {minimum.commit}", f"{commit}"
    else:
        wanted, at = f"flashblock {_text(minimum.place)}", f"{latest:#x}"
        at = at if pending is None else _text(pending)
    found = "cannot read its store" if reached is None else f"is at {at}"
    return Missing(f"{wanted} is not here yet, this instance {found}")


def _has_place(place: Place | None, reached: Reached) -> bool:
    if place is None or reached.latest >= place[0]:
        return True
    return reached.pending is not None and reached.pending >= place


def _text(place: Place) -> str:
    number, index = place
    return f"{number:#x}.{index}"
