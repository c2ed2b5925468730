"""A disk with injected failures, for processes that are started on it.

`shim.c` describes the mechanism; this is the other end of its page. Calls that open to write,
write, cut and sync files below one folder count, in all processes with this environment together.
"""

import errno
import mmap
import os
import struct
import subprocess
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import Final, NamedTuple

SOURCE: Final = Path(__file__).with_name("shim.c")
ALL: Final = -1  # calls
NONE: Final = -1

_TOLD: Final = struct.Struct("=iiqqqqq488s")
_CALLS: Final = struct.Struct("=qq")
_CALLS_AT: Final = 32


class Fault(NamedTuple):
    """The failure, and when it occurs."""

    error: int = errno.EIO  # 0 for a write that is cut short and reports so
    before: int = 0  # calls that succeed first
    failing: int = 1  # calls that then fail; `ALL` until it is mended
    between: int = NONE  # calls that succeed after those, before one more fails

    @property
    def cut_short(self) -> bool:
        """Return whether writes do half of their work."""
        return not self.error


class Disk:
    """The faults of one folder."""

    def __init__(self, folder: Path, page: Path) -> None:
        """`page` is a file to create, outside of the folder."""
        self._folder: Final = str(folder.resolve()).encode()
        page.write_bytes(bytes(mmap.PAGESIZE))
        with page.open("r+b") as file:
            self._page: Final = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.environment: Final = {"LD_PRELOAD": str(_shim()), "FAULTS_PAGE": str(page.resolve())}

    def fail(self, fault: Fault) -> None:
        """Inject this failure from now on, and no other."""
        self.mend()
        told = _TOLD.pack(
            0, 0, fault.before, fault.failing, fault.between, 0, 0, self._folder
        )  # fmt: skip
        self._page[: _TOLD.size] = told
        # The activating field is written last.
        self._page[4:8] = struct.pack("=i", fault.cut_short)
        self._page[0:4] = struct.pack("=i", fault.error)

    def mend(self) -> None:
        """Remove all failures."""
        self._page[0:8] = bytes(8)

    @property
    def calls(self) -> int:
        """The number of calls since the last fault was set."""
        return self._counted()[0]

    @property
    def hits(self) -> int:
        """The number of failed calls."""
        return self._counted()[1]

    def _counted(self) -> tuple[int, int]:
        calls, hits = _CALLS.unpack_from(self._page, _CALLS_AT)
        return calls, hits


def _shim() -> Path:
    """The library, compiled once per version."""
    name = f"foreblock-faults-{os.getuid()}-{sha256(SOURCE.read_bytes()).hexdigest()[:16]}.so"
    library = Path(gettempdir()) / name
    if not library.exists():
        part = library.with_suffix(f".{os.getpid()}")
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(part), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        part.replace(library)
    return library
