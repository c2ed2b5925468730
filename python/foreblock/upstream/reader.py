"""Read blocks and heads from one endpoint. Calls block: run them on a thread.

A block comes as RLP where the endpoint serves `debug_getRawBlock`, and is rebuilt from JSON
otherwise. Either way its hash is the one requested and its transactions match its header, or
an `EndpointError` is raised.
"""

from typing import Final, NamedTuple

from foreblock.errors import CallerError, ErrorAnswer, NoSuchBlock, NotAnAnswer
from foreblock.primitives import format_data, format_quantity, parse_data
from foreblock.types import Block, decode_block, transactions_root
from foreblock.upstream.block_json import Fields, rebuild_block
from foreblock.upstream.rpc_client import Endpoint

_RAW: Final = "debug_getRawBlock"
# Codes with which servers refuse an unknown or disabled method.
_NO_METHOD: Final = frozenset({-32601, -32604, -32004, 403})


class CanonicalHead(NamedTuple):
    """Number and hash of a block."""

    number: int
    hash: bytes


class CanonicalHeads(NamedTuple):
    """The heads of the endpoint's chain; it may have no safe or finalized block."""

    latest: CanonicalHead
    safe: CanonicalHead | None
    finalized: CanonicalHead | None


class BlockReader:
    """Reads blocks from one endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint: Final = endpoint
        self._gives_bytes = True  # until it refuses the method

    def block(self, hash: bytes) -> Block:
        """The block with this hash. Raises `NoSuchBlock`."""
        name = format_data(hash)
        block = self._read(name, "eth_getBlockByHash")
        if block.hash != hash:
            raise NotAnAnswer(self._endpoint.shown, f"gave {format_data(block.hash)} for {name}")
        return block

    def block_at(self, number: int) -> Block:
        """The canonical block with this number. Raises `NoSuchBlock`."""
        block = self._read(format_quantity(number), "eth_getBlockByNumber")
        if block.header.number != number:
            raise NotAnAnswer(
                self._endpoint.shown, f"gave block {block.header.number} for block {number}"
            )
        return block

    def head_at(self, number: int) -> CanonicalHead:
        """The hash of the canonical block with this number. Raises `NoSuchBlock`."""
        name = format_quantity(number)
        head = self._head(name)
        if head is None:
            raise NoSuchBlock(self._endpoint.shown, name)
        if head.number != number:
            raise NotAnAnswer(self._endpoint.shown, f"gave block {head.number} for block {number}")
        return head

    def heads(self) -> CanonicalHeads:
        """The current heads."""
        latest = self._head("latest")
        if latest is None:
            raise NoSuchBlock(self._endpoint.shown, "latest")
        return CanonicalHeads(latest, self._head_if_known("safe"), self._head_if_known("finalized"))

    def _read(self, name: str, method: str) -> Block:
        if self._gives_bytes:
            try:
                answer = self._endpoint.request(_RAW, [name])
            except ErrorAnswer as refusal:
                # A missing block is an error of this method too, so ask the other method.
                self._gives_bytes = refusal.code not in _NO_METHOD
            else:
                return self._checked(self._decoded(answer, name), name)
        answer = self._endpoint.request(method, [name, True])
        if answer is None:
            raise NoSuchBlock(self._endpoint.shown, name)
        try:
            block = rebuild_block(answer)
        except (ValueError, CallerError) as why:
            raise NotAnAnswer(self._endpoint.shown, f"block {name}: {why}") from why
        return self._checked(block, name)

    def _decoded(self, answer: object, name: str) -> Block:
        if answer is None:
            raise NoSuchBlock(self._endpoint.shown, name)
        try:
            data = parse_data(answer)
            block, end = decode_block(data)
        except (ValueError, CallerError) as why:
            raise NotAnAnswer(self._endpoint.shown, f"{_RAW}: {why}") from why
        if end != len(data):
            raise NotAnAnswer(self._endpoint.shown, f"{_RAW}: bytes after the block")
        return block

    def _checked(self, block: Block, name: str) -> Block:
        if transactions_root(block.transactions) != block.header.transactions_root:
            raise NotAnAnswer(
                self._endpoint.shown, f"block {name}: its transactions are not those of its header"
            )
        return block

    def _head_if_known(self, tag: str) -> CanonicalHead | None:
        try:
            return self._head(tag)
        except ErrorAnswer:
            return None

    def _head(self, tag: str) -> CanonicalHead | None:
        answer = self._endpoint.request("eth_getBlockByNumber", [tag, False])
        if answer is None:
            return None
        try:
            block = Fields(answer)
            return CanonicalHead(block.number("number"), block.hash("hash"))
        except ValueError as why:
            raise NotAnAnswer(self._endpoint.shown, f"block {tag}: {why}") from why
