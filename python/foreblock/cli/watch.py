"""`foreblock watch`: the progress of networks, live in the terminal."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from typing import Final

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from foreblock.cli.verb import failing_in_one_line, json_option, option, verb
from foreblock.cli.watch_connection import QUESTION, READINESS, Reading, read, source_facts
from foreblock.errors import EndpointError
from foreblock.upstream.client import Endpoint

LOCAL: Final = ("http://127.0.0.1:8545", "http://127.0.0.1:9545")
GWEI: Final = 10**9
TIMEOUT_SECONDS: Final = 2.0
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
    """An endpoint, its last answer, and since when that is unchanged."""

    endpoint: Endpoint
    reading: Reading | None = None
    failure: str = ""
    since: float = 0.0
    facts: tuple[str, ...] = ()  # about its source

    def look(self, now: float) -> None:
        """Query the endpoint once."""
        try:
            body, headers = self.endpoint.exchange_with_headers(QUESTION)
            found = read(self.endpoint.url, body, headers)
            self.facts = source_facts(*self.endpoint.get(READINESS))
        except EndpointError as failure:
            self.failure = str(failure)
            return
        self.failure = ""
        if self.reading is None or _moved(self.reading, found):
            self.since = now
        self.reading = found


def _moved(before: Reading, now: Reading) -> bool:
    return (before.pending, before.index, before.latest) != (now.pending, now.index, now.latest)


@verb()
@click.argument("urls", metavar="[URL]...", nargs=-1)
@option("--every", default=0.2, metavar="SECONDS", help="Time between two updates.")
@option("--once", is_flag=True, help="Print one update and exit.")
@json_option("Print each update as one line of JSON.")
def watch(*, urls: Sequence[str], every: float, once: bool, as_json: bool) -> None:
    """Show the progress of networks.

    Prints latest block, pending flashblock, transactions, gas and age, and the state of feeds.
    URL is an endpoint; without any, those of `foreblock dev`. Stop with Ctrl-C.
    """
    with failing_in_one_line(), ExitStack() as opened:
        endpoints = [Endpoint(url, TIMEOUT_SECONDS) for url in urls or LOCAL]
        watched = [Watched(opened.enter_context(endpoint)) for endpoint in endpoints]
        looks = _looks(watched, every, once=once)
        # Ctrl-C is the ordinary way to stop, not a failure.
        with suppress(KeyboardInterrupt):
            if as_json:
                _print_lines(watched, looks)
            elif once:
                Console().print(shown(watched, next(looks)))
            else:
                _show(watched, looks)


def _print_lines(watched: Sequence[Watched], looks: Iterator[float]) -> None:
    for _ in looks:
        click.echo(json.dumps([_plain(each) for each in watched]))


def _show(watched: Sequence[Watched], looks: Iterator[float]) -> None:
    """Update the table in place, after the first answers."""
    with Live(shown(watched, next(looks)), auto_refresh=False) as live:
        for now in looks:
            live.update(shown(watched, now), refresh=True)


def _looks(watched: Sequence[Watched], every: float, *, once: bool) -> Iterator[float]:
    """Query all endpoints at an interval; yields the time after each round."""
    while True:
        begun = time.monotonic()
        for each in watched:
            each.look(time.monotonic())
        yield time.monotonic()
        if once:
            return
        time.sleep(max(0.0, every - (time.monotonic() - begun)))


def shown(watched: Sequence[Watched], now: float) -> Group:
    """The table, and below it errors and facts about feeds."""
    lines = [Text(each.failure, style="dim") for each in watched if each.failure]
    lines += [
        Text(f"{_name(each)}  {fact}", style="dim") for each in watched for fact in each.facts
    ]
    return Group(table(watched, now), *lines)


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
    name = _name(each)
    if each.failure or each.reading is None:
        return [name, "no answer", "", "", "", "", ""]
    reading = each.reading
    shown = reading.pending or reading.latest
    place = "= latest"
    if reading.pending is not None:
        place = f"{shown.number}" + (f".{reading.index}" if reading.index is not None else "")
    fee = "" if shown.base_fee is None else f"{shown.base_fee / GWEI:.4g} gwei"
    return [
        name,
        str(reading.latest.number),
        place,
        str(shown.transactions),
        f"{shown.gas_used:,}",
        fee,
        f"{now - each.since:.1f} s",
    ]


def _name(each: Watched) -> str:
    return each.endpoint.url.removeprefix("http://")


def _plain(each: Watched) -> dict[str, object]:
    reading = None if each.reading is None else asdict(each.reading)
    return {
        "url": each.endpoint.url,
        "reading": reading,
        "source": list(each.facts),
        "failure": each.failure or None,
    }
