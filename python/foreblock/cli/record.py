"""`foreblock record` and `foreblock replay`: a feed to a file and back."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.status import Status

from foreblock.cli.verb import INTERRUPTED, failing_in_one_line, option, verb
from foreblock.clock import SystemClock
from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.recording import Recorder
from foreblock.feed.recording import replay as replay_feed
from foreblock.feed.recording_file import Recorded, read_recording
from foreblock.feed.server import FeedServer
from foreblock.server import sockets
from foreblock.service.logs import configure

SHOWN_EVERY: Final = 0.2  # seconds


@verb()
@click.argument("url")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@option("--messages", metavar="N", type=click.IntRange(1), help="Stop after this many messages.")
@option(
    "--seconds",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    help="Stop after this time.",
)
@option("--force", is_flag=True, help="Overwrite an existing file.")
def record(
    *, url: str, file: Path, messages: int | None, seconds: float | None, force: bool
) -> None:
    """Record a flashblocks feed to a file.

    URL is a WebSocket such as ws://127.0.0.1:8546/ws. Each message is stored with its time. Lost
    connections are reopened. Ctrl-C stops it; the file is a complete recording at any time.
    """
    configure("warning")
    with failing_in_one_line(), file.open("wb" if force else "xb") as opened:
        recorder = asyncio.run(_record(url, opened, messages, seconds))
    click.echo(f"{recorder.messages} messages, {recorder.bytes:,} bytes, in {file}")
    if recorder.unreadable:
        click.echo(f"{recorder.unreadable} of them cannot be read as flashblocks", err=True)


async def _record(
    url: str, opened: object, messages: int | None, seconds: float | None
) -> Recorder:
    recorder = Recorder(url, opened, SystemClock())  # type: ignore[arg-type]
    with contextlib.suppress(asyncio.CancelledError), _status() as show:

        def is_enough() -> bool:
            show(_recorded(recorder))
            return messages is not None and recorder.messages >= messages

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await recorder.run(is_enough)
    return recorder


def _recorded(recorder: Recorder) -> str:
    place = recorder.place
    at = "" if place is None else f", block {place.block_number}, flashblock {place.index}"
    trouble = "" if recorder.client.connected else f"; {recorder.client.last_error or 'connecting'}"
    return f"{recorder.messages} messages, {recorder.bytes:,} bytes{at}{trouble}"


@verb()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
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
def replay(*, file: Path, listen: str, speed: float, clients: int) -> None:
    """Serve a recorded feed over WebSocket, at /ws.

    Starts when a client connects and stops at the end of the recording.
    """
    configure("warning")
    with failing_in_one_line(), contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_replay(file, listen, speed, clients))
        return
    sys.exit(INTERRUPTED)


async def _replay(file: Path, listen: str, speed: float, clients: int) -> None:
    (sock,) = sockets.listen(listen, 1)
    # A client that reconnects to resume would miss the beginning.
    server = FeedServer(FeedServerOptions(resumable=False))
    with file.open("rb") as opened, _status() as show:
        recording = read_recording(str(file), opened)
        await server.start(sock)
        click.echo(f"ws://{sockets.name(sock)}/ws")
        count = 0

        def progress(each: Recorded) -> None:
            nonlocal count
            count += 1
            show(f"{count} messages, {each.at:.1f} s of the recording, {server.clients} clients")

        try:
            await replay_feed(recording, server, speed, clients, progress)
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
