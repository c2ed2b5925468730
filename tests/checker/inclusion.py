"""Where a transaction stands, as of the snapshot that an answer names."""

from dataclasses import dataclass

from checker.moment import Moment
from checker.place import Place
from checker.truth import Truth


@dataclass(frozen=True, slots=True)
class Inclusion:
    """A transaction of a block, by the block's hash as the snapshot has it."""

    place: Place
    hash: bytes
    at: int


def find_inclusion(truth: Truth, moment: Moment, transaction_hash: bytes) -> Inclusion | None:
    """Where the snapshot has the transaction: in a sealed block, in pending, or not at all."""
    for first, at in truth.by_transaction.get(transaction_hash, ()):
        if first.number <= moment.latest.number:
            sealed = truth.sealed_by_number[first.number]
            if _holds(sealed.place, first, at):
                assert sealed.place is not None
                return Inclusion(sealed.place, sealed.hash, at)
        elif _holds(moment.pending, first, at):
            assert moment.pending is not None
            return Inclusion(moment.pending, moment.pending.hash, at)
    return None


def _holds(place: Place | None, first: Place, at: int) -> bool:
    """Whether a block has the transaction that came at this place of the same job."""
    return place is not None and place.transactions is first.transactions and at < place.count
