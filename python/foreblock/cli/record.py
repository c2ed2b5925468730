"""`foreblock record` and `foreblock replay`: a feed to a file and back."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import click
from rich.console import Console
from rich.status import Status

from foreblock.cli.progress import progress
from foreblock.cli.recorded_state import (
    beside,
    check_state_options,
    open_node,
    record_state,
    serving_node,
)
from foreblock.cli.verb import (
    FILE,
    INTERRUPTED,
    argument,
    failing_in_one_line,
    in_section,
    option,
    verb,
)
from foreblock.clock import SystemClock
from foreblock.errors import ForeblockError, InvalidArgument, Unreachable
from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.recording import Recorded, Recorder, read_recording
from foreblock.feed.recording import replay as replay_feed
from foreblock.feed.server import FeedServer
from foreblock.recording.offline_node import OfflineNode
from foreblock.secret_urls import redact_urls
from foreblock.server import sockets
from foreblock.service.log_output import configure
from foreblock.status.status_text import counted

SHOWN_EVERY: Final = 0.2  # seconds

state = in_section("State")


@verb(examples=["foreblock record ws://127.0.0.1:8546/ws feed.bin --seconds 60"])
@argument("url", help="Flashblocks feed, ws:// or wss://.")
@argument("file", help="File to write.", type=click.Path(dir_okay=False, path_type=Path))
@option("--messages", metavar="N", type=click.IntRange(1), help="Stop after this many messages.")
@option(
    "--seconds",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    help="Stop after this time.",
)
@option("--force", is_flag=True, help="Overwrite an existing file.")
@state("--with-state", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
       help="Also record the state that executing the blocks needs, in this file.")  # fmt: skip
@state("--chain", metavar="CHAIN", help="With --with-state: name or file of the chain.")
@state("--upstream", metavar="URL", help="With --with-state: JSON-RPC endpoint that proves state "
       "as many blocks back as are recorded.")  # fmt: skip
def record(  # noqa: PLR0913, keywords
    *,
    url: str,
    file: Path,
    messages: int | None,
    seconds: float | None,
    force: bool,
    with_state: Path | None,
    chain: str | None,
    upstream: str | None,
) -> None:
    """Record a flashblocks feed to a file.

    URL is a WebSocket such as ws://127.0.0.1:8546/ws. Each message is stored with its time. Lost
    connections are reopened. Ctrl-C stops it; the file is a complete recording at any time. Fails
    if the first connection cannot be made or no message arrives.

    With --with-state the blocks are then executed, and the state that they need is fetched with
    proofs: `foreblock replay --state` serves both without a network.
    """
    check_state_options(with_state, chain, upstream)
    configure("warning")
    with failing_in_one_line(), _opened(file, force=force) as opened:
        recorder = asyncio.run(_record(url, opened, messages, seconds))
        if not recorder.messages:
            raise Unreachable(redact_urls(url), recorder.client.last_error or "no message")
    click.echo(f"{counted(recorder.messages, 'message')}, {recorder.bytes:,} bytes, in {file}")
    if recorder.unreadable:
        click.echo(f"{recorder.unreadable} of them cannot be read as flashblocks", err=True)
    if with_state is not None and chain is not None and upstream is not None:
        with failing_in_one_line():
            record_state(file, with_state, chain, upstream)


@contextlib.contextmanager
def _opened(file: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Open the file to write; remove a new one if recording fails."""
    if file.exists() and not force:
        raise InvalidArgument(f"{file} exists; --force overwrites it")
    with file.open("wb" if force else "xb") as opened:
        try:
            yield opened
        except ForeblockError:
            if not force:
                file.unlink(missing_ok=True)
            raise


async def _record(
    url: str, opened: BinaryIO, messages: int | None, seconds: float | None
) -> Recorder:
    recorder = Recorder(url, opened, SystemClock())
    begun = time.monotonic()
    with contextlib.suppress(asyncio.CancelledError), progress("record") as report:

        def is_enough() -> bool:
            done = recorder.messages if messages is not None else int(time.monotonic() - begun)
            report(_recorded(recorder), done, messages or int(seconds or 0))
            client = recorder.client
            never_connected = bool(client.last_error) and not client.connections
            return never_connected or (messages is not None and recorder.messages >= messages)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await recorder.run(is_enough)
    return recorder


def _recorded(recorder: Recorder) -> str:
    place = recorder.place
    at = "" if place is None else f", block {place.block_number}, flashblock {place.index}"
    trouble = "" if recorder.client.connected else f"; {recorder.client.last_error or 'connecting'}"
    return f"{recorder.messages} messages, {recorder.bytes:,} bytes{at}{trouble}"


@verb(examples=["foreblock replay feed.bin --speed 10"])
@argument(
    "file", help="Recording to serve.", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@option(
    "--listen", default="127.0.0.1:8546", metavar="HOST:PORT",
    help="Address to serve at; port 0 picks a free port.",
)  # fmt: skip
@option(
    "--speed", default=1.0, metavar="N", type=click.FloatRange(0),
    help="Speed relative to the recording; 0 sends as fast as clients read.",
)  # fmt: skip
@option(
    "--clients", default=1, metavar="N", type=click.IntRange(0),
    help="Start when this many clients are connected.",
)  # fmt: skip
@state("--state", "recorded", metavar="FILE", type=FILE,
       help="Also serve the state that was recorded with it, as an endpoint.")  # fmt: skip
@state("--upstream-listen", default="127.0.0.1:8547", metavar="HOST:PORT",
       help="With --state: address of that endpoint.")  # fmt: skip
def replay(
    *,
    file: Path,
    listen: str,
    speed: float,
    clients: int,
    recorded: Path | None,
    upstream_listen: str,
) -> None:
    """Serve a recorded feed over WebSocket, at /ws.

    Starts when a client connects and stops at the end of the recording. With --state a follower
    needs no network: the first printed address is its upstream, which is served until Ctrl-C.
    """
    configure("warning")
    with failing_in_one_line(), contextlib.suppress(KeyboardInterrupt):
        with contextlib.ExitStack() as stack:
            node = None if recorded is None else open_node(recorded)
            if node is not None:
                click.echo(stack.enter_context(serving_node(node, upstream_listen)))
            asyncio.run(_replay(file, listen, speed, clients, node))
        return
    sys.exit(INTERRUPTED)


async def _replay(
    file: Path, listen: str, speed: float, clients: int, node: OfflineNode | None
) -> None:
    (sock,) = sockets.listen(listen, 1)
    # A client that reconnects to resume would miss the beginning.
    server = FeedServer(FeedServerOptions(resumable=False))
    with file.open("rb") as opened, _status() as show:
        recording = read_recording(str(file), opened)
        if node is not None:
            recording = beside(node, recording)
        await server.start(sock)
        click.echo(f"ws://{sockets.name(sock)}/ws")
        count = 0

        def progress(each: Recorded) -> None:
            nonlocal count
            count += 1
            show(f"{count} messages, {each.at:.1f} s of the recording, {server.clients} clients")

        try:
            await replay_feed(recording, server, speed, clients, progress)
            if node is not None:
                node.reach(node.last)
                click.echo(f"{count} messages sent; Ctrl-C ends the endpoint")
                await asyncio.Event().wait()
        finally:
            await server.stop()
    click.echo(f"{count} messages sent")


@contextlib.contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    """A status line on a terminal, updated a few times a second."""
    console = Console(stderr=True)
    shown = 0.0

    def show(text: str) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= SHOWN_EVERY:
            shown = now
            status.update(text)

    with Status("waiting", console=console) as status:
        yield show
