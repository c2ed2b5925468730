"""A block to be run again: the state that it begins on, its environment, its transactions.

Sealed blocks and partial ones are replayed alike. The parent of either is the block before it
in the view: a sealed one, or the unsealed one that flashblocks build on. Rows are read while
the view is open; decoding and running is for a thread, and reads the parent's state only.
"""

from collections.abc import Sequence

from msgspec import Struct

from foreblock._engine import Overlay, State, Transaction
from foreblock.errors import RefusedTrace
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import Portion, read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.block_start import start_block
from foreblock.ledger.rules.execution import environment
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.storage.dev_rows import read_cheats
from foreblock.types import Cheat


class Replay(Struct, frozen=True, gc=False):
    """A block and all that running it again needs."""

    block: ReadableBlock
    parent_state: State
    parent_rules: Rules
    portions: Sequence[Portion]
    cheats: Sequence[tuple[int, Cheat]] = ()  # and how many transactions come before each

    def begin(self) -> Overlay:
        """The state that the first transaction runs on."""
        header = self.block.header
        overlay = self.parent_state.overlay()
        overlay.set_block_hash(header.number - 1, header.parent_hash)
        env = environment(header, self.block.rules, self.block.profile)
        start_block(overlay, env, header, self.block.rules, self.parent_rules)
        return overlay

    def transactions(self, stop: int | None = None) -> list[Transaction]:
        """The transactions in order, those before `stop`."""
        found: list[Transaction] = []
        for portion in self.portions:
            count = len(portion) if stop is None else min(len(portion), stop - len(found))
            found += portion.transactions(0, count)
        return found


def read_replay(view: LedgerView, block: ReadableBlock) -> Replay:
    """A block of a view, ready to be run again.

    Raises `RefusedTrace` for the first block, `PrunedState` where its parent's is not kept,
    `UnknownRules` where it cannot be executed.
    """
    if block.number == 0:
        raise RefusedTrace("genesis is not traceable")
    if block.number == view.first_block.number:
        raise RefusedTrace(f"block {block.number} is the first one here, it is not traceable")
    view.check_rules(block.number)
    parent = block.number - 1
    sealed = parent <= view.latest.number
    before = view.resolve(parent) if sealed else view.unsealed(parent)
    portions = read_stored(view, block).portions()
    return Replay(block, view.state(before), before.rules, portions, _cheats(view, block, portions))


def _cheats(
    view: LedgerView, block: ReadableBlock, portions: Sequence[Portion]
) -> list[tuple[int, Cheat]]:
    """The cheats in a block of a dev chain, each with the count of transactions before it."""
    found: list[tuple[int, Cheat]] = []
    if view.dev_state is None:
        return found
    count = 0
    for partial, portion in zip(view.made_of(block), portions, strict=False):
        count += len(portion)
        found += [(count, each) for each in read_cheats(view.stored, block.number, (partial,))]
    return found
