"""A feed whose messages never end, beside an honest one: the network goes on and is ready."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from support.payloads.bytecode import P256_LOOP, STORING_LOOP, loop
from support.payloads.signing import deposit_running
from support.servers.dev_processes import dev_chain, following, sealed, until_latest
from support.servers.waiting import until

pytestmark = pytest.mark.heavy

LIMIT = 400_000_000  # of a dev chain
FAR = 2**62

# What the deposit runs and its gas, the gas limit of the block, and what it says to have used.
KINDS = [
    (loop(), FAR, 2**63, 100_000),
    (loop(), LIMIT, 2 * LIMIT, 100_000),
    (STORING_LOOP, LIMIT, 2 * LIMIT, 100_000),
    (P256_LOOP, LIMIT - 10**6, LIMIT, LIMIT),
]


def spoil(message: dict[str, Any], place: int) -> str:
    """The first message of a block, with a deposit that nobody can wait for."""
    code, gas, gas_limit, gas_used = KINDS[place % len(KINDS)]
    deposit = deposit_running(code, gas)
    message["payload_id"] = f"0x{place + 1:016x}"
    message["base"]["gas_limit"] = hex(gas_limit)
    diff = message["diff"]
    diff["transactions"].append(f"0x{deposit.raw.hex()}")
    diff |= {"gas_used": hex(gas_used), "block_hash": "0x" + "77" * 32}
    return json.dumps(message)


@contextmanager
def spoiled(honest: str) -> Iterator[str]:
    """A feed that sends the first message of each block, spoiled in one way after the other."""

    def attend(connection: ServerConnection) -> None:
        place = 0
        with connect(honest) as source:
            try:
                while True:
                    message = json.loads(source.recv())
                    if message["index"] == 0:
                        connection.send(spoil(message, place))
                        place += 1
            except ConnectionClosed:
                pass

    with serve(attend, "127.0.0.1", 0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
        server.shutdown()
        thread.join()


def said(text: Callable[[], str], *words: str) -> bool:
    found = text()
    return all(word in found for word in words)


def test_messages_that_never_end_are_refused_and_the_network_is_ready(tmp_path: Path) -> None:
    options = ("--block-time=1", "--test-listen=", "--load=20", f"--data={tmp_path / 'dev'}")
    with dev_chain(*options) as dev, spoiled(dev.main.feed) as bad:
        genesis = tmp_path / "dev" / "main" / "genesis.json"
        feeds = (dev.main.feed, bad)
        with following(genesis, tmp_path / "a", *feeds, canonical=dev.main.url) as instance:
            network = instance.network
            until_latest(network, 2)
            facts = lambda: network.probe("/readyz?verbose")[1]  # noqa: E731
            until(lambda: said(facts, "Diverged", "Overrun"), "what never ends was refused")
            tip = dev.main.latest()
            until_latest(network, tip + 2)
            until(lambda: network.probe("/readyz")[0] == 200, "it is ready")
            for block in (tip, tip + 1):
                assert sealed(network, block) == sealed(dev.main, block)
