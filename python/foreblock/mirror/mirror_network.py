"""The process of a mirror: the real chain, followed as any other, and the dev chain on top of it.

Both run in one process, each with a thread and a store; that of the real chain is in the directory
`real` within the mirror's. Every commit of the real chain wakes the mirror. If one of them fails,
both are opened again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import structs

from foreblock.bus.messages import BusRequest, ToWorker
from foreblock.clock import Clock
from foreblock.errors import NoUpstream
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.follow.network import FollowNetwork
from foreblock.follow.startup import open_follow_network
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.mirror.mirror_source import MirrorSource
from foreblock.settings.networks import Network
from foreblock.sources.dev_network import Watchers
from foreblock.sources.network_thread import RunningNetwork
from foreblock.sources.network_writer import NetworkWriter
from foreblock.status.network_status import SourceStatus
from foreblock.types import Flashblock

REAL: Final = "real"  # the directory of the real chain
FIRST_BLOCKS: Final = 30  # block times to wait for the first block after the anchor


class FollowedReal:
    """The real chain, for threads other than that of its loop."""

    def __init__(self, network: FollowNetwork, seconds: float) -> None:
        """A fetch takes these `seconds` at most."""
        self._network: Final = network
        self._seconds: Final = seconds
        self._loop: Final = asyncio.get_running_loop()
        self.shown: Final = network.first_upstream

    @property
    def store(self) -> Store:
        """Its store."""
        return self._network.following.store

    def learn(self, wanted: StateKeys) -> None:
        """Fetch state that its store does not know. Raises `EndpointError`."""
        learning = self._network.learn(wanted, self._seconds)
        asyncio.run_coroutine_threadsafe(learning, self._loop).result()

    def answer(self, request: BusRequest) -> None:
        """Answer a request of a worker for the result of an upstream; on its loop."""
        self._network.fetch(request)

    def has_blocks(self) -> bool:
        """Return True if it has a block after the one that it began on."""
        with self.store.view() as view:
            latest = view.heads.latest
            return latest is not None and latest[0] > view.heads.base.number


class MirrorNetwork(RunningNetwork):
    """Runs one mirror and its real chain."""

    def __init__(
        self, real: FollowNetwork, running: asyncio.Task[None], local: NetworkWriter
    ) -> None:
        """The real chain is `running` already."""
        self._real: Final = real
        self._running: Final = running
        self._local: Final = local

    def on_call(self, request: BusRequest) -> None:
        """Pass a call of a worker on to the mirror."""
        self._local.on_call(request)

    def hints(self) -> Iterator[ToWorker]:
        """The hints of the mirror."""
        return self._local.hints()

    def announced_nonce(self, sender: bytes) -> int:
        """The next nonce of a sender on the mirror that workers got last."""
        return self._local.announced_nonce(sender)

    async def status(self) -> SourceStatus | None:
        """The status of the real chain: its feeds and upstreams."""
        return await self._real.status()

    def stop(self) -> None:
        """End both after their current commits."""
        self._local.stop()
        self._real.stop()

    async def run(self) -> None:
        """Run until `stop` is called, or one of them fails."""
        local = asyncio.create_task(self._local.run())
        await asyncio.wait([local, self._running], return_when=asyncio.FIRST_COMPLETED)
        self.stop()
        await asyncio.gather(local, self._running)

    async def close(self) -> None:
        """Close the mirror, then the real chain, which it may be asking for state."""
        self.stop()
        try:
            await self._local.close()
        finally:
            await close_real(self._real, self._running)


async def close_real(real: FollowNetwork, running: asyncio.Task[None]) -> None:
    """End the real chain; a failure of it was raised elsewhere."""
    real.stop()
    with suppress(Exception):
        await running
    await real.close()


async def open_mirror_network(
    network: Network,
    clock: Clock,
    broadcast: Callable[[ToWorker], None],
    client_options: FeedClientOptions,
    seen: SeenCommit,
    announce_change: Callable[[str], Awaitable[None]],
    watchers: Watchers,
) -> MirrorNetwork:
    """The mirror, when the real chain has its first blocks. Raises `ForeblockError`."""
    assert network.follow is not None, "a mirror has settings of following"
    followed = structs.replace(
        network,
        name=f"{network.name}-{REAL}",
        data=str(Path(network.data) / REAL),
        source="follow",
        dev=None,
        address_index=False,
    )
    changed = _Changes()
    real = await open_follow_network(
        followed, clock, _ignore, changed.note, client_options, None, None
    )
    running = asyncio.create_task(real.run())
    executor = ThreadPoolExecutor(1, f"foreblock-{network.name}")
    try:
        chain = FollowedReal(real, network.follow.fetch_timeout)
        await _first_blocks(chain, changed, running, FIRST_BLOCKS * real.block_time)

        def opened() -> MirrorSource:
            return MirrorSource(network, clock, chain, seen, watchers)

        source = await asyncio.get_running_loop().run_in_executor(executor, opened)
    except BaseException:
        executor.shutdown()
        await close_real(real, running)
        raise
    local = NetworkWriter(
        network.name, source, clock, executor, broadcast, announce_change, watchers.metrics
    )

    def wake() -> None:
        source.real_changed()
        local.wake()

    changed.then = wake
    wake()
    return MirrorNetwork(real, running, local)


class _Changes:
    """The commits of the real chain, as they are announced to workers."""

    def __init__(self) -> None:
        self.event: Final = asyncio.Event()
        self.then: Callable[[], None] = self.event.set

    def note(self, _: ToWorker) -> None:
        self.then()


async def _first_blocks(
    chain: FollowedReal, changed: _Changes, running: asyncio.Task[None], seconds: float
) -> None:
    """Wait for the first block after the anchor. Raises `NoUpstream`."""
    try:
        async with asyncio.timeout(seconds):
            while not chain.has_blocks():
                if running.done():
                    running.result()
                changed.event.clear()
                await changed.event.wait()
    except TimeoutError:
        raise NoUpstream(f"{chain.shown}: no new block in {seconds:g} s", 1) from None


def _ignore(_: Flashblock) -> None:
    pass
