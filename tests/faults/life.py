"""Real networks in a separate process, restarted whenever their disk fails.

Run as `python -m faults.life FOLDER CANONICAL`: two development chains and one that follows the
second of them, each supervised as in the writer, but without delays. Messages to workers are
printed as lines, and it runs until stopped.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from foreblock.backoff import Waits
from foreblock.bus.messages import SourceReport, ToWorker
from foreblock.clock import SystemClock
from foreblock.feed.server import FeedServer
from foreblock.ledger.genesis.genesis_file import GENESIS_FILE
from foreblock.service.log_output import configure
from foreblock.settings import ChainSettings, SourceSettings
from foreblock.settings.networks import Network
from foreblock.sources.dev_network import open_dev_network
from foreblock.sources.feed_network import FeedNetwork
from foreblock.sources.network_thread import RunningNetwork
from foreblock.sources.restarting_network import RestartingNetwork
from foreblock.types import Flashblock

SEQUENCED, SOURCE, FOLLOWED = "sequenced", "source", "followed"
WAITS = Waits(shortest=0.001, longest=0.002)


def _dev(name: str, folder: Path) -> Network:
    chain = ChainSettings(
        accounts=4, gas_limit=30_000_000, block_time=1, interval=0.05, load=40
    )  # fmt: skip
    return Network(name=name, data=str(folder / name), source="dev", dev=chain)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def tell(message: ToWorker) -> None:
    if isinstance(message, SourceReport) and not message.status.is_running:
        say(f"{message.network}\t{message.status.failure}")


async def _follow(folder: Path, feed: str, canonical: str) -> RunningNetwork:
    genesis = str(folder / SOURCE / GENESIS_FILE)
    chain, data = SourceSettings(feed=(feed,), canonical=canonical), str(folder / FOLLOWED)
    network = Network(name=FOLLOWED, data=data, source="feed", feed=chain, genesis=genesis)

    def publish(_: Flashblock) -> None:
        pass

    following = FeedNetwork(network, SystemClock(), publish, tell)
    await following.open()
    return following


async def live(folder: Path, canonical: str) -> None:
    configure("info")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    feed, sock = FeedServer(), socket.create_server(("127.0.0.1", 0))
    sock.settimeout(0)
    address = f"ws://127.0.0.1:{sock.getsockname()[1]}"
    await feed.start(sock)
    clock = SystemClock()
    begins: dict[str, Callable[[], Awaitable[RunningNetwork]]] = {
        SEQUENCED: partial(open_dev_network, _dev(SEQUENCED, folder), clock, None, tell),
        SOURCE: partial(open_dev_network, _dev(SOURCE, folder), clock, feed, tell),
        FOLLOWED: partial(_follow, folder, address, canonical),
    }
    networks = [
        RestartingNetwork(name, begin, clock, tell, WAITS) for name, begin in begins.items()
    ]
    for network in networks:
        await network.begin()
    running = [asyncio.create_task(network.run()) for network in networks]
    say("running")
    await asyncio.wait([asyncio.create_task(stop.wait()), *running],
                       return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
    assert stop.is_set(), "no network ends by itself"
    for network in networks:
        network.stop()
    await asyncio.gather(*running)
    for network in networks:
        await network.close()
    await feed.stop()


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), sys.argv[2]))
