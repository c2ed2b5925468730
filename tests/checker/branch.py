"""The branch that a snapshot is on: what its latest and its newest flashblock stand on."""

from checker.place import Place, Sealed


def sealed_at(latest: Sealed, number: int) -> Sealed | None:
    """The block of a height that `latest` stands on, or is; none where that was not recorded."""
    at = latest
    while at.number > number:
        if at.place is None:
            return None
        at = at.place.parent
    return at if at.number == number else None


def end_at(latest: Sealed, tip: Place | None, number: int) -> Place | None:
    """The last flashblock of the block that the branch has at a height; none where it has none."""
    if number <= latest.number:
        sealed = sealed_at(latest, number)
        return None if sealed is None else sealed.place
    at = tip
    while at is not None and at.number > number:
        at = at.parent.place
    return at if at is not None and at.number == number else None


def distance(latest: Sealed, tip: Place) -> int | None:
    """How many blocks a flashblock is above a sealed block; none where it stands elsewhere."""
    parent = sealed_at(tip.parent, latest.number)
    return tip.number - latest.number if parent is latest else None


def holds(end: Place | None, place: Place) -> bool:
    """Whether a block that ends with a flashblock has another one as a part or as its end."""
    return end is not None and place.transactions is end.transactions and place.index <= end.index
