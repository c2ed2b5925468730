"""The branch of a snapshot: the ancestors of its latest block and of its newest flashblock."""

from checker.place import Place, Sealed


def sealed_at(latest: Sealed, number: int) -> Sealed | None:
    """The ancestor at a height of `latest`, or itself; None if that was not recorded."""
    at = latest
    while at.number > number:
        if at.place is None:
            return None
        at = at.place.parent
    return at if at.number == number else None


def end_at(latest: Sealed, tip: Place | None, number: int) -> Place | None:
    """The last flashblock of the branch's block at a height, or None."""
    if number <= latest.number:
        sealed = sealed_at(latest, number)
        return None if sealed is None else sealed.place
    at = tip
    while at is not None and at.number > number:
        at = at.parent.place
    return at if at is not None and at.number == number else None


def distance(latest: Sealed, tip: Place) -> int | None:
    """The number of blocks from a sealed block up to a flashblock, or None on another branch."""
    parent = sealed_at(tip.parent, latest.number)
    return tip.number - latest.number if parent is latest else None


def holds(end: Place | None, place: Place) -> bool:
    """Return whether a block that ends with one flashblock contains another one or ends with it."""
    return end is not None and place.transactions is end.transactions and place.index <= end.index
