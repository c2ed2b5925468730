"""`foreblock watch`: the progress of networks, live in the terminal, as lines or as JSON.

The screen is made with rich, which is a dependency for tables already; textual would add its own
dependencies to every service.
"""

import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Final

import click
import msgspec
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from foreblock.cli.instance import READINESS, parse_status, read_blocks, read_earlier
from foreblock.cli.verb import argument, failing_in_one_line, json_option, option, stop, verb
from foreblock.cli.watch.history import History, SeenGrowth
from foreblock.errors import EndpointError
from foreblock.upstream.rpc_client import Endpoint

LOCAL: Final = ("http://127.0.0.1:8545", "http://127.0.0.1:9545")
GWEI: Final = 10**9
TIMEOUT_SECONDS: Final = 2.0
EARLIER: Final = 60  # rows of a large terminal
STATUS_SECONDS: Final = 1.0  # between two requests for the status
COLUMNS: Final = {  # with minimum widths
    "latest": 9,
    "pending": 12,
    "txs": 5,
    "gas used": 11,
    "base fee": 11,
    "age": 6,
}


@dataclass(slots=True)
class Watched:
    """An endpoint and its history."""

    endpoint: Endpoint
    history: History = field(default_factory=History)
    status_at: float = -STATUS_SECONDS  # when the status was requested
    earlier: int = 0  # blocks to read below the first latest one

    @property
    def name(self) -> str:
        return self.endpoint.url.removeprefix("http://")

    def poll(self) -> list[SeenGrowth]:
        """Query the endpoint once; return the growth since the last time."""
        history, begun = self.history, time.monotonic()
        try:
            found = read_blocks(self.endpoint)
            if history.reading is None:
                latest = found.latest.number
                history.blocks.extend(read_earlier(self.endpoint, latest, self.earlier))
            history.response_seconds = time.monotonic() - begun
            if begun - self.status_at >= STATUS_SECONDS:
                history.status = parse_status(self.endpoint.get(*READINESS)[1])
                self.status_at = begun
        except EndpointError as failure:
            history.failure = str(failure)
            return []
        return history.add(found, time.monotonic())


@verb(examples=["foreblock watch", "foreblock watch http://127.0.0.1:8545 --once --json"])
@argument(
    "urls", help="Endpoints; those of `foreblock dev` by default.", metavar="[URL]...", nargs=-1
)
@option("--every", default=0.1, metavar="SECONDS", help="Time between two updates.")
@option("--once", is_flag=True, help="Print one update and exit, with 1 if an endpoint does not "
        "respond.")  # fmt: skip
@json_option("Print each update as one line of JSON.")
def watch(*, urls: Sequence[str], every: float, once: bool, as_json: bool) -> None:
    """Show the progress of networks.

    Shows blocks and flashblocks as they come, rates, ages, the state of feeds, and what needs
    attention. URL is an endpoint; without any, those of `foreblock dev`. Quit with q or Ctrl-C.
    Without a terminal it prints a line for each change.
    """
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    earlier = EARLIER if is_terminal and not (once or as_json) else 0
    watched = [Watched(Endpoint(url, TIMEOUT_SECONDS), earlier=earlier) for url in urls or LOCAL]
    # Ctrl-C is an ordinary way to stop, not a failure.
    with failing_in_one_line(), suppress(KeyboardInterrupt):
        if earlier:
            _show(watched, every)  # threads use the endpoints until the process ends
            return
        with ExitStack() as opened:
            for each in watched:
                opened.enter_context(each.endpoint)
            if once:
                _print_once(watched, as_json=as_json)
            elif as_json:
                _print_json(watched, every)
            else:
                _print_lines(watched, every)


def _show(watched: Sequence[Watched], every: float) -> None:
    """Show the screen."""
    from foreblock.cli.watch.screen import NamedHistory, Polling, show  # noqa: PLC0415, for terminals

    polling = Polling([each.poll for each in watched], every)
    show([NamedHistory(each.name, each.history) for each in watched], polling, every)


def _poll_all(watched: Sequence[Watched]) -> list[list[SeenGrowth]]:
    return [each.poll() for each in watched]


def _print_once(watched: Sequence[Watched], *, as_json: bool) -> None:
    """Print one update; exit with 1 if an endpoint does not respond."""
    _poll_all(watched)
    if as_json:
        click.echo(json.dumps([_plain(each) for each in watched]))
    else:
        Console().print(summary(watched, time.monotonic()))
    failures = [each.history.failure for each in watched if each.history.failure]
    if failures:
        stop("; ".join(failures), 1)


def _print_json(watched: Sequence[Watched], every: float) -> None:
    for _ in _rounds(every):
        _poll_all(watched)
        click.echo(json.dumps([_plain(each) for each in watched]))


def _print_lines(watched: Sequence[Watched], every: float) -> None:
    """A line for each growth, and for each alert when it begins."""
    printed: dict[str, list[str]] = {}
    for _ in _rounds(every):
        for each, grown in zip(watched, _poll_all(watched), strict=True):
            for line in lines(each, grown, printed.setdefault(each.name, []), time.monotonic()):
                click.echo(f"{datetime.now(tz=UTC):%H:%M:%S.%f}"[:-3] + f" {each.name} {line}")


def _rounds(every: float) -> Iterator[None]:
    """Yield once in each interval."""
    while True:
        begun = time.monotonic()
        yield
        time.sleep(max(0.0, every - (time.monotonic() - begun)))


def lines(
    each: Watched, grown: Sequence[SeenGrowth], printed: list[str], now: float
) -> Iterator[str]:
    """The lines to print for a network; `printed` are the current alerts that were printed."""
    for growth in grown:
        position = f"{growth.block}" + ("" if growth.index is None else f".{growth.index}")
        word = "sealed " if growth.sealed else ""
        yield f"{word}{position} +{growth.transactions} tx +{growth.gas:,} gas"
    # An alert whose duration grows is not a new one.
    alerts = {re.sub(r"[\d.]+ s\b", "", alert): alert for alert in each.history.alerts(now)}
    yield from (f"! {alert}" for kind, alert in alerts.items() if kind not in printed)
    printed[:] = alerts


def summary(watched: Sequence[Watched], now: float) -> Group:
    """The table, and below it the status of the sources."""
    below = [f"{each.name}  {line}" for each in watched for line in each.history.source_lines()]
    return Group(table(watched, now), *(Text(line, style="dim") for line in below))


def table(watched: Sequence[Watched], now: float) -> Table:
    """The table, in 80 columns of stable width."""
    found = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    found.add_column("network", overflow="fold")  # a long name wraps
    for heading, width in COLUMNS.items():
        found.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for each in watched:
        found.add_row(*_row(each, now))
    return found


def _row(each: Watched, now: float) -> list[str]:
    history, reading = each.history, each.history.reading
    if history.failure or reading is None:
        return [each.name, "no response", "", "", "", "", ""]
    shown = reading.pending or reading.latest
    fee = "" if shown.base_fee is None else f"{shown.base_fee / GWEI:.4g} gwei"
    return [
        each.name,
        str(reading.latest.number),
        reading.pending_position,
        str(shown.transactions),
        f"{shown.gas_used:,}",
        fee,
        f"{history.age(now):.1f} s",
    ]


def _plain(each: Watched) -> dict[str, object]:
    history = each.history
    transactions, gas = history.rates(time.monotonic())
    return {
        "url": each.endpoint.url,
        "reading": None if history.reading is None else asdict(history.reading),
        "status": msgspec.to_builtins(history.status),
        "failure": history.failure or None,
        "transactions_per_second": round(transactions, 2),
        "gas_per_second": round(gas),
        "alerts": history.alerts(time.monotonic()),
    }
