"""Dev chains with Ethereum's rules, imported by geth: every fork, every response.

    python tests/differential/dev_chains.py --geth GETH

GETH is geth 1.17.2. For each fork a chain is built, index by index, with transfers, blobs and
requests to the consensus layer; geth must accept every block, and give literally the same responses
about it.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from differential.geth import geth
from differential.reads import ask
from foreblock.bus.commands import Mine
from foreblock.conformance.compare import differences
from foreblock.ledger.genesis.genesis_file import genesis_text
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.sequencer.dev_genesis import fork_names
from foreblock.upstream.rpc_client import Endpoint
from support.chains.dev_chain import (
    ACCOUNTS,
    DevChain,
    blob_transaction,
    consolidate,
    genesis_of,
    send,
    withdraw,
)
from support.chains.dev_service import dev_service
from support.servers.asking import Asker

BLOCKS = 12
BOB = "0x" + ACCOUNTS[1].address.hex()


def main() -> None:
    """Compare, and exit with 1 on a difference."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--geth", required=True)
    program = parser.parse_args().geth
    unlike = [line for fork in fork_names("ethereum") for line in compare(program, fork)]
    sys.stdout.write("\n".join(unlike or ["no difference"]) + "\n")
    sys.exit(bool(unlike))


def compare(program: str, fork: str) -> list[str]:
    """Return the differences of geth's responses about a chain of this fork."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        genesis = genesis_of("ethereum", fork)
        with dev_service(folder, genesis=genesis, mining="manual") as (chain, ours):
            grow(chain, ours, EthereumFork[fork.upper()])
            blocks = chain.sealed()
            (folder / "genesis.json").write_bytes(genesis_text(genesis))
            (folder / "chain.rlp").write_bytes(b"".join(block.encode() for block in blocks))
            with geth(program, folder, folder / "geth") as url, Endpoint(url) as theirs:
                unlike = [
                    f"{fork} {method} {params}: {each}"
                    for method, params in requests(len(blocks))
                    for each in differences(
                        ask(theirs, method, params), plain(ours.ask(method, *params))
                    )
                ]
    sys.stdout.write(f"{fork}: {len(blocks)} blocks\n")
    return unlike


def grow(chain: DevChain, ours: Asker, fork: EthereumFork) -> None:
    """Build blocks of several indices."""
    for number in range(BLOCKS):
        chain.submit(send(ACCOUNTS[1], number))
        chain.run(400)
        if fork >= EthereumFork.PRAGUE:
            chain.submit(withdraw(2 * number, number))
            chain.run(400)
            chain.submit(consolidate(2 * number + 1))
        if fork >= EthereumFork.CANCUN:
            raw = blob_transaction(2, number, 1 + number % 6)
            assert isinstance(ours.ask("eth_sendRawTransaction", raw), str)
        chain.run(400)
        chain.execute(Mine(blocks=1 + number % 2))


def requests(latest: int) -> Iterator[tuple[str, list[Any]]]:
    """The requests to both."""
    for number in map(hex, range(latest + 1)):
        yield "eth_getBlockByNumber", [number, True]
        yield "eth_getBlockReceipts", [number]
        yield "debug_getRawBlock", [number]
        yield "debug_getRawReceipts", [number]
        yield "eth_getProof", [BOB, [], number]
    yield "eth_feeHistory", [hex(latest), "latest", [10, 50]]
    yield "eth_config", []
    for number in map(hex, range(1, latest + 1)):
        yield "debug_traceBlockByNumber", [number, {"tracer": "prestateTracer"}]


def plain(answer: Any) -> Any:  # noqa: ANN401, it is JSON
    """Numbers in geth's form: 0 for 0.0."""
    if isinstance(answer, dict):
        return {key: plain(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    return int(answer) if isinstance(answer, float) and answer.is_integer() else answer


if __name__ == "__main__":
    main()
