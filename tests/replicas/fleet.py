"""A whole fleet: NATS servers, nodes that may write, and replicas, each in a separate place."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from replicas.node import NAME, Node
from replicas.places import Place
from support.servers.nats_servers import NatsServer, nats_cluster
from support.servers.waiting import until

INTERVAL = 0.2  # seconds between flashblocks


@dataclass
class Fleet:
    """The running services."""

    places: Sequence[Place]
    servers: list[NatsServer]
    writers: list[Node]  # those that may write; one does
    replicas: list[Node]

    @property
    def nodes(self) -> list[Node]:
        return [*self.writers, *self.replicas]

    @property
    def urls(self) -> list[str]:
        return [each.url for each in self.servers]

    def level(self) -> int:
        """Wait until all running nodes are at one commit or above it; return it."""
        running = [each for each in self.nodes if each.process is not None]
        highest = max(each.commit() for each in running)
        for node in running:
            node.wait(commit=highest)
        return highest

    def add_replica(
        self, place: Place, folder: Path, *options: str, before: Sequence[str] = ()
    ) -> Node:
        """Add a replica, not started yet."""
        name = f"replica{len(self.replicas)}"
        node = Node(name, place, folder / name, [*replica(self.urls), *options], list(before))
        self.replicas.append(node)
        return node


def writer(urls: Sequence[str], copies: int, *options: str) -> list[str]:
    """The command of a node that may write."""
    return [
        "dev", "--test-listen=", "--feed-listen=", "--test-feed-listen=", "--workers=1",
        f"--log={','.join(urls)}", f"--log-name={NAME}", f"--log-replicas={copies}", *options,
    ]  # fmt: skip


def replica(urls: Sequence[str]) -> list[str]:
    """The command of a replica."""
    return ["serve", "--source=log", "--workers=1", f"--log={','.join(urls)}", f"--log-name={NAME}"]


@contextmanager
def fleet(
    folder: Path,
    places: Sequence[Place],
    *options: str,
    copies: int = 3,
    replicas: int = 2,
    payload: str = "8MB",
    standby: bool = True,
) -> Iterator[Fleet]:
    """A fleet of ready nodes: a writer, a standby, replicas; `copies` NATS servers."""
    with ExitStack() as opened:
        at = places[:copies]
        hosts, prefixes = [each.host for each in at], [each.prefix for each in at]
        servers = nats_cluster(folder, copies, hosts, prefixes, payload)
        for server in servers:
            opened.callback(server.kill)
            server.start()
        urls = [each.url for each in servers]
        made = Fleet(places, servers, [], [])
        for number in range(1 + standby):
            name = f"writer{number}"
            place = places[number % len(places)]
            made.writers.append(Node(name, place, folder / name, writer(urls, copies, *options)))
        for number in range(replicas):
            made.add_replica(places[(number + 2) % len(places)], folder)
        first, *others = made.nodes
        for node in (first, *others):
            opened.callback(node.kill)
            node.start()
            if node is first:
                node.wait(commit=2)
        made.level()
        yield made


def writing(made: Fleet) -> Node:
    """The writing node, by its last status."""
    found: list[Node] = []

    def look() -> bool:
        found[:] = [each for each in made.writers if each.process is not None and is_writing(each)]
        return len(found) == 1

    until(look, "one node writes")
    return found[0]


def is_writing(node: Node) -> bool:
    """Return whether `/readyz?verbose` reports it as the writer."""
    return "this node writes" in node.probe()
