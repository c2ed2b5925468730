"""`foreblock log show` and `foreblock log begin`: inspect the log of a network, or restart it.

The log needs libraries that not every installation has, so `log.stream` is imported after
`check_libraries`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from foreblock.cli.verb import (
    STORE,
    VerbGroup,
    argument,
    failing_in_one_line,
    in_section,
    json_option,
    option,
    size,
    stop,
    verb,
)
from foreblock.errors import LogUnreachable
from foreblock.secret_urls import redact_urls
from foreblock.service.log_output import configure
from foreblock.settings.networks import ONLY, check_libraries, check_servers

if TYPE_CHECKING:  # they need libraries that not every installation has
    from collections.abc import AsyncIterator

    from foreblock.cli.log.stream import Before, Begun, ShownLog
    from foreblock.log.connection import LogConnection

SECONDS: Final = 5.0  # to connect
THE_LOG: Final = in_section("The log")

Result = TypeVar("Result")


@click.group(cls=VerbGroup)
def log() -> None:
    """Show the log of a network, or start a new one from a store."""


log.add_section("Commands", {"show": "log", "begin": "log"})


@dataclass(frozen=True, slots=True)
class WhichLog:
    """A log as the options name it."""

    servers: Sequence[str]
    name: str
    credentials: str
    ca: str


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a log, which `which_log` reads."""
    options = (
        THE_LOG(
            "--log",
            "log",
            metavar="URL,...",
            required=True,
            envvar="FOREBLOCK_LOG",
            show_envvar=True,
            help="NATS servers of the log.",
        ),
        THE_LOG(
            "--log-name",
            default=ONLY,
            metavar="NAME",
            envvar="FOREBLOCK_LOG_NAME",
            help="Name of the log.",
        ),
        THE_LOG(
            "--log-credentials",
            default="",
            metavar="FILE",
            envvar="FOREBLOCK_LOG_CREDENTIALS",
            help="File with the NATS user and its key.",
        ),
        THE_LOG(
            "--log-ca",
            default="",
            metavar="FILE",
            envvar="FOREBLOCK_LOG_CA",
            help="File with the certificates to trust; with one, NATS must use TLS.",
        ),
    )
    for each in reversed(options):
        command = each(command)
    return command


def which_log(options: Mapping[str, str]) -> WhichLog:
    """Return the log that the options name. Raises `BadSetting`."""
    servers = [each.strip() for each in options["log"].split(",") if each.strip()]
    check_servers(servers)
    check_libraries()
    return WhichLog(servers, options["log_name"], options["log_credentials"], options["log_ca"])


@asynccontextmanager
async def connected(which: WhichLog) -> "AsyncIterator[LogConnection]":
    """Connect to the log. Raises `LogUnreachable` if no server responds in time."""
    from foreblock.log.connection import LogConnection, LogServers  # noqa: PLC0415
    from foreblock.log.stream_settings import LogSubjects  # noqa: PLC0415

    servers = LogServers(which.servers, LogSubjects(which.name), which.credentials, which.ca)
    connection = LogConnection(servers, "foreblock log")
    try:
        async with asyncio.timeout(SECONDS):
            await connection.open()
    except TimeoutError:
        raise LogUnreachable(
            f"no response from {', '.join(map(redact_urls, which.servers))}"
        ) from None
    try:
        yield connection
    finally:
        await connection.close()


def run(work: Callable[[], Awaitable[Result]]) -> Result:
    """Run a coroutine without the log lines of the modules that it uses."""
    configure("error")

    async def whole() -> Result:
        return await work()

    try:
        return asyncio.run(whole())
    except KeyboardInterrupt:
        raise click.Abort from None


@verb("show", examples=["foreblock log show --log nats://127.0.0.1:4222 --last 2"])
@log_options
@option("--last", default=10, metavar="N", type=click.IntRange(0, 1000), help="Commits to show.")
@json_option()
def show(*, last: int, as_json: bool, **options: str) -> None:
    """Show the log of a network: its stream, its last commits, and its writer.

    Nothing is changed. The user of --log-credentials needs the permissions of a replica.
    """
    with failing_in_one_line():
        which = which_log(options)
        from foreblock.cli.log.stream import inspect_log  # noqa: PLC0415

        async def inspect() -> "ShownLog":
            async with connected(which) as connection:
                return await inspect_log(connection, max(1, last))

        found = run(inspect)
    if as_json:
        shown = found.as_object()
        click.echo(json.dumps(shown | {"commits": shown["commits"][:last]}))
        return
    Console(highlight=False).print(Group(facts(found), Text(), commits(found, last)))


def facts(found: "ShownLog") -> Table:
    """The stream and its writer, one property a line."""
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
    age = f"{found.max_age_seconds / 3600:g} h" if found.max_age_seconds else "forever"
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
    """Format a timestamp of NATS to the millisecond."""
    day, _, rest = text.partition("T")
    return f"{day} {rest[:12].removesuffix('Z')} UTC" if rest else text


@verb("begin")
@argument("data", help="Store with which the log begins.", metavar="DIR", type=STORE)
@log_options
@THE_LOG(
    "--log-replicas",
    default=1,
    metavar="N",
    envvar="FOREBLOCK_LOG_REPLICAS",
    type=click.IntRange(1, 5),
    help="NATS servers that store the log.",
)
@option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option()
def begin(*, data: Path, log_replicas: int, yes: bool, as_json: bool, **options: str) -> None:
    """Start a new log from the store in DIR.

    Use it if a log has lost acknowledged commits that no running node has, or if the store was
    imported. The stream is deleted with all of its messages and created again, and the new log
    starts with this store. Every other node then takes a snapshot from a node that has this
    store, and moves its own store aside.

    Stop the writer first, and start it with this store afterwards. The command is refused while
    a writer responds. The user of --log-credentials must be allowed to delete and create the
    stream.
    """
    with failing_in_one_line():
        which = which_log(options)
        from foreblock.cli.log.stream import (  # noqa: PLC0415
            begin_log,
            inspect_before,
            open_store,
        )

        with open_store(data) as store:

            async def inspect() -> "Before":
                async with connected(which) as connection:
                    return await inspect_before(connection, store)

            before = run(inspect)
            if before.writer:
                stop(f"{before.writer}: stop it first", 1)
            if not yes:
                click.echo(explained(before), err=True)
                click.confirm("Start a new log?", abort=True, err=True)

            async def restart() -> "Begun":
                async with connected(which) as connection:
                    return await begin_log(connection, store, before, log_replicas)

            begun = run(restart)
    if as_json:
        fields = ("epoch", "commit", "sequence", "log_id", "link")
        click.echo(json.dumps({name: getattr(begun, name) for name in fields}))
        return
    click.echo(f"begun      log {begun.log_id}, epoch {begun.epoch}")
    click.echo(f"commit     {begun.commit}, sequence {begun.sequence}, link {begun.link[:16]}…")


def explained(before: "Before") -> str:
    """Describe the effects before the command asks for confirmation."""
    lines = [f"This store is at commit {before.commit}."]
    if before.messages is None:
        lines.append(f"The stream {before.stream} does not exist and will be created.")
    elif before.last is None:
        lines.append(f"The stream {before.stream} is empty.")
    else:
        last = before.last
        lines.append(
            f"The stream {before.stream} has {before.messages:,} messages and ends at commit"
            f" {last.commit} of epoch {last.epoch}, stored at {last.stored_at}. It will be deleted."
        )
        if last.commit > before.commit:
            lost = last.commit - before.commit
            lines.append(f"{lost:,} commits of the log are not in this store and will be lost.")
    lines.append("All other nodes will take a snapshot from a node with this store.")
    return "\n".join(lines)
