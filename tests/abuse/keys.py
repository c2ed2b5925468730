"""One API key sends 10,000 requests a second; another one must hardly notice.

    make check NAME=keys
    python tests/abuse/keys.py --rate 10000 --units 1000

The greedy key has a budget of some units a second, so most of its requests are refused, and late.
Its load is paced, over many connections, by a process of its own; a request whose connection still
waits for an answer is not sent, as with clients of HTTP. With --connections 1000 nearly all are
sent. Beside it an ordinary client of another key requests balances, one after the other, in turn
with rounds without load and rounds in which the same load goes to another service, which shares
only the machine. The median of the 99th percentiles beside the load may be twice that at rest, or
half above that beside the other service: on two cores, the load alone costs the client a multiple
of its times at rest. Exits with 1 if it is more, if the load was not offered in time, or if the
greedy key got more than its budget.
"""

import argparse
import json
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import click

from abuse.probe import BALANCE, Latencies, probe
from abuse.wire import address_of, head
from foreblock.bench.rpc import chain
from foreblock.ledger.importing.importer import import_files
from foreblock.service.running import RunningService, serving

FACTOR = 2.0  # of the times at rest
SHARE = 1.5  # of the times beside the same load on another service
REACHED = 0.97  # of the load
OVER = 1.02  # of the budget: two workers may count one of two charges
CONNECTIONS = 100
ROUNDS, PROBES, SECONDS = 7, 3_000, 4.0
GREEDY, OTHER = "greedy-secret-0123456789", "other-secret-0123456789"
MOST = 1  # requests of a connection without an answer
STEP = 0.001  # seconds between two writes of the load
BURST = 1_000


@dataclass
class Load:
    """What became of the requests of the greedy key."""

    seconds: float = 0.0
    sent: int = 0
    served: int = 0
    refused: int = 0
    held: int = 0  # not sent, because the connection had too many before them

    @property
    def rate(self) -> float:
        return self.sent / self.seconds


def with_key(secret: str) -> str:
    """The header line of a key."""
    return f"X-API-Key: {secret}\r\n"


def send_load(url: str, rate: float, connections: int) -> Load:
    """Send paced requests until standard input ends."""
    one = head(len(BALANCE), with_key(GREEDY)) + BALANCE
    opened = [socket.create_connection(address_of(url)) for _ in range(connections)]
    turns, found, waiting = cycle(opened), Load(), dict.fromkeys(opened, 0)
    with selectors.DefaultSelector() as selector:
        for each in opened:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.setblocking(False)
            selector.register(each, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        click.echo("ready")
        begun = time.perf_counter()
        while True:
            due = int((time.perf_counter() - begun) * rate) - found.sent
            for each in islice(turns, due):
                if waiting[each] < MOST:
                    each.sendall(one)
                    waiting[each] += 1
                else:
                    found.held += 1
            found.sent += due
            for key, _ in selector.select(STEP):
                if key.fileobj is sys.stdin:
                    found.seconds = time.perf_counter() - begun
                    return found
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(1 << 16)
                served, refused = data.count(b"HTTP/1.1 200 "), data.count(b"HTTP/1.1 429 ")
                found.served += served
                found.refused += refused
                waiting[key.fileobj] -= served + refused


@contextmanager
def loaded(url: str, rate: float, connections: int, into: list[Load]) -> Iterator[None]:
    """The load, in a process of its own."""
    command = [
        sys.executable, "-m", "abuse.keys", "--load", url, "--rate", str(rate),
        "--connections", str(connections),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
        rest, _ = process.communicate("")
        into.append(Load(**json.loads(rest)))


@contextmanager
def with_keys(units: float) -> Iterator[RunningService]:
    """A service over the chain of the benchmarks, with both keys."""
    keys = {
        "greedy": {"secret": GREEDY, "units": units, "burst": BURST},
        "other": {"secret": OTHER, "units": 1e6},
        "anonymous": {"units": 100},  # who waits for the start
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        genesis, file = folder / "genesis.json", folder / "keys.json"
        genesis.write_bytes(chain.genesis())
        file.write_text(json.dumps({"keys": keys}))
        import_files(genesis, chain.BLOCKS, folder / "store", None, lambda _: None)
        with serving(folder / "store", [f"--api-keys={file}"]) as service:
            yield service


def measure(url: str) -> Latencies:
    """The times of the other key."""
    return probe(address_of(url), PROBES, SECONDS, with_key(OTHER))


def run(rate: float, units: float, connections: int) -> bool:
    at_rest: list[Latencies] = []
    elsewhere: list[Latencies] = []
    beside: list[Latencies] = []
    loads: list[Load] = []
    with with_keys(units) as service, with_keys(units) as other:
        measure(service.url)
        for number in range(ROUNDS):
            at_rest.append(measure(service.url))
            with loaded(other.url, rate, connections, []):
                elsewhere.append(measure(service.url))
            with loaded(service.url, rate, connections, loads):
                beside.append(measure(service.url))
            load = loads[-1]
            click.echo(
                f"round {number + 1} of {ROUNDS}: p99 {at_rest[-1].percentile(99):.3f} ms at rest, "
                f"{elsewhere[-1].percentile(99):.3f} ms beside the load on another service, "
                f"{beside[-1].percentile(99):.3f} ms beside {load.rate:,.0f} requests a second, of "
                f"which {(load.sent - load.held) / load.seconds:,.0f} could be sent and "
                f"{load.served / load.seconds:,.0f} were served"
            )
    rest, shared, under = (
        statistics.median(each.percentile(99) for each in some)
        for some in (at_rest, elsewhere, beside)
    )
    medians = [statistics.median(each.median for each in some) for some in (at_rest, beside)]
    reached = statistics.median(each.rate for each in loads)
    served = sum(each.served for each in loads)
    allowed = sum(units * each.seconds + BURST for each in loads) * OVER
    held = sum(each.held for each in loads)
    met = (
        under <= max(FACTOR * rest, SHARE * shared)
        and reached >= REACHED * rate
        and served <= allowed
    )
    click.echo(
        f"p99 {rest:.3f} ms at rest, {under:.3f} ms beside the load, {under / rest:.2f} times, "
        f"{under / shared:.2f} times that beside the load on another service ({shared:.3f} ms); "
        f"median {medians[0]:.3f} and {medians[1]:.3f} ms; {reached:,.0f} requests a second; "
        f"{served:,} served of {allowed:,.0f} allowed, {held:,} not sent after others: "
        + ("as it must be" if met else "NOT as it must be")
    )
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rate", type=float, default=10_000.0, help="requests a second")
    parser.add_argument("--units", type=float, default=1_000.0, help="of the greedy key a second")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="of the greedy key")
    parser.add_argument("--load", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        click.echo(json.dumps(vars(send_load(options.load, options.rate, options.connections))))
        return
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # the load imports the same modules
    sys.exit(0 if run(options.rate, options.units, options.connections) else 1)


if __name__ == "__main__":
    main()
