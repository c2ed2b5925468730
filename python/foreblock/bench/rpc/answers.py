"""The whole measurement: start servers, alternate rounds, compare."""

import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from foreblock.bench.measure import Report
from foreblock.bench.rpc import peers
from foreblock.bench.rpc.peers import FOREBLOCK, Server
from foreblock.bench.rpc.questions import Bound, Question, fits
from foreblock.bench.rpc.rounds import Bench, BenchRound, alone, measure, wrk_script
from foreblock.errors import InvalidArgument

ATTEMPTS: Final = 2  # the most rounds tried, as a multiple of the requested ones


@dataclass(frozen=True)
class Cell:
    """One server on one question. `counted` falls back to all rounds if none counts."""

    rounds: Sequence[BenchRound]

    @property
    def counted(self) -> list[BenchRound]:
        """The rounds that the figures are made of."""
        return [each for each in self.rounds if each.counts] or list(self.rounds)

    @property
    def clean(self) -> bool:
        """True if the figures come from rounds that count."""
        return any(each.counts for each in self.rounds)

    @property
    def cpu_us(self) -> float:
        """CPU microseconds per request."""
        return statistics.median(each.cpu_us for each in self.counted)

    @property
    def per_second(self) -> float:
        """Requests a second."""
        return statistics.median(each.per_second for each in self.counted)

    @property
    def spread(self) -> tuple[float, float]:
        """Least and most CPU microseconds per request."""
        costs = [each.cpu_us for each in self.counted]
        return min(costs), max(costs)


@dataclass(frozen=True)
class Ratio:
    """Our cost divided by a peer's."""

    question: str
    peer: str
    value: float
    spread: tuple[float, float]
    bound: Bound
    clean: bool

    @property
    def verdict(self) -> str:
        """The verdict as text."""
        if self.bound.aim is not None and self.value <= self.bound.aim:
            return "aim met"
        return "must met" if self.value <= self.bound.must else "missed"


class Comparison(NamedTuple):
    """Servers to compare with: peers by name, and another build."""

    folder: Path  # of the peers
    names: Sequence[str] = peers.PEERS
    before: Path | None = None


class Memory(NamedTuple):
    """Resident memory of a server after a number of requests."""

    requests: int
    resident: int


@dataclass(frozen=True)
class Answers:
    """All results."""

    servers: Mapping[str, str]  # name to version, or why it is not there
    cells: Mapping[tuple[str, str], Cell] = field(default_factory=dict)  # by question and server
    wrong: Sequence[str] = ()

    def ratios(self, questions: Sequence[Question]) -> Iterator[Ratio]:
        """Ours against each peer, where there is a bound."""
        for question in questions:
            ours = self.cells.get((question.name, FOREBLOCK))
            for peer, bound in question.bounds.items():
                theirs = self.cells.get((question.name, peer))
                if ours is None or theirs is None:
                    continue
                low, high = ours.spread[0] / theirs.spread[1], ours.spread[1] / theirs.spread[0]
                yield Ratio(
                    question.name,
                    peer,
                    ours.cpu_us / theirs.cpu_us,
                    (low, high),
                    bound,
                    ours.clean and theirs.clean,
                )

    def memory(self) -> tuple[Memory, Memory] | None:
        """Ours once every question had its first round, and at the end, if there were more."""
        cells = [cell for (_, server), cell in self.cells.items() if server == FOREBLOCK]
        rounds = sorted((each for cell in cells for each in cell.rounds), key=lambda it: it.ended)
        first, every = rounds[: len(cells)], sum(each.requests for each in rounds)
        if len(rounds) == len(first):
            return None
        once = Memory(sum(each.requests for each in first), first[-1].resident)
        return once, Memory(every, rounds[-1].resident)


def cores() -> tuple[int, int]:
    """A core for the server and another for the load generator."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise InvalidArgument("server and load generator need a core each; there is one")
    return allowed[-1], allowed[0]


def answer(
    bench: Bench,
    questions: Sequence[Question],
    rounds: int,
    places: tuple[Comparison, Path],
    report: Report,
) -> Iterator[Answers]:
    """Measure every question on every installed server; yields what is known after each round.

    `places` are the servers to compare with, and a folder to work in.
    """
    comparison, folder = places
    with _servers(bench, questions, comparison, folder, report) as (servers, absent):
        names = {each.name: each.version for each in servers} | absent
        wrong = list(wrong_answers(servers, questions))
        wanted = [
            (position, question, server)
            for position, question in enumerate(questions)
            for server in servers
            if f"{server.name}: {question.name}" not in wrong
        ]
        for cells in _measure_all(bench, wanted, servers, rounds, folder, report):
            yield Answers(names, cells, wrong)


def _measure_all(
    bench: Bench,
    wanted: Sequence[tuple[int, Question, Server]],
    servers: Sequence[Server],
    rounds: int,
    folder: Path,
    report: Report,
) -> Iterator[dict[tuple[str, str], Cell]]:
    """Alternate rounds until each server has enough, or has had its attempts."""
    seen: dict[tuple[str, str], list[BenchRound]] = {
        (question.name, server.name): [] for _, question, server in wanted
    }
    scripts = {
        question.name: _script(question, position, folder) for position, question, _ in wanted
    }
    for attempt in range(ATTEMPTS * rounds):
        for position, question, server in wanted:
            done = seen[question.name, server.name]
            if sum(each.counts for each in done) >= rounds:
                continue
            with alone(server, servers):
                url = server.address(position)
                done.append(
                    measure(bench, server, url, scripts[question.name], question.connections)
                )
            finished = sum(_finished(some, rounds) for some in seen.values())
            text = f"{question.name}, {server.name}: {done[-1].cpu_us:.1f} µs"
            report(f"round {attempt + 1}, {text}", finished, rounds * len(wanted))
            yield {key: Cell(tuple(some)) for key, some in seen.items() if some}


def _finished(done: Sequence[BenchRound], rounds: int) -> int:
    """How many of the requested rounds are done with; after all attempts those are all."""
    return min(rounds, max(sum(each.counts for each in done), len(done) // ATTEMPTS))


def _script(question: Question, position: int, folder: Path) -> Path:
    file = folder / f"question-{position}.lua"
    file.write_text(wrk_script(question.bodies), "ascii")
    return file


@contextmanager
def _servers(
    bench: Bench,
    questions: Sequence[Question],
    comparison: Comparison,
    folder: Path,
    report: Report,
) -> Iterator[tuple[list[Server], dict[str, str]]]:
    """The running servers, and remarks about missing ones."""
    place = peers.PeerSetup(folder, bench.server_core, bench.narrow)
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        report("starting foreblock", 0, 0)
        ours = stack.enter_context(peers.foreblock(place))
        running = [ours]
        if comparison.before is not None:
            report("starting the build before", 0, 0)
            running.append(stack.enter_context(peers.before(comparison.before, place)))
        for name in comparison.names:
            program = peers.find(name, comparison.folder)
            if program is None:
                absent[name] = "not on this machine; bench/peers.sh installs it"
                continue
            report(f"starting {name}", 0, 0)
            match name:
                case "anvil":
                    running.append(stack.enter_context(peers.anvil(program, place)))
                case "geth":
                    running.append(stack.enter_context(peers.geth(program, place)))
                case _:
                    constants = peers.answers_of(ours, questions)
                    running.append(stack.enter_context(peers.nginx(program, place, constants)))
        yield running, absent


def wrong_answers(servers: Sequence[Server], questions: Sequence[Question]) -> Iterator[str]:
    """The pairs of server and question with a wrong answer, which are not measured."""
    for server in servers:
        for position, body in peers.answers_of(server, questions).items():
            if not fits(questions[position], json.loads(body)):
                yield f"{server.name}: {questions[position].name}"
