"""Shared by `show` and `begin`: which log, and where it is."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import click

from foreblock.cli.verb import in_section
from foreblock.errors import LogUnreachable
from foreblock.secret_urls import redact_urls
from foreblock.service.logs import configure
from foreblock.settings.networks import ONLY, check_libraries, check_servers

if TYPE_CHECKING:  # they need libraries that not every installation has
    from collections.abc import AsyncIterator

    from foreblock.log.connection import LogConnection

SECONDS: Final = 5.0  # until a log that nobody reaches is given up
THE_LOG: Final = in_section("The log")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class WhichLog:
    """A log as the options name it."""

    servers: Sequence[str]
    name: str
    credentials: str
    ca: str


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a log; `which_log` reads them."""
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
    for option in reversed(options):
        command = option(command)
    return command


def which_log(options: Mapping[str, str]) -> WhichLog:
    """The log that options name. Raises `BadSetting`."""
    servers = [each.strip() for each in options["log"].split(",") if each.strip()]
    check_servers(servers)
    check_libraries()
    return WhichLog(servers, options["log_name"], options["log_credentials"], options["log_ca"])


@asynccontextmanager
async def connected(which: WhichLog) -> "AsyncIterator[LogConnection]":
    """A connection to the log; raises `LogUnreachable` where nobody answers within seconds."""
    from foreblock.log.connection import LogConnection, LogServers  # noqa: PLC0415
    from foreblock.log.stream_settings import LogSubjects  # noqa: PLC0415

    servers = LogServers(which.servers, LogSubjects(which.name), which.credentials, which.ca)
    connection = LogConnection(servers, "foreblock log")
    try:
        async with asyncio.timeout(SECONDS):
            await connection.open()
    except TimeoutError:
        raise LogUnreachable(f"no answer of {', '.join(map(redact_urls, which.servers))}") from None
    try:
        yield connection
    finally:
        await connection.close()


def run(work: Callable[[], Awaitable[Result]]) -> Result:
    """Run a coroutine; what the log's own modules say is not for here."""
    configure("error")

    async def whole() -> Result:
        return await work()

    try:
        return asyncio.run(whole())
    except KeyboardInterrupt:
        raise click.Abort from None
