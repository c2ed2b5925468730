"""The delivery of notifications: rows, rounds, and their figures.

`subscriber` is the client that takes the times, `growing` has the servers. As in `rounds`, one
server runs at a time, on its own core, and the client on another.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.bench.measure import Figure
from foreblock.bench.preconf.part import ClientProcess, begun
from foreblock.bench.rpc import growing, subscriber
from foreblock.bench.rpc.answers import Beside
from foreblock.bench.rpc.peers import FOREBLOCK, PeerSetup, Server, find
from foreblock.bench.rpc.processes import pin
from foreblock.bench.rpc.rounds import Bench, alone

LEAST: Final = 10  # samples of a round
SLOWEST: Final = 60.0  # seconds for them
MS: Final = 1e6  # nanoseconds

Samples = Sequence[Sequence[int]]  # nanoseconds: sent, read and told


@dataclass(frozen=True)
class DeliveryRow:
    """A row: a subscription of each server. foreblock's may have its own name and path."""

    name: str
    kind: str
    ours: str
    path: str = "/"

    def subscription(self, server: Server) -> tuple[str, str]:
        """URL and kind of subscription for a server."""
        if server.name == FOREBLOCK:
            return server.url + self.path, self.ours
        return f"{server.url}/", self.kind


DELIVERIES: Final = (
    DeliveryRow("delivery of a log", "logs", "pendingLogs"),
    DeliveryRow("delivery of a head", "newHeads", "newHeads", "/eth"),
)


@dataclass(frozen=True)
class Delivered:
    """The figures of one row for one server, in milliseconds."""

    row: str
    server: str
    after_read: Figure  # from the first reply that shows it to the notification
    after_sent: Figure  # from the transaction to the notification


def deliveries(
    bench: Bench,
    rows: Sequence[DeliveryRow],
    rounds: int,
    places: tuple[Beside, Path],
    report: Callable[[str], None],
) -> list[Delivered]:
    """Measure these rows on every installed server.

    `places` are what stands beside, and a folder to work in.
    """
    if not rows:
        return []
    beside, folder = places
    place = PeerSetup(folder, bench.server_core, bench.narrow)
    seen: dict[tuple[str, str], list[Sequence[int]]] = {}
    with _servers(place, beside, report) as servers:
        for number in range(rounds):
            for row in rows:
                for server in servers:
                    report(f"round {number + 1}: {row.name}, {server.name}")
                    with alone(server, servers):
                        found = _round(bench, *row.subscription(server))
                    seen.setdefault((row.name, server.name), []).extend(found)
    return list(figures(seen))


def figures(seen: Mapping[tuple[str, str], Samples]) -> Iterator[Delivered]:
    """Figures from the times, by row and server."""
    for (row, server), samples in seen.items():
        after_read = [(told - read) / MS for _, read, told in samples]
        after_sent = [(told - sent) / MS for sent, _, told in samples]
        yield Delivered(row, server, Figure(row, "ms", after_read), Figure(row, "ms", after_sent))


def _round(bench: Bench, url: str, kind: str) -> Samples:
    client = ClientProcess(subscriber, url, kind, bench.seconds, LEAST)
    pin(client.pid, bench.client_core)
    with begun([client]):
        return client.found(bench.seconds + SLOWEST)


@contextmanager
def _servers(
    place: PeerSetup, beside: Beside, report: Callable[[str], None]
) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        report("starting foreblock's dev chain")
        running = [stack.enter_context(growing.foreblock(place))]
        for name, start in (("anvil", growing.anvil), ("geth", growing.geth)):
            if name in beside.names and (program := find(name, beside.folder)) is not None:
                report(f"starting {name}")
                running.append(stack.enter_context(start(program, place)))
        yield running
