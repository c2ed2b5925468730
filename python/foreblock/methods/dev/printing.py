"""anvil_setLoggingEnabled, anvil_enableTraces: what a development chain prints as it happens."""

from collections.abc import Awaitable
from typing import Final

from msgspec import Raw

from foreblock.bus.commands import SetPrinting
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.dev.commanding import Commands, answered
from foreblock.methods.dev.mining import SwitchParams
from foreblock.methods.params import Params, reader


class TracesParams(Params):
    """The arguments of anvil_enableTraces."""

    is_on: bool | None = None


_read_switch = reader(SwitchParams)
_read_traces = reader(TracesParams)


class PrintingMethods:
    """Methods about what is printed."""

    def __init__(self, commands: Commands) -> None:
        self._execute: Final = commands.execute

    def set_logging(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Print requests, transactions, reverts and console.log as they happen, or no longer."""
        return answered(self._execute(SetPrinting(is_on=_read_switch(raw).is_on)))

    def enable_traces(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Print what transactions and calls call as well, or no longer."""
        wanted = _read_traces(raw).is_on
        return answered(self._execute(SetPrinting(traces=wanted is None or wanted)))
