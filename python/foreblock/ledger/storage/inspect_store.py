"""Read a store without changing it: its sizes and heads, and a dump of its state.

A dump is JSON lines, as `init-state` of reth reads them. The first line is the root of the state,
each other line an account, ordered by address:

    {"root":"0x…"}
    {"address":"0x…","balance":"0x1","nonce":"0x0","code":"0x…","storage":{"0x…":"0x…"}}

Accounts without code or storage omit these keys. Everything is read from one view, a page at a
time, and written at once: memory is bounded, even if an account has millions of slots.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from foreblock._engine import Account, Header, Heads, State, Store, View, keccak256
from foreblock.errors import ForeblockError, NoChain, UnknownBlock
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.chain_head import read_first_block, read_header, stored_profile
from foreblock.ledger.storage.partial_rows import position_of_key, positions_prefix
from foreblock.ledger.storage.section_index import read_indexed
from foreblock.ledger.storage.store_watch import DATA_FILE, is_being_written

__all__ = ["StoreInfo", "TableInfo", "read_store_info"]


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One table of a store."""

    name: str
    rows: int
    pages: int
    depth: int


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """A store at its last commit."""

    path: str
    heads: Heads
    profile: ChainProfile | None  # none in an empty store, or where it cannot be read
    genesis: bytes | None  # the hash of block 0
    latest_time: int | None  # the timestamp of the latest block
    pending: tuple[int, int] | None  # block and index
    oldest_partial: int | None  # the lowest block of which flashblocks are kept
    indexed_logs: int  # blocks
    file_bytes: int
    page_bytes: int
    pages: int
    free_pages: int
    disk_free_bytes: int
    tables: tuple[TableInfo, ...]
    is_written: bool  # a process has opened it for writing


def read_store_info(path: Path) -> StoreInfo:
    """Read a store, which may be in use. Raises `StoreMissing`, `UnknownStoreFormat`."""
    written = is_being_written(path)
    with Store(str(path)) as store:
        page_bytes, pages, free_pages, tables = store.sizes()
        with store.view() as view:
            return StoreInfo(
                path=str(path),
                heads=view.heads,
                profile=_profile(view),
                genesis=_hash(view, 0),
                latest_time=_time(view),
                pending=_pending(view),
                oldest_partial=_oldest_partial(view),
                indexed_logs=_indexed(view),
                file_bytes=(path / DATA_FILE).stat().st_size,
                page_bytes=page_bytes,
                pages=pages,
                free_pages=free_pages,
                disk_free_bytes=_disk_free(path),
                tables=tuple(TableInfo(*each) for each in tables),
                is_written=written,
            )


def _profile(view: View) -> ChainProfile | None:
    try:
        return stored_profile(view) if view.heads.latest is not None else None
    except ForeblockError:
        return None


def _hash(view: View, number: int) -> bytes | None:
    sealed = view.sealed(number)
    return None if sealed is None else sealed[0]


def _time(view: View) -> int | None:
    latest = view.heads.latest
    try:
        return None if latest is None else read_header(view, latest[0])[0].timestamp
    except ForeblockError:
        return None


def _pending(view: View) -> tuple[int, int] | None:
    number = view.heads.pending
    partial = None if number is None else view.partial(number)
    return None if partial is None else (partial.block, partial.index)


def _oldest_partial(view: View) -> int | None:
    first = view.keys(positions_prefix(), 1)
    return position_of_key(first[0])[0] if first else None


def _indexed(view: View) -> int:
    try:
        return read_indexed(view).end
    except ForeblockError:
        return 0


def _disk_free(path: Path) -> int:
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


ACCOUNTS: Final = 1_000  # of a page
SLOTS: Final = 10_000
REACH: Final = 256  # blocks that BLOCKHASH looks back
_NO_CODE: Final = keccak256(b"")
_ADDRESSES: Final = 1 << 64  # by their first eight bytes


@dataclass(frozen=True, slots=True)
class Dumped:
    """The block of a dump, and the counts of what was written."""

    header: Header
    accounts: int
    slots: int


# The part of all addresses that is done, from 0 to 1.
Report = Callable[[float], None]


def dump_store(
    path: Path, block: int | None, out: BinaryIO, report: Report, header: Path | None = None
) -> Dumped:
    """Write the state after a block of a store, and its header with those before it.

    Raises as `dump_state`, and `StoreMissing`.
    """
    with Store(str(path)) as store, store.view() as view:
        done = dump_state(view, block, out, report)
        if header is not None:
            header.write_bytes(b"".join(_headers(view, done.header.number)))
        return done


def _headers(view: View, number: int) -> Iterator[bytes]:
    """The block and the stored ones before it that BLOCKHASH may name."""
    first = max(number - REACH, read_first_block(view).number)
    for each in range(first, number + 1):
        yield read_header(view, each)[0].encode()


def dump_state(
    view: View, block: int | None, out: BinaryIO, report: Report = lambda _: None
) -> Dumped:
    """Write the state after a block, the latest if none is named.

    Raises `UnknownBlock`, `PrunedState`, and `NoChain` for an empty store.
    """
    number = _latest(view) if block is None else block
    if view.sealed(number) is None:
        raise UnknownBlock(number)
    state = view.state(number)
    header, _ = read_header(view, number)
    out.write(b'{"root":"0x%s"}\n' % header.state_root.hex().encode())
    accounts = slots = 0
    for address, account in _accounts(state):
        out.write(_account(state, address, account))
        slots += _write_storage(state, address, out)
        out.write(b"}\n")
        accounts += 1
        if accounts % ACCOUNTS == 0:
            report(int.from_bytes(address[:8]) / _ADDRESSES)
    report(1.0)
    return Dumped(header, accounts, slots)


def _latest(view: View) -> int:
    latest = view.heads.latest
    if latest is None:
        raise NoChain("this folder")
    return latest[0]


def _accounts(state: State) -> Iterator[tuple[bytes, Account]]:
    after: bytes | None = None
    while accounts := state.accounts(after, ACCOUNTS):
        yield from accounts
        after = accounts[-1][0]


def _account(state: State, address: bytes, account: Account) -> bytes:
    """The members of an account before its storage."""
    text = (
        f'{{"address":"0x{address.hex()}","balance":"{account.balance:#x}"'
        f',"nonce":"{account.nonce:#x}"'
    )
    if account.code_hash != _NO_CODE:
        text += f',"code":"0x{state.code(address).hex()}"'
    return text.encode()


def _write_storage(state: State, address: bytes, out: BinaryIO) -> int:
    """Write the slots of an account; returns their number."""
    written = 0
    slots = state.slots(address, None, SLOTS)
    while slots:
        out.write(b"," if written else b',"storage":{')
        out.write(",".join(f'"{slot:#066x}":"{value:#066x}"' for slot, value in slots).encode())
        written += len(slots)
        slots = state.slots(address, slots[-1][0], SLOTS) if len(slots) == SLOTS else []
    if written:
        out.write(b"}")
    return written
