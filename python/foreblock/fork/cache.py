"""Fetched state on disk: a file for each block that was forked, which all forks of it share.

A file is a sequence of frames: their length, a checksum, a kind, and the block, values as they are
sent to workers, or the answer to a request about a block below. Values of a block never change, so
frames are only added. A frame that was cut off by a crash is removed before the next one is added.
Proven and trusted values are in files of their own. A recording is a file of the same form, with
all that one run has fetched.
"""

import fcntl
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from foreblock.errors import BadSetting, BusBroken, ErrorAnswer
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.learned_state import KnownValues, pack_values, unpack_values
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import format_data
from foreblock.settings import ForkPoint, ForkSettings
from foreblock.types import Header

MAGIC: Final = b"foreblock fork 1\n"
_FRAME: Final = struct.Struct(">II")  # length, checksum
PROVEN, TRUSTED = ".proven", ".trusted"
_POINT, _VALUES, _ANSWER = b"p", b"v", b"a"

MOST_NAMED: Final = 3  # keys in an error

log = structlog.get_logger()

# The result, or the code, message and data of an error.
_Answer = bytes | tuple[int, str, str]
_decode_answer: Final = msgspec.msgpack.Decoder(tuple[str, bytes, _Answer]).decode


class CachedFork(NamedTuple):
    """A file of the cache."""

    path: Path
    chain_id: int
    number: int
    hash: str  # its first digits
    proven: bool
    bytes: int
    used: float  # the time of the last use


class ForkFile:
    """The file of one fork; with none, nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path: Final = path

    @classmethod
    def of(
        cls, settings: ForkSettings, chain_id: int, header: Header, *, proven: bool
    ) -> "ForkFile":
        """The file of a block in the cache, by the settings; a recording uses none."""
        if not settings.cache or settings.record:
            return cls(None)
        name = f"{header.number}-{header.hash.hex()[:16]}{PROVEN if proven else TRUSTED}"
        return cls(folder_of(settings.cache_path) / str(chain_id) / name)

    def point(self) -> ForkPoint | None:
        """The fork block; None if the file does not have it."""
        for data in self._frames(_POINT):
            return msgspec.msgpack.decode(data, type=ForkPoint)
        return None

    def values(self) -> Iterator[KnownValues]:
        """All values in the file; a damaged end is left out."""
        for data in self._frames(_VALUES):
            try:
                yield unpack_values(data)
            except BusBroken:
                return

    def answers(self) -> dict[tuple[str, bytes], bytes | ErrorAnswer]:
        """The answers to requests, by method and parameters."""
        found: dict[tuple[str, bytes], bytes | ErrorAnswer] = {}
        for data in self._frames(_ANSWER):
            method, params, answer = _decode_answer(data)
            found[method, params] = answer if isinstance(answer, bytes) else ErrorAnswer(*answer)
        return found

    def put_point(self, point: ForkPoint) -> None:
        """Add the block."""
        self._put(_POINT, msgspec.msgpack.encode(point))

    def put_values(self, found: FetchResult, blocks: Mapping[int, bytes]) -> None:
        """Add values that were found."""
        if self._path is not None:
            self._put(_VALUES, pack_values(found, blocks))

    def put_answer(self, method: str, params: bytes, answer: bytes | ErrorAnswer) -> None:
        """Add the answer to a request."""
        stored: _Answer
        if isinstance(answer, ErrorAnswer):
            stored = (answer.code, answer.message, answer.data)
        else:
            stored = answer
        self._put(_ANSWER, msgspec.msgpack.encode((method, params, stored)))

    def _frames(self, kind: bytes) -> Iterator[bytes]:
        if self._path is None:
            return
        try:
            data = self._path.read_bytes()
            os.utime(self._path)
        except OSError:
            return
        for start, end in _places(data):
            if data[start : start + 1] == kind:
                yield data[start + 1 : end]

    def _put(self, kind: bytes, data: bytes) -> None:
        """Add a frame; a full or read-only disk is only logged."""
        if self._path is None:
            return
        frame = kind + data
        try:
            with _opened(self._path) as file:
                os.write(file, _FRAME.pack(len(frame), zlib.crc32(frame)) + frame)
        except OSError as why:
            log.warning("fork_not_cached", file=str(self._path), why=str(why))


def folder_of(path: str = "") -> Path:
    """The directory of the cache."""
    if path:
        return Path(path)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "foreblock" / "forks"


def cached_forks(folder: Path) -> list[CachedFork]:
    """The files in a directory, by chain and block."""
    found = []
    for path in folder.glob("*/*-*.*"):
        number, _, digits = path.stem.partition("-")
        if path.suffix in {PROVEN, TRUSTED} and path.parent.name.isdecimal() and number.isdecimal():
            status = path.stat()
            ids = int(path.parent.name), int(number), digits
            row = CachedFork(path, *ids, path.suffix == PROVEN, status.st_size, status.st_mtime)
            found.append(row)
    return sorted(found, key=lambda each: (each.chain_id, each.number, each.path.name))


def _places(data: bytes) -> Iterator[tuple[int, int]]:
    """The places of whole frames."""
    at = len(MAGIC)
    if not data.startswith(MAGIC):
        return
    while at + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, at)
        start, end = at + _FRAME.size, at + _FRAME.size + length
        if end > len(data) or zlib.crc32(data[start:end]) != checksum:
            return
        yield start, end
        at = end


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The file, open to add a frame at its end, for this process alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = _whole_end(file)
        os.ftruncate(file, end)
        os.lseek(file, end, os.SEEK_SET)
        if end == 0:
            os.write(file, MAGIC)
        yield file
    finally:
        os.close(file)


def _whole_end(file: int) -> int:
    """Where the last whole frame ends; only the lengths of frames are read."""
    size, at = os.fstat(file).st_size, len(MAGIC)
    if os.pread(file, len(MAGIC), 0) != MAGIC:
        return 0
    while at < size:
        head = os.pread(file, _FRAME.size, at)
        if len(head) < _FRAME.size:
            break
        end = at + _FRAME.size + int(_FRAME.unpack(head)[0])
        if end > size:
            break
        at = end
    return at


# --- Recordings ------------------------------------------------------------------------------


def check_sources(settings: ForkSettings) -> None:
    """Refuse contradictory settings. Raises `BadSetting`."""
    if settings.state and settings.url:
        raise BadSetting("fork_state", "a recording needs no endpoint, but fork_url is set")
    if settings.state and settings.record:
        raise BadSetting(
            "fork_record", "nothing is fetched with fork_state, so there is nothing to record"
        )
    if settings.record and Path(settings.record).exists():
        raise BadSetting("fork_record", f"{settings.record} exists already")


def recorded_point(file: str) -> ForkPoint:
    """The block of a recording. Raises `BadSetting`."""
    if not Path(file).is_file():
        raise BadSetting("fork_state", f"there is no file {file}")
    point = ForkFile(Path(file)).point()
    if point is None:
        raise BadSetting("fork_state", f"{file} is not a recording of a fork")
    return point


def known_file(settings: ForkSettings, point: ForkPoint, header: Header) -> ForkFile:
    """The file with the known values of a fork, to which fetched ones are added."""
    if settings.state:
        return ForkFile(Path(settings.state))
    if not settings.record:
        return ForkFile.of(settings, point.chain_id, header, proven=point.proven)
    recording = ForkFile(Path(settings.record))
    recorded = recording.point()
    if recorded is None:
        recording.put_point(point)
    is_same = recorded is None or recorded.header == point.header
    return recording if is_same else ForkFile(None)


def named_keys(wanted: StateKeys) -> str:
    """The first of these keys, for an error."""
    shown = list(_names(wanted))
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more


def _names(wanted: StateKeys) -> Iterator[str]:
    for address in sorted(wanted.accounts):
        yield f"account {format_data(address)}"
    for address, slots in sorted(wanted.slots.items()):
        for slot in sorted(slots):
            yield f"slot {slot:#x} of {format_data(address)}"
    for code in sorted(wanted.codes):
        yield f"code {format_data(code)}"
    for number in sorted(wanted.blocks):
        yield f"the hash of block {number}"
