"""Very many concurrent simulations must not stop a live chain by the resources they hold.

Each takes long and reads one commit until it is answered. The chain is a separate dev chain, whose
commits are observed in its store, without requests to the service.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from abuse.wire import request
from foreblock._engine import Store
from foreblock.service.running import HOST, RunningService, free_port, started

POLL_SECONDS = 0.02

_CALL = {
    "from": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    "to": "0x00000000000000000000000000000000000000bb",
    "value": "0x1",
}


def long_simulation(blocks: int = 200, calls: int = 40) -> bytes:
    """A simulation with some hundred milliseconds of work."""
    payload = {"blockStateCalls": [{"calls": [_CALL] * calls}] * blocks}
    return request("eth_simulateV1", payload, "latest")


@contextmanager
def dev_chain() -> Iterator[tuple[RunningService, Path]]:
    """A dev chain with one worker, and the folder of its store."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"http://{HOST}:{(port := free_port())}"
        command = [
            sys.executable, "-m", "foreblock", "dev", "--workers=1", f"--data={folder}",
            f"--listen={HOST}:{port}", "--test-listen=", "--feed-listen=",
        ]  # fmt: skip
        with started(command, url) as process:
            yield RunningService(url, process.pid), Path(folder) / "main"


class Commits:
    """The commits of a store, observed from another process."""

    def __init__(self, store: Path) -> None:
        self.seen = 0
        self.longest_gap = 0.0  # seconds without one
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(store,))
        self._thread.start()

    def end(self) -> None:
        """Stop observing."""
        self._over.set()
        self._thread.join()

    def _watch(self, path: Path) -> None:
        last, since = 0, time.monotonic()
        with Store(str(path)) as store:
            while not self._over.wait(POLL_SECONDS):
                with store.view() as view:
                    commit = view.heads.commit
                now = time.monotonic()
                self.longest_gap = max(self.longest_gap, now - since)
                if commit != last:
                    self.seen += 1
                    last, since = commit, now


@contextmanager
def watched(store: Path) -> Iterator[Commits]:
    """The commits of a store while the block runs."""
    commits = Commits(store)
    try:
        yield commits
    finally:
        commits.end()
