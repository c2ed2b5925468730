"""An endpoint that answers from a table, and a node behind one that has empty blocks."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from foreblock.types import Block, Header

Answer = Callable[[list[Any]], object]


class ToyError(Exception):
    """What a method of a toy endpoint raises to answer with an error."""


@contextmanager
def toy_endpoint(
    methods: Mapping[str, Answer], pages: Mapping[str, tuple[int, str]] | None = None
) -> Iterator[str]:
    """The URL of an endpoint with these methods, and pages: status and text by path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked = json.loads(body)
            answers = [answer(each) for each in asked] if isinstance(asked, list) else answer(asked)
            self.reply(200, json.dumps(answers).encode())

        def do_GET(self) -> None:
            status, text = (pages or {}).get(self.path, (404, "not found"))
            self.reply(status, text.encode())

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A test prints nothing."""

    def answer(request: dict[str, Any]) -> dict[str, object]:
        envelope = {"jsonrpc": "2.0", "id": request["id"]}
        method = methods.get(request["method"])
        if method is None:
            error = {"code": -32601, "message": f"the method {request['method']} does not exist"}
            return {**envelope, "error": error}
        try:
            return {**envelope, "result": method(request["params"])}
        except ToyError as failure:
            return {**envelope, "error": failure.args[0]}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


BUSY = {"code": -32005, "message": "rate limit exceeded"}


def grow(parent: Block | None, count: int, name: bytes = b"") -> list[Block]:
    """Blocks on a parent; those of another name are others."""
    blocks = []
    for _ in range(count):
        number = 0 if parent is None else parent.header.number + 1
        header = Header(
            parent_hash=bytes(32) if parent is None else parent.hash,
            beneficiary=bytes(20), state_root=bytes(32), number=number, gas_limit=30_000_000,
            timestamp=number, extra_data=name,
        )  # fmt: skip
        parent = Block(header)
        blocks.append(parent)
    return blocks


class BlockNode:
    """Its chain, which a test may change, and what it says in place of the truth."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        self.asked: list[str] = []  # names of blocks
        self.failing: float = 0  # so many answers
        self.lie: Callable[[dict[str, Any]], dict[str, Any]] = lambda said: said

    def answer(self, params: list[Any]) -> object:
        """A block, by its tag, number or hash."""
        name, is_whole = params
        self.asked.append(f"{name} whole" if is_whole else name)
        if self.failing:
            self.failing -= 1
            raise ToyError(BUSY)
        at = {"latest": -1, "safe": len(self.blocks) // 2, "finalized": 0}.get(name)
        found = [self.blocks[at]] if at is not None else self._named(name)
        return self.lie(block_json(found[0])) if found else None

    def _named(self, name: str) -> list[Block]:
        return [each for each in self.blocks if name in (hex(each.header.number), _hex(each.hash))]


def block_json(block: Block) -> dict[str, Any]:
    """A block without transactions as nodes show it."""
    header = block.header
    later = {
        "baseFeePerGas": header.base_fee_per_gas,
        "withdrawalsRoot": header.withdrawals_root,
        "blobGasUsed": header.blob_gas_used,
        "excessBlobGas": header.excess_blob_gas,
        "parentBeaconBlockRoot": header.parent_beacon_block_root,
        "requestsHash": header.requests_hash,
    }
    return {
        "number": hex(header.number),
        "hash": _hex(header.hash),
        "parentHash": _hex(header.parent_hash),
        "sha3Uncles": _hex(header.ommers_hash),
        "miner": _hex(header.beneficiary),
        "stateRoot": _hex(header.state_root),
        "transactionsRoot": _hex(header.transactions_root),
        "receiptsRoot": _hex(header.receipts_root),
        "logsBloom": _hex(header.logs_bloom),
        "difficulty": hex(header.difficulty),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "extraData": _hex(header.extra_data),
        "mixHash": _hex(header.mix_hash),
        "nonce": _hex(header.nonce),
        "transactions": [],
        "uncles": [],
    } | {
        name: hex(value) if isinstance(value, int) else _hex(value)
        for name, value in later.items()
        if value is not None
    }


@contextmanager
def block_node(blocks: Sequence[Block]) -> Iterator[tuple[BlockNode, str]]:
    """A node with these blocks, and its URL."""
    node = BlockNode(blocks)
    methods = {"eth_getBlockByNumber": node.answer, "eth_getBlockByHash": node.answer}
    with toy_endpoint(methods) as url:
        yield node, url


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
