"""State of a block in bulk: values fetched beside the store, proofs, and pages of accounts.

A fetched value of a partial base is accepted if its key is unknown in a view that was opened after
the value came from a block which that view has: then no block has changed the key, and the value
is that of the base, for old views and new ones. A key that is known there is not accepted: the
store has it. Slots of an account that was deleted since are known at the latest block, as zeros;
they are accepted from a proof of an earlier block, if they are unknown at that one. The writer
fetches the same values and stores them. When the values here exceed their bound, they are cleared.

The engine has three ways to make a proof (EIP-1186), by the age of the state; the quick one runs in
place, and a thread does the others. A proof verifies against the state root of the block. A
partial block announces none: it is the root that the block would have, were it sealed at this
index. A proof at `latest` is of the sealed state, without later state edits. Above a partial base
a proof is made of known nodes; `WaysMissing` names the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct

from foreblock._engine import Account, Learned, Proof, State
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.scheduling.steps import Steps

__all__ = ["Proof", "prove"]
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


def prove(
    view: LedgerView, block: ReadableBlock, address: bytes, slots: Sequence[int]
) -> Steps[Proof]:
    """The account and these of its slots, proven; raises `PrunedState`, `WaysMissing`."""
    state = view.state_of_header(block)
    proof: Proof = yield partial(state.prove, address, slots, root=view.root_below(state))
    return proof


ACCOUNTS: Final = 64
SLOTS: Final = 64


class AccountPage(Struct, frozen=True):
    """An account, or a part of one that has many slots."""

    address: bytes
    nonce: int
    balance: int
    code: bytes
    slots: list[tuple[int, int]]
    begins: bool
    ends: bool


def account_pages(state: State) -> Iterator[AccountPage]:
    """The accounts in the order of their addresses, the slots of each in theirs."""
    after: bytes | None = None
    while accounts := state.accounts(after, ACCOUNTS):
        for address, account in accounts:
            slots = state.slots(address, None, SLOTS)
            begins = True
            while True:
                ends = len(slots) < SLOTS
                code = state.code(address) if begins else b""
                yield AccountPage(
                    address, account.nonce, account.balance, code, slots, begins, ends
                )
                if ends:
                    break
                begins = False
                slots = state.slots(address, slots[-1][0], SLOTS)
        after = accounts[-1][0]
