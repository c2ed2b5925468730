"""The filters of a network, in a folder that all workers of the service share.

A client's polls may reach any worker, so a filter belongs to none of them: it is a small file,
named by its id, with what is wanted and the cursor of the last poll. A file is locked only
while it is read or written. A poll that finds that another one has moved the cursor meanwhile
starts again from there, so two polls at the same time never return the same change.

The number and size of all filters are in a file of their own, which is locked while a filter is
added or removed: the limits hold for all workers together.

A filter that is not polled for a while expires: its file's time is that of the last poll.
Adding a filter checks a few others and removes those that have expired.
"""

import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from foreblock.errors import FilterNotFound, TooManyFilters, TooManyWaiting
from foreblock.scheduling.thresholds import THRESHOLDS

_ID: Final = re.compile("0x[0-9a-f]{1,32}")
SIZES: Final = "sizes"  # the file with the number and size of all filters
FILTER_BYTES: Final = 256  # of one, besides its criteria
TRY_SECONDS: Final = 0.000_05  # between two tries to lock a file


class StoredFilter(Struct, frozen=True, array_like=True):
    """A filter: what is wanted, and the cursor of its last poll."""

    kind: Literal["blocks", "logs", "transactions"]
    cursor: str
    commit: int  # of the view in which the cursor was reached
    criteria: bytes = b""  # of logs: the filter object as it was sent
    full: bool = False  # of transactions: as objects

    @property
    def size(self) -> int:
        """Bytes that it counts."""
        return FILTER_BYTES + len(self.criteria)


class FilterSizes(Struct, array_like=True):
    """The number of filters, and their bytes."""

    count: int = 0
    bytes: int = 0

    def add(self, found: StoredFilter) -> None:
        """Count one more."""
        self.count += 1
        self.bytes += found.size

    def remove(self, found: StoredFilter) -> None:
        """Count one less."""
        self.count -= 1
        self.bytes -= found.size


Round = Any  # the type that `os.scandir` returns has no public name

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredFilter).decode
_decode_sizes = msgspec.msgpack.Decoder(FilterSizes).decode


class FilterTable:
    """The filters of one network."""

    def __init__(
        self,
        folder: str = "",
        most: int = 10_000,
        seconds: float = 300.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Without a folder, they are known to this process only.

        There are `most` of them, and each expires when it was not polled for `seconds`.
        """
        self._folder: Path | None = Path(folder) if folder else None
        self._is_own = not folder
        self._most: Final = most
        self._seconds: Final = seconds
        self._now: Final = now
        self._round: Round | None = None  # between two checks of all filters

    def add(self, id: str, found: StoredFilter) -> None:
        """Keep a new filter; raises `TooManyFilters`, `TooManyWaiting`."""
        with self._sizes() as sizes:
            self._sweep(sizes)
            if sizes.count >= self._most:
                raise TooManyFilters(self._most)
            if sizes.bytes + found.size > THRESHOLDS.filters_bytes:
                raise TooManyFilters(THRESHOLDS.filters_bytes, " bytes")
            descriptor = os.open(self._path(id), os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o600)
            try:
                self._write(descriptor, found)
            finally:
                os.close(descriptor)
            sizes.add(found)

    def read(self, id: str) -> StoredFilter:
        """A filter; raises `FilterNotFound`, `TooManyWaiting`."""
        with self._locked(id, fcntl.LOCK_SH) as descriptor:
            return _load(descriptor)

    def move(self, id: str, before: StoredFilter, cursor: str, commit: int) -> bool:
        """Note a poll, after which a filter is at a cursor that was reached in this commit.

        False if another poll was noted since it was read. Raises `FilterNotFound`,
        `TooManyWaiting`.
        """
        with self._locked(id, fcntl.LOCK_EX) as descriptor:
            if _load(descriptor) != before:
                return False
            if cursor == before.cursor:
                self._touch(descriptor)
            else:
                moved = msgspec.structs.replace(before, cursor=cursor, commit=commit)
                self._write(descriptor, moved)
            return True

    def remove(self, id: str, expected: StoredFilter | None = None) -> bool:
        """Remove a filter; false if there is none, or if it is not the expected one.

        Raises `TooManyWaiting`.
        """
        with self._sizes() as sizes:
            try:
                with self._locked(id, fcntl.LOCK_EX) as descriptor:
                    found = _load(descriptor)
                    if expected is not None and found != expected:
                        return False
                    self._path(id).unlink()
                    sizes.remove(found)
            except (FilterNotFound, FileNotFoundError):  # another worker may have been faster
                return False
            return True

    @contextmanager
    def _sizes(self) -> Iterator[FilterSizes]:
        """The sizes of all filters, locked and stored again afterwards."""
        descriptor = os.open(self._path(SIZES), os.O_CREAT | os.O_RDWR, mode=0o600)
        try:
            _lock(descriptor, fcntl.LOCK_EX)
            data = os.pread(descriptor, THRESHOLDS.filter_bytes, 0)
            sizes = _decode_sizes(data) if data else FilterSizes()
            try:
                yield sizes
            finally:
                _replace(descriptor, _encode(sizes))
        finally:
            os.close(descriptor)

    def _path(self, name: str) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="foreblock-filters-"))
        return self._folder / name

    def __del__(self) -> None:
        """Remove what no other process knows."""
        if self._round is not None:
            self._round.close()
        if self._is_own and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _locked(self, id: str, how: int) -> Iterator[int]:
        """The file of a filter that has not expired, locked."""
        if _ID.fullmatch(id) is None:
            raise FilterNotFound
        try:
            descriptor = os.open(self._path(id), os.O_RDWR)
        except OSError:
            raise FilterNotFound from None
        try:
            _lock(descriptor, how)
            if self._is_expired(os.fstat(descriptor)):
                raise FilterNotFound
            yield descriptor
        finally:
            os.close(descriptor)

    def _is_expired(self, found: os.stat_result) -> bool:
        return found.st_mtime + self._seconds <= self._now()

    def _touch(self, descriptor: int) -> None:
        now = self._now()
        os.utime(descriptor, (now, now))

    def _write(self, descriptor: int, found: StoredFilter) -> None:
        _replace(descriptor, _encode(found))
        self._touch(descriptor)

    def _sweep(self, sizes: FilterSizes) -> None:
        """Check some filters, in rounds, and remove those that have expired."""
        for _ in range(THRESHOLDS.swept_filters):
            entry = None if self._round is None else next(self._round, None)
            if entry is None:
                self._round = os.scandir(self._path(""))
                return
            with suppress(OSError):  # another worker was faster
                if entry.name != SIZES and self._is_expired(entry.stat()):
                    self._remove_expired(Path(entry.path), sizes)

    def _remove_expired(self, path: Path, sizes: FilterSizes) -> None:
        data = path.read_bytes()
        path.unlink()
        try:
            sizes.remove(_decode(data))
        except (msgspec.DecodeError, msgspec.ValidationError):
            sizes.count -= 1


def _lock(descriptor: int, how: int) -> None:
    """Lock a file that others hold for microseconds; raises `TooManyWaiting` if one does not."""
    for _ in range(THRESHOLDS.filter_lock_tries):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            return
        time.sleep(TRY_SECONDS)
    raise TooManyWaiting(1)


def _replace(descriptor: int, data: bytes) -> None:
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))


def _load(descriptor: int) -> StoredFilter:
    try:
        return _decode(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise FilterNotFound from None  # a worker was killed while it wrote
