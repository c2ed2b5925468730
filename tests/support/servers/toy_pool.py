"""A pool that a test fills, in the place of the writer's."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from foreblock.errors import PoolUnavailable
from foreblock.types import Transaction


class Waits(NamedTuple):
    """A transaction that waits."""

    transaction: Transaction
    can_run: bool = True

    @property
    def raw(self) -> bytes:
        return self.transaction.raw

    @property
    def sender(self) -> bytes:
        return self.transaction.sender


class ToyPool:
    """Transactions that wait, and what happens while somebody asks for them."""

    def __init__(self, *waiting: Waits) -> None:
        self.waiting = list(waiting)
        self.asked = 0
        self.answers = True
        self.meanwhile: Callable[[], object] = lambda: None

    async def find(self, transaction_hash: bytes) -> Waits | None:
        self._ask()
        found = (each for each in self.waiting if each.transaction.hash == transaction_hash)
        return next(found, None)

    async def numbers(self) -> tuple[int, int]:
        self._ask()
        runs = sum(each.can_run for each in self.waiting)
        return runs, len(self.waiting) - runs

    async def of_sender(self, sender: bytes) -> Sequence[Waits]:
        self._ask()
        return [each for each in self.waiting if each.sender == sender]

    async def all(self) -> Sequence[Waits]:
        self._ask()
        return self.waiting

    def _ask(self) -> None:
        self.asked += 1
        self.meanwhile()
        if not self.answers:
            raise PoolUnavailable
