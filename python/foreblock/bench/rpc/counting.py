"""A server whose worker runs under valgrind's callgrind, which counts its instructions.

Only the worker does: valgrind lacks system calls that the supervisor makes. A module that Python
imports at its start (`sitecustomize`) names a script as the interpreter of children, and the script
runs the real one under valgrind. It serves any build, also one that knows nothing of this.

In the worker the same module multiplies the time thresholds of scheduling, since it runs some fifty
times slower there: what is answered in place otherwise would go to threads. Hashes have a fixed
seed. What the kernel does for a worker is not counted.
"""

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.bench.rpc import peers
from foreblock.bench.rpc.peers import Server
from foreblock.bench.rpc.processes import family
from foreblock.errors import InvalidArgument
from foreblock.service.running import HOST, free_port, started

MAP_BYTES: Final = 1 << 30  # valgrind has 128 GiB of addresses; a store maps more by default
SLOWER: Final = 1000  # more than any worker is under valgrind

# In a data file of LMDB: where its two headers begin, and what they hold.
_HEADERS: Final = (0, 4096)
_MAGIC: Final = struct.Struct("<16xI")
_MAP_AT: Final = 32
_MAP: Final = struct.Struct("<Q")

_AT_START: Final = f"""
import os, sys

if "foreblock.service.worker" in sys.orig_argv:
    import msgspec
    from foreblock.scheduling import thresholds

    kept = thresholds.THRESHOLDS
    times = [name for name in kept.__struct_fields__ if name.endswith(("_us", "_seconds"))]
    longer = {{name: getattr(kept, name) * {SLOWER} for name in times}}
    thresholds.THRESHOLDS = msgspec.structs.replace(kept, **longer)
else:
    os.environ["COUNTED_PYTHON"] = sys.executable
    sys.executable = os.environ["COUNTED_BY"]
"""
_INTERPRETER: Final = """#!/bin/sh
exec {valgrind} --tool=callgrind --instr-atstart=no --callgrind-out-file={out} \\
  --log-file={out}.log "$COUNTED_PYTHON" "$@"
"""


@dataclass(frozen=True)
class CountedWorker:
    """A running server, and the counter of its worker."""

    server: Server
    worker: int
    out: Path  # dumps have this name and a number
    control: Path

    def begin(self) -> None:
        """Count at all, which makes it several times slower again; not needed while it starts."""
        self._tell("instrumentation on")

    def zero(self) -> None:
        """Count from here."""
        self._tell("zero")

    def total(self) -> int:
        """Instructions since the last `zero` or `total`, of all threads."""
        self._tell("dump")
        dumps = [each for each in self.out.parent.glob(f"{self.out.name}.*") if is_dump(each)]
        if len(dumps) != 1:
            raise InvalidArgument(f"valgrind wrote {len(dumps)} counts instead of one")
        text = dumps[0].read_text("utf-8", "replace")
        dumps[0].unlink()
        return total_of(text)

    def _tell(self, command: str) -> None:
        words = [str(self.control), f"--pid={self.worker}", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise InvalidArgument(f"valgrind did not {command}: {done.stderr.strip()}")


def is_dump(file: Path) -> bool:
    """Whether this is a count by its name, and not the log or the one at the end."""
    return file.suffix[1:].isdecimal()


def total_of(dump: str) -> int:
    """The sum that callgrind writes into a dump."""
    for line in dump.splitlines():
        name, _, value = line.partition(":")
        if name in {"totals", "summary"}:
            return int(value.split()[0])
    raise InvalidArgument("the count of valgrind has no total")


def programs() -> tuple[Path, Path]:
    """Valgrind, and the program that gives it orders while it runs."""
    found = [shutil.which(name) for name in ("valgrind", "vgdb")]
    if found[0] is None or found[1] is None:
        raise InvalidArgument("valgrind is missing: install it (Debian: valgrind)")
    return Path(found[0]), Path(found[1])


@contextmanager
def ours(folder: Path) -> Iterator[CountedWorker]:
    """This build."""
    paths = [each for each in [os.environ.get("PYTHONPATH")] if each]
    command = [sys.executable, "-m", "foreblock"]
    with _counted(peers.FOREBLOCK, command, peers.imported(folder), paths) as counted:
        yield counted


@contextmanager
def before(program: Path, folder: Path) -> Iterator[CountedWorker]:
    """Another build. It does not look for its modules where this one does."""
    store = peers.imported_by(program, folder)
    with _counted(peers.BEFORE, [str(program)], store, []) as counted:
        yield counted


@contextmanager
def _counted(
    name: str, command: list[str], store: Path, paths: list[str]
) -> Iterator[CountedWorker]:
    valgrind, control = programs()
    narrow_map(store / "data.mdb")
    site, interpreter, out = (store.with_name(f"{name}-{it}") for it in ("site", "python", "count"))
    site.mkdir()
    (site / "sitecustomize.py").write_text(_AT_START, "ascii")
    interpreter.write_text(_INTERPRETER.format(valgrind=valgrind, out=out), "utf-8")
    interpreter.chmod(0o755)
    within = ["env", f"PYTHONPATH={':'.join([str(site), *paths])}", "PYTHONHASHSEED=0",
              f"COUNTED_BY={interpreter}"]  # fmt: skip
    address = f"{HOST}:{free_port()}"
    options = [f"--data={store}", f"--listen={address}", f"--map-size={MAP_BYTES}", *peers.SERVE]
    version = peers.OURS if name == peers.FOREBLOCK else peers.version([*command, "--version"])
    with started([*within, *command, "serve", *options], f"http://{address}") as process:
        (worker,) = [each for each in family(process.pid) if each != process.pid]
        server = Server(name, process.pid, f"http://{address}", version)
        counted = CountedWorker(server, worker, out, control)
        counted.begin()
        yield counted


def narrow_map(file: Path) -> None:
    """Say in a store that it maps little: a reader maps as much as its last writer did."""
    with file.open("r+b") as data:
        for at in _HEADERS:
            data.seek(at)
            (magic,) = _MAGIC.unpack(data.read(_MAGIC.size))
            assert magic == 0xBEEFC0DE
            data.seek(at + _MAP_AT)
            data.write(_MAP.pack(MAP_BYTES))
