"""A reader that is killed inside a view is noticed by the running writer."""

import asyncio
import time
from pathlib import Path

import pytest

from crash.child import Child
from foreblock._engine import Store
from foreblock.clock import DrivenClock
from foreblock.errors import StoreLocked
from foreblock.ledger.genesis.genesis_file import genesis_text
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.settings import ChainSettings, SourceSettings
from foreblock.settings.networks import Network
from foreblock.sources import network_store
from foreblock.sources.dev_network import open_dev_network
from foreblock.sources.feed_network import FeedNetwork
from foreblock.sources.network_store import CLEAR_EVERY_NS, StaleReaders, open_followed_store
from foreblock.sources.network_writer import NetworkWriter
from support.chains.dev_chain import GENESIS_TIME, SECOND

PATIENCE = 30.0


def kill_a_reader(folder: Path) -> None:
    """Let a process read the store, and end it inside its view."""
    with Child() as reader:
        reader.ask("open", path=str(folder))
        reader.ask("hold")
        reader.kill()


@pytest.fixture
def clock() -> DrivenClock:
    return DrivenClock(GENESIS_TIME * SECOND, 5 * SECOND)


def test_dead_readers_are_looked_for_every_few_seconds(tmp_path: Path, clock: DrivenClock) -> None:
    with Store(str(tmp_path), write=True) as store:
        readers = StaleReaders(store, clock)
        for _ in range(2):
            kill_a_reader(tmp_path)
            clock.advance(CLEAR_EVERY_NS - 1)
            readers.clear_if_due()
            kill_a_reader(tmp_path)
            clock.advance(1)
            readers.clear_if_due()
            assert store.clear_stale_readers() == 0, "both are gone"
        kill_a_reader(tmp_path)
        readers.clear_if_due()
        assert store.clear_stale_readers() == 1, "it is not time yet"


def test_a_store_is_opened_once_its_former_writer_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Child() as former:
        former.ask("open", path=str(tmp_path), write=True)
        monkeypatch.setattr(time, "sleep", lambda _: former.kill())
        open_followed_store(dev(tmp_path), None).close()


def test_a_store_that_stays_locked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_store, "LOCK_PATIENCE", 0)
    with Child() as other:
        other.ask("open", path=str(tmp_path), write=True)
        with pytest.raises(StoreLocked):
            open_followed_store(dev(tmp_path), None)


def dev(folder: Path) -> Network:
    return Network(name="main", data=str(folder), source="dev", dev=ChainSettings())


def followed(folder: Path, genesis: Path) -> Network:
    genesis.write_bytes(genesis_text(dev_genesis(ChainSettings())))
    feed, file = SourceSettings(), str(genesis)
    return Network(name="main", data=str(folder), source="feed", feed=feed, genesis=file)


async def run_until(network: NetworkWriter, happened: asyncio.Event) -> None:
    running = asyncio.create_task(network.run())
    await asyncio.wait_for(happened.wait(), PATIENCE)
    network.stop()
    await asyncio.wait_for(running, PATIENCE)


def test_a_dev_network_frees_them_while_it_runs(tmp_path: Path, clock: DrivenClock) -> None:
    async def play() -> None:
        network = await open_dev_network(dev(tmp_path), clock, None, lambda _: None)
        kill_a_reader(tmp_path)
        clock.advance(CLEAR_EVERY_NS)
        source, ticked, loop = network.source, asyncio.Event(), asyncio.get_running_loop()
        tick = source.tick

        def tell_after() -> None:
            tick()
            loop.call_soon_threadsafe(ticked.set)

        source.tick = tell_after  # type: ignore[method-assign]
        await run_until(network, ticked)
        assert source.store.clear_stale_readers() == 0  # type: ignore[attr-defined]
        await network.close()

    asyncio.run(play())


def test_a_followed_network_frees_them_though_nothing_comes(
    tmp_path: Path, clock: DrivenClock
) -> None:
    async def play() -> None:
        folder = tmp_path / "store"
        described = followed(folder, tmp_path / "genesis.json")
        network = FeedNetwork(described, clock, lambda _: None, lambda _: None)
        await network.open()
        kill_a_reader(folder)
        clock.advance(CLEAR_EVERY_NS)
        await network.status()  # which is read every second
        assert network.source.store.clear_stale_readers() == 0
        await network.close()

    asyncio.run(play())
