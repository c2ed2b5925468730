"""Transactions and commands of one network, on their way to its writer.

If the writer is in this process, it executes short ones at once. Those that wait keep their
order: while a command is on its way, the next one waits, too.
"""

from collections.abc import Coroutine
from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any, Final
from weakref import WeakSet

from foreblock.bus.bus_client import BusClient
from foreblock.bus.commands import WOULD_BLOCK, AnyCommand, InProcessWriter
from foreblock.types import Transaction


class WriterCommands:
    """Changes a network through its sequencer in the writer."""

    def __init__(self, link: BusClient, network: str) -> None:
        self._link: Final = link
        self._network: Final = network
        self._waiting: Final = WeakSet[Coroutine[Any, Any, Any]]()  # commands, some not begun

    @property
    def _here(self) -> InProcessWriter | None:
        """The writer in this process, unless a command is on its way to it."""
        here = self._link.writer_here(self._network)
        if here is None or all(getcoroutinestate(each) == CORO_CLOSED for each in self._waiting):
            return here
        return None

    async def submit(self, raw: bytes, sender: bytes) -> None:
        """Submit a transaction; raises as `BusClient.submit` does."""
        await self._link.submit(self._network, raw, sender)

    def try_submit(self, transaction: Transaction) -> bool:
        """Submit a transaction at once; false if it has to wait."""
        here = self._here
        return here is not None and here.try_submit(transaction, may_replace=True)

    async def submit_next(self, transaction: Transaction) -> None:
        """Submit a transaction that replaces no other; raises as `BusClient.submit` does."""
        raw, sender = transaction.raw, transaction.sender
        await self._link.submit(self._network, raw, sender, may_replace=False)

    def try_submit_next(self, transaction: Transaction) -> bool:
        """Submit a transaction that replaces no other at once; false if it has to wait."""
        here = self._here
        return here is not None and here.try_submit(transaction, may_replace=False)

    def next_nonce(self, sender: bytes) -> int:
        """The next nonce of a sender as the writer knows it; 0 if unknown."""
        return self._link.next_nonce(self._network, sender)

    def execute(self, command: AnyCommand) -> Coroutine[Any, Any, Any]:
        """Execute a command; raises as `BusClient.command` does."""
        waiting = self._link.command(self._network, command)
        if self._link.writer_here(self._network) is not None:
            self._waiting.add(waiting)
        return waiting

    def try_execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command at once, or return `WOULD_BLOCK`; raises `RefusedCommand`."""
        here = self._here
        return WOULD_BLOCK if here is None else here.try_execute(command)
