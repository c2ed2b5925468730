"""The API keys of a worker: found by their secrets, read again when their file changes.

A file that cannot be used changes nothing: the last good keys stay, also for a worker that starts
later, by a copy without secrets in the folder that all workers share. That folder has the budget
of each key as well, eight bytes in a file of its own, which all workers map.
"""

import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog
from msgspec import DecodeError, json

from foreblock.errors import BadSetting
from foreblock.scheduling.api_keys import (
    CELL_BYTES,
    ApiKey,
    KeyCounts,
    KeySpec,
    MethodWeights,
    own_cell,
)
from foreblock.settings.key_file import KeyFile, digest_of, read_keys

LAST_GOOD: Final = "last-good.json"

CountsOf = Callable[[str], KeyCounts]  # by the name of a key

log = structlog.get_logger()


class KeyTable:
    """The keys that are valid now."""

    def __init__(
        self,
        file: str,
        runtime: str = "",
        counts_of: CountsOf = lambda _: KeyCounts(),
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """`runtime` is the folder that all workers share; `failed` counts files of no use.

        Raises `BadSetting` if there are no good keys.
        """
        self._file: Final = Path(file)
        self._folder: Final = Path(runtime) / "keys" if runtime else None
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        self._counts_of: Final = counts_of
        self._failed: Final = failed
        self._changed: Final[list[Callable[[], None]]] = []
        self._by_digest: dict[bytes, ApiKey] = {}
        self.by_name: dict[bytes, ApiKey] = {}
        self._seen = _stamp(self._file)
        try:
            found = self._read()
        except BadSetting as why:
            found = self._last_good(why)
        self._take(found)

    def find(self, secret: bytes | None) -> ApiKey | None:
        """The key of a secret, or that of clients without a key."""
        return self._by_digest.get(b"" if secret is None else digest_of(secret))

    def when_changed(self, call: Callable[[], None]) -> None:
        """Call this after each change."""
        self._changed.append(call)

    def refresh(self) -> None:
        """Read the file again if it has changed; called once a second."""
        stamp = _stamp(self._file)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            found = self._read()
        except BadSetting as why:
            self._report(why)
            return
        self._take(found)
        for call in self._changed:
            call()
        log.info("api_keys_read", keys=len(found.keys))

    def _read(self) -> KeyFile:
        found = read_keys(self._file)
        if self._folder is not None:
            copy = self._folder / f"{os.getpid()}.part"
            with suppress(OSError):  # such as a full disk: the keys are good all the same
                copy.write_bytes(json.encode(found))
                copy.replace(self._folder / LAST_GOOD)
        return found

    def _last_good(self, why: BadSetting) -> KeyFile:
        if self._folder is None:
            raise why
        try:
            found = json.decode((self._folder / LAST_GOOD).read_bytes(), type=KeyFile)
        except (OSError, DecodeError):
            raise why from None
        self._report(why)
        return found

    def _report(self, why: BadSetting) -> None:
        self._failed()
        log.error("api_keys_unusable", why=str(why))

    def _take(self, found: KeyFile) -> None:
        weights, before = MethodWeights(found.weights), self.by_name
        self.by_name = {each.name.encode(): self._key(each, weights) for each in found.keys}
        self._by_digest = {each.spec.digest: each for each in self.by_name.values()}
        for name, key in before.items():
            if self.by_name.get(name) is not key:
                key.revoke()

    def _key(self, spec: KeySpec, weights: MethodWeights) -> ApiKey:
        known = self.by_name.get(spec.name.encode())
        if known is not None and _same_access(known.spec, spec):
            known.change(spec, weights)
            return known
        return ApiKey(spec, weights, self._cell(spec.name), self._counts_of(spec.name))

    def _cell(self, name: str) -> "memoryview[float]":
        """The number of a key that all workers share."""
        if self._folder is None:
            return own_cell()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._folder / f"{name}.spent", flags, 0o600)
        try:
            if os.fstat(descriptor).st_size < CELL_BYTES:
                os.truncate(descriptor, CELL_BYTES)
            return memoryview(mmap.mmap(descriptor, CELL_BYTES)).cast("d")
        finally:
            os.close(descriptor)


def _same_access(one: KeySpec, other: KeySpec) -> bool:
    """Return whether the connections of a key may stay open."""
    return (one.digest, one.methods, one.priority) == (other.digest, other.methods, other.priority)


def _stamp(file: Path) -> tuple[int, int, int]:
    """A value that changes with the file."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
