"""The position of a transaction in the snapshot of a response."""

from dataclasses import dataclass

from checker.branch import end_at, holds, sealed_at
from checker.moment import Moment
from checker.place import Place
from checker.truth import Truth


@dataclass(frozen=True, slots=True)
class Inclusion:
    """A transaction of a block, by the block's hash in the snapshot."""

    place: Place
    hash: bytes
    at: int


def find_inclusion(truth: Truth, moment: Moment, transaction_hash: bytes) -> Inclusion | None:
    """Find a transaction in the snapshot: in a sealed block, in pending, or nowhere.

    An unsealed block below pending is identified by its last flashblock.
    """
    for first, at in truth.by_transaction.get(transaction_hash, ()):
        end = end_at(moment.latest, moment.pending, first.number)
        # The whole job's list; the first `count` are in the block.
        if end is None or not holds(end, first):
            continue
        sealed = sealed_at(moment.latest, first.number)
        return Inclusion(end, end.hash if sealed is None else sealed.hash, at)
    return None
