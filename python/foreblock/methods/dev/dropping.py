"""anvil_dropTransaction and others: transactions that are taken out of the pool.

What is in a flashblock is no longer in the pool, and stays; where only sealed blocks are shown and
a command seals them, it goes too (`Sequencer.drop`).
"""

from collections.abc import Awaitable
from typing import Final

from msgspec import Raw

from foreblock.bus.commands import DropTransactions
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.blocks.receipts import read_hash
from foreblock.methods.dev.commanding import Commands, done_or_answered, write_bool
from foreblock.methods.params import Params, address, reader, take_none
from foreblock.methods.shapes import write_data


class DroppedSenderParams(Params):
    """The arguments of anvil_removePoolTransactions."""

    address: str


_read_sender = reader(DroppedSenderParams)


class DropMethods:
    """Methods that empty the pool."""

    def __init__(self, commands: Commands) -> None:
        self._commands: Final = commands

    def drop(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Take a transaction out of the pool; gives its hash, or null where it does not wait."""
        return done_or_answered(
            self._commands, DropTransactions(hash=read_hash(raw)), _first_or_null
        )

    def drop_as_hardhat(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The same; gives whether it waited."""
        return done_or_answered(self._commands, DropTransactions(hash=read_hash(raw)), write_bool)

    def drop_all(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Take all transactions out of the pool."""
        take_none(raw)
        return done_or_answered(self._commands, DropTransactions())

    def drop_of_sender(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Take all transactions of an account out of the pool."""
        sender = address(_read_sender(raw).address, 0)
        return done_or_answered(self._commands, DropTransactions(sender=sender))


def _first_or_null(dropped: list[bytes]) -> bytes:
    return write_data(dropped[0]) if dropped else b"null"
