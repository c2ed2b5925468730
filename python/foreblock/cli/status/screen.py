"""The screen of `foreblock status`: the instance, its networks, its processes. No I/O."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from foreblock.cli.status.reading import SOURCES, NetworkStatus, Status
from foreblock.cli.verb import size
from foreblock.cli.watch.connection import SeenBlock
from foreblock.cli.watch.screen import EARLY, SEALED, amount


def screen(found: Status) -> RenderableType:
    """All of it, one part below the other."""
    parts: list[RenderableType] = [_instance(found)]
    parts += [_panel(each, found) for each in found.networks]
    processes = _processes(found)
    return Group(*parts, *([processes] if processes.row_count else []))


def _instance(found: Status) -> Text:
    state = ("ready", "green") if found.is_ready else ("not ready", "red")
    said = found.client or "a server that does not name itself"
    text = Text.assemble((said, "bold"), "  ", state)
    if found.uptime is not None:
        text.append(f"  up {age(found.uptime)}", style="dim")
    connections = found.samples.value("foreblock_connections")
    if connections is not None:
        text.append(f"  {_counted(int(connections), 'connection')}", style="dim")
    return text


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _panel(network: NetworkStatus, found: Status) -> Panel:
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


def _lines(network: NetworkStatus, found: Status) -> list[tuple[str, RenderableType]]:
    lines: list[tuple[str, RenderableType]] = []
    chain = [] if network.chain_id is None else [f"id {network.chain_id}"]
    chain += [] if network.source is None else [f"source {network.source}"]
    chain += [] if network.commit is None else [f"commit {network.commit}"]
    chain += [] if network.peers is None else [_counted(network.peers, "peer")]
    if chain:
        lines.append(("chain", ", ".join(chain)))
    if network.latest is not None:
        seconds = found.at - network.latest.timestamp
        place = f"{network.latest.number}"
        lines.append(("latest", _block(network.latest, place, seconds, SEALED)))
    if network.pending is not None:
        index = "" if network.flashblock is None else f".{network.flashblock}"
        place = f"{network.pending.number}{index}"
        lines.append(("pending", _block(network.pending, place, found.pending_age(network), EARLY)))
    elif network.latest is not None:
        lines.append(("pending", "= latest"))
    if network.oldest_state is not None:
        lines.append(("kept", f"states from block {network.oldest_state}"))
    for name in SOURCES[:3]:
        lines += [(name, fact) for fact in network.facts.get(name, ())]
    lines += [
        (name, fact) for name in ("maintenance", "logs") for fact in network.facts.get(name, ())
    ]
    used = _use(network, found)
    if used:
        lines.append(("clients", used))
    store = _store(network, found)
    if store:
        lines.append(("store", store))
    return lines


def _block(block: SeenBlock, place: str, seconds: float | None, style: str) -> Text:
    told = f", {age(seconds)} old" if seconds is not None else ""
    return Text.assemble(
        (place, style),
        f"{told}, {_counted(block.transactions, 'transaction')}, {amount(block.gas_used)} gas  ",
        (block.hash[:18], "dim"),
    )


def _use(network: NetworkStatus, found: Status) -> str:
    def sample(name: str) -> float | None:
        return found.samples.value(f"foreblock_{name}", network=network.name)

    parts = []
    for name, what in (
        ("requests_total", "requests"),
        ("subscriptions", "subscriptions"),
        ("pool_transactions", "transactions in the pool"),
    ):
        value = sample(name)
        if value is not None:
            parts.append(f"{value:,.0f} {what}")
    return ", ".join(parts)


def _store(network: NetworkStatus, found: Status) -> str:
    def sample(name: str) -> float | None:
        return found.samples.value(f"foreblock_{name}", network=network.name)

    length, free, disk = map(sample, ("store_file_bytes", "store_free_bytes", "disk_free_bytes"))
    if length is None:
        return ""
    parts = [size(length)]
    parts += [] if free is None else [f"{size(free)} of it free pages"]
    parts += [] if disk is None else [f"{size(disk)} free on the disk"]
    return ", ".join(parts)


def _processes(found: Status) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("process", no_wrap=True)
    for heading in ("memory", "CPU", "up"):
        table.add_column(heading, justify="right", no_wrap=True)
    for labels, resident in found.samples.of("foreblock_process_resident_memory_bytes"):
        name = labels.get("process", "")
        cpu = found.samples.value("foreblock_process_cpu_seconds_total", process=name)
        started = found.samples.value("foreblock_process_start_time_seconds", process=name)
        table.add_row(
            name,
            size(resident),
            "" if cpu is None else f"{cpu:.1f} s",
            "" if started is None else age(found.at - started),
        )
    return table


def age(seconds: float) -> str:
    """A time for people."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.1f} s"
