"""Abuse that a service must withstand, on a small scale; `make check NAME=abuse` has the
full one.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from abuse.attackers import attacking
from abuse.frames import fuzz_frames
from abuse.fuzzing import fuzz_bodies, fuzz_raw
from abuse.memory import peak_bytes, reset_peak
from abuse.probe import BALANCE, ask_once, probe
from abuse.simulations import EXCESSES
from abuse.wire import Answer, Closed, Connection, address_of, head
from foreblock.bench.rpc import chain
from foreblock.bench.rpc.peers import family, resident_bytes
from foreblock.ledger.importing.importer import import_files
from foreblock.service.running import RunningService, serving
from support.each_case import sampled
from support.servers.dev_processes import children, median_loop_seconds
from support.servers.waiting import PATIENCE

MEBI = 2**20
MOST = 0.05  # maximum seconds for others before a balance
SCALE = 0.02  # of simulations
SHORT = ["--workers=1", "--header-timeout=1", "--body-timeout=1", "--write-timeout=1",
         "--call-timeout=1"]  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service over the benchmark's chain, with short timeouts."""
    folder = tmp_path_factory.mktemp("abuse")
    genesis = folder / "genesis.json"
    genesis.write_bytes(chain.genesis())
    import_files(genesis, chain.BLOCKS, folder / "store", None, lambda _: None)
    with serving(folder / "store", SHORT) as running:
        yield running


@pytest.fixture(autouse=True)
def _attackers_find_their_modules(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{checkout / 'python'}:{checkout / 'tests'}")


def held_up(service: RunningService, count: int) -> float:
    """Return the median time that the loop works for others before a balance is answered.

    In CPU seconds: wall-clock time depends on other load, and is measured by `make check
    NAME=abuse`.
    """
    (worker,) = children(service.pid)["worker"]
    connection = Connection(address_of(service.url), PATIENCE)

    def ask() -> None:
        assert json.loads(connection.exchange(BALANCE).body)["result"] == "0x0"

    found = median_loop_seconds(worker, ask, count)
    connection.close()
    return found


@pytest.mark.parametrize(
    ("name", "count"),
    sampled([
        ("slow_header", 50), ("slow_body", 50), ("never_reads", 20), ("idle", 300),
        ("ws_half_handshake", 50), ("ws_slow_message", 50), ("ws_never_reads", 20),
        ("ws_idle", 300), ("ws_pings", 20), ("ws_fragments", 20),
    ], 2),
)  # fmt: skip
def test_others_are_served_meanwhile(service: RunningService, name: str, count: int) -> None:
    before = resident_bytes(family(service.pid))
    with attacking(name, service.url, count):
        assert held_up(service, 300) < MOST
        assert resident_bytes(family(service.pid)) - before < 64 * MEBI


def test_long_calls_do_not_hold_up_short_ones(service: RunningService) -> None:
    """Inline, eight calls of fifty million gas would precede each balance."""
    with attacking("endless_loop", service.url, 8):
        assert held_up(service, 200) < MOST


@pytest.mark.parametrize("name", sampled(EXCESSES, 1))
def test_simulations_that_ask_for_too_much_are_refused_or_stopped(
    service: RunningService, name: str
) -> None:
    """And other requests are served meanwhile, in bounded memory; on a fiftieth of the full
    scale.
    """
    _, wrong = ask_once(address_of(service.url), EXCESSES[name](SCALE))
    assert wrong is None
    before = reset_peak(family(service.pid))
    with attacking(name, service.url, 2, SCALE):
        assert held_up(service, 100) < MOST
    assert peak_bytes(family(service.pid)) - before < 64 * MEBI


def answers(connection: Connection) -> Iterator[Answer]:
    """All responses until the server closes the connection."""
    with suppress(Closed):
        while True:
            yield connection.answer()


@pytest.mark.parametrize("sent", [b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-", head(10) + b"{"])
def test_patience_ends(service: RunningService, sent: bytes) -> None:
    """Half a head and half a body: rejected or closed, well before the test's own timeout."""
    connection = Connection(address_of(service.url), timeout=PATIENCE)
    connection.socket.sendall(sent)
    assert {answer.status for answer in answers(connection)} <= {408}
    connection.close()


def test_who_never_reads_is_left(service: RunningService) -> None:
    connection = Connection(address_of(service.url), timeout=PATIENCE)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",true]}'
    requests = (head(len(body)) + body) * 200_000  # more than the buffers in between can hold
    with pytest.raises(ConnectionError):  # a timeout would mean that the server still waits
        connection.socket.sendall(requests)
    connection.close()


@pytest.mark.heavy
def test_fuzzed_bodies_are_answered(service: RunningService) -> None:
    address = address_of(service.url)
    assert not list(fuzz_bodies(address, seed=1, count=1000))
    before = resident_bytes(family(service.pid))
    assert not list(fuzz_bodies(address, seed=2, count=4000))
    assert resident_bytes(family(service.pid)) - before < 16 * MEBI
    probe(address, 10)


@pytest.mark.heavy
def test_fuzzed_http_is_refused_cleanly(service: RunningService) -> None:
    address = address_of(service.url)
    assert not list(fuzz_raw(address, seed=3, count=500))
    probe(address, 10)


@pytest.mark.heavy
def test_fuzzed_frames_end_connections_only(service: RunningService) -> None:
    address = address_of(service.url)
    workers = children(service.pid)["worker"]
    assert not list(fuzz_frames(address, seed=4, count=500))
    probe(address, 10)
    assert children(service.pid)["worker"] == workers
