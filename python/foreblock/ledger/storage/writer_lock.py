"""The lock of the one process that writes a store: whether somebody has it.

To try it would refuse a writer that starts at the same moment, so the kernel's list of locks
is read instead. It names files by inode; that another file system has a locked file with the
same number does not matter for what only people are told.
"""

import re
from pathlib import Path
from typing import Final

WRITER_LOCK: Final = "writer.lock"  # the engine's name for it
LOCKS: Final = Path("/proc/locks")
_LOCKED: Final = re.compile(r"\bFLOCK +\w+ +WRITE +\d+ +[0-9a-f]+:[0-9a-f]+:(\d+) ")


def is_being_written(folder: Path) -> bool:
    """Whether a process of this machine has opened this store for writing, as far as is known."""
    try:
        inode, locks = (folder / WRITER_LOCK).stat().st_ino, LOCKS.read_text("ascii")
    except OSError:
        return False
    return inode in {int(number) for number in _LOCKED.findall(locks)}
