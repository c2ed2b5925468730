"""Instances that follow the feed of a dev chain or of each other, through faults of every kind."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from foreblock.clock import SystemClock
from foreblock.feed.messages import decode
from foreblock.feed.recording import Recorder, read_recording
from foreblock.service.running import free_port
from foreblock.types import Flashblock
from support.payloads.bytecode import P256_LOOP, STORING_LOOP, loop
from support.payloads.signing import deposit_with_code
from support.servers.dev_processes import (
    PACKAGE,
    Dev,
    Following,
    Network,
    RpcError,
    children,
    dev_chain,
    following,
    pins,
    sealed,
    until_latest,
)
from support.servers.waiting import PATIENCE, until

ONE = ("--block-time=1", "--test-listen=", "--workers=1")  # network, served by one process


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("following")


@pytest.fixture(scope="module")
def dev(folder: Path) -> Iterator[Dev]:
    with dev_chain(*ONE, "--load=50", f"--data={folder / 'dev'}") as running:
        yield running


@pytest.fixture(scope="module")
def genesis(dev: Dev, folder: Path) -> Path:
    assert dev.main.url
    return folder / "dev" / "main" / "genesis.json"


@pytest.fixture(scope="module")
def follower(dev: Dev, genesis: Path, folder: Path) -> Iterator[Following]:
    with following(genesis, folder / "a", dev.main.feed, canonical=dev.main.url) as running:
        yield running


def whole_blocks(*networks: Network) -> list[int]:
    """The newest two blocks with flashblocks on all networks, if any.

    A late network takes a block from the canonical source, which has no flashblocks.
    """
    newest = min(network.latest() for network in networks)
    found = [
        block
        for block in range(newest, max(newest - 8, 0), -1)
        if all(pins(network, block) for network in networks)
    ]
    return found[:2] if len(found) > 1 else []


def test_instances_in_a_chain_serve_the_same_pins(
    dev: Dev, genesis: Path, follower: Following, stack: ExitStack, tmp_path: Path
) -> None:
    first = follower.network
    second = stack.enter_context(
        following(genesis, tmp_path / "b", first.feed, canonical=first.url)
    ).network
    begun = until(second.latest, "the last one has a block")
    until_latest(second, begun + 4)
    for block in until(lambda: whole_blocks(first, second), "both got two blocks by the feed"):
        assert pins(first, block) == pins(second, block) == pins(dev.main, block)
        assert sealed(first, block) == sealed(second, block) == sealed(dev.main, block)
    status, text = second.probe("/readyz?verbose")
    assert status == 200
    assert f"feed: {first.feed}: connected" in text
    assert "divergences 0" in text


@pytest.mark.heavy
def test_a_killed_instance_in_the_middle_comes_back_and_all_is_well(
    dev: Dev, genesis: Path, stack: ExitStack, tmp_path: Path
) -> None:
    rpc, feed = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"

    def middle() -> Following:
        return stack.enter_context(
            following(
                genesis, tmp_path / "a", dev.main.feed, canonical=dev.main.url, listen=rpc,
                feed_listen=feed,
            )
        )  # fmt: skip

    killed = middle()
    last = stack.enter_context(
        following(genesis, tmp_path / "b", f"ws://{feed}/ws", canonical=f"http://{rpc}")
    ).network
    until_latest(last, dev.main.latest() + 1)
    killed.kill()
    until(lambda: last.probe("/readyz")[0] == 503, "it reports the silent feed")
    until(lambda: "not connected" in last.probe("/readyz?verbose")[1], "and why")
    middle()
    until(lambda: last.probe("/readyz")[0] == 200, "it is well again")
    tip = dev.main.latest()
    until_latest(last, tip + 2)
    for block in range(1, tip + 2):
        assert sealed(last, block) == sealed(dev.main, block)
    assert pins(last, tip + 2)[0] == pins(dev.main, tip + 2)[0]


def test_a_writer_that_is_killed_heals_through_canonical(dev: Dev, follower: Following) -> None:
    network = follower.network
    until_latest(network, dev.main.latest() + 1)
    follower.kill_writer()
    until_latest(network, dev.main.latest() + 2)
    until(lambda: network.probe("/readyz")[0] == 200, "it is ready")


LIMIT = 400_000_000  # of a dev chain
FAR = 2**62

# The code of the deposit and its gas, the gas limit of the block, and the claimed gas.
KINDS = [
    (loop(), FAR, 2**63, 100_000),
    (loop(), LIMIT, 2 * LIMIT, 100_000),
    (STORING_LOOP, LIMIT, 2 * LIMIT, 100_000),
    (P256_LOOP, LIMIT - 10**6, LIMIT, LIMIT),
]


def spoil(message: dict[str, Any], place: int) -> str:
    """The first message of a block, with an extremely slow deposit."""
    code, gas, gas_limit, gas_used = KINDS[place % len(KINDS)]
    deposit = deposit_with_code(code, gas)
    message["payload_id"] = f"0x{place + 1:016x}"
    message["base"]["gas_limit"] = hex(gas_limit)
    diff = message["diff"]
    diff["transactions"].append(f"0x{deposit.raw.hex()}")
    diff |= {"gas_used": hex(gas_used), "block_hash": "0x" + "77" * 32}
    return json.dumps(message)


@contextmanager
def spoiled(honest: str) -> Iterator[str]:
    """A feed that sends the first message of each block, modified in various ways in turn."""

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


@pytest.mark.heavy
def test_messages_that_never_end_are_refused_and_the_network_is_ready(
    dev: Dev, genesis: Path, stack: ExitStack, tmp_path: Path
) -> None:
    feeds = (dev.main.feed, stack.enter_context(spoiled(dev.main.feed)))
    network = stack.enter_context(
        following(genesis, tmp_path / "a", *feeds, canonical=dev.main.url)
    ).network
    until_latest(network, dev.main.latest() + 1)
    facts = lambda: network.probe("/readyz?verbose")[1]  # noqa: E731
    until(lambda: said(facts, "Diverged", "Overrun"), "what never ends was refused")
    tip = dev.main.latest()
    until_latest(network, tip + 2)
    until(lambda: network.probe("/readyz")[0] == 200, "it is ready")
    for block in (tip, tip + 1):
        assert sealed(network, block) == sealed(dev.main, block)


@pytest.mark.heavy
def test_without_canonical_a_chain_joined_in_the_middle_says_what_it_lacks(
    dev: Dev, genesis: Path, stack: ExitStack, tmp_path: Path
) -> None:
    until_latest(dev.main, 2)
    lost = stack.enter_context(following(genesis, tmp_path / "a", dev.main.feed)).network

    def text() -> str | None:
        found = lost.probe("/readyz?verbose")[1]
        return found if "missing: block 0x" in found else None

    said = until(text, "it names the block")
    assert "no canonical source is set" in said
    assert lost.probe("/readyz")[0] == 503
    assert lost.latest() == 0
    assert lost.pending()["number"] == "0x0"
    with pytest.raises(RpcError, match="header not found"):
        lost.ask("eth_getBalance", "0x" + "00" * 20, "0x1")


FEED_FAULTS = (
    "drop=0.05,duplicate=0.2,delay=0.05,reorder=0.1,equivocate=0.05,stall=0.01,garbage=0.2"
)
CHAIN_FAULTS = "restart=0.05,tail=0.2,reorg=0.1"


@pytest.mark.heavy
@pytest.mark.parametrize(
    "faults", [FEED_FAULTS, CHAIN_FAULTS, f"{FEED_FAULTS},{CHAIN_FAULTS}"],
    ids=["feed", "chain", "both"],
)  # fmt: skip
def test_in_bad_weather_an_instance_converges_to_the_chain_it_follows(
    stack: ExitStack, tmp_path: Path, faults: str
) -> None:
    data = tmp_path / "dev"
    options = (*ONE, "--load=20", f"--data={data}", f"--faults={faults}")
    dev = stack.enter_context(dev_chain(*options)).main
    instance = stack.enter_context(
        following(data / "main" / "genesis.json", tmp_path / "a", dev.feed, canonical=dev.url)
    )
    network, pid = instance.network, instance.process.pid
    writers = children(pid)["writer"]
    until_latest(network, 12)

    def same() -> bool:
        """Wait until both agree on every sealed block, between two reorganisations."""
        tip = min(dev.latest(), network.latest())
        try:
            return all(sealed(network, each) == sealed(dev, each) for each in range(1, tip + 1))
        except RpcError:
            return False

    until(same, "all sealed blocks are equal")
    assert children(pid)["writer"] == writers, "nothing that a feed sends ends the writer"
    text = network.probe("/readyz?verbose")[1]
    assert "Failed" not in text


def record(url: str, file: Path, is_enough: Callable[[Recorder], bool]) -> Recorder:
    async def recording() -> Recorder:
        with file.open("wb") as opened:
            recorder = Recorder(url, opened, SystemClock())
            async with asyncio.timeout(PATIENCE):
                await recorder.run(lambda: is_enough(recorder))
            return recorder

    return asyncio.run(recording())


def has_begun(recorder: Recorder, block: int) -> bool:
    return recorder.place is not None and recorder.place.block_number >= block


def begun_and_recorded(data: Path, file: Path, block_time: int, stack: ExitStack) -> Network:
    """A chain whose feed was recorded until its third block had begun."""
    feed = f"127.0.0.1:{free_port()}"
    options = (*ONE, f"--block-time={block_time}", "--load=50", f"--data={data}")
    with ThreadPoolExecutor(1) as beside:  # it starts before the chain
        recording = beside.submit(record, f"ws://{feed}/ws", file, lambda it: has_begun(it, 3))
        dev = stack.enter_context(dev_chain(*options, f"--feed-listen={feed}")).main
        assert recording.result().unreadable == 0
    return dev


def recorded(file: Path) -> list[tuple[int, int]]:
    """Block and index of the flashblocks in a recording."""
    with file.open("rb") as opened:
        messages = [decode(each.message) for each in read_recording("file", opened)]
    return [(each.block_number, each.index) for each in messages if isinstance(each, Flashblock)]


@pytest.mark.heavy
def test_a_recorded_feed_replayed_into_another_instance_gives_the_same_answers(
    stack: ExitStack, tmp_path: Path
) -> None:
    """The busier the machine, the longer the first block, in which the recorder must start."""
    for block_time in (2, 4, 8, 16, 32):
        data, file = tmp_path / f"dev-{block_time}", tmp_path / f"recording-{block_time}"
        dev = begun_and_recorded(data, file, block_time, stack)
        places = recorded(file)
        if places[0] == (1, 0):
            break
        stack.close()
    assert places[0] == (1, 0), "it was there from the start"

    replaying = stack.enter_context(replayed(file))
    again = stack.enter_context(
        following(data / "main" / "genesis.json", tmp_path / "again", replaying)
    ).network
    last = sum(block == 3 for block, _ in places)
    until(lambda: len(pins(again, 3)) == last, "all is executed")
    for block in (1, 2):
        assert pins(again, block) == pins(dev, block)
        assert sealed(again, block) == sealed(dev, block)
    assert pins(again, 3) == pins(dev, 3)[:last]
    assert again.latest() == 2, "the last one seals with its successor"


@contextmanager
def replayed(file: Path) -> Iterator[str]:
    """`foreblock replay` of a file, at maximum speed."""
    command = [
        sys.executable, "-m", "foreblock", "replay", str(file), "--listen=127.0.0.1:0", "--speed=0"
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
