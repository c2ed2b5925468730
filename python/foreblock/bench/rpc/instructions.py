"""Instructions of a worker per request, for this build and another one.

They hardly depend on what else the machine does, so a difference of one percent is seen, where CPU
time varies by tens. A figure is the median of some windows, each a number of rounds in step, less
what the worker executes when nobody asks.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from foreblock.bench.rpc import counting
from foreblock.bench.rpc.answers import Ratio, wrong_answers
from foreblock.bench.rpc.counting import CountedWorker
from foreblock.bench.rpc.in_step import ClientsInStep, clients_in_step
from foreblock.bench.rpc.peers import BEFORE, FOREBLOCK
from foreblock.bench.rpc.questions import Question

WINDOWS: Final = 5
WINDOW_INSTRUCTIONS: Final = 25_000_000  # about, unless one round has more
MOST_ROUNDS: Final = 100  # in a window
WARM_ROUNDS: Final = 2
IDLE_SECONDS: Final = 4.0


@dataclass(frozen=True)
class Window:
    """What a worker executed while it answered some requests."""

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
    report: Callable[[str], None],
) -> Instructions:
    """Count every question on this build and, if there is one, the build before."""
    with ExitStack() as stack:
        report("starting foreblock under valgrind")
        running = [stack.enter_context(counting.ours(folder))]
        if before is not None:
            report("starting the build before under valgrind")
            running.append(stack.enter_context(counting.before(before, folder)))
        servers = [each.server for each in running]
        wrong = list(wrong_answers(servers, questions))
        cells = {}
        for counted in running:
            name = counted.server.name
            idle = _idle(counted)
            for question in questions:
                if f"{name}: {question.name}" not in wrong:
                    report(f"{question.name}, {name}")
                    cells[question.name, name] = _count(counted, question, idle)
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
