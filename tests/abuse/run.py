"""The abuse that a service must withstand, at full scale.

    make check NAME=abuse
    python tests/abuse/run.py --url http://127.0.0.1:8545 --pid 1234

Without a URL it starts the service of this checkout. Each attack runs beside an ordinary client,
whose 99th percentile may grow to five times its idle value, or to 25 ms beside simulations; beside
reads of whole blocks its median may be 5 ms and its 99th percentile 25 ms (`reads`), and 25 ms
beside any code run by calls (`hogs`); excessive simulations must be rejected or stopped by the
deadline, within bounded memory; unread responses may take at most 512 MiB, which are released, and
a slow and steady reader gets everything; a chain continues beside ten thousand simulations
(`holding`), and no view mixes two commits (`snapshots`); fuzzed requests must be answered or
cleanly rejected, and memory must not grow. Exits with 1 if a requirement fails.
"""

import argparse
import os
import re
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from abuse.attackers import attacking
from abuse.departing import departing, moderate_calls
from abuse.frames import fuzz_frames
from abuse.fuzzing import fuzz_bodies, fuzz_raw
from abuse.hogs import KINDS
from abuse.holding import dev_chain, watched
from abuse.memory import peak_bytes, reset_peak
from abuse.probe import ask_once, probe
from abuse.reads import READERS, attack_with_reads
from abuse.simulations import EXCESSES, Excess
from abuse.snapshots import race
from abuse.wire import Connection, address_of, batch, post, request
from foreblock.bench.rpc import chain
from foreblock.bench.rpc.peers import family, resident_bytes
from foreblock.ledger.importing.importer import import_files
from foreblock.service.running import RunningService, serving

FACTOR = 5.0
ATTEMPTS = 5  # probes, of which the median counts
PROBES, SECONDS = 3000, 10.0  # per probe, whichever is reached first
MEBI = 2**20
# The growth of a worker from filled caches and memory kept by its allocator.
MEMORY_SLACK = 32 * MEBI
DEADLINE = 6.0  # seconds: that of a call, and one for the work before and after
HELD = 2048 * MEBI  # all processes of a dev chain, for any requests
PEAK = 256 * MEBI  # peak for requests of 5 MB while they are processed
SIMULATING = 4  # connections with excessive requests
HOGGING = 4  # connections that run code of one kind
HOGGED_MS = 25.0  # the 99th percentile of others beside any code
DEPARTING = 3.0  # clients a second that disconnect before their response
MODERATE = 200  # calls of some milliseconds beside them
MODERATE_MS = 50.0
HOLDING = (1_300, 10_000)  # concurrent simulations
GAP_SECONDS = 2.0  # maximum without a commit: a flashblock comes every 200 ms
UNREAD = {"unread_blocks": 1000, "unread_calls": 1000}
UNREAD_PEAK = 512 * MEBI  # of a worker, for any unread responses
GIVEN_BACK = 10.0  # seconds after they are gone
LARGEST = Excess(request("eth_getBlockByNumber", "0x1", True), (None,))
SLOW_RATE, SLOW_ITEMS = 250_000, 100  # bytes a second; blocks of a batch
SCALE = {
    "slow_header": 500,
    "slow_body": 500,
    "never_reads": 200,
    "idle": 10_000,
    "endless_loop": 64,
    "ws_idle": 10_000,
    "ws_half_handshake": 500,
    "ws_slow_message": 500,
    "ws_pings": 100,
    "ws_fragments": 100,
    "ws_never_reads": 200,
}
# The allowed memory of each connection of an attack.
EACH = {"ws_idle": 10_000}


CHOICES = [
    *SCALE, *EXCESSES, *KINDS, "hogs", *UNREAD, "slow_reader", "departing", "reads", "holding",
    "snapshots", "fuzz",
]  # fmt: skip


def p99(url: str) -> float:
    """The 99th percentile of an ordinary client, in milliseconds."""
    found = [probe(address_of(url), PROBES, SECONDS).percentile(99) for _ in range(ATTEMPTS)]
    return statistics.median(found)


def memory(pid: int | None) -> int:
    return resident_bytes(family(pid)) if pid else 0


def attack(service: RunningService, name: str, count: int) -> bool:
    before, rest = memory(service.pid), p99(service.url)
    with attacking(name, service.url, count) as attackers:
        under, during = p99(service.url), memory(service.pid)
    borne = under <= FACTOR * rest and (during - before) / count <= EACH.get(name, sys.maxsize)
    say(
        f"{name:<17} {count:>6} connections: p99 {rest:.2f} ms at rest, {under:.2f} ms under "
        f"attack, {under / rest:.1f} times; memory {before / MEBI:.0f} to {during / MEBI:.0f} MiB; "
        f"closed on {attackers.closed} times",
        met=borne,
    )
    return borne


def leave_unread(service: RunningService, name: str, count: int) -> bool:
    """Clients that request the largest responses and do not read; memory then, and after them."""
    workers = family(service.pid)[1:]
    rest = p99(service.url)
    before = resident_bytes(workers)
    reset_peak(workers)
    with attacking(name, service.url, count) as attackers:
        under = p99(service.url)
        refused = ask_once(address_of(service.url), LARGEST)[1]
    peak = peak_bytes(workers)
    after = fallen_to(before + MEMORY_SLACK, lambda: resident_bytes(workers))
    met = peak <= UNREAD_PEAK and after - before <= MEMORY_SLACK and under <= max(FACTOR * rest, 25)
    say(
        f"{name:<13} {count:>6} connections: worker {before / MEBI:.0f} MiB, at most "
        f"{peak / MEBI:.0f}, {after / MEBI:.0f} within {GIVEN_BACK:.0f} s after; p99 {rest:.2f} ms "
        f"at rest, {under:.2f} ms under attack; a long response beside it: {refused or 'given'}; "
        f"closed on {attackers.closed} times",
        met=met,
    )
    return met


def fallen_to(bound: int, measure: Callable[[], int]) -> int:
    """The measured value, once it is under a bound or the time to release memory is over."""
    until = time.monotonic() + GIVEN_BACK
    while (found := measure()) > bound and time.monotonic() < until:
        time.sleep(0.2)
    return found


def read_slowly(service: RunningService) -> bool:
    """One client that reads a long response at a steady rate, far longer than the idle timeout."""
    connection = Connection(address_of(service.url))
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    body = batch(request("eth_getBlockByNumber", "0x1", True), SLOW_ITEMS)
    connection.socket.sendall(post(body))
    begun, got = time.monotonic(), 0
    with suppress(OSError):
        while piece := connection.socket.recv(SLOW_RATE // 10):
            got += len(piece)
            connection.unread += piece
            if whole_answer(connection.unread):
                break
            time.sleep(max(0.0, begun + got / SLOW_RATE - time.monotonic()))
    took, met = time.monotonic() - begun, whole_answer(connection.unread)
    connection.close()
    say(
        f"slow reader   {got / 1e6:.1f} MB at {SLOW_RATE / 1e3:.0f} kB/s: "
        f"{'all of it' if met else 'cut off'} in {took:.0f} s",
        met=met,
    )
    return met


def whole_answer(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    return bool(end) and length is not None and len(body) >= int(length[1])


def overask(service: RunningService, name: str, count: int) -> bool:
    """One request by itself, then many clients that send it continuously."""
    excess = EXCESSES[name](1.0)
    seconds, answered = ask_once(address_of(service.url), excess)
    rest = p99(service.url)
    before = reset_peak(family(service.pid))
    with attacking(name, service.url, count) as attackers:
        under = p99(service.url)
    peak = peak_bytes(family(service.pid)) - before
    met = answered is None and seconds <= DEADLINE
    bounded, borne = peak <= PEAK, under <= max(FACTOR * rest, HOGGED_MS)
    say(
        f"{name:<19} {count} connections: {answered or 'as required'} in "
        f"{seconds * 1e3:.0f} ms; p99 {rest:.2f} ms at rest, {under:.2f} ms under attack, "
        f"{under / rest:.1f} times; at most {peak / MEBI:.0f} MiB more; "
        f"closed on {attackers.closed} times",
        met=met and bounded and borne,
    )
    return met and bounded and borne


def hogging(service: RunningService, name: str) -> bool:
    """One kind of code, run by some clients continuously."""
    with attacking(name, service.url, HOGGING):
        found = probe(address_of(service.url), PROBES, SECONDS)
    under = found.percentile(99)
    say(
        f"{name:<20} {HOGGING} connections: median {found.median:.2f} ms, p99 {under:.2f} ms",
        met=under <= HOGGED_MS,
    )
    return under <= HOGGED_MS


def departed(service: RunningService) -> bool:
    """Calls of some milliseconds beside clients that abandon long ones."""
    address = address_of(service.url)
    rest = moderate_calls(address, MODERATE)
    with departing(address, DEPARTING) as sent:
        under = moderate_calls(address, MODERATE * 10)
    late, most = under.percentile(99), under.percentile(100)
    met = late <= MODERATE_MS
    say(
        f"departing     {sent[0]} clients: a call takes {rest.median:.1f} ms at rest, beside them "
        f"{under.median:.1f} ms, p99 {late:.1f} ms, most {most:.1f} ms",
        met=met,
    )
    return met


def holding(count: int, seconds: float = 15.0) -> bool:
    """Very many simulations on a live chain."""
    with dev_chain() as (service, store), watched(store) as commits:
        before = memory(service.pid)
        reset_peak(family(service.pid))
        with attacking("holding", service.url, count):
            time.sleep(seconds)
        peak = peak_bytes(family(service.pid))
        probe(address_of(service.url), 1)
    met = commits.longest_gap <= GAP_SECONDS and peak <= HELD
    say(
        f"holding       {count:>6} connections: {commits.seen} commits, longest gap "
        f"{commits.longest_gap:.2f} s; memory {before / MEBI:.0f} to {peak / MEBI:.0f} MiB",
        met=met,
    )
    return met


def racing(seconds: float) -> bool:
    """Views of preempted readers, beside a writer without pause."""
    seen = race(seconds)
    say(
        f"snapshots     {seen.views} views of {seen.commits} commits in {seconds:.0f} s: "
        f"{seen.mixed} mixed two",
        met=not seen.mixed,
    )
    return not seen.mixed


def fuzz(service: RunningService, count: int) -> bool:
    address = address_of(service.url)
    # The first tenth fills caches; memory is compared from then on.
    wrong = list(fuzz_bodies(address, 1, count // 10))
    before = memory(service.pid)
    wrong += fuzz_bodies(address, 2, count * 8 // 10)
    wrong += fuzz_raw(address, 3, count // 10)
    wrong += fuzz_frames(address, 4, count // 10)
    grown = memory(service.pid) - before
    probe(address, 1)
    for each in wrong[:20]:
        click.echo(f"  {each}")
    good = not wrong and grown <= MEMORY_SLACK
    say(
        f"fuzz          {count:>6} requests: {len(wrong)} wrong responses; "
        f"memory grew by {grown / MEBI:.1f} MiB",
        met=good,
    )
    return good


def say(line: str, *, met: bool) -> None:
    click.echo(f"{'met   ' if met else 'MISSED'} {line}")


@contextmanager
def target(url: str | None, pid: int | None) -> Iterator[RunningService]:
    """The given endpoint, or the service of this checkout."""
    if url is not None:
        yield RunningService(url, pid or 0)
        return
    with tempfile.TemporaryDirectory() as folder:
        genesis = Path(folder) / "genesis.json"
        genesis.write_bytes(chain.genesis())
        store = Path(folder) / "store"
        import_files(genesis, chain.BLOCKS, store, None, lambda _: None)
        with serving(store, ["--workers=1"]) as service:
            yield service


def main() -> None:
    parser = argparse.ArgumentParser(description="Abuse an endpoint and see how it bears it.")
    parser.add_argument("--url", help="a running endpoint; by default the service of this checkout")
    parser.add_argument(
        "--pid", type=int, help="process id of its supervisor, to measure its memory"
    )
    parser.add_argument("--only", choices=CHOICES, help="a single attack")
    parser.add_argument("--requests", type=int, default=100_000, help="fuzzed requests")
    parser.add_argument("--race", type=float, default=600.0, help="seconds of racing snapshots")
    parser.add_argument("--connections", type=int, help="of an attack, instead of its default")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # attackers import the same modules
    with target(options.url, options.pid) as service:
        met = [
            attack(service, name, options.connections or count)
            for name, count in SCALE.items()
            if options.only in (None, name)
        ]
        met += [
            overask(service, name, options.connections or SIMULATING)
            for name in EXCESSES
            if options.only in (None, name)
        ]
        met += [hogging(service, name) for name in KINDS if options.only in (None, "hogs", name)]
        if options.only in (None, "departing"):
            met.append(departed(service))
        met += [
            leave_unread(service, name, options.connections or count)
            for name, count in UNREAD.items()
            if options.only in (None, name)
        ]
        if options.only in (None, "slow_reader"):
            met.append(read_slowly(service))
        if options.only in (None, "fuzz"):
            met.append(fuzz(service, options.requests))
    if options.url is None and options.only in (None, "reads"):
        met += attack_with_reads(count=options.connections or READERS)
    if options.only in (None, "holding"):
        met += [holding(options.connections or count) for count in HOLDING]
    if options.only in (None, "snapshots"):
        met.append(racing(options.race))
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
