"""All accounts of a state with their slots, a page at a time: no page takes long to read."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from foreblock._engine import State

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
