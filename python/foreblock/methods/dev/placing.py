"""Transactions that anvil_reorg puts into blocks: signed ones, and objects of the accounts.

An object is filled in as eth_sendTransaction does it, but for its nonce: that is counted from
the block that stays, in the order of the list. Accounts with keys sign it; impersonated ones
send it without a signature.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Final

import msgspec
from msgspec import Raw

from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.dev.commanding import Number, number
from foreblock.methods.dev.preparing import Prepared, Preparing
from foreblock.methods.keys import Keys
from foreblock.methods.params import data, refuse
from foreblock.methods.pool.sending import read_transaction
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.types import Transaction

# The block of the new branch, the raw transaction, its sender.
Placed = tuple[int, bytes, bytes]
Asked = tuple[Raw, Number]  # a text or an object, and the block

MOST: Final = 1_000  # transactions of one request


class Placing:
    """Makes transactions for blocks of a new branch."""

    def __init__(self, keys: Keys, preparing: Preparing, scheduler: Scheduler) -> None:
        self._keys: Final = keys
        self._preparing: Final = preparing
        self._scheduler: Final = scheduler

    async def placed(self, view: LedgerView, asked: list[Asked], depth: int) -> tuple[Placed, ...]:
        """The transactions of a reorganisation of this depth; raises what sending raises."""
        if len(asked) > MOST:
            refuse(1, "$", f"{len(asked)} transactions, the most is {MOST}")
        found = self._scheduler.run(partial(self._steps, view, asked, depth), view.client)
        return await found if isinstance(found, Awaitable) else found

    def _steps(
        self, view: LedgerView, asked: list[Asked], depth: int, pace: Pace
    ) -> Steps[tuple[Placed, ...]]:
        nonces: dict[bytes, int] = {}
        stays = view.state(view.resolve(max(view.latest.number - depth, 0)))
        placed = []
        for at, (transaction, offset) in enumerate(asked):
            if bytes(transaction).startswith(b'"'):
                made = _signed(view, transaction, f"$[{at}][0]")
            else:
                raw = Raw(b"[%b]" % bytes(transaction))
                prepared = yield from self._preparing.steps(view, raw, False, pace)  # noqa: FBT003
                sender = prepared.call.sender
                nonce = nonces.get(sender, stays.nonce(sender))
                made = self._made(prepared, nonce)
                nonces[sender] = nonce + 1
            placed.append((number(offset, 1, f"$[{at}][1]"), made.raw, made.sender))
            if pace.is_over():
                yield None
        return tuple(placed)

    def _made(self, prepared: Prepared, nonce: int) -> Transaction:
        if prepared.is_unsigned:
            return prepared.without_signature(nonce)
        return prepared.signed(nonce, self._keys.required(prepared.call.sender))


def _signed(view: LedgerView, text: Raw, path: str) -> Transaction:
    return read_transaction(data(msgspec.json.decode(text, type=str), 1, path), view.profile)
