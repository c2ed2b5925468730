"""The delivery of notifications: servers whose chains grow, rounds, and their figures.

A server includes a transaction as soon as it accepts it. geth in developer mode and anvil seal a
block for each transaction; foreblock runs a dev chain that closes a flashblock for it
(`--instant`) and seals a block each second. All have the account and the contract of `chain`,
under the same chain id.

`subscriber` is the client that takes the times. As in `rounds`, one server runs at a time, on
its own core, and the client on another.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from foreblock.bench.fill import ETHER
from foreblock.bench.measure import Figure, Report
from foreblock.bench.preconf.client_process import ClientProcess, begun
from foreblock.bench.rpc import chain, subscriber
from foreblock.bench.rpc.answers import Comparison
from foreblock.bench.rpc.peers import FOREBLOCK, PeerSetup, Server, find, pin
from foreblock.bench.rpc.rounds import Bench, alone
from foreblock.ledger.genesis.genesis_file import GenesisAccount, genesis_text
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.service.running import HOST, free_port, started
from foreblock.settings import ChainSettings

# --- Servers -------------------------------------------------------------------------------

BLOCK_SECONDS: Final = 1  # of foreblock's blocks: the least


def dev_chain_genesis() -> bytes:
    """The genesis of foreblock's chain: a dev chain's, with the account and the contract."""
    genesis = dev_genesis(ChainSettings(chain_id=chain.CHAIN_ID, block_time=BLOCK_SECONDS))
    ours = {
        chain.SENDER: GenesisAccount(balance=1000 * ETHER),
        chain.EMITTER_ADDRESS: GenesisAccount(code=chain.EMITTER),
    }
    return genesis_text(replace(genesis, accounts={**genesis.accounts, **ours}))


@contextmanager
def growing_foreblock(place: PeerSetup) -> Iterator[Server]:
    """Ours, with one worker."""
    genesis, address = place.folder / "dev-genesis.json", f"{HOST}:{free_port()}"
    genesis.write_bytes(dev_chain_genesis())
    command = [
        sys.executable, "-m", "foreblock", "dev", f"--data={place.folder / 'dev'}",
        f"--genesis={genesis}", f"--listen={address}", "--feed-listen=", "--test-listen=",
        "--test-feed-listen=", "--workers=1", "--instant", f"--block-time={BLOCK_SECONDS}",
    ]  # fmt: skip
    with _running(FOREBLOCK, command, f"http://{address}", place) as server:
        yield server


@contextmanager
def growing_anvil(program: Path, place: PeerSetup) -> Iterator[Server]:
    """Anvil, which seals a block for each transaction."""
    genesis, port = _genesis(place), free_port()
    command = [str(program), f"--port={port}", f"--init={genesis}", "--hardfork=cancun",
               f"--gas-limit={chain.GAS_LIMIT}"]  # fmt: skip
    with _running("anvil", command, f"http://{HOST}:{port}", place) as server:
        yield server


@contextmanager
def growing_geth(program: Path, place: PeerSetup) -> Iterator[Server]:
    """Geth in developer mode, with HTTP and WebSocket on one port."""
    genesis, port = _genesis(place), free_port()
    data = f"--datadir={place.folder / 'geth-dev'}"
    subprocess.run([program, data, "init", genesis], capture_output=True, check=True)  # noqa: S603
    command = [str(program), data, "--dev", "--ipcdisable", "--http", f"--http.port={port}",
               "--ws", f"--ws.port={port}", f"--authrpc.port={free_port()}"]  # fmt: skip
    with _running("geth", command, f"http://{HOST}:{port}", place) as server:
        yield server


@contextmanager
def _running(name: str, command: list[str], url: str, place: PeerSetup) -> Iterator[Server]:
    with started([*place.prefix, *command], url) as process:
        pin(process.pid, place.core)
        yield Server(name, process.pid, url, "")


def _genesis(place: PeerSetup) -> Path:
    file = place.folder / "genesis.json"
    file.write_bytes(chain.genesis())
    return file


# --- Rounds and figures --------------------------------------------------------------------

LEAST: Final = 10  # samples of a round
SLOWEST: Final = 60.0  # seconds for them
MS: Final = 1e6  # nanoseconds

Samples = Sequence[Sequence[int]]  # nanoseconds: sent, read and told


@dataclass(frozen=True)
class DeliveryRow:
    """A row: a subscription of each server. foreblock's may have its own name and path."""

    name: str
    kind: str
    ours: str
    path: str = "/"

    def subscription(self, server: Server) -> tuple[str, str]:
        """URL and kind of subscription for a server."""
        if server.name == FOREBLOCK:
            return server.url + self.path, self.ours
        return f"{server.url}/", self.kind


DELIVERIES: Final = (
    DeliveryRow("delivery of a log", "logs", "pendingLogs"),
    DeliveryRow("delivery of a head", "newHeads", "newHeads", "/eth"),
)


@dataclass(frozen=True)
class Delivered:
    """The figures of one row for one server, in milliseconds."""

    row: str
    server: str
    after_read: Figure  # from the first reply that shows it to the notification
    after_sent: Figure  # from the transaction to the notification


def deliveries(
    bench: Bench,
    rows: Sequence[DeliveryRow],
    rounds: int,
    places: tuple[Comparison, Path],
    report: Report,
) -> Iterator[list[Delivered]]:
    """Measure these rows on every installed server; yields what is known after each round.

    `places` are the servers to compare with, and a folder to work in.
    """
    if not rows:
        return
    comparison, folder = places
    place = PeerSetup(folder, bench.server_core, bench.narrow)
    seen: dict[tuple[str, str], list[Sequence[int]]] = {}
    done = 0
    with _servers(place, comparison, report) as servers:
        for number in range(rounds):
            for row in rows:
                for server in servers:
                    with alone(server, servers):
                        found = _round(bench, *row.subscription(server))
                    seen.setdefault((row.name, server.name), []).extend(found)
                    done += 1
                    text = f"round {number + 1}, {row.name}, {server.name}"
                    report(text, done, rounds * len(rows) * len(servers))
                    yield list(figures(seen))


def figures(seen: Mapping[tuple[str, str], Samples]) -> Iterator[Delivered]:
    """Figures from the times, by row and server."""
    for (row, server), samples in seen.items():
        after_read = [(told - read) / MS for _, read, told in samples]
        after_sent = [(told - sent) / MS for sent, _, told in samples]
        yield Delivered(row, server, Figure(row, "ms", after_read), Figure(row, "ms", after_sent))


def _round(bench: Bench, url: str, kind: str) -> Samples:
    client = ClientProcess(subscriber, url, kind, bench.seconds, LEAST)
    pin(client.pid, bench.client_core)
    with begun([client]):
        return client.found(bench.seconds + SLOWEST)


@contextmanager
def _servers(place: PeerSetup, comparison: Comparison, report: Report) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        report("starting foreblock's dev chain", 0, 0)
        running = [stack.enter_context(growing_foreblock(place))]
        for name, start in (("anvil", growing_anvil), ("geth", growing_geth)):
            if name in comparison.names and (program := find(name, comparison.folder)) is not None:
                report(f"starting {name}", 0, 0)
                running.append(stack.enter_context(start(program, place)))
        yield running
