"""An upstream with a busy load, and a follower of it, for as long as something is tried on both."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from follow.busy_load import BusyLoad, senders
from foreblock.sequencer.mnemonic import DevAccount
from support.servers.dev_processes import Dev, dev_chain, following
from support.servers.waiting import until

CHAIN = ("--test-listen=", "--workers=1", "--accounts=40")


class Pair(NamedTuple):
    """Both, and what is sent to the first."""

    upstream: Dev
    follower: str  # its URL
    load: BusyLoad
    senders: list[DevAccount]


@contextmanager
def loaded(
    folder: Path, *options: str, count: int = 8, seed: int = 0, tps: float = 30
) -> Iterator[tuple[Dev, BusyLoad]]:
    """A dev chain with all contracts, under load until it ends."""
    load, stop = BusyLoad(senders(count), seed), threading.Event()
    with dev_chain(*CHAIN, f"--data={folder / 'dev'}", *options) as dev:
        load.begin(dev.main.url)
        thread = threading.Thread(target=load.run, args=(dev.main.url, tps, stop))
        thread.start()
        try:
            yield dev, load
        finally:
            stop.set()
            thread.join()


@contextmanager
def full_pair(folder: Path, *options: str, count: int = 8, tps: float = 30) -> Iterator[Pair]:
    """A chain and a full follower of its feed, which has come along: what is tried before
    there is `foreblock follow`."""
    with (
        loaded(folder, *options, count=count, tps=tps) as (dev, load),
        following(
            folder / "dev" / "main" / "genesis.json", folder / "followed", dev.main.feed,
            canonical=dev.main.url,
        ) as service,
    ):  # fmt: skip
        network = service.network
        until(lambda: network.probe("/readyz")[0] == 200, "the follower is ready")
        until(lambda: network.latest() >= dev.main.latest() - 1, "it has come along")
        yield Pair(dev, network.url, load, senders(count))
