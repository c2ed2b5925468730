"""Send one snapshot to one client, while the store is written and read.

The engine copies the last commit into a pipe, on a thread of its own; this thread packs what
comes out and sends it. So no file is written and little memory taken, and a client that reads
slowly slows down the copy. What commits replace meanwhile stays in the store's file until the
copy is done, so a client that is too slow is cut: nobody lets a store grow by reading it.
"""

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Final

from msgspec import Struct

from foreblock.errors import UnfitSnapshot
from foreblock.ledger.storage.open_store import Store
from foreblock.snapshot.packing import Packer, SnapshotHeader

PIECE: Final = 1 << 18
_PIPE_BYTES: Final = 1 << 20
_SET_PIPE_SIZE: Final = 1031  # fcntl.F_SETPIPE_SZ, which is not in all Pythons
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nCache-Control: no-store\r\n"
    b"Foreblock-Commit: %d\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)


class SendLimits(Struct, frozen=True):
    """How slow a client may be."""

    stall: float = 10.0  # seconds without any progress
    start: float = 30.0  # seconds that everybody has
    rate: int = 4 << 20  # bytes of the store a second, beyond these

    def seconds(self, length: int) -> float:
        """How long a snapshot may take."""
        return self.start + length / self.rate


def header_of(store: Store) -> SnapshotHeader:
    """The header of a snapshot of the last commit; raises `UnfitSnapshot` without a log."""
    page, *_ = store.sizes()
    with store.view() as view:
        heads, row = view.heads, view.log_row
    if row is None:
        raise UnfitSnapshot("the store is part of no log")
    return SnapshotHeader(
        commit=heads.commit,
        epoch=row.epoch,
        sequence=row.sequence,
        store_id=heads.store_id,
        link=row.link,
        length=store.used_bytes,
        store_format=heads.format,
        page=page,
    )


def send_snapshot(
    store: Store,
    header: SnapshotHeader,
    client: socket.socket,
    limits: SendLimits,
    may_go_on: Callable[[], bool],
) -> int:
    """Send a store; return the number of bytes sent.

    Raises `OSError` if the client is gone or too slow, and what copying raises; then no end is
    sent. None is sent either if `may_go_on` stops it.
    """
    until = time.monotonic() + limits.seconds(header.length)
    packer, sent = Packer(header), 0
    client.settimeout(limits.stall)
    client.sendall(_HEAD % header.commit + _chunk(packer.start))
    with _copied(store) as pieces:
        for piece in pieces:
            if time.monotonic() > until:
                raise TimeoutError(f"not done within {limits.seconds(header.length):.0f} s")
            if not may_go_on():
                raise ConnectionAbortedError("the store is being closed")
            if packed := packer.add(piece):
                client.sendall(_chunk(packed))
                sent += len(packed)
    packed = packer.finish()
    client.sendall(_chunk(packed) + b"0\r\n\r\n")
    return sent + len(packed)


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


@contextmanager
def _copied(store: Store) -> Iterator[Iterator[bytes]]:
    """The pieces of a copy; whoever leaves early ends the copy, which is waited for."""
    source, sink = os.pipe()
    with suppress(OSError):  # the system allows each user so much; it goes with less
        fcntl.fcntl(sink, _SET_PIPE_SIZE, _PIPE_BYTES)
    failures: list[BaseException] = []

    def copy() -> None:
        try:
            store.copy_to(sink)
        except BaseException as failure:  # noqa: BLE001, raised where it is waited for
            failures.append(failure)
        finally:
            os.close(sink)

    copying = Thread(target=copy, name="foreblock-copy", daemon=True)
    copying.start()

    def pieces() -> Iterator[bytes]:
        while piece := os.read(source, PIECE):
            yield piece
        copying.join()
        if failures:
            raise failures[0]

    try:
        yield pieces()
    finally:
        os.close(source)  # a running copy fails at its next page
        copying.join()
