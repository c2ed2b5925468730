"""Fetch one snapshot from one node, verify its bytes, check its store, and install it.

Data is written as it arrives, in little memory, and is whole and durable when `fetch` returns.
Then the file is opened as a store, its heads, its log row and its latest block are read, and it
is renamed to the name of the store's file. Before that moment the old store is there, after it the
new one, whole. Readers may stay: they notice within a second that another file has the name.

LMDB chooses between the two meta pages of a file by a number that processes share and that belongs
to the old file, and a copy has one of them. So two commits are made that change no response, and
both pages are of the chain. The first removes the note, which is the writer's: its deadline for
`pending` counts a clock that is not of this machine.
"""

import asyncio
import os
import shutil
import ssl
from collections.abc import Callable
from enum import Enum, auto
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from urllib.parse import quote, urlsplit

from foreblock.errors import (
    DamagedSnapshot,
    DiskFull,
    InvalidArgument,
    RefusedAnswer,
    SnapshotRefused,
    StoreError,
    StoreExists,
    UnfitSnapshot,
)
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.copy_store import heads_of, sync
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.storage.rows import CONFIG
from foreblock.ledger.storage.store_watch import DATA_FILE
from foreblock.secret_urls import redact_urls
from foreblock.snapshot.packing import SnapshotHeader, Unpacker, check_header
from foreblock.upstream.http import HttpServer, reason_of

CONNECT_SECONDS: Final = 5.0
STALL_SECONDS: Final = 30.0  # without a byte
_WORDS: Final = 200  # bytes of a refusal that are shown

Report = Callable[[int, int], None]


def address_of(url: str, name: str) -> str:
    """The address of a network's snapshot: that of a node, and the name of the log."""
    parts = urlsplit(url)
    try:
        is_good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        raise SnapshotRefused(redact_urls(url), "expected http://HOST:PORT")
    return url if parts.path.strip("/") else f"{url.rstrip('/')}/{quote(name)}"


def fetch(
    url: str, to: Path, report: Report, needed: int = 0, tls: ssl.SSLContext | None = None
) -> SnapshotHeader:
    """Write the store at `url` to a new file; return the header of the snapshot.

    `report` gets the bytes so far and about how many there will be. `needed` is the least
    commit that is of use. Raises `SnapshotRefused`, `DamagedSnapshot`, `UnfitSnapshot`,
    `DiskFull`; the file is not to be used then.
    """
    with to.open("xb") as file:
        incoming = _Incoming(file, to, report, needed)
        asyncio.run(_receive(url, tls, incoming))
        return incoming.finish()


class _Incoming:
    """Writes a snapshot to a file."""

    def __init__(self, file: BinaryIO, to: Path, report: Report, needed: int) -> None:
        self._file: Final = file
        self._to: Final = to
        self._report: Final = report
        self._needed: Final = needed
        self._unpacker: Final = Unpacker()
        self._is_checked = False

    def add(self, piece: bytes) -> None:
        unpacker = self._unpacker
        try:
            for found in unpacker.add(piece):
                self._file.write(found)
        except OSError as why:
            raise DiskFull(why.strerror or str(why)) from None
        if unpacker.header is None:
            return
        if not self._is_checked:
            check_header(unpacker.header, self._needed)
            _check_room(unpacker.header, self._to)
            self._is_checked = True
        self._report(unpacker.length, max(unpacker.length, unpacker.header.length))

    def finish(self) -> SnapshotHeader:
        self._unpacker.finish()
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as why:
            raise DiskFull(why.strerror or str(why)) from None
        if self._unpacker.header is None:
            raise DamagedSnapshot("nothing came")
        return self._unpacker.header


async def _receive(url: str, tls: ssl.SSLContext | None, incoming: _Incoming) -> None:
    """Request a snapshot. Raises `SnapshotRefused`, `DamagedSnapshot`, or what `incoming` does."""
    try:
        server = HttpServer(url, tls)
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await server.connect()
    except (OSError, InvalidArgument) as why:
        raise SnapshotRefused(redact_urls(url), redact_urls(_reason(why))) from None
    try:
        reply = await connection.send(
            server.get(server.target), longest=_WORDS, stall=STALL_SECONDS, sink=incoming.add
        )
    except (OSError, EOFError, RefusedAnswer) as why:
        if connection.has_begun:
            raise DamagedSnapshot(f"the connection was lost: {type(why).__name__}") from None
        raise SnapshotRefused(redact_urls(url), redact_urls(_reason(why))) from None
    connection.abort()
    if reply.status != HTTPStatus.OK:
        said = reply.body[:_WORDS].decode("utf-8", "replace").strip()
        raise SnapshotRefused(redact_urls(url), f"{reply.status} {said}")


def _reason(why: Exception) -> str:
    return "timed out" if isinstance(why, TimeoutError) else reason_of(why)


def _check_room(header: SnapshotHeader, to: Path) -> None:
    free = shutil.disk_usage(to.parent).free
    if free < header.length:
        raise DiskFull(f"{header.length} bytes are needed for a snapshot, {free} are free")


DIVERGED: Final = "diverged"  # the folder, inside that of the store, of one that diverged


class Need(Enum):
    """Why a node needs a snapshot, and what happens to its store."""

    EMPTY = auto()  # it has none
    BEHIND = auto()  # the log no longer has what follows: the old store is removed
    DIVERGED = auto()  # the log has another history: the old store is kept aside


class InstalledStore(NamedTuple):
    """A store that has been installed."""

    commit: int
    epoch: int
    sequence: int
    length: int  # bytes


def check_folder(folder: Path, need: Need) -> None:
    """Raise `StoreExists` if a store would be lost."""
    if need is Need.EMPTY and (folder / DATA_FILE).exists():
        raise StoreExists(str(folder / DATA_FILE))


def adopt_store(part: Path, header: SnapshotHeader, needed: int = 0) -> InstalledStore:
    """Check the store in a folder of its own, and make it this node's.

    Raises `UnfitSnapshot` if it contradicts its header or is not of a log.
    """
    try:
        with Store(str(part), write=True) as store:
            taken = _check(store, header, needed)
            store.put_note(taken.commit, b"")
            with store.view() as view:
                config = view.row(CONFIG)
            store.put_rows([] if config is None else [(CONFIG, config)], [])
            _check(store, header, needed)
    except StoreError as why:
        raise UnfitSnapshot(str(why)) from None
    sync(part / DATA_FILE)
    return taken._replace(length=(part / DATA_FILE).stat().st_size)


def _check(store: Store, header: SnapshotHeader, needed: int) -> InstalledStore:
    heads = heads_of(store)
    with store.view() as view:
        row = view.log_row
        if row is None:
            raise UnfitSnapshot("the store is part of no log")
        if heads.store_id != header.store_id or heads.commit < max(header.commit, needed):
            raise UnfitSnapshot("the store is not the one that was announced")
        if heads.commit == header.commit and row.link != header.link:
            raise UnfitSnapshot("the store is at another place of the log than was announced")
        if heads.latest is not None:
            number, block_hash = heads.latest
            view.state(number)
            if read_header(view, number)[0].hash != block_hash:
                raise UnfitSnapshot(f"block {number} does not match the heads")
    return InstalledStore(heads.commit, row.epoch, row.sequence, 0)


def put_in_place(part: Path, folder: Path, need: Need) -> Path | None:
    """Rename the file over that of the store; return the folder of the old one if it is kept."""
    data = folder / DATA_FILE
    kept = _keep_old_store(data, folder / DIVERGED) if need is Need.DIVERGED else None
    (part / DATA_FILE).replace(data)
    sync(folder)
    return kept


def _keep_old_store(data: Path, aside: Path) -> Path | None:
    """Give the old file a second name, in place of one that diverged earlier."""
    if not data.exists():
        return None
    aside.mkdir(exist_ok=True)
    new = aside / f"{DATA_FILE}.part"
    new.unlink(missing_ok=True)
    new.hardlink_to(data)
    new.replace(aside / DATA_FILE)
    sync(aside)
    return aside
