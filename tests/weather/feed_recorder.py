"""Records the flashblocks of a feed with faults."""

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from checker.journal import JournalWriter
from checker.messages import read_message


class FeedRecorder:
    """Listens in a separate thread, from the first flashblock of the current block on."""

    def __init__(self, url: str, journal: Path) -> None:
        self._connected = ExitStack()
        connecting = connect(f"{url}?from=0-0", max_size=None, compression=None)
        self._socket = self._connected.enter_context(connecting)
        self._writer = JournalWriter(journal, "heard")
        self._broken: BaseException | None = None
        self._thread = threading.Thread(target=self._listen)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._connected.close()
        self._thread.join()
        self._writer.close()
        if self._broken is not None:
            raise self._broken

    def _listen(self) -> None:
        try:
            while True:
                message = self._socket.recv(decode=False)
                try:
                    text = message.decode()
                    read_message(text)
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    continue  # noise
                self._writer.heard(text)
        except ConnectionClosed:
            pass  # one of the two has stopped
        except BaseException as why:  # noqa: BLE001, whoever waits for the thread is told
            self._broken = why
