"""The commits of a chain, read from its own store: all of them, regardless of its feed.

Partial blocks have unique numbers, and keep their rows when they are dropped. So everything is
available in the order of commits, with times. Empty indices have no rows: they follow from the note
and from later partial blocks.
"""

import threading
import time
from pathlib import Path
from typing import Self

from checker.journal import JournalWriter
from foreblock._engine import Store, View
from foreblock.feed.messages import encode
from foreblock.ledger.building.closed_index import base_of, diff_of
from foreblock.ledger.storage.chain_head import partials_of_sealed, read_row
from foreblock.ledger.storage.partial_rows import (
    PartialRow,
    decode_partial_row,
    partial_key,
    transactions_key,
)
from foreblock.ledger.storage.partials import empty_tail_of, last_index_of
from foreblock.ledger.storage.rows import decode_items
from foreblock.types import Flashblock, FlashblockId

POLL_SECONDS = 0.05


class SourceRecorder:
    """Records in a separate thread, and counts started blocks."""

    def __init__(self, folder: Path, journal: Path) -> None:
        """`folder` has the chain's store, which another process writes."""
        self._store = Store(str(folder))
        self._writer = JournalWriter(journal, "feed")
        self._since_wall_ns = time.monotonic_ns() - time.time_ns()
        self._seen = 0  # the last number
        self._last: tuple[int, PartialRow] | None = None  # the last partial block
        self._index = 0  # the last index, possibly empty
        self._begun = 0  # blocks
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._broken: BaseException | None = None
        self._thread = threading.Thread(target=self._record)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._writer.close()
        self._store.close()
        if self._broken is not None:
            raise self._broken

    def wait_for_blocks(self, count: int, seconds: float) -> None:
        """Wait until this many more blocks have begun; `TimeoutError` if they do not."""
        with self._changed:
            until = self._begun + count
            if not self._changed.wait_for(lambda: self._begun >= until, seconds):
                raise TimeoutError(f"{count} blocks did not begin in {seconds:g} s: {self._broken}")

    def _record(self) -> None:
        try:
            while not self._stop.wait(POLL_SECONDS):
                with self._store.view() as view:
                    self._look(view)
        except BaseException as why:  # noqa: BLE001, whoever waits for the thread is told
            self._broken = why

    def _look(self, view: View) -> None:
        for number in range(self._seen + 1, view.heads.commit + 1):
            partial = view.partial(number)
            if partial is not None:
                self._take(view, partial.block, number)
        self._seen = view.heads.commit
        quiet = None if self._last is None else empty_tail_of(view, self._last[0])
        if quiet is not None:
            self._take_quiet(quiet.index, quiet.received_at_ns)

    def _take(self, view: View, block: int, number: int) -> None:
        row = decode_partial_row(read_row(view, partial_key(block, number), block))
        if self._last is not None:
            end = row.index - 1
            if row.index == 0:
                last, before = self._last
                end = last_index_of(view, before.header.number, last) or before.index
            self._take_quiet(end, row.received_at_ns)
        raws = decode_items(read_row(view, transactions_key(block, number), block))
        self._write(
            row,
            row.index,
            row.received_at_ns,
            raws,
            _below(view, block, row.header.parent_hash) if row.index == 0 else None,
        )
        self._last = (number, row)
        if row.index == 0:
            with self._changed:
                self._begun += 1
                self._changed.notify_all()

    def _take_quiet(self, end: int, received_at_ns: int) -> None:
        """The empty indices up to this one."""
        assert self._last is not None, "they follow a partial"
        _, row = self._last
        for index in range(self._index + 1, end + 1):
            self._write(row, index, received_at_ns, (), None)

    def _write(
        self,
        row: PartialRow,
        index: int,
        received_at_ns: int,
        raws: tuple[bytes, ...],
        previous: FlashblockId | None,
    ) -> None:
        message = Flashblock(
            payload_id=row.payload_id,
            index=index,
            base=base_of(row.header) if index == 0 else None,
            diff=diff_of(row.header, raws),
            block_number=row.header.number,
            previous=previous,
        )
        self._index = index
        committed_ns = received_at_ns + self._since_wall_ns
        self._writer.flashblock(committed_ns, encode(message).decode())


def _below(view: View, block: int, parent_hash: bytes) -> FlashblockId | None:
    """The flashblock with which the parent was sealed, if it still is."""
    sealed = view.sealed(block - 1)
    partials = partials_of_sealed(view, block - 1)
    if sealed is None or sealed[0] != parent_hash or not partials:
        return None
    index = last_index_of(view, block - 1, partials[-1])
    assert index is not None, "its places are kept for longer than it takes to look"
    return FlashblockId(block - 1, index)
