"""Bootstrap a node: take the store of another one; the log continues from there.

A node needs that with an empty folder, when it was away for longer than the log reaches back
(`LogBeginsLater`), and when it has another history than the log (`ForkedLog`, `ForeignLog`).
The nodes of `snapshot_from` are tried in turn until one sends a store that can be used.

The lock of the writer is held from the first byte until the store is in place, so that nothing
writes to what is being replaced. The caller has closed the store, and opens it afterwards.
"""

import fcntl
import shutil
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog

from foreblock.errors import (
    ForeignLog,
    ForkedLog,
    LogBeginsLater,
    LogError,
    NoSnapshot,
    SnapshotError,
    StoreLocked,
)
from foreblock.ledger.storage.store_watch import DATA_FILE, WRITER_LOCK
from foreblock.secret_urls import redact_urls
from foreblock.snapshot.fetching import (
    InstalledStore,
    Need,
    Report,
    address_of,
    adopt_store,
    check_folder,
    fetch,
    put_in_place,
)

PART: Final = ".snapshot.part"  # the folder of what comes, inside that of the store
_SAY_SECONDS: Final = 5.0

log = structlog.get_logger()


def need_of(why: LogError) -> tuple[Need, int] | None:
    """The snapshot that a failure to follow requires, and its least commit; None for others."""
    match why:
        case LogBeginsLater(first=first):
            return Need.BEHIND, first
        case ForkedLog() | ForeignLog():
            return Need.DIVERGED, 0
        case _:
            return None


def bootstrap(  # noqa: PLR0913, keywords
    folder: Path,
    urls: Sequence[str],
    name: str,
    need: Need = Need.EMPTY,
    *,
    needed: int = 0,
    report: Report | None = None,
    tls: ssl.SSLContext | None = None,
    may_go_on: Callable[[], bool] = lambda: True,
) -> InstalledStore:
    """Put a store of the log `name` into a folder. It blocks: call it on a thread.

    `urls` are nodes that send, `needed` is the least commit that is of use, `report` gets the bytes
    so far and about how many there will be; without it, progress is logged. `may_go_on` is checked
    for each piece. Raises `NoSnapshot` with the reason of each node, `StoreExists` for a store that
    would be lost, `StoreLocked`, `DiskFull`; what was in the folder is then as it was.
    """
    if not urls:
        raise NoSnapshot("snapshot_from names no node")
    folder.mkdir(parents=True, exist_ok=True)
    reasons: list[str] = []
    with _locked(folder):
        check_folder(folder, need)
        for url in urls:
            say = _ending(report or _Progress(name, url), may_go_on)
            try:
                return _fetch_store(folder, address_of(url, name), need, needed, say, tls)
            except SnapshotError as why:
                log.warning(
                    "snapshot_unusable", network=name, source=redact_urls(url), why=str(why)
                )
                reasons.append(str(why))
    raise NoSnapshot("; ".join(reasons))


def remove_leftovers(folder: Path) -> None:
    """Remove the rest of an interrupted fetch, unless another process fetches into the folder."""
    if (folder / PART).exists():
        with suppress(StoreLocked), _locked(folder):
            shutil.rmtree(folder / PART, ignore_errors=True)


def _fetch_store(
    folder: Path, url: str, need: Need, needed: int, report: Report, tls: ssl.SSLContext | None
) -> InstalledStore:
    part = folder / PART
    shutil.rmtree(part, ignore_errors=True)  # of an interruption
    part.mkdir()
    try:
        begun = time.monotonic()
        header = fetch(url, part / DATA_FILE, report, needed, tls)
        taken = adopt_store(part, header, needed)
        kept = put_in_place(part, folder, need)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    log.info(
        "snapshot_installed",
        source=redact_urls(url),
        commit=taken.commit,
        bytes=taken.length,
        seconds=round(time.monotonic() - begun, 3),
        kept=str(kept or ""),
    )
    return taken


def _ending(report: Report, may_go_on: Callable[[], bool]) -> Report:
    def step(done: int, total: int) -> None:
        if not may_go_on():
            raise NoSnapshot("this node stops")
        report(done, total)

    return step


class _Progress:
    """Reports progress now and then."""

    def __init__(self, name: str, url: str) -> None:
        self._name: Final = name
        self._source: Final = redact_urls(url)
        self._due = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _SAY_SECONDS
            log.info(
                "snapshot_arriving", network=self._name, source=self._source, bytes=done, of=total
            )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the writer; raises `StoreLocked` if another process has it."""
    with (folder / WRITER_LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLocked(str(folder)) from None
        yield
