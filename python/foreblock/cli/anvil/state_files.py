"""The file of --state and --dump-state: written at intervals and when the chain has ended.

Each dump is made by a process of its own (`service.state_dump`), which reads the store while the
chain goes on. The last one follows the end of all other processes, so it has everything.
"""

import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import structlog

from foreblock.errors import StateNotWritten

STATE_SECONDS: Final = 60  # between two dumps, as in anvil
IN_FOLDER: Final = "state.json"
DUMP: Final = (sys.executable, "-m", "foreblock.service.state_dump")

log = structlog.get_logger()


def state_file(path: str) -> Path:
    """The file that a path means; in a directory it has anvil's name."""
    found = Path(path).absolute()
    return found / IN_FOLDER if found.is_dir() else found


class StateFile:
    """Writes the state of a store to a file while it is entered, and when it is left."""

    def __init__(self, store: str, file: Path | None, seconds: float) -> None:
        """Without a file nothing is written; with 0 seconds only at the end."""
        self._store: Final = store
        self._file: Final = file
        self._seconds: Final = seconds
        self._ended: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._repeat, name="state", daemon=True)

    def __enter__(self) -> Self:
        if self._file is not None and self._seconds:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None
    ) -> None:
        """Write the last state, unless the chain has failed. Raises `StateNotWritten`."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._file is not None and kind is None:
            self._write(self._file)

    def _repeat(self) -> None:
        assert self._file is not None
        while not self._ended.wait(self._seconds):
            try:
                self._write(self._file)
            except (StateNotWritten, OSError) as why:
                log.warning("state_not_written", why=str(why))

    def _write(self, file: Path) -> None:
        done = subprocess.run(  # noqa: S603, the command is our own
            [*DUMP, self._store, str(file)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            process_group=0,  # Ctrl-C ends the chain, whose state is written then
        )
        if done.returncode:
            raise StateNotWritten(str(file), done.stderr.strip() or f"code {done.returncode}")
