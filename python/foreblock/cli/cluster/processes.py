"""The processes of a cluster on one machine: their plan, and how they are started and stopped.

There are three NATS servers, a writer, a standby, and replicas. Ports count from one base, so a
cluster has the same addresses each time:

    base + 0, 1, 2     NATS, for clients
    base + 3, 4, 5     NATS, among themselves
    base + 10, 11, …   JSON-RPC of writer, standby, replicas
    base + 40, 41, …   their snapshots
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.errors import EndpointError, WorkerFailed
from foreblock.upstream.rpc_client import Endpoint

SERVERS: Final = 3
NODES_AT: Final = 10
SNAPSHOTS_AT: Final = 40
MOST_REPLICAS: Final = 20
HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Planned:
    """A process of the plan."""

    name: str
    what: str  # its role, for people
    folder: Path  # its own
    command: tuple[str, ...]
    address: str  # HOST:PORT at which it answers
    config: str = ""  # written to `nats.conf` in its folder
    snapshots: str = ""  # HOST:PORT

    @property
    def is_node(self) -> bool:
        """True if it serves JSON-RPC."""
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
    """The options of the demo."""

    folder: Path
    nats_server: str  # the path of the program
    base_port: int
    replicas: int
    load: int  # transactions per second
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


OUTPUT: Final = "output.log"
STOP_SECONDS: Final = 20.0
_LAST_LINES: Final = 3


class ClusterProcess:
    """One process of a plan."""

    def __init__(self, planned: Planned) -> None:
        self.planned: Final = planned
        self.ended_at = 0.0  # when its end was noticed
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The id of its process and group; 0 if it is not running."""
        return 0 if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it; raises `OSError`."""
        planned = self.planned
        planned.folder.mkdir(parents=True, exist_ok=True)
        if planned.config:
            (planned.folder / "nats.conf").write_text(planned.config, "utf-8")
        settings = {name: v for name, v in os.environ.items() if not name.startswith("FOREBLOCK_")}
        with (planned.folder / OUTPUT).open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603, a command of the plan
                planned.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=settings,
                cwd=planned.folder,
                start_new_session=True,
            )

    def has_ended(self) -> int | None:
        """Return its exit code once."""
        code = None if self._process is None else self._process.poll()
        if code is not None:
            self._process, self.ended_at = None, time.monotonic()
        return code

    def last_lines(self) -> str:
        """The last lines of its output."""
        text = (self.planned.folder / OUTPUT).read_text("utf-8", "replace")
        return "\n".join(text.splitlines()[-_LAST_LINES:])

    def signal(self, number: int) -> None:
        """Send a signal to the process itself."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it and its children."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self, until: float) -> None:
        """Wait for its end; kill its group after the deadline."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._process = None


def readiness_of(planned: Planned) -> str:
    """The response of a node to `/readyz`, or why it has none."""
    try:
        with Endpoint(f"http://{planned.address}", 2.0) as endpoint:
            return endpoint.get("/readyz")[1]
    except EndpointError as error:
        return f"no response: {error}"


def is_ready(planned: Planned) -> bool:
    return readiness_of(planned).startswith("ready")


def wait_until_ready(
    processes: Sequence[ClusterProcess], seconds: float, step: Callable[[], None]
) -> None:
    """Wait until all nodes are ready; calls `step` between two polls.

    Raises `WorkerFailed` if a process ends or takes too long.
    """
    end = time.monotonic() + seconds
    waiting = list(processes)
    while waiting:
        for each in processes:
            if (code := each.has_ended()) is not None:
                name = each.planned.name
                raise WorkerFailed(f"{name} ended with {code}: {each.last_lines()}")
        waiting = [each for each in waiting if each.planned.is_node and not is_ready(each.planned)]
        if waiting and time.monotonic() > end:
            raise WorkerFailed(f"not ready after {seconds:.0f} s: {_why(waiting)}")
        step()


def _why(waiting: Iterable[ClusterProcess]) -> str:
    """The readiness and the last output of each process."""
    return "\n".join(
        f"{each.planned.name}: {readiness_of(each.planned).strip()}\n{each.last_lines()}"
        for each in waiting
    )


def stop_all(groups: Iterable[Sequence[ClusterProcess]]) -> None:
    """Stop groups one after the other, the processes of each together."""
    for group in groups:
        until = time.monotonic() + STOP_SECONDS
        for each in group:
            each.signal(signal.SIGTERM)
        for each in group:
            each.wait(until)
