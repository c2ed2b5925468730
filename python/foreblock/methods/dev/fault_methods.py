"""foreblock_closeFlashblock, foreblock_dropTail and others: flashblocks and their accidents."""

from collections.abc import Awaitable
from typing import Any, Final

from msgspec import Raw

from foreblock.bus.commands import (
    CloseFlashblock,
    DropTail,
    Equivocate,
    RestartBlock,
    SetFaults,
    SetFlashblockInterval,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.dev.commanding import Commands, Number, answered, number
from foreblock.methods.params import Params, reader, take_none


class IntervalParams(Params):
    """The arguments of foreblock_setFlashblockInterval."""

    milliseconds: Number


class FaultsParams(Params):
    """The arguments of foreblock_setFaults."""

    rates: dict[str, int | float]


_read_interval = reader(IntervalParams)
_read_faults = reader(FaultsParams)


class FaultMethods:
    """Methods about flashblocks, and what may go wrong with them."""

    def __init__(self, commands: Commands) -> None:
        self._execute: Final = commands.execute

    def close_flashblock(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Close the open flashblock now, with what can run; gives its place and hash."""
        take_none(raw)
        return answered(self._execute(CloseFlashblock()), _write_place)

    def set_interval(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Close a flashblock every so many milliseconds; 0 closes them on demand only."""
        milliseconds = number(_read_interval(raw).milliseconds, 0)
        return answered(self._execute(SetFlashblockInterval(milliseconds)))

    def restart_block(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Give up the block in progress and begin it anew; its transactions wait again."""
        take_none(raw)
        return answered(self._execute(RestartBlock()))

    def drop_tail(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Seal the block in progress without its last flashblock, whose transactions wait again."""
        take_none(raw)
        return answered(self._execute(DropTail()))

    def equivocate(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Announce another flashblock for the place of the last one; gives its place and hash."""
        take_none(raw)
        return answered(self._execute(Equivocate()), _write_place)

    def set_faults(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Let faults happen at these rates from now on, and no others."""
        rates = _read_faults(raw).rates
        words = tuple(f"{kind}={rate}" for kind, rate in rates.items())
        return answered(self._execute(SetFaults(words)))


def _write_place(place: dict[str, Any]) -> bytes:
    text = b'{"blockNumber":"0x%x","index":"0x%x","hash":"0x%s"}'
    return text % (place["block"], place["index"], place["hash"].hex().encode())
