"""Records the feed of a running chain, message by message."""

import json
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from checker.journal import JournalWriter


class Recorder:
    """Records in a separate thread, and counts started blocks."""

    def __init__(self, url: str, folder: Path) -> None:
        self._connected = ExitStack()
        connecting = connect(url, max_size=None, compression=None)
        self._socket = self._connected.enter_context(connecting)
        self._writer = JournalWriter(folder, "feed")
        self._begun = 0
        self._changed = threading.Condition()
        self._stopping = False
        self.broken = ""  # the reason for an early end of the feed
        self._thread = threading.Thread(target=self._record)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._connected.close()
        self._thread.join()
        self._writer.close()

    def wait_for_blocks(self, count: int, seconds: float) -> None:
        """Wait until this many more blocks have begun; `TimeoutError` if they do not."""
        with self._changed:
            until = self._begun + count
            if not self._changed.wait_for(lambda: self.broken or self._begun >= until, seconds):
                raise TimeoutError(f"{count} blocks did not begin within {seconds:g} s")
        if self.broken:
            raise ConnectionError(f"the feed ended: {self.broken}")

    def _record(self) -> None:
        try:
            while True:
                message = self._socket.recv()
                received_ns = time.monotonic_ns()
                text = message if isinstance(message, str) else message.decode()
                self._writer.flashblock(received_ns, text)
                if json.loads(text)["index"] == 0:
                    with self._changed:
                        self._begun += 1
                        self._changed.notify_all()
        except ConnectionClosed as why:
            if not self._stopping:
                with self._changed:
                    self.broken = str(why)
                    self._changed.notify_all()
