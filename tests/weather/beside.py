"""A correctly followed network beside one with poisoned feeds, in one service.

    python tests/weather/beside.py --seconds 20

Reports the delay of flashblocks and the time of reads, without the other network and with it, and
the memory of the writer.
"""

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from checker.http_client import Client
from checker.journal import JournalWriter, read_journal
from checker.judge import Verdict, judge_journal, work_out
from checker.moment import find_moments
from checker.run import GENESIS, OPTIONS, OWNERS, chain
from checker.sending import LoadPlan, Sender
from support.servers.dev_processes import Network, children, dev_chain, serving_several
from support.servers.waiting import PATIENCE, until
from weather.convergence import Lateness, lateness
from weather.poison import KINDS, poison
from weather.recording import SourceRecorder
from weather.watching import Watcher

BLOCK_TIME = 1  # seconds
TPS = 20  # transactions a second
ASK_SECONDS = 0.02
# The allowed additional memory of the writer: messages of 16 MiB that wait or are being read, and
# messages waiting in the follower.
MEMORY_MIB = 256
# The allowed additional median delay of a flashblock; one in 100 may have ten times this.
LATER_NS = 50 * 10**6


@dataclass(frozen=True, slots=True)
class Measured:
    """The observations of a client of the good network, and the resources."""

    verdict: Verdict
    late: Lateness
    reads_ns: list[int]
    memory_mib: float  # the maximum of the writer
    said: str  # by the other network

    def read(self, part: float) -> float:
        """A quantile of the reads, in milliseconds."""
        return sorted(self.reads_ns)[int(part * (len(self.reads_ns) - 1))] / 1e6

    def row(self, name: str) -> str:
        """A table row; times in milliseconds."""
        late = [self.late.share(part) / 1e6 for part in (0.5, 0.99)]
        return (
            f"{name:>7}: flashblocks late {late[0]:.0f}, 99 % {late[1]:.0f}, "
            f"worst {self.late.worst_ns / 1e6:.0f} ms; reads {self.read(0.5):.2f}, "
            f"99 % {self.read(0.99):.2f} ms; writer {self.memory_mib:.0f} MiB"
        )


def measure(
    folder: Path,
    kinds: Sequence[str],
    seconds: float,
    is_enough: Callable[[str], bool] = lambda _: True,
) -> Measured:
    """Follow a dev chain for a while, optionally beside a network with these feeds.

    Continues until the other network's status suffices.
    """
    journal, data = folder / "journal", folder / "dev"
    with JournalWriter(journal, "chain") as writer:
        writer.chain(chain(BLOCK_TIME, followed=True))
    with ExitStack() as stack:
        options = (*OPTIONS, f"--block-time={BLOCK_TIME}", "--workers=1")
        dev = stack.enter_context(dev_chain(*options, f"--data={data}"))
        genesis = data / "main" / "genesis.json"
        told: dict[str, tuple[str, ...]] = {}
        told["good"] = (f"data={folder / 'good'}", f"genesis={genesis}",
                        f"feed={dev.main.feed}", f"canonical={dev.main.url}")  # fmt: skip
        if kinds:
            feeds = stack.enter_context(poison())
            told["bad"] = (f"data={folder / 'bad'}", f"genesis={genesis}",
                           *(f"feed={feeds[kind]}" for kind in kinds))  # fmt: skip
        recorder = stack.enter_context(SourceRecorder(data / "main", journal))
        service, networks = stack.enter_context(serving_several(told))
        good = networks["good"]
        until(lambda: good.probe("/readyz")[0] == 200, "it has come along")
        with _load(dev.main.url, journal), Watcher(good, journal) as watcher:
            reads, memory = _read_along(good, service, seconds)
            said = _until_said(networks["bad"], is_enough) if kinds else ""
        recorder.wait_for_blocks(3, PATIENCE)
    found = read_journal(journal)
    truth = work_out(found)
    moments, _ = find_moments(truth, [each for each in found.exchanges if each.answer])
    owed = [place for place in truth.places if place.received_ns >= watcher.begun_ns]
    verdict = judge_journal(found, truth)
    return Measured(verdict, lateness(owed, moments, watcher.end_ns), reads, memory, said)


@contextmanager
def _load(url: str, journal: Path) -> Iterator[None]:
    """A few payments, so that flashblocks are not empty."""
    plan = LoadPlan(url, journal, "sender", OWNERS, GENESIS.chain_id, TPS, seed=0)
    stop = multiprocessing.get_context("spawn").Event()
    thread = threading.Thread(target=Sender(plan).run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _until_said(network: Network, is_enough: Callable[[str], bool]) -> str:
    def said() -> str | None:
        text = network.probe("/readyz?verbose")[1]
        return text if is_enough(text) else None

    return until(said, "the other network's status suffices")


def _read_along(network: Network, service: int, seconds: float) -> tuple[list[int], float]:
    """The times of reads, and the maximum memory of the writer."""
    reads, memory, end = [], 0.0, time.monotonic() + seconds
    with Client(network.url, "reader") as client:
        while time.monotonic() < end:
            exchange = client.ask([("eth_getBlockByNumber", ["pending", True])])
            assert exchange.answer, "every request is answered"
            reads.append(exchange.received_ns - exchange.sent_ns)
            memory = max(memory, *map(resident_mib, children(service)["writer"]))
            time.sleep(ASK_SECONDS)
    return reads, memory


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * 4096 / 2**20


def complaints(alone: Measured, beside: Measured) -> list[str]:
    """The violated promises."""
    found = [str(each) for each in beside.verdict.contradictions[:3]]
    if beside.memory_mib > alone.memory_mib + MEMORY_MIB:
        found.append(f"the writer has {beside.memory_mib:.0f} MiB")
    for part, factor in ((0.5, 1), (0.99, 10)):
        late = beside.late.share(part) - alone.late.share(part)
        if late > LATER_NS * factor:
            found.append(f"{part:.0%} of flashblocks are up to {late / 1e6:.0f} ms later")
    return found


def run(folder: Path, seconds: float, kinds: Sequence[str] = tuple(KINDS)) -> bool:
    """Measure both, print the results, and return whether the promises hold."""
    alone = measure(folder / "alone", (), seconds)
    click.echo(alone.row("alone"))
    beside = measure(folder / "beside", kinds, seconds)
    click.echo(beside.row("beside"))
    wrong = complaints(alone, beside)
    for each in wrong:
        click.echo(f"wrong: {each}")
    click.echo(beside.said)
    return not wrong


def main() -> None:
    parser = argparse.ArgumentParser(description="Follow one network beside a poisoned one.")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foreblock-beside-") as folder:
        sys.exit(0 if run(Path(folder), options.seconds, options.kind or tuple(KINDS)) else 1)


if __name__ == "__main__":
    main()
