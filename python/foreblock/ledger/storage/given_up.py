"""Blocks that a dev chain gave up, until their rows go.

A chain that goes back to the same snapshot again and again gives up blocks of the same heights,
which are pruned only when the chain has grown far above them. So the newest are kept, for those
who still have to be told that they are gone, and the others are forgotten. A process knows what
it gave up itself; what an earlier one left is pruned with its height.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from foreblock._engine import View
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.partial_rows import by_hash_key, decode_by_hash, decode_partial_row
from foreblock.ledger.storage.removed_rows import decode_removed, place_row

KEPT: Final = 4_096  # partials
PORTION: Final = 256  # partials that are forgotten together


class GivenUp(NamedTuple):
    """A block that was given up, or a part of one."""

    block: int
    partials: tuple[int, ...]
    removed: bytes | None = None  # the key of what is kept of a sealed block


class GivenUpBlocks:
    """What was given up and is still stored, the oldest first."""

    def __init__(self) -> None:
        self._blocks: Final[deque[GivenUp]] = deque()
        self._partials = 0

    def add(self, given_up: GivenUp) -> None:
        """Forget this one some time."""
        self._blocks.append(given_up)
        self._partials += len(given_up.partials)

    def take(self) -> list[GivenUp]:
        """Those that are to be forgotten now; none while they are few."""
        taken: list[GivenUp] = []
        count = 0
        if self._partials <= KEPT + PORTION:
            return taken
        while count < PORTION:
            taken.append(self._blocks.popleft())
            count += len(taken[-1].partials)
            self._partials -= len(taken[-1].partials)
        return taken


def given_up_keys(view: View, given_up: GivenUp) -> Iterator[bytes]:
    """The keys of all rows of what was given up, but for places, which are few."""
    if given_up.removed is not None:
        row = view.row(given_up.removed)
        # The same block may have been sealed and given up again.
        if row is not None and decode_removed(row).partials[-1] in given_up.partials:
            yield given_up.removed
            yield place_row(given_up.removed)[0]
    for partial in given_up.partials:
        key = partial_rows.partial_key(given_up.block, partial)
        row = view.row(key)
        if row is None:
            continue
        hash_key = by_hash_key(decode_partial_row(row).header.hash)
        meaning = view.row(hash_key)
        if meaning is not None and decode_by_hash(meaning) == (given_up.block, partial):
            yield hash_key
        yield key
        yield partial_rows.transactions_key(given_up.block, partial)
        yield partial_rows.senders_key(given_up.block, partial)
        yield partial_rows.receipts_key(given_up.block, partial)
        yield partial_rows.seals_as_key(given_up.block, partial)
