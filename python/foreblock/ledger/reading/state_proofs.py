"""State of a block in bulk: proofs, and pages of accounts.

The engine has three ways to make a proof (EIP-1186), by the age of the state; the quick one runs in
place, and a thread does the others. A proof verifies against the state root of the block. A
partial block announces none: it is the root that the block would have, were it sealed at this
index. A proof at `latest` is of the sealed state, without later state edits. Above a partial base
a proof is made of known nodes; `MissingTrieNodes` names the others.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from foreblock._engine import Proof, State
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.scheduling.steps import Steps

__all__ = ["Proof", "prove"]


def prove(
    view: LedgerView, block: ReadableBlock, address: bytes, slots: Sequence[int]
) -> Steps[Proof]:
    """The account and these of its slots, proven; raises `PrunedState`, `MissingTrieNodes`."""
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
