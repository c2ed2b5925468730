"""The lock of the one process that writes a store: whether somebody has it."""

import fcntl
from pathlib import Path
from typing import Final

WRITER_LOCK: Final = "writer.lock"  # the engine's name for it


def is_being_written(folder: Path) -> bool:
    """Whether a process has opened this store for writing. The lock is not kept."""
    try:
        file = (folder / WRITER_LOCK).open("rb")
    except OSError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
