"""Servers of chains that grow: a transaction that one of them accepts is included at once.

geth in developer mode and anvil seal a block for each transaction. foreblock runs a dev chain
that closes a flashblock for it (`--instant`) and seals a block each second. All have the account
and the contract of `chain`, under the same chain id. How servers of fixed chains start is in
`peers`.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from foreblock.bench.fill import ETHER
from foreblock.bench.rpc import chain
from foreblock.bench.rpc.peers import FOREBLOCK, PeerSetup, Server
from foreblock.bench.rpc.processes import pin
from foreblock.ledger.genesis.genesis_file import GenesisAccount, genesis_text
from foreblock.sequencer.dev_genesis import DevGenesisOptions, dev_genesis
from foreblock.service.running import HOST, free_port, started

GROWING: Final = (FOREBLOCK, "anvil", "geth")
BLOCK_SECONDS: Final = 1  # of foreblock's blocks: the least


def dev_chain_genesis() -> bytes:
    """The genesis of foreblock's chain: a dev chain's, with the account and the contract."""
    genesis = dev_genesis(DevGenesisOptions(chain_id=chain.CHAIN_ID, block_time=BLOCK_SECONDS))
    ours = {
        chain.SENDER: GenesisAccount(balance=1000 * ETHER),
        chain.EMITTER_ADDRESS: GenesisAccount(code=chain.EMITTER),
    }
    return genesis_text(replace(genesis, accounts={**genesis.accounts, **ours}))


@contextmanager
def foreblock(place: PeerSetup) -> Iterator[Server]:
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
def anvil(program: Path, place: PeerSetup) -> Iterator[Server]:
    """Anvil, which seals a block for each transaction unless it is kept from it."""
    genesis, port = _genesis(place), free_port()
    command = [str(program), f"--port={port}", f"--init={genesis}", "--hardfork=cancun",
               f"--gas-limit={chain.GAS_LIMIT}"]  # fmt: skip
    with _running("anvil", command, f"http://{HOST}:{port}", place) as server:
        yield server


@contextmanager
def geth(program: Path, place: PeerSetup) -> Iterator[Server]:
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
