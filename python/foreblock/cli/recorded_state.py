"""`foreblock record --with-state` and `foreblock replay --state`: the state beside a feed."""

import asyncio
import contextlib
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import click

from foreblock.chains.chain_file import FollowedChain, followed_chain
from foreblock.cli.progress import progress
from foreblock.clock import SystemClock
from foreblock.errors import BadRecording, MalformedFlashblock
from foreblock.feed.messages import decode
from foreblock.feed.recording import Recorded, read_recording
from foreblock.follow.fetcher import Fetcher
from foreblock.follow.state_upstream import StateUpstream
from foreblock.recording.gathering import Gathering, Report, Stretch, stretch_of
from foreblock.recording.offline_node import OfflineNode
from foreblock.recording.offline_run import run_offline
from foreblock.recording.state_file import RecordedState, read_state, write_state
from foreblock.server import sockets
from foreblock.types import Flashblock

_MEGABYTE: Final = 10**6


def check_state_options(with_state: Path | None, chain: str | None, upstream: str | None) -> None:
    """Refuse incompatible options before anything is recorded."""
    if with_state is None:
        if chain is not None or upstream is not None:
            raise click.UsageError("--chain and --upstream require --with-state.")
        return
    if chain is None or upstream is None:
        raise click.UsageError("--with-state requires --chain and --upstream.")


def record_state(feed: Path, state: Path, chain: str, upstream: str) -> None:
    """Gather the state that the blocks of a recorded feed need, and write it."""
    with feed.open("rb") as file:
        stretch = stretch_of(each.message for each in read_recording(str(feed), file))
    if stretch is None:
        raise BadRecording(str(feed), 1, "no complete block was recorded; record for longer")
    followed = followed_chain(chain)
    with progress("record") as show:
        report = partial(show, "gathering state")
        gathered = asyncio.run(_gather(followed, upstream, stretch, report))
    run_offline(gathered, followed.config, str(state))
    _write(gathered, state)
    size = state.stat().st_size / _MEGABYTE
    nodes, codes = len(gathered.nodes), len(gathered.codes)
    click.echo(
        f"{len(gathered.blocks)} blocks from {stretch.first}, {nodes} nodes, {codes} codes,"
        f" {size:.1f} MB, in {state}"
    )


async def _gather(
    chain: FollowedChain, url: str, stretch: Stretch, report: Report
) -> RecordedState:
    clock = SystemClock()
    fetcher = Fetcher([StateUpstream(url, clock, chain_id=chain.profile.chain_id)], clock)
    try:
        return await Gathering(chain, fetcher).gather(stretch, report)
    finally:
        fetcher.close()


def _write(gathered: RecordedState, state: Path) -> None:
    """Write the whole file, or none."""
    part = state.with_name(f".{state.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            write_state(gathered, file, datetime.now(UTC).isoformat(timespec="seconds"))
        part.rename(state)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def open_node(state: Path) -> OfflineNode:
    """The node of a recorded state. Raises `BadRecording`."""
    with state.open("rb") as file:
        return OfflineNode(read_state(str(state), file))


def beside(node: OfflineNode, recording: Iterable[Recorded]) -> Iterator[Recorded]:
    """The messages that the node has the state for; it shows the blocks before each of them."""
    for each in recording:
        try:
            found = decode(each.message)
        except MalformedFlashblock:
            continue
        if isinstance(found, Flashblock):
            if found.block_number > node.last:
                continue  # of the block that was not whole when the recording ended
            node.reach(found.block_number - 1)
        yield each


@contextlib.contextmanager
def serving_node(node: OfflineNode, listen: str) -> Iterator[str]:
    """Serve the node inside of this context; yields its URL."""
    from foreblock.recording.offline_node import NodeServer  # noqa: PLC0415, its library is slow

    (sock,) = sockets.listen(listen, 1)
    url = f"http://{sockets.name(sock)}"
    server = NodeServer(node, sock)
    try:
        yield url
    finally:
        server.close()
