"""Times: readable at a replica (2), writing continues after a death (4), catch-up (5), cost (10).

The figures assume an otherwise idle machine; bounds are those of docs/cluster.md.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import nats

from replicas.commit_times import CommitTimes, delays, quantiles
from replicas.fleet import INTERVAL, Fleet, fleet, writing
from replicas.node import NAME, Node
from replicas.places import Place
from replicas.stream import read_log

Say = Callable[[str], None]
HERE = [Place(0, is_apart=False)] * 3
SECONDS = 30
BOUNDS = {1: (5.0, 25.0), 3: (8.0, 40.0)}  # copies of the log: median and p99 in ms


def run_readable(folder: Path, say: Say) -> list[str]:
    """From the writer's commit to the same at a replica, 250 transactions a second."""
    wrong = []
    for copies, (median, p99) in BOUNDS.items():
        with (
            fleet(folder / str(copies), HERE, "--load=250", copies=copies, replicas=1) as made,
            CommitTimes(writing(made)).watching() as first,
            CommitTimes(made.replicas[0]).watching() as second,
        ):
            time.sleep(SECONDS)
        found = delays(first, second)
        say(f"readable at a replica, R{copies}: {quantiles(found)}")
        if statistics.median(found) > median or statistics.quantiles(found, n=100)[98] > p99:
            wrong.append(f"R{copies}: bounds are {median:g} and {p99:g} ms")
    return wrong


def run_deaths(folder: Path, say: Say, rounds: int = 5) -> list[str]:
    """The longest time without a commit after each kind of death."""
    wrong: list[str] = []
    with fleet(folder, HERE, "--load=100") as made:
        for _ in range(rounds):
            for what, bound, death in (
                ("all processes of the writer killed", 4.0, _kill_writer),
                ("supervisor of the writer killed", 4.0, _kill_supervisor),
                ("NATS leader killed", 12.0, _kill_leader),
                ("writer stopped", 1.0 + 4.0, _stop_writer),
                ("NATS leader stopped", 1.0, _stop_leader),
            ):
                with CommitTimes(made.replicas[0]).watching() as times:
                    made.replicas[0].wait(commit=made.level() + 5)
                    epoch = read_log(made.urls, NAME)[-1].epoch
                    death(made)
                    made.replicas[0].wait(commit=max(times.times) + 10)
                gap, changed = times.longest_gap(), read_log(made.urls, NAME)[-1].epoch - epoch
                say(f"{what}: {gap:.1f} s without a commit, {changed} changes of writer")
                if gap > bound or (changed and "NATS" in what):
                    wrong.append(f"{what}: {gap:.1f} s (bound {bound:g}), {changed} changes")
                made.level()
    return wrong


def _again(made: Fleet, node: Node) -> None:
    node.start()
    node.wait(commit=made.replicas[0].commit())


def _kill_writer(made: Fleet) -> None:
    node = writing(made)
    node.kill()
    made.replicas[0].wait(commit=made.replicas[0].commit() + 5)
    _again(made, node)


def _kill_supervisor(made: Fleet) -> None:
    """Its other processes notice, and shut down in order."""
    node = writing(made)
    assert node.process is not None
    node.process.kill()
    node.process.wait()
    node.process = None
    made.replicas[0].wait(commit=made.replicas[0].commit() + 5)
    _again(made, node)


def _stop_writer(made: Fleet) -> None:
    node = writing(made)
    node.stop()
    made.replicas[0].wait(commit=made.replicas[0].commit() + 5)
    _again(made, node)


def _kill_leader(made: Fleet) -> None:
    server = made.servers[leader(made)]
    server.kill()
    made.replicas[0].wait(commit=made.replicas[0].commit() + 5)
    server.start()


def _stop_leader(made: Fleet) -> None:
    server = made.servers[leader(made)]
    server.stop()
    made.replicas[0].wait(commit=made.replicas[0].commit() + 5)
    server.start()


def leader(made: Fleet) -> int:
    """The number of the NATS server that leads the stream."""

    async def ask() -> str:
        client = await nats.connect(made.urls)
        try:
            info = await client.jetstream().stream_info(f"FB_{NAME}")
            assert info.cluster is not None
            assert info.cluster.leader is not None
            return info.cluster.leader
        finally:
            await client.close()

    return int(asyncio.run(ask()).removeprefix("server"))


def run_catching_up(folder: Path, say: Say, seconds: int = 120) -> list[str]:
    """An empty replica, at 200 transactions a flashblock."""
    with fleet(folder, HERE, "--load=1000", copies=1, replicas=1) as made:
        time.sleep(seconds)
        with ExitStack() as opened:
            late = made.add_replica(HERE[0], folder)
            opened.callback(late.kill)
            head = made.replicas[0].commit()
            late.start()
            late.wait(commit=1)
            first, began = late.commit(), time.monotonic()
            late.wait(commit=head)
            took = time.monotonic() - began
    speed = (head - first) * INTERVAL / took
    say(f"catch-up: {head - first} commits in {took:.2f} s, {speed:.0f} times real time")
    return [] if speed >= 100 else [f"catch-up: {speed:.0f} times real time (bound 100)"]


def run_cost(folder: Path, say: Say) -> list[str]:
    """Share of a core used by following at 1,000 transactions a second."""
    with fleet(folder, HERE, "--load=1000", copies=1, replicas=1) as made:
        pid = made.replicas[0].writer_pid
        time.sleep(5)
        before, began = _cpu(pid), time.monotonic()
        time.sleep(SECONDS)
        share = 100 * (_cpu(pid) - before) / (time.monotonic() - began)
    say(f"the process that follows: {share:.1f} % of a core at 1,000 transactions a second")
    return [] if share <= 5 else [f"following takes {share:.1f} % of a core (bound 5)"]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
