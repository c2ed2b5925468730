"""Values that a worker has fetched of its partial base, beside the store.

A value is accepted if its key is unknown in a view that was opened after the value came from a
block which that view has: then no block has changed the key, and the value is that of the base,
for old views and new ones. A key that is known there is not accepted: the store has it. Slots of an
account that was deleted since are known at the latest block, as zeros; they are accepted from a
proof of an earlier block, if they are unknown at that one.

The writer fetches the same values and stores them. When the values here exceed their bound, they
are cleared.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage.open_store import Learned
from foreblock.types import Account

LIMIT: Final = 64 << 20  # bytes


class KnownValues(NamedTuple):
    """Values that are proven, or trusted; `blocks` are hashes of blocks before the base."""

    accounts: Mapping[bytes, Account | None]
    slots: Mapping[bytes, Mapping[int, int]]
    codes: Sequence[bytes] = ()
    blocks: Mapping[int, bytes] = {}


class LearnedState:
    """Values beside the store of one ledger; they belong to one epoch of its base."""

    def __init__(self, ledger: Ledger, limit: int = LIMIT) -> None:
        self._ledger: Final = ledger
        self._limit: Final = limit
        self._learned: Learned | None = None

    @property
    def size(self) -> int:
        """The bytes that it takes, about."""
        return 0 if self._learned is None else self._learned.size

    def learn(self, view: LedgerView, values: KnownValues, at: ReadableBlock | None = None) -> None:
        """Take what is unknown in this view, whose blocks the values come from.

        Values that come from the block `at` are taken if they are unknown there.
        """
        learned = self._of_epoch(view.base.epoch)
        slots = {address: list(keys) for address, keys in values.slots.items()}
        missing = view.state(at or view.latest).missing(list(values.accounts), slots)
        for address in missing.accounts:
            if address in values.accounts:
                learned.put_account(address, values.accounts[address])
        for address, unknown in missing.slots.items():
            known = values.slots.get(address, {})
            taken = {slot: known[slot] for slot in unknown if slot in known}
            learned.put_slots(address, taken)
        for code in values.codes:
            learned.put_code(code)
        for number, block_hash in values.blocks.items():
            learned.put_block(number, block_hash)

    def put_nodes(self, view: LedgerView, nodes: Sequence[bytes]) -> None:
        """Take trie nodes; they are right for every block."""
        self._of_epoch(view.base.epoch).put_nodes(nodes)

    def _of_epoch(self, epoch: int) -> Learned:
        learned = self._learned
        if learned is None or learned.epoch != epoch or learned.size > self._limit:
            learned = self._learned = Learned(epoch, limit=2 * self._limit, nodes=False)
            self._ledger.lay(learned)
        return learned
