"""`foreblock status`: the status and health of a running instance."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

import click
import msgspec
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from foreblock.cli.instance import FoundNetwork, Instance, Reading, SeenBlock, read_instance
from foreblock.cli.verb import argument, json_option, size, stop, verb
from foreblock.cli.watch.screen import EARLY, SEALED, amount
from foreblock.errors import ForeblockError
from foreblock.status.status_text import counted, details
from foreblock.upstream.rpc_client import DEFAULT_URL

SHOWN: Final = ("log", "feed", "canonical", "following", "maintenance", "logs")  # details


def screen(found: Instance) -> RenderableType:
    """The instance, its networks and its processes."""
    parts: list[RenderableType] = [_instance(found)]
    parts += [_panel(each, found) for each in found.networks]
    processes = _processes(found)
    return Group(*parts, *([processes] if processes.row_count else []))


def _instance(found: Instance) -> Text:
    state = ("ready", "green") if found.is_ready else ("not ready", "red")
    said = found.client or "a server that does not name itself"
    text = Text.assemble((said, "bold"), "  ", state)
    if found.uptime is not None:
        text.append(f"  up {age(found.uptime)}", style="dim")
    connections = found.samples.value("foreblock_connections")
    if connections is not None:
        text.append(f"  {counted(int(connections), 'connection')}", style="dim")
    return text


def _panel(network: FoundNetwork, found: Instance) -> Panel:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in _lines(network, found):
        grid.add_row(name, value)
    problems = [Text(f"! {each}", style="bold red") for each in network.problems()]
    title = Text.assemble((network.name or network.url, "bold"))
    if network.name:
        title.append(f"  {network.url}", style="dim")
    border = "red" if problems else "bright_black"
    content = Group(grid, *problems)
    return Panel(content, title=title, title_align="left", border_style=border, padding=(0, 1))


def _lines(network: FoundNetwork, found: Instance) -> list[tuple[str, RenderableType]]:
    lines: list[tuple[str, RenderableType]] = []
    status, reading = network.status, network.reading
    chain = [] if network.chain_id is None else [f"id {network.chain_id}"]
    chain += [] if status is None else [f"source {status.kind}"]
    chain += [] if reading is None or reading.commit is None else [f"commit {reading.commit}"]
    chain += [] if network.peers is None else [counted(network.peers, "peer")]
    if chain:
        lines.append(("chain", ", ".join(chain)))
    if reading is not None:
        lines += _blocks(reading, network.pending_age, found.at)
    if network.oldest_state is not None:
        lines.append(("kept", f"states from block {network.oldest_state}"))
    known = [] if status is None else list(details(status))
    lines += [each for name in SHOWN for each in known if each[0] == name]
    used = _use(network, found)
    if used:
        lines.append(("clients", used))
    store = _store(network, found)
    if store:
        lines.append(("store", store))
    return lines


def _blocks(
    reading: Reading, pending_age: float | None, at: float
) -> Iterator[tuple[str, RenderableType]]:
    latest, pending = reading.latest, reading.pending
    yield "latest", _block(latest, f"{latest.number}", at - latest.timestamp, SEALED)
    if pending is None:
        yield "pending", "= latest"
    else:
        yield "pending", _block(pending, reading.pending_position, pending_age, EARLY)


def _block(block: SeenBlock, position: str, seconds: float | None, style: str) -> Text:
    old = f", {age(seconds)} old" if seconds is not None else ""
    return Text.assemble(
        (position, style),
        f"{old}, {counted(block.transactions, 'transaction')}, {amount(block.gas_used)} gas  ",
        (block.hash[:18], "dim"),
    )


def _use(network: FoundNetwork, found: Instance) -> str:
    samples = (
        ("requests_total", "request", ""),
        ("subscriptions", "subscription", ""),
        ("pool_transactions", "transaction", " in the pool"),
    )
    found_ = [(found.sample(network, name), noun, where) for name, noun, where in samples]
    return ", ".join(counted(it, noun) + where for it, noun, where in found_ if it is not None)


def _store(network: FoundNetwork, found: Instance) -> str:
    sizes = {
        "": found.sample(network, "store_file_bytes"),
        " of it free pages": found.sample(network, "store_free_bytes"),
        " free on the disk": found.sample(network, "disk_free_bytes"),
    }
    return ", ".join(size(value) + what for what, value in sizes.items() if value is not None)


def _processes(found: Instance) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("process", no_wrap=True)
    for heading in ("memory", "CPU", "up"):
        table.add_column(heading, justify="right", no_wrap=True)
    for labels, resident in found.samples.of("process_resident_memory_bytes"):
        name = labels.get("process", "")
        cpu = found.samples.value("process_cpu_seconds_total", process=name)
        started = found.samples.value("process_start_time_seconds", process=name)
        table.add_row(
            name,
            size(resident),
            "" if cpu is None else f"{cpu:.1f} s",
            "" if started is None else age(found.at - started),
        )
    return table


def age(seconds: float) -> str:
    """A duration in its largest unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.1f} s"


NOT_READY: Final = 1
NOT_REACHABLE: Final = 2


@verb(examples=["foreblock status", "foreblock status http://127.0.0.1:9545 --json"])
@argument(
    "url",
    help="Any network of the instance.",
    metavar="[URL]",
    envvar="FOREBLOCK_URL",
    default=DEFAULT_URL,
)
@json_option("Print one JSON object.")
def status(*, url: str, as_json: bool) -> None:
    """Show the status and health of a running instance.

    It shows the version, the uptime, the blocks, source, store and retention of each network, and
    the memory of each process. Of another server it shows the data that server provides.

    Exit code 0: ready. 1: not ready. 2: not reachable.
    """
    try:
        found = read_instance(url)
    except (ForeblockError, OSError) as failure:
        stop(str(failure), NOT_REACHABLE)
    if as_json:
        click.echo(json.dumps(as_object(found)))
    else:
        Console(highlight=False).print(screen(found))
    sys.exit(0 if found.is_ready else NOT_READY)


def as_object(found: Instance) -> dict[str, object]:
    """The instance as values of JSON."""
    uptime = found.uptime
    return {
        "url": found.url,
        "client": found.client,
        "version": found.version,
        "uptime_seconds": None if uptime is None else round(uptime, 1),
        "ready": found.is_ready,
        "networks": [_network_object(each, found) for each in found.networks],
        "processes": [
            {
                "name": labels.get("process"),
                "resident_bytes": int(value),
                "cpu_seconds": found.samples.value("process_cpu_seconds_total", **labels),
            }
            for labels, value in found.samples.of("process_resident_memory_bytes")
        ],
    }


def _network_object(network: FoundNetwork, found: Instance) -> dict[str, object]:
    return {
        "name": network.name or None,
        "url": network.url,
        "ready": None if network.status is None else network.status.ready,
        "problems": network.problems(),
        "chain_id": network.chain_id,
        "reading": None if network.reading is None else asdict(network.reading),
        "status": msgspec.to_builtins(network.status),
        "oldest_state": network.oldest_state,
        "peers": network.peers,
        "pool_transactions": found.sample(network, "pool_transactions"),
        "subscriptions": found.sample(network, "subscriptions"),
        "store": {
            "file_bytes": found.sample(network, "store_file_bytes"),
            "free_bytes": found.sample(network, "store_free_bytes"),
            "disk_free_bytes": found.sample(network, "disk_free_bytes"),
        },
    }
