"""`foreblock log show`: the stream of a log, its last commits, and who writes it."""

import json
from typing import TYPE_CHECKING

import click
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from foreblock.cli.log.options import connected, log_options, run, which_log
from foreblock.cli.verb import failing_in_one_line, json_option, option, size, verb

if TYPE_CHECKING:
    from foreblock.cli.log.looking import ShownLog


@verb("show")
@log_options
@option("--last", default=10, metavar="N", type=click.IntRange(0, 1000), help="Commits to show.")
@json_option()
def show(*, last: int, as_json: bool, **options: str) -> None:
    """Show the log of a network: its stream, its last commits, and who writes it.

    The user of --log-credentials needs no more than a replica may do. Nothing is changed.
    """
    with failing_in_one_line():
        which = which_log(options)
        from foreblock.cli.log.looking import look  # noqa: PLC0415, it needs the libraries

        async def looking() -> "ShownLog":
            async with connected(which) as connection:
                return await look(connection, max(1, last))

        found = run(looking)
    if as_json:
        shown = found.as_object()
        click.echo(json.dumps(shown | {"commits": shown["commits"][:last]}))
        return
    Console(highlight=False).print(Group(facts(found), Text(), commits(found, last)))


def facts(found: "ShownLog") -> Table:
    """Two columns: names and values."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    noun = "server" if found.replicas == 1 else "servers"
    led = f", led by {found.leader}" if found.leader else ""
    grid.add_row("stream", f"{found.stream} on {found.replicas} {noun}{led}")
    if found.followers:
        grid.add_row("", ", ".join(found.followers))
    if found.wrong:
        grid.add_row("wrong", Text(found.wrong, style="bold red"))
    span = f"{found.first} to {found.last}" if found.messages else "none"
    grid.add_row("sequences", f"{span}, {found.messages:,} messages, {size(found.bytes)}")
    most = size(found.max_bytes) if found.max_bytes > 0 else "any size"
    age = f"{found.max_age_seconds / 3600:g} h" if found.max_age_seconds else "for ever"
    grid.add_row("kept", f"{age}, {most}")
    for each in found.foreign:
        grid.add_row("no commit", Text(f"sequence {each.last}: {each.why}"))
    if head := found.head:
        grid.add_row("log id", head.log_id)
        grid.add_row("head", f"epoch {head.epoch}, commit {head.commit}, {_time(head.stored_at)}")
    writer = found.writer
    if writer is None:
        grid.add_row("writer", f"silent: {found.silence}")
    else:
        place = f"at commit {writer.commit}, sequence {writer.sequence}"
        answered = f"answered in {writer.seconds * 1000:.1f} ms"
        grid.add_row("writer", f"of epoch {writer.epoch}, {place}, {answered}")
    return grid


def commits(found: "ShownLog", most: int) -> Table:
    """The last commits, newest first."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("sequence", "epoch", "commit", "bytes", "unpacked"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("stored", "link"):
        table.add_column(heading, no_wrap=True)
    for each in found.commits[:most]:
        parts = "" if each.parts == 1 else f" ({each.parts} parts)"
        table.add_row(
            f"{each.sequence}",
            f"{each.epoch}",
            f"{each.commit}",
            f"{each.bytes:,}{parts}",
            f"{each.unpacked:,}",
            each.stored_at.partition("T")[2][:12].removesuffix("Z"),
            f"{each.link[:12]}…",
        )
    return table


def _time(text: str) -> str:
    """A time of NATS, to the millisecond."""
    day, _, rest = text.partition("T")
    return f"{day} {rest[:12].removesuffix('Z')} UTC" if rest else text
