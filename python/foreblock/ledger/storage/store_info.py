"""What lies in the folder of a store, read without changing it."""

import os
from dataclasses import dataclass
from pathlib import Path

from foreblock._engine import Heads, Store, View
from foreblock.errors import ForeblockError
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.chain_head import read_header, stored_profile
from foreblock.ledger.storage.log_index import read_indexed
from foreblock.ledger.storage.partial_rows import place_of_key, places_prefix
from foreblock.ledger.storage.store_watch import DATA_FILE
from foreblock.ledger.storage.writer_lock import is_being_written

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
    first = view.rows(places_prefix(), 1)
    return place_of_key(first[0][0])[0] if first else None


def _indexed(view: View) -> int:
    try:
        return read_indexed(view).end
    except ForeblockError:
        return 0


def _disk_free(path: Path) -> int:
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize
