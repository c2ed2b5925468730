"""What a cluster on one machine consists of: processes, ports, folders, commands. No I/O.

Three NATS servers, a writer, a standby, and replicas. Ports count from one base, so that a
cluster is found again at the same addresses:

    base + 0, 1, 2     NATS, for clients
    base + 3, 4, 5     NATS, among themselves
    base + 10, 11, …   JSON-RPC of writer, standby, replicas
    base + 40, 41, …   their snapshots
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SERVERS: Final = 3
NODES_AT: Final = 10
SNAPSHOTS_AT: Final = 40
MOST_REPLICAS: Final = 20
HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Planned:
    """A process that is to run."""

    name: str
    what: str  # for people
    folder: Path  # its own
    command: tuple[str, ...]
    address: str  # HOST:PORT at which it answers
    config: str = ""  # written to `nats.conf` in its folder
    snapshots: str = ""  # HOST:PORT

    @property
    def is_node(self) -> bool:
        """Whether it answers JSON-RPC."""
        return not self.config


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The processes of a cluster, in the order in which they are started."""

    servers: tuple[Planned, ...]
    writers: tuple[Planned, ...]  # the first of them writes at first
    replicas: tuple[Planned, ...]
    log: str  # addresses of the NATS servers, separated by commas

    @property
    def nodes(self) -> tuple[Planned, ...]:
        return self.writers + self.replicas

    @property
    def urls(self) -> list[str]:
        """The JSON-RPC addresses of all nodes."""
        return [f"http://{each.address}" for each in self.nodes]


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What is asked for."""

    folder: Path
    nats_server: str  # the path of the program
    base_port: int
    replicas: int
    load: int  # transactions a second
    interval: float  # seconds between flashblocks


def plan_cluster(wanted: ClusterOptions) -> ClusterPlan:
    """The processes of a cluster."""
    log = ",".join(f"nats://{HOST}:{wanted.base_port + number}" for number in range(SERVERS))
    count = 2 + wanted.replicas
    snapshots = [f"{HOST}:{wanted.base_port + SNAPSHOTS_AT + number}" for number in range(count)]

    def node(number: int, name: str, what: str) -> Planned:
        others = ",".join(f"http://{each}" for each in snapshots if each != snapshots[number])
        address = f"{HOST}:{wanted.base_port + NODES_AT + number}"
        folder = wanted.folder / name
        options = (
            f"--data={folder / 'data'}",
            f"--listen={address}",
            "--workers=1",
            f"--log={log}",
            f"--snapshot-listen={snapshots[number]}",
            f"--snapshot-from={others}",
        )
        command = (
            (*_FOREBLOCK, "dev", *options, *_chain(wanted))
            if number < 2
            else (*_FOREBLOCK, "serve", "--source=log", *options)
        )
        return Planned(name, what, folder, command, address, snapshots=snapshots[number])

    return ClusterPlan(
        servers=tuple(_server(wanted, number) for number in range(SERVERS)),
        writers=(node(0, "writer", "writes the log"), node(1, "standby", "takes over")),
        replicas=tuple(
            node(2 + number, f"replica-{number + 1}", "follows")
            for number in range(wanted.replicas)
        ),
        log=log,
    )


_FOREBLOCK: Final = (sys.executable, "-m", "foreblock")


def _chain(wanted: ClusterOptions) -> tuple[str, ...]:
    return (
        "--test-listen=",
        "--feed-listen=",
        f"--log-replicas={SERVERS}",
        f"--load={wanted.load}",
        f"--interval={wanted.interval:g}",
    )


def _server(wanted: ClusterOptions, number: int) -> Planned:
    name, base = f"nats-{number + 1}", wanted.base_port
    folder, address = wanted.folder / name, f"{HOST}:{base + number}"
    routes = ", ".join(f"nats://{HOST}:{base + SERVERS + each}" for each in range(SERVERS))
    config = f"""server_name: {name}
listen: {address}
max_payload: 8MB
jetstream {{ store_dir: "{folder / "store"}", sync_interval: always }}
cluster {{ name: foreblock, listen: {HOST}:{base + SERVERS + number}, routes: [{routes}] }}
"""
    command = (wanted.nats_server, "-c", str(folder / "nats.conf"))
    return Planned(name, "stores the log", folder, command, address, config)
