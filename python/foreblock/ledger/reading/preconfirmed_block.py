"""A pre-confirmed block as requests use it: a block in progress, as of one flashblock.

The same to its users as a `SealedBlock`. A value that belongs to the number of its partial
and to no view: (block, index) may come to mean another partial, a number never does.
"""

from dataclasses import replace
from functools import cached_property
from typing import Final

from foreblock.ledger.reading.block_context import Surroundings
from foreblock.ledger.reading.sealed_block import SealedBlock
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.freshness import Quiet
from foreblock.ledger.storage.partial_rows import PartialRow


class PreconfirmedBlock:
    """The header of a partial block and what follows from it."""

    merged: Final = True  # nobody mines a block in portions

    def __init__(self, partial: int, row: PartialRow, profile: ChainProfile) -> None:
        header = row.header
        self._row: Final = row
        self.number: Final = header.number
        self.hash: Final = header.hash
        self.key: Final = partial  # by which what was made of it is kept
        self.header: Final = header
        self.index: Final = row.index
        self.partial: Final = partial
        self.made_of: Final = (*row.before, partial)  # the partials of its block, this the last
        self.received_at_ns: Final = row.received_at_ns  # wall time
        self.profile: Final = profile
        # No less, as all blocks after the merge; how much exactly, no rule asks any more.
        self.total_difficulty: Final = profile.terminal_total_difficulty or 0
        self.rules: Final = profile.rules(header.number, header.timestamp, merged=True)
        # The block after it as simulations begin it, from the first of them on.
        self.following: Surroundings | None = None

    def going_on(self, quiet: Quiet) -> "PreconfirmedBlock":
        """The same block at a later index, in which nothing happened."""
        row = replace(self._row, index=quiet.index, received_at_ns=quiet.received_at_ns)
        return PreconfirmedBlock(self.partial, row, self.profile)

    @cached_property
    def surroundings(self) -> Surroundings:
        """What calls in this block see of it."""
        return Surroundings(self.header, self.rules, self.profile)


# A block that requests can name.
ReadableBlock = SealedBlock | PreconfirmedBlock
