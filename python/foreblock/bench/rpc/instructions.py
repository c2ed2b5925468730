"""Instructions of a worker per request, for this build and another one.

Other load on the machine hardly changes them, so a difference of one percent is visible, while CPU
time varies by tens of percent. A figure is the median of some windows, each a number of rounds in
step, minus what the idle worker executes.

Only the worker runs under valgrind's callgrind: valgrind lacks system calls that the supervisor
makes. A module that Python imports at its start (`sitecustomize`) names a script as the
interpreter of children, and the script runs the real one under valgrind. This works for any
build. In the worker the same module multiplies the time thresholds of scheduling: it runs about
fifty times slower there, and requests that are otherwise answered in place would go to threads.
Hashes have a fixed seed. Work of the kernel is not counted.
"""

import os
import shutil
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from foreblock.bench.measure import Report
from foreblock.bench.rpc import peers
from foreblock.bench.rpc.answers import Ratio, wrong_answers
from foreblock.bench.rpc.peers import BEFORE, FOREBLOCK, Server, family
from foreblock.bench.rpc.questions import Question
from foreblock.bench.rpc.rounds import ClientsInStep, clients_in_step
from foreblock.errors import InvalidArgument
from foreblock.service.running import HOST, free_port, started

# --- The counted worker --------------------------------------------------------------------

MAP_BYTES: Final = 1 << 30  # valgrind has 128 GiB of addresses; a store maps more by default
SLOWER: Final = 1000  # more than any worker is under valgrind

# In a data file of LMDB: the offsets of its two headers, and their layout.
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
        """Start counting; the process becomes several times slower."""
        self._control("instrumentation on")

    def zero(self) -> None:
        """Count from here."""
        self._control("zero")

    def total(self) -> int:
        """Instructions since the last `zero` or `total`, of all threads."""
        self._control("dump")
        dumps = [each for each in self.out.parent.glob(f"{self.out.name}.*") if is_dump(each)]
        if len(dumps) != 1:
            raise InvalidArgument(f"valgrind wrote {len(dumps)} counts instead of one")
        text = dumps[0].read_text("utf-8", "replace")
        dumps[0].unlink()
        return total_of(text)

    def _control(self, command: str) -> None:
        words = [str(self.control), f"--pid={self.worker}", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise InvalidArgument(f"valgrind did not {command}: {done.stderr.strip()}")


def is_dump(file: Path) -> bool:
    """True for a count, and false for the log and the final count."""
    return file.suffix[1:].isdecimal()


def total_of(dump: str) -> int:
    """The sum that callgrind writes into a dump."""
    for line in dump.splitlines():
        name, _, value = line.partition(":")
        if name in {"totals", "summary"}:
            return int(value.split()[0])
    raise InvalidArgument("the count of valgrind has no total")


def programs() -> tuple[Path, Path]:
    """Valgrind, and the program that controls it while it runs."""
    found = [shutil.which(name) for name in ("valgrind", "vgdb")]
    if found[0] is None or found[1] is None:
        raise InvalidArgument("valgrind is missing: install it (Debian: valgrind)")
    return Path(found[0]), Path(found[1])


@contextmanager
def counted_ours(folder: Path) -> Iterator[CountedWorker]:
    """This build."""
    paths = [each for each in [os.environ.get("PYTHONPATH")] if each]
    command = [sys.executable, "-m", "foreblock"]
    with _counted(peers.FOREBLOCK, command, peers.imported(folder), paths) as counted:
        yield counted


@contextmanager
def counted_before(program: Path, folder: Path) -> Iterator[CountedWorker]:
    """Another build, which does not use the modules of this one."""
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


# --- Windows -------------------------------------------------------------------------------

WINDOWS: Final = 5
WINDOW_INSTRUCTIONS: Final = 25_000_000  # about, unless one round has more
MOST_ROUNDS: Final = 100  # in a window
WARM_ROUNDS: Final = 2
IDLE_SECONDS: Final = 4.0


@dataclass(frozen=True)
class Window:
    """Instructions of a worker while it answered some requests."""

    instructions: int
    requests: int
    seconds: float

    def per_request(self, idle: float) -> float:
        """Less `idle` instructions in a second, which are for no request."""
        return (self.instructions - idle * self.seconds) / self.requests


@dataclass(frozen=True)
class CountedCell:
    """Instructions per request of one build on one question, a figure for each window."""

    windows: Sequence[float]

    @property
    def figure(self) -> float:
        """The median."""
        return statistics.median(self.windows)

    @property
    def spread(self) -> tuple[float, float]:
        """Least and most."""
        return min(self.windows), max(self.windows)


@dataclass(frozen=True)
class Instructions:
    """All results."""

    servers: Mapping[str, str]  # name to version
    cells: Mapping[tuple[str, str], CountedCell] = field(default_factory=dict)
    wrong: Sequence[str] = ()

    def ratios(self, questions: Sequence[Question]) -> Iterator[Ratio]:
        """Ours against the build before, where both answer rightly."""
        for question in questions:
            ours = self.cells.get((question.name, FOREBLOCK))
            theirs = self.cells.get((question.name, BEFORE))
            if ours is None or theirs is None:
                continue
            (least, most), (their_least, their_most) = ours.spread, theirs.spread
            spread = (least / their_most, most / their_least)
            value, bound = ours.figure / theirs.figure, question.bounds[BEFORE]
            yield Ratio(question.name, BEFORE, value, spread, bound, clean=True)


def count(
    questions: Sequence[Question],
    before: Path | None,
    folder: Path,
    report: Report,
) -> Instructions:
    """Count every question on this build and, if there is one, the build before."""
    with ExitStack() as stack:
        report("starting foreblock under valgrind", 0, 0)
        running = [stack.enter_context(counted_ours(folder))]
        if before is not None:
            report("starting the build before under valgrind", 0, 0)
            running.append(stack.enter_context(counted_before(before, folder)))
        servers = [each.server for each in running]
        wrong = list(wrong_answers(servers, questions))
        cells = {}
        for counted in running:
            name = counted.server.name
            idle = _idle(counted)
            for question in questions:
                if f"{name}: {question.name}" not in wrong:
                    cells[question.name, name] = _count(counted, question, idle)
                    total = len(questions) * len(running)
                    report(f"{question.name}, {name}", len(cells), total)
        return Instructions({each.name: each.version for each in servers}, cells, wrong)


def rounds_of(instructions: int) -> int:
    """How many rounds a window gets, given the instructions of one round."""
    return min(MOST_ROUNDS, max(1, WINDOW_INSTRUCTIONS // max(1, instructions)))


def _idle(counted: CountedWorker) -> float:
    """Instructions in a second without requests."""
    counted.zero()
    time.sleep(IDLE_SECONDS)
    return counted.total() / IDLE_SECONDS


def _count(counted: CountedWorker, question: Question, idle: float) -> CountedCell:
    url, bodies = counted.server.url, question.bodies
    with clients_in_step(url, question.connections, bodies, counted.worker) as clients:
        clients.rounds(WARM_ROUNDS + (len(bodies) // question.connections))
        rounds = rounds_of(_window(counted, clients, 1).instructions)
        windows = [_window(counted, clients, rounds) for _ in range(WINDOWS)]
        return CountedCell([each.per_request(idle) for each in windows])


def _window(counted: CountedWorker, clients: ClientsInStep, rounds: int) -> Window:
    counted.zero()
    begun = time.monotonic()
    requests = clients.rounds(rounds)
    return Window(counted.total(), requests, time.monotonic() - begun)
