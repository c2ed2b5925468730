"""A node that answers from a recording: blocks up to a head that moves, and state of the anchor.

Proofs are those of the anchor, whichever block is named: every key that the recorded blocks need
has the requested value there, and a follower accepts a proof by its root. What was not recorded
is an error, never a default. `OfflineNode` does no I/O; `NodeServer` serves it over HTTP.
"""

import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any, Final

from foreblock.primitives import (
    format_data,
    format_quantity,
    parse_address,
    parse_hash,
    parse_number,
)
from foreblock.recording.proof_walk import (
    EMPTY_CODE,
    ProvenAccount,
    UnknownNode,
    prove_account,
    prove_slot,
)
from foreblock.recording.state_file import JsonBlock, RecordedState
from foreblock.upstream.block_json import rebuild_header

CLIENT: Final = "foreblock/replay"
INVALID: Final = -32602
NO_METHOD: Final = -32601
NOT_HERE: Final = -32000


class Unanswered(Exception):
    """A request that is answered with an error: its code and its message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code: Final = code


class OfflineNode:
    """A recording with the methods of a node; `head` is its latest block."""

    def __init__(self, state: RecordedState) -> None:
        self._state: Final = state
        known = [*state.headers.values(), *state.blocks.values()]
        headers = [rebuild_header(each) for each in known]
        self._blocks: Final = dict(zip((each.hash for each in headers), known, strict=True))
        self._hashes: Final = {each.number: each.hash for each in headers}
        self._numbers: Final = {each.hash: each.number for each in headers}
        anchor = state.anchor_header
        self.anchor: Final = anchor
        self.last: Final = max(self._hashes)
        self.head = anchor.number  # where a follower begins
        self._methods: Final[Mapping[str, Callable[[list[Any]], object]]] = {
            "eth_chainId": lambda _: format_quantity(state.chain_id),
            "net_version": lambda _: str(state.chain_id),
            "web3_clientVersion": lambda _: CLIENT,
            "eth_blockNumber": lambda _: format_quantity(self.head),
            "eth_getBlockByNumber": self._block_by_number,
            "eth_getBlockByHash": self._block_by_hash,
            "eth_getProof": self._proof,
            "eth_getBalance": lambda params: format_quantity(self._account(params).balance),
            "eth_getTransactionCount": lambda params: format_quantity(self._account(params).nonce),
            "eth_getCode": self._code,
            "eth_getStorageAt": self._storage_at,
        }

    def reach(self, number: int) -> None:
        """Show blocks up to this one, if they are recorded."""
        self.head = max(self.head, min(number, self.last))

    def answer(self, request: object) -> dict[str, object]:
        """The response to one request of JSON-RPC."""
        fields = request if isinstance(request, dict) else {}
        envelope = {"jsonrpc": "2.0", "id": fields.get("id")}
        try:
            return {**envelope, "result": self._result(fields)}
        except Unanswered as why:
            return {**envelope, "error": {"code": why.code, "message": str(why)}}

    def _result(self, request: Mapping[str, Any]) -> object:
        method = self._methods.get(str(request.get("method")))
        if method is None:
            raise Unanswered(NO_METHOD, f"the method {request.get('method')} is not recorded")
        params = request.get("params") or []
        try:
            return method(list(params))
        except (ValueError, IndexError, TypeError) as why:
            raise Unanswered(INVALID, f"invalid parameters: {why}") from why
        except UnknownNode:
            raise Unanswered(NOT_HERE, "missing trie node: it was not recorded") from None

    def _block_by_number(self, params: list[Any]) -> JsonBlock | None:
        name = params[0]
        match name:
            case "latest" | "pending":
                number = self.head
            case "safe" | "finalized" | "earliest":
                number = self.anchor.number
            case _:
                number = parse_number(name, 64)
        known = self._hashes.get(number) if number <= self.head else None
        return None if known is None else self._shown(known, whole=bool(params[1]))

    def _block_by_hash(self, params: list[Any]) -> JsonBlock | None:
        known = parse_hash(params[0])
        # A client knows the hash from another block, so the block counts as present.
        return None if known not in self._blocks else self._shown(known, whole=bool(params[1]))

    def _shown(self, block_hash: bytes, *, whole: bool) -> JsonBlock:
        block = self._blocks[block_hash]
        transactions = block.get("transactions", [])
        if whole and block_hash in self._state.headers and transactions:
            raise Unanswered(NOT_HERE, "the transactions of this block were not recorded")
        if whole:
            return block
        hashes = [each["hash"] if isinstance(each, dict) else each for each in transactions]
        return {**block, "transactions": hashes}

    def _proof(self, params: list[Any]) -> JsonBlock:
        account = self._account([params[0], params[2]])
        address, slots = parse_address(params[0]), [parse_number(each) for each in params[1]]
        nodes, proofs = self._state.nodes, []
        for asked, slot in zip(params[1], slots, strict=True):
            value, way = prove_slot(account.storage_root, slot, nodes)
            found = {"key": asked, "value": format_quantity(value)}
            proofs.append({**found, "proof": [format_data(each) for each in way.nodes]})
        return {
            "address": format_data(address),
            "accountProof": [format_data(each) for each in account.nodes],
            "balance": format_quantity(account.balance),
            "codeHash": format_data(account.code_hash),
            "nonce": format_quantity(account.nonce),
            "storageHash": format_data(account.storage_root),
            "storageProof": proofs,
        }

    def _code(self, params: list[Any]) -> str:
        code_hash = self._account(params).code_hash
        code = b"" if code_hash == EMPTY_CODE else self._state.codes.get(code_hash)
        if code is None:
            raise Unanswered(NOT_HERE, "missing trie node: the code was not recorded")
        return format_data(code)

    def _storage_at(self, params: list[Any]) -> str:
        account = self._account([params[0], params[2]])
        value, _ = prove_slot(account.storage_root, parse_number(params[1]), self._state.nodes)
        return format_data(value.to_bytes(32))

    def _account(self, params: list[Any]) -> ProvenAccount:
        """An account, by its address and a block that must be here."""
        self._check_block(params[1])
        root = self.anchor.state_root
        return prove_account(root, parse_address(params[0]), self._state.nodes)

    def _check_block(self, name: object) -> None:
        if isinstance(name, dict):
            name = name.get("blockHash") or name.get("blockNumber")
        if name in ("latest", "pending", "safe", "finalized"):
            return
        is_hash = isinstance(name, str) and len(name) == 66
        number = self._numbers.get(parse_hash(name)) if is_hash else parse_number(name, 64)
        if number is None or number not in self._hashes or number > self.head:
            raise Unanswered(NOT_HERE, "header not found")


# --- The server ----------------------------------------------------------------------------

LONGEST_BODY: Final = 16 << 20


class NodeServer:
    """An HTTP server on a socket that listens; `close` it."""

    def __init__(self, node: OfflineNode, sock: socket) -> None:
        self._server: Final = _Server(node, sock)
        self._thread: Final = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, node: OfflineNode, sock: socket) -> None:
        super().__init__(sock.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        sock.settimeout(None)
        self.socket = sock
        self.node: Final = node


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a request of JSON-RPC, or a batch of them."""
        assert isinstance(self.server, _Server)
        length = int(self.headers.get("Content-Length") or 0)
        if length > LONGEST_BODY:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        try:
            asked = json.loads(self.rfile.read(length))
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        answer = self.server.node.answer
        said = [answer(each) for each in asked] if isinstance(asked, list) else answer(asked)
        body = json.dumps(said).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
