"""anvil_dumpState and anvil_loadState: all accounts of a chain, in anvil's format.

A dump is gzip of JSON, in hex: the accounts at `pending`, and the latest header, by which anvil
continues from that height. Loading takes such a dump, or geth's allocation as JSON, as gzip or
not, in hex or not, and sets every account in it; accounts that are not in it stay.
"""

import gzip
import os
import tempfile
from binascii import hexlify
from collections.abc import Awaitable, Iterator
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Final

from msgspec import Raw

from foreblock.bus.commands import LoadState
from foreblock.errors import BadGenesis
from foreblock.ledger.reading.state_proofs import AccountPage, account_pages
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.storage.dev_rows import write_loaded
from foreblock.methods.params import Params, reader, refuse
from foreblock.methods.sequencing import Commands
from foreblock.methods.shapes import write_data
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.settings import Settings
from foreblock.types import Header

GZIP_LEVEL: Final = 5
PIECE: Final = 128 * 1024


class DumpParams(Params):
    """The arguments of anvil_dumpState: anvil adds states of earlier blocks, this does not."""

    with_history: bool | None = None


class LoadParams(Params):
    """The arguments of anvil_loadState."""

    state: str


_read_dump = reader(DumpParams)
_read_load = reader(LoadParams)


class DumpMethods:
    """Methods about the whole state."""

    def __init__(self, commands: Commands, settings: Settings, scheduler: Scheduler) -> None:
        self._execute: Final = commands.execute
        self._scheduler: Final = scheduler
        self._most: Final = settings.trace.output

    def dump(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """All accounts, as anvil_loadState and anvil's own --load-state take them."""
        _read_dump(raw)
        text = self._scheduler.run(partial(self._dump, view), view.client)
        assert not isinstance(text, list), "it is packed on a thread"
        return text

    def _dump(self, view: LedgerView, pace: Pace) -> Steps[Text]:
        pieces, size = [], 0
        for text in dump_of(view):
            size += len(text)
            if size > self._most:
                refuse(0, "", f"the state has more than {self._most} bytes, the most of a dump")
            pieces.append(text)
            if pace.is_over():
                yield None
        packed: list[bytes] = yield lambda **_: _packed(pieces)
        return in_pieces(packed)

    def load(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Set all accounts of a dump."""
        return self._load(view, _read_load(raw).state)

    async def _load(self, view: LedgerView, text: str) -> bytes:
        descriptor, name = tempfile.mkstemp(prefix="foreblock-state-")
        os.close(descriptor)
        try:
            write = partial(_write, text, Path(name), self._most)
            written = self._scheduler.run(write, view.client)
            if isawaitable(written):
                await written
            await self._execute(LoadState(name))
        finally:
            os.unlink(name)  # noqa: PTH108, a small file of ours
        return b"true"


def dump_of(view: LedgerView) -> Iterator[bytes]:
    """The JSON text of a dump, in pieces that take little time each."""
    yield _beginning(view.latest.header)
    is_first = True
    for page in account_pages(view.state(view.resolve("pending"))):
        yield _account(page, is_first=is_first)
        is_first = False
    yield _ending(view.latest.header)


def _write(text: str, file: Path, most: int, _pace: Pace) -> Steps[bytes]:
    def write(**_: object) -> bytes:
        try:
            write_loaded(_bytes(text), file, most)
        except BadGenesis as why:
            refuse(0, "", f"failed to decode the state: {why}")
        return b""

    done: bytes = yield write
    return done


def _bytes(text: str) -> bytes:
    """A dump in hex, or as JSON."""
    if text[:2] not in {"0x", "0X"}:
        return text.encode()
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        refuse(0, "", "expected hex")


def _beginning(header: Header) -> bytes:
    """The block from which anvil continues, and the beginning of the accounts."""
    fee, randao = header.base_fee_per_gas or 0, write_data(header.mix_hash)
    return (
        b'{"block":{"number":"0x%x","beneficiary":%b,"timestamp":"0x%x","gas_limit":%d,'
        b'"basefee":%d,"difficulty":"0x0","prevrandao":%b,'
        b'"blob_excess_gas_and_price":{"excess_blob_gas":0,"blob_gasprice":1}},"accounts":{'
        % (
            header.number,
            write_data(header.beneficiary),
            header.timestamp,
            header.gas_limit,
            fee,
            randao,
        )
    )


def _ending(header: Header) -> bytes:
    return (
        b'},"best_block_number":%d,"blocks":[{"header":{%b},"transactions":[],"ommers":[]}],'
        b'"transactions":[],"historical_states":null}' % (header.number, header.members())
    )


def _account(page: AccountPage, *, is_first: bool) -> bytes:
    """A page of an account: its fields before the first slots, its end after the last."""
    parts = []
    if page.begins:
        parts.append(
            b'%b%b:{"nonce":%d,"balance":"0x%x","code":%b,"storage":{'
            % (
                b"" if is_first else b",",
                write_data(page.address),
                page.nonce,
                page.balance,
                write_data(page.code),
            )
        )
    elif page.slots:
        parts.append(b",")
    parts.append(b",".join(b'"0x%064x":"0x%064x"' % slot for slot in page.slots))
    if page.ends:
        parts.append(b"}}")
    return b"".join(parts)


def _packed(pieces: list[bytes]) -> list[bytes]:
    """The result as JSON text, in pieces."""
    packed = gzip.compress(b"".join(pieces), GZIP_LEVEL, mtime=0)
    return [b'"0x', *_hex(packed), b'"']


def _hex(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield hexlify(data[start : start + PIECE])
