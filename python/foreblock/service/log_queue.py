"""Log lines on their way to a descriptor: nobody who logs ever waits for who reads.

Lines are queued, and one thread writes them in their order. What does not fit into the queue,
because a pipe is full and nobody reads it, is dropped and counted, and the count is told in
its place once lines flow again. At the end of the process the rest is written, for a bounded
time. What lines look like is in `foreblock.service.logs`.
"""

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

MOST_BYTES: Final = 1 << 20  # that wait to be written
FLUSH_SECONDS: Final = 1.0  # for what is left at the end


class LogQueue:
    """Lines that wait to be written, and the thread that does it."""

    def __init__(self, write: Callable[[bytes], None], say_dropped: Callable[[int], str]) -> None:
        """`write` may take as long as it likes; `say_dropped` makes a line of a count."""
        self._write: Final = write
        self._say_dropped: Final = say_dropped
        self._waiting: list[bytes] = []
        self._size = 0  # bytes that wait or are being written
        self._dropped = 0
        self._closed = False
        # Reentrant: what the collector ends may log that, wherever it runs, here too.
        self._changed: Final = threading.Condition(threading.RLock())
        self._thread: Final = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def put(self, text: str) -> None:
        """Write a line soon, or count it as dropped."""
        line = text.encode("utf-8", "backslashreplace") + b"\n"
        with self._changed:
            if self._closed or self._size + len(line) > MOST_BYTES:
                self._dropped += 1
                return
            if self._dropped:
                self._add(self._say_dropped(self._dropped).encode() + b"\n")
                self._dropped = 0
            self._add(line)
            self._changed.notify()

    def _add(self, line: bytes) -> None:
        self._waiting.append(line)
        self._size += len(line)

    def close(self, seconds: float = FLUSH_SECONDS) -> None:
        """Take no more, and wait until all is written, but no longer than so."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            lines, dropped = self._take()
            if not lines and not dropped:
                return
            # Line by line: short ones stay whole between those of other processes.
            for line in lines:
                self._write(line)
                with self._changed:
                    self._size -= len(line)
            if dropped:
                self._write(self._say_dropped(dropped).encode() + b"\n")

    def _take(self) -> tuple[list[bytes], int]:
        """Wait for lines, and take them and the count of those dropped after them.

        Nothing of either is the end.
        """
        with self._changed:
            while not (self._waiting or self._dropped or self._closed):
                self._changed.wait()
            lines, self._waiting = self._waiting, []
            dropped, self._dropped = self._dropped, 0
        return lines, dropped


def write_to(descriptor: int, data: bytes) -> None:
    """Write all to a descriptor, whether it blocks or not; one that is closed takes nothing.

    No lock of Python's is around it, which a thread that waits here would hold at the end of
    the process.
    """
    left = memoryview(data)
    with suppress(OSError):
        while left:
            try:
                left = left[os.write(descriptor, left) :]
            except BlockingIOError:
                select.select([], [descriptor], [])
