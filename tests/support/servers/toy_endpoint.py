"""Fake servers: HTTP and JSON-RPC from a function, a table of methods, a chain of empty blocks."""

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from foreblock.types import Block, Header

Answer = Callable[[list[Any]], object]
Result = Callable[[str, list[Any]], object]  # of a method with its parameters


class ToyError(Exception):
    """Raised by a method to respond with an error: its object."""


def refusal(code: int, message: str) -> ToyError:
    return ToyError({"code": code, "message": message})


class ToyResponse(NamedTuple):
    """A response. `cut` sends this many bytes of its body and closes; `holds` delays it."""

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = {}  # noqa: RUF012, nobody writes to it
    cut: int | None = None
    holds: threading.Event | None = None


class HttpRequest(NamedTuple):
    path: str
    headers: Message
    body: bytes  # empty for GET
    port: int  # of the client's end of the connection


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Clients open many connections at once. Those beyond the backlog would wait for a second and
    # more.
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, as declared
        if not isinstance(sys.exception(), OSError):  # a client may close its connection
            super().handle_error(request, client_address)


@contextmanager
def http_endpoint(answer: Callable[[HttpRequest], ToyResponse]) -> Iterator[str]:
    """The URL of a server that serves GET and POST with this function."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.reply(self.rfile.read(int(self.headers["Content-Length"])))

        def do_GET(self) -> None:
            self.reply(b"")

        def reply(self, asked: bytes) -> None:
            said = answer(HttpRequest(self.path, self.headers, asked, self.client_address[1]))
            if said.holds is not None:
                said.holds.wait()
            body = said.body or b""
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: said.cut])
            if said.cut is not None:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answered(result: Result, body: bytes) -> bytes:
    """Return the response to a request or a batch."""

    def answer(request: dict[str, Any]) -> dict[str, object]:
        envelope = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            return {**envelope, "result": result(request["method"], request.get("params", []))}
        except ToyError as failure:
            return {**envelope, "error": failure.args[0]}

    asked = json.loads(body)
    answers = list(map(answer, asked)) if isinstance(asked, list) else answer(asked)
    return json.dumps(answers).encode()


@contextmanager
def toy_endpoint(
    methods: Mapping[str, Answer], pages: Mapping[str, tuple[int, str]] | None = None
) -> Iterator[str]:
    """The URL of an endpoint with these methods, and pages: status and text by path."""

    def reply(request: HttpRequest) -> ToyResponse:
        if not request.body:
            status, text = (pages or {}).get(request.path, (404, "not found"))
            return ToyResponse(status, text.encode())
        return ToyResponse(body=answered(result, request.body))

    def result(method: str, params: list[Any]) -> object:
        if method not in methods:
            raise refusal(-32601, f"the method {method} does not exist")
        return methods[method](params)

    with http_endpoint(reply) as url:
        yield url


BUSY = {"code": -32005, "message": "rate limit exceeded"}


def grow(parent: Block | None, count: int, name: bytes = b"") -> list[Block]:
    """Blocks on a parent; a different name gives different blocks."""
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
    """A node with a chain that a test may change, and optional false responses."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        self.asked: list[str] = []  # requested names of blocks
        self.failing: float = 0  # number of responses that fail
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
