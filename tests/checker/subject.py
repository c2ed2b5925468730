"""The block of a request, in the snapshot of its response."""

from dataclasses import dataclass
from typing import Literal

from checker.branch import end_at, holds, sealed_at
from checker.json_type import Json
from checker.messages import unhex
from checker.moment import Moment
from checker.place import Place, Sealed
from checker.truth import Truth

# Whether the block must exist, may exist (pruned or not), or must not.
Presence = Literal["must", "may", "must not"]


@dataclass(frozen=True, slots=True)
class Subject:
    """The block of a parameter."""

    place: Place | None  # None if it was never recorded
    sealed: Sealed | None  # if it is a sealed block
    presence: Presence
    pinned: bool = False  # by a hash or a position, so that its meaning is fixed
    dropped: bool = False  # it existed earlier

    @property
    def hash(self) -> bytes:
        """The block's hash."""
        if self.sealed is not None:
            return self.sealed.hash
        assert self.place is not None
        return self.place.hash


def find_subject(truth: Truth, moment: Moment, block: Json) -> Subject:
    """Resolve a block parameter at this moment."""
    if block == "pending":
        if moment.pending is not None:
            return Subject(moment.pending, None, "must")
        return _sealed(moment.latest)
    if block == "latest":
        return _sealed(moment.latest)
    if isinstance(block, dict):
        if "flashblockIndex" in block:
            place = int(block["blockNumber"], 16), int(block["flashblockIndex"], 16)
            return _by_place(truth, moment, place)
        block = block.get("blockHash", block.get("blockNumber"))
    if not isinstance(block, str) or not block.startswith("0x"):
        raise ValueError(f"a block parameter that the checker does not know: {block!r}")
    if len(block) == 66:
        return _by_hash(truth, moment, unhex(block))
    return _by_number(moment, int(block, 16))


def _sealed(sealed: Sealed, *, pinned: bool = False) -> Subject:
    return Subject(sealed.place, sealed, "must", pinned)


def _by_number(moment: Moment, number: int) -> Subject:
    if number > moment.latest.number:
        return Subject(None, None, "must not")
    sealed = sealed_at(moment.latest, number)
    return Subject(None, None, "may") if sealed is None else _sealed(sealed)


def _by_hash(truth: Truth, moment: Moment, hash: bytes) -> Subject:
    sealed = truth.sealed.get(hash)
    if sealed is None:
        return _pinned(truth, moment, truth.by_hash.get(hash, []), hash)
    if sealed_at(moment.latest, sealed.number) is sealed:
        return _sealed(sealed, pinned=True)
    dropped = sealed.number <= moment.latest.number
    return Subject(None, None, "must not", pinned=True, dropped=dropped)


def _by_place(truth: Truth, moment: Moment, place: tuple[int, int]) -> Subject:
    """A flashblock by block and index; a false one may be in its place."""
    lies = [lie for (number, index, lie) in truth.lies if (number, index) == place]
    if any(_may_be_believed(truth, moment, lie) for lie in lies):
        return Subject(None, None, "may", pinned=True)
    return _pinned(truth, moment, truth.by_place.get(place, []))


def _pinned(
    truth: Truth, moment: Moment, places: list[Place], hash: bytes | None = None
) -> Subject:
    """The flashblock with this name that the snapshot's branch contains."""
    latest, tips = moment.latest, moment.tips
    if not places:
        presence: Presence = "may" if hash and _may_be_believed(truth, moment, hash) else "must not"
        return Subject(None, None, presence, pinned=True)
    if not tips and places[0].number > latest.number:
        # The commit's newest flashblock is unknown, and so are the dropped ones.
        return Subject(places[0] if len(places) == 1 else None, None, "may", pinned=True)
    ends = [end_at(latest, tip, places[0].number) for tip in tips or (None,)]
    alive = [place for place in places if any(holds(end, place) for end in ends)]
    if not alive:
        dropped = not tips or any(place.order <= tips[-1].order for place in places)
        return Subject(None, None, "must not", pinned=True, dropped=dropped)
    if len({place.hash for place in alive}) > 1:
        return Subject(None, None, "may", pinned=True)  # a restarted job, or the first
    return Subject(alive[0], None, _presence(truth, moment, alive[0]), pinned=True)


def _may_be_believed(truth: Truth, moment: Moment, hash: bytes) -> bool:
    """Return whether a flashblock that the chain never had may be served.

    Yes until it is contradicted, and if its block was sealed with its transactions: then it is an
    intermediate state of the block.
    """
    for (number, _, lie), raws in truth.lies.items():
        if lie == hash:
            sealed = sealed_at(moment.latest, number) if number <= moment.latest.number else None
            return not moment.tips or (sealed is not None and _went_through(sealed, raws))
    return False


def _went_through(sealed: Sealed, raws: list[bytes]) -> bool:
    """Return whether a block has these transactions in sequence."""
    if sealed.place is None:
        return True
    found = [each.transaction.raw for each in sealed.place.transactions[: sealed.place.count]]
    starts = range(len(found) - len(raws) + 1)
    return any(found[start : start + len(raws)] == raws for start in starts)


def _presence(truth: Truth, moment: Moment, place: Place) -> Presence:
    """Return whether a flashblock of the snapshot's branch must exist.

    A follower may not have received it before its block was sealed.
    """
    newest = moment.tips[-1].number if moment.tips else moment.latest.number
    if place.number <= newest - truth.chain.kept_blocks:
        return "may"
    is_heard = len(moment.tips) == 1 and holds(moment.tips[0], place)
    return "must" if is_heard or not truth.chain.followed else "may"
