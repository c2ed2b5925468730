"""Reads compared with geth: proofs, raw forms, uncles and slots at every block.

    python tests/differential/reads.py --geth GETH [--chain DIR | --seed N] [--keep-nodes N]

GETH is geth 1.17.2, DIR a folder with genesis.json and chain.rlp; without one, a chain of 2,120
random transactions is made. Both import the chain; then every request is sent to geth and to
foreblock in the `ethereum` dialect. Results are compared literally, errors by their code. With few
nodes kept, proofs use the methods for old states. `docs/conformance.md` lists the differences that
are not requested.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from differential.geth import geth
from differential.random_state import created, write
from foreblock._engine import Store
from foreblock.conformance.compare import differences
from foreblock.errors import ErrorAnswer
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.upstream.rpc_client import Endpoint
from support.servers.asking import Asker, asker

Request = tuple[str, list[Any]]

ABSENT = "0x" + "ab" * 20
UNKNOWN = "0x" + "9" * 64
WORDS = ["0x" + f"{slot:064x}" for slot in (0, 1, 2, 7, 2**255)]
KEYS = ["0x0", "0x1", "2", "0x07", "0xffff", "", "0x", WORDS[1], WORDS[2][2:], "0x" + WORDS[3][3:]]
BAD_KEYS: list[list[Any]] = [["0x" + "00" * 33], ["0xg"], ["zz"], [1], ["0x0"] * 1025]


def main() -> None:
    """Compare, and exit with 1 on a difference."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--geth", required=True)
    parser.add_argument("--chain", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-nodes", type=int, default=128)
    chosen = parser.parse_args()
    asked: Counter[str] = Counter()
    unlike: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        files = chosen.chain or Path(folder) / "random"
        if chosen.chain is None:
            files.mkdir()
            write(files, chosen.seed)
        import_files(files / "genesis.json", files / "chain.rlp", store, None, lambda _: None)
        with Store(str(store), write=True, keep_nodes=chosen.keep_nodes) as opened:
            while opened.maintain(100_000, 1.0):
                pass
        ledger = Ledger.open(str(store))
        with (
            geth(chosen.geth, files, Path(folder) / "geth") as url,
            Endpoint(url) as theirs,
            asker(ledger, "ethereum", call_timeout=60.0) as ours,
        ):
            for method, params in requests(ours, files):
                asked[method] += 1
                expected, found = ask(theirs, method, params), ours.ask(method, *params)
                unlike += compare(f"{method} {json.dumps(params)[:120]}", expected, found)
        ledger.close()
    lines = [f"{count:>6} {method}" for method, count in asked.most_common()]
    sys.stdout.write("\n".join([*lines, *unlike, f"{len(unlike)} differences"]) + "\n")
    sys.exit(1 if unlike else 0)


def compare(request: str, expected: Any, found: Any) -> list[str]:  # noqa: ANN401, it is JSON
    """The differences between two responses, each with the request; of errors only the code."""
    if isinstance(expected, dict) and "message" in expected:
        expected = {"code": expected["code"]}
        if isinstance(found, dict):
            found = {name: value for name, value in found.items() if name != "message"}
    return [f"{request}: {each}" for each in differences(expected, found)[:3]]


def requests(ours: Asker, files: Path) -> Iterator[Request]:
    """All requests, at every block."""
    genesis = json.loads((files / "genesis.json").read_text("utf-8"))
    accounts = [f"0x{each.removeprefix('0x').lower()}" for each in genesis["alloc"]]
    last = int(ours.ask("eth_blockNumber"), 16)
    for number in range(last + 1):
        block = ours.ask("eth_getBlockByNumber", hex(number), True)
        touched = {each[name] for each in block["transactions"] for name in ("from", "to")}
        touched |= {"0x" + created(int(each["nonce"], 16)).hex() for each in block["transactions"]}
        accounts += sorted((touched | {block["miner"]}) - {None, *accounts})
        yield from of_block(block)
        for address in (*accounts[:: 1 + len(accounts) // 12], ABSENT):
            yield "eth_getProof", [address, KEYS, hex(number)]
            yield "eth_getStorageValues", [{address: WORDS, ABSENT: WORDS[:1]}, hex(number)]
    for address in (*accounts, ABSENT):
        yield "eth_getProof", [address, KEYS, "latest"]
    for keys in BAD_KEYS:
        yield "eth_getProof", [ABSENT, keys, "latest"]
        yield "eth_getStorageAt", [ABSENT, keys[0], "latest"]
    for key in KEYS:
        yield "eth_getStorageAt", [accounts[0], key, "latest"]
    yield "eth_getProof", [ABSENT, None, "latest"]
    yield "eth_getProof", [ABSENT, [], UNKNOWN]
    yield "eth_getStorageValues", [{}, "latest"]
    yield "eth_getStorageValues", [{ABSENT: WORDS[:1] * 1025}, "latest"]
    yield "eth_config", []
    yield "web3_sha3", ["0x68656c6c6f"]
    for name in ("net_peerCount", "net_listening", "eth_blobBaseFee"):
        yield name, []


def of_block(block: dict[str, Any]) -> Iterator[Request]:
    """Raw forms of a block, and its uncles."""
    number, block_hash = block["number"], block["hash"]
    for name in ("debug_getRawHeader", "debug_getRawBlock", "debug_getRawReceipts"):
        yield name, [number]
        yield name, [block_hash]
        yield name, [{"blockHash": block_hash}]
    for each in block["transactions"]:
        yield "debug_getRawTransaction", [each["hash"]]
        yield "eth_getRawTransactionByHash", [each["hash"]]
        place = each["transactionIndex"]
        yield "eth_getRawTransactionByBlockNumberAndIndex", [number, place]
        yield "eth_getRawTransactionByBlockHashAndIndex", [block_hash, place]
    yield "eth_getUncleCountByBlockNumber", [number]
    yield "eth_getUncleCountByBlockHash", [block_hash]
    for place in range(len(block["uncles"]) + 1):
        yield "eth_getUncleByBlockNumberAndIndex", [number, hex(place)]
        yield "eth_getUncleByBlockHashAndIndex", [block_hash, hex(place)]
    yield "eth_getRawTransactionByBlockNumberAndIndex", [number, "0xffff"]
    yield "eth_getRawTransactionByBlockHashAndIndex", [UNKNOWN, "0x0"]
    yield "debug_getRawTransaction", [UNKNOWN]
    yield "eth_getUncleCountByBlockHash", [UNKNOWN]
    for name in ("debug_getRawHeader", "debug_getRawBlock"):
        yield name, [UNKNOWN]


def ask(endpoint: Endpoint, method: str, params: list[Any]) -> Any:  # noqa: ANN401, it is JSON
    """Return the result, or the error object."""
    try:
        return endpoint.request(method, params)
    except ErrorAnswer as refused:
        return {"code": refused.code, "message": refused.message}


if __name__ == "__main__":
    main()
