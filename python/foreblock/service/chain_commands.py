"""Commands of a development chain: on their way to its writer, or for this process to do.

Where it writes the chain, commands are put off or done at once.
"""

from dataclasses import dataclass
from typing import Any

from foreblock.bus.bus_client import BusClient
from foreblock.bus.commands import AnyCommand
from foreblock.bus.deferral import NOT_DONE, NOT_PUT_OFF, Deferral
from foreblock.methods.dev.commanding import JOINING, PUT_OFF
from foreblock.types import Transaction


@dataclass(frozen=True, slots=True)
class WriterCommands:
    """Changes a development chain through its sequencer in the writer."""

    link: BusClient
    network: str

    async def submit_next(self, transaction: Transaction) -> None:
        """Submit a transaction that replaces no other; raises as `BusClient.submit` does."""
        raw, sender = transaction.raw, transaction.sender
        await self.link.submit(self.network, raw, sender, may_replace=False)

    def submit_next_now(self, transaction: Transaction) -> bool:
        """The same at once, where the chain is written in this process."""
        here = self.link.here(self.network)
        return here is not None and here.submit_now(transaction, may_replace=False)

    async def execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Carry out a command; raises as `BusClient.command` does."""
        return await self.link.command(self.network, command)

    def put_off(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Put off a command, where the chain is written in this process."""
        deferral = self.link.deferral(self.network)
        return NOT_PUT_OFF if deferral is None else deferral.put_off(command)

    def execute_now(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Carry out a command at once, where the chain is written in this process."""
        here = self.link.here(self.network)
        return NOT_DONE if here is None else here.execute_now(command)


@dataclass(frozen=True, slots=True)
class Settling:
    """What comes before a method: what was put off is carried out, unless more may be."""

    deferral: Deferral

    def one(self, method: str) -> None:
        """Carry out what was put off, unless this may be as well, or does so itself."""
        deferral = self.deferral
        deferral.is_alone = True
        deferral.may_put_off = method in PUT_OFF
        if deferral.may_put_off or method in JOINING:
            deferral.hear()
        else:
            deferral.settle()

    def batch(self) -> None:
        """Carry out what was put off."""
        self.deferral.is_alone = False
        self.deferral.settle()

    def item(self, method: str) -> None:
        """Let this be put off; who reads in a batch sees what was before all of it."""
        self.deferral.may_put_off = method in PUT_OFF

    def join(self) -> None:
        """Let nothing be put off: what comes before it is not done yet."""
        self.deferral.may_put_off = False
