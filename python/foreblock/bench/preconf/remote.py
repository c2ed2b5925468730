"""One run of a chain that follows a feed, with clients around it, and its figures."""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.bench.measure import Figure, probing
from foreblock.bench.preconf import clients, feeder
from foreblock.bench.preconf.client_process import ClientProcess, begun
from foreblock.bench.preconf.report import Position, first_seen, milliseconds, soon
from foreblock.bench.preconf.run import PreconfOptions, read
from foreblock.bench.rpc.rounds import LoadResult
from foreblock.clock import SECOND_NS
from foreblock.ledger.genesis.genesis_file import GENESIS_FILE
from foreblock.service.running import HOST, free_port, started

SIZES: Final = (50, 200)  # transactions of a message
HELD_UP_TO: Final = 50  # transactions up to which a message must meet the aim
BLOCK_SECONDS: Final = 2


@dataclass(frozen=True)
class SentMessage:
    """A message and the monotonic time at which it was sent."""

    at_ns: int
    block: int
    index: int
    transactions: int

    @property
    def place(self) -> Position:
        return self.block, self.index


@dataclass(frozen=True)
class Followed:
    """The observations of a run."""

    sent: Sequence[SentMessage]  # after the warm-up
    polled: Mapping[Position, int]  # when each flashblock was first seen
    heard: Mapping[Position, int]  # when its own feed sent it
    readers: LoadResult
    probes: Sequence[float]
    writer_cpu: float  # of one core


def run_followed(options: PreconfOptions, sizes: Sequence[int]) -> Followed:
    """Run, and return the results after the warm-up."""
    with tempfile.TemporaryDirectory(prefix="foreblock-bench-", dir=options.folder) as path:
        folder, port = Path(path), free_port()
        source = folder / "source"
        # As many blocks as there is time for, and one that is never sealed.
        blocks = options.in_all // BLOCK_SECONDS + 1
        feed = ClientProcess(feeder, source, port, blocks, *sizes)
        try:
            feed.wait_until_ready()
            with _following(options, folder, source, port) as (pid, url, passed_on):
                seconds = options.in_all
                parts = [
                    ClientProcess(clients, "poller", url, seconds),
                    ClientProcess(clients, "listener", passed_on, seconds),
                ]
                with begun(parts), probing(folder) as probes:
                    feed.begin()
                    since_ns = time.monotonic_ns() + options.warm_up * SECOND_NS
                    readers, cpu = read(options, url, folder, pid)
                    polled, heard = (part.found(seconds) for part in parts)
                sent = [SentMessage(*each) for each in feed.found(seconds)]
        finally:
            feed.end()
    until_ns = since_ns + options.seconds * SECOND_NS
    counted = [each for each in sent if since_ns <= each.at_ns < until_ns]
    return Followed(counted, first_seen(polled), first_seen(heard), readers, probes, cpu)


@contextmanager
def _following(
    options: PreconfOptions, folder: Path, source: Path, port: int
) -> Iterator[tuple[int, str, str]]:
    """A service that follows the feed: its process, its URL, the URL of its own feed."""
    address, feed = (f"{HOST}:{free_port()}" for _ in range(2))
    command = [
        sys.executable, "-m", "foreblock", "serve", "--source=feed", f"--data={folder / 'data'}",
        f"--genesis={source / GENESIS_FILE}", f"--feed=ws://{HOST}:{port}/ws",
        f"--listen={address}", f"--feed-listen={feed}", f"--workers={options.workers}",
        "--nice=5",
    ]  # fmt: skip
    url = f"http://{address}"
    with (folder / "log").open("w+b") as output, started(command, url, output) as process:
        yield process.pid, url, f"ws://{feed}/ws"


def followed_figures(seen: Followed) -> list[Figure]:
    """The figures of a run, by the size of messages, the smallest first."""
    found = []
    for size in sorted({each.transactions for each in seen.sent if each.index}):
        alike = [each for each in seen.sent if each.index and each.transactions == size]
        readable = _after(f"received to readable, {size} transactions", alike, seen.polled)
        found.append(soon(readable) if size <= HELD_UP_TO else readable)
        found.append(_after(f"received to passed on, {size} transactions", alike, seen.heard))
    firsts = [each for each in seen.sent if each.index == 0]
    found.append(_after("received to readable, first of a block", firsts, seen.polled))
    found.append(Figure("fdatasync of 4 kB", "ms", seen.probes))
    return [each for each in found if each.samples]


def followed_remarks(seen: Followed) -> Iterator[str]:
    """Remarks beside the figures."""
    span = seen.sent[-1].at_ns - seen.sent[0].at_ns if seen.sent else 0
    count = sum(each.transactions for each in seen.sent)
    rate = count * SECOND_NS / span if span else 0.0
    size = statistics.mean(each.transactions for each in seen.sent) if seen.sent else 0.0
    yield (
        f"{len(seen.sent)} messages, {size:.0f} transactions in each on average, "
        f"{rate:,.0f} transactions a second"
    )
    readers = seen.readers
    yield (
        f"readers: {readers.requests / readers.seconds:,.0f} requests a second, "
        f"median {readers.p50_us / 1e3:.2f} ms, p99 {readers.p99_us / 1e3:.2f} ms, "
        f"{readers.failed} failed; the writer used {seen.writer_cpu:.2f} of a core"
    )


def _after(question: str, sent: Sequence[SentMessage], seen: Mapping[Position, int]) -> Figure:
    unseen = sum(each.place not in seen for each in sent)
    samples = [milliseconds(seen[each.place] - each.at_ns) for each in sent if each.place in seen]
    return Figure(question, "ms", samples, remarks=(f"{unseen} never seen",) if unseen else ())
