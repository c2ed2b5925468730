"""Several networks in one service: bad feeds and loud clients of one do not affect another."""

import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from foreblock.service.running import free_port
from support.servers.dev_processes import (
    Dev,
    Network,
    children,
    dev_chain,
    pins,
    sealed,
    serving_several,
    until_latest,
)
from support.servers.waiting import PATIENCE, until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


@pytest.fixture(scope="module")
def dev(folder: Path) -> Iterator[Dev]:
    options = ("--block-time=1", "--workers=1", "--load=20", f"--data={folder / 'dev'}")
    with dev_chain(*options) as running:
        yield running


@contextmanager
def garbage() -> Iterator[str]:
    """A feed of noise, as fast as it is read."""

    def attend(connection: ServerConnection) -> None:
        try:
            while True:
                connection.send(os.urandom(2000))
                connection.send('{"payload_id": "0x00", "index": 10000000000000000000000}')
        except ConnectionClosed:
            pass

    with serve(attend, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/ws"
        server.shutdown()
        thread.join()


def both(dev: Dev, folder: Path, data: Path) -> tuple[dict[str, Network], dict[str, Sequence[str]]]:
    """The two networks of a dev chain, and the options of a service that follows them."""
    assert dev.test is not None
    sources = {"main": dev.main, "test": dev.test}
    told = {
        name: (
            f"data={data / name}", f"genesis={folder / 'dev' / name / 'genesis.json'}",
            f"feed={source.feed}", f"canonical={source.url}",
        )
        for name, source in sources.items()
    }  # fmt: skip
    return sources, dict(told)


@pytest.mark.heavy
def test_two_networks_are_followed_by_one_service(dev: Dev, folder: Path, tmp_path: Path) -> None:
    sources, told = both(dev, folder, tmp_path)
    with serving_several(told) as (_, networks):
        for name, source in sources.items():
            until_latest(networks[name], source.latest() + 2)
        for name, source in sources.items():
            block = networks[name].latest()
            assert networks[name].ask("eth_chainId") == source.ask("eth_chainId")
            assert sealed(networks[name], block) == sealed(source, block)
            assert pins(networks[name], block) == pins(source, block)
            assert networks[name].probe("/readyz")[0] == 200
        assert networks["main"].ask("eth_chainId") != networks["test"].ask("eth_chainId")


@pytest.mark.heavy
def test_a_network_in_bad_weather_leaves_the_other_alone(
    dev: Dev, folder: Path, tmp_path: Path
) -> None:
    genesis = {name: folder / "dev" / name / "genesis.json" for name in ("main", "test")}
    with ExitStack() as stack:
        noise = stack.enter_context(garbage())
        told = {
            "main": (f"data={tmp_path / 'main'}", f"genesis={genesis['main']}",
                     f"feed={dev.main.feed}", f"canonical={dev.main.url}"),
            "test": (f"data={tmp_path / 'test'}", f"genesis={genesis['test']}", f"feed={noise}",
                     f"feed=ws://127.0.0.1:{free_port()}/ws",
                     f"canonical=http://127.0.0.1:{free_port()}"),
        }  # fmt: skip
        _, networks = stack.enter_context(serving_several(told))
        good, bad = networks["main"], networks["test"]
        until(lambda: "Malformed" in bad.probe("/readyz?verbose")[1], "noise is received")
        begun = good.latest()
        until_latest(good, max(begun, dev.main.latest()) + 3)
        block = good.latest()
        assert pins(good, block) == pins(dev.main, block)
        assert "Malformed" not in good.probe("/readyz?verbose")[1]
        status, text = bad.probe("/readyz?verbose")
        assert status == 503
        assert f"feed: {noise}: connected" in text
        assert "not reached yet" in text
        assert bad.latest() == 0, "it serves its blocks"


@pytest.mark.heavy
def test_a_network_that_cannot_be_begun_again_leaves_the_other_alone(
    dev: Dev, folder: Path, tmp_path: Path
) -> None:
    sources, told = both(dev, folder, tmp_path)
    genesis = folder / "dev" / "test" / "genesis.json"
    hidden = genesis.with_suffix(".hidden")
    with serving_several(told) as (pid, networks):
        good, bad = networks["main"], networks["test"]
        for name, network in networks.items():
            until_latest(network, sources[name].latest() + 1)
        genesis.rename(hidden)
        (writer,) = children(pid)["writer"]
        os.kill(writer, signal.SIGKILL)
        until(lambda: "failed:" in bad.probe("/readyz?verbose")[1], "it reports the failure")
        until(lambda: bad.probe("/readyz")[0] == 503, "it reports that it has stopped")
        assert "genesis.json" in bad.probe("/readyz?verbose")[1]
        held = bad.latest()
        until_latest(good, dev.main.latest() + 2)
        assert good.probe("/readyz")[0] == 200
        assert bad.latest() == held > 0, "it serves its blocks"
        hidden.rename(genesis)
        until_latest(bad, sources["test"].latest() + 1)
        until(lambda: bad.probe("/readyz")[0] == 200, "it is well again")


SHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
PONGS = b"\x8a\x80\0\0\0\0" * 20_000
CLIENTS = 4
MEMORY_MIB = 64  # additional memory


class Loud(threading.Thread):
    """Connects, sends pongs until it is closed, and reconnects."""

    def __init__(self, port: int, address: str, over: threading.Event) -> None:
        super().__init__()
        self._port = port
        self._address = address
        self._over = over
        self.closed = 0
        self.start()

    def run(self) -> None:
        while not self._over.is_set():
            with suppress(OSError), socket.socket() as sock:
                sock.settimeout(PATIENCE)
                sock.bind((self._address, 0))
                sock.connect(("127.0.0.1", self._port))
                sock.sendall(SHAKE)
                if sock.recv(4096):
                    with suppress(ConnectionError):
                        while not self._over.is_set():
                            sock.sendall(PONGS)
                    self.closed += 1


def memory_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    (line,) = [line for line in text.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


def test_blocks_of_all_networks_go_on_beside_clients_that_flood_a_feed(dev: Dev) -> None:
    over = threading.Event()
    assert dev.test is not None
    (writer,) = dev.pids("writer")
    before = memory_mib(writer)
    port = int(dev.main.feed.split(":")[2].split("/")[0])
    loud = [Loud(port, f"127.0.0.{2 + at}", over) for at in range(CLIENTS)]
    try:
        until(lambda: all(each.closed for each in loud), "each was closed")
        begun = dev.main.latest(), dev.test.latest()
        until_latest(dev.main, begun[0] + 1)
        until_latest(dev.test, begun[1] + 1)
        assert dev.pids("writer") == [writer]
        assert memory_mib(writer) < before + MEMORY_MIB
    finally:
        over.set()
        for each in loud:
            each.join()
