"""Fetch one snapshot from one node into a file, and verify its bytes.

What has come is written as it comes, in little memory, and is whole and durable when `fetch`
returns. The content is judged in `installing`.
"""

import http.client
import os
import shutil
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from foreblock.errors import DamagedSnapshot, DiskFull, SnapshotRefused
from foreblock.secret_urls import redact_urls
from foreblock.snapshot.header import SnapshotHeader, check_header
from foreblock.snapshot.packing import Unpacker

PIECE: Final = 1 << 16
CONNECT_SECONDS: Final = 5.0
STALL_SECONDS: Final = 30.0  # without a byte
_WORDS: Final = 200  # bytes of a refusal that are repeated

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
    """Write the store at `url` to a new file; gives what the snapshot says of itself.

    `report` gets the bytes so far and about how many there will be. `needed` is the least
    commit that is of use. Raises `SnapshotRefused`, `DamagedSnapshot`, `UnfitSnapshot`,
    `DiskFull`; the file is not to be used then.
    """
    unpacker = Unpacker()
    with _answer(url, tls) as answer, to.open("xb") as file:
        is_checked = False
        try:
            while piece := _read(answer):
                for found in unpacker.add(piece):
                    file.write(found)
                if unpacker.header is None:
                    continue
                if not is_checked:
                    check_header(unpacker.header, needed)
                    _check_room(unpacker.header, to)
                    is_checked = True
                report(unpacker.length, max(unpacker.length, unpacker.header.length))
            unpacker.finish()
            file.flush()
            os.fsync(file.fileno())
        except OSError as why:
            raise DiskFull(why.strerror or str(why)) from None
    if unpacker.header is None:
        raise DamagedSnapshot("nothing came")
    return unpacker.header


@contextmanager
def _answer(url: str, tls: ssl.SSLContext | None) -> Iterator[http.client.HTTPResponse]:
    """The answer to one request, if it is a snapshot; raises `SnapshotRefused`."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=CONNECT_SECONDS, context=tls)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=CONNECT_SECONDS)
    )
    try:
        try:
            connection.connect()
            connection.sock.settimeout(STALL_SECONDS)
            connection.request("GET", parts.path or "/")
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                said = answer.read(_WORDS).decode("utf-8", "replace").strip()
                raise SnapshotRefused(redact_urls(url), f"{answer.status} {said}")
        except (OSError, http.client.HTTPException) as why:
            raise SnapshotRefused(redact_urls(url), redact_urls(str(why))) from None
        yield answer
    finally:
        connection.close()


def _read(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read(PIECE)
    except (OSError, http.client.HTTPException) as why:
        raise DamagedSnapshot(f"the connection was lost: {type(why).__name__}") from None


def _check_room(header: SnapshotHeader, to: Path) -> None:
    free = shutil.disk_usage(to.parent).free
    if free < header.length:
        raise DiskFull(f"{header.length} bytes are needed for a snapshot, {free} are free")
