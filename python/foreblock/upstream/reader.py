"""Blocks and heads, asked of one endpoint. It waits for each answer: call it on a thread.

A block comes as its own bytes where the endpoint gives them (`debug_getRawBlock`), and is
rebuilt from JSON where it does not. Either way it is the block of the hash that was asked
for, with the transactions that its header commits to, or an `EndpointError`.
"""

from typing import Final, NamedTuple

from foreblock.errors import CallerError, NoSuchBlock, NotAnAnswer, Refused
from foreblock.primitives import format_data, format_quantity, parse_data
from foreblock.types import Block, decode_block, transactions_root
from foreblock.upstream.block_json import rebuild_block
from foreblock.upstream.client import Endpoint
from foreblock.upstream.fields import Fields

_RAW: Final = "debug_getRawBlock"
# What servers answer to a method that they do not have, or that they keep closed.
_NO_METHOD: Final = frozenset({-32601, -32604, -32004, 403})


class Head(NamedTuple):
    """A block that the endpoint names."""

    number: int
    hash: bytes


class CanonicalHeads(NamedTuple):
    """What the endpoint says is canonical; it may know nothing of safe and finalized."""

    latest: Head
    safe: Head | None
    finalized: Head | None


class BlockReader:
    """Reads from one endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint: Final = endpoint
        self._gives_bytes = True  # until it says otherwise

    def block(self, hash: bytes) -> Block:
        """The block of this hash; `NoSuchBlock` where the endpoint has none."""
        name = format_data(hash)
        block = self._read(name, "eth_getBlockByHash")
        if block.hash != hash:
            raise NotAnAnswer(self._endpoint.url, f"gave {format_data(block.hash)} for {name}")
        return block

    def block_at(self, number: int) -> Block:
        """The canonical block of this number; `NoSuchBlock` where the endpoint has none."""
        block = self._read(format_quantity(number), "eth_getBlockByNumber")
        if block.header.number != number:
            raise NotAnAnswer(
                self._endpoint.url, f"gave block {block.header.number} for block {number}"
            )
        return block

    def head_at(self, number: int) -> Head:
        """The canonical block of this number by its hash alone; `NoSuchBlock`."""
        name = format_quantity(number)
        head = self._head(name)
        if head is None:
            raise NoSuchBlock(self._endpoint.url, name)
        if head.number != number:
            raise NotAnAnswer(self._endpoint.url, f"gave block {head.number} for block {number}")
        return head

    def heads(self) -> CanonicalHeads:
        """The heads as they are now."""
        latest = self._head("latest")
        if latest is None:
            raise NoSuchBlock(self._endpoint.url, "latest")
        return CanonicalHeads(latest, self._head_if_known("safe"), self._head_if_known("finalized"))

    def _read(self, name: str, method: str) -> Block:
        if self._gives_bytes:
            try:
                answer = self._endpoint.request(_RAW, [name])
            except Refused as refusal:
                # That there is no such block is an error here, too, so the other way decides.
                self._gives_bytes = refusal.code not in _NO_METHOD
            else:
                return self._checked(self._decoded(answer, name), name)
        answer = self._endpoint.request(method, [name, True])
        if answer is None:
            raise NoSuchBlock(self._endpoint.url, name)
        try:
            block = rebuild_block(answer)
        except (ValueError, CallerError) as why:
            raise NotAnAnswer(self._endpoint.url, f"block {name}: {why}") from why
        return self._checked(block, name)

    def _decoded(self, answer: object, name: str) -> Block:
        if answer is None:
            raise NoSuchBlock(self._endpoint.url, name)
        try:
            data = parse_data(answer)
            block, end = decode_block(data)
        except (ValueError, CallerError) as why:
            raise NotAnAnswer(self._endpoint.url, f"{_RAW}: {why}") from why
        if end != len(data):
            raise NotAnAnswer(self._endpoint.url, f"{_RAW}: bytes after the block")
        return block

    def _checked(self, block: Block, name: str) -> Block:
        if transactions_root(block.transactions) != block.header.transactions_root:
            raise NotAnAnswer(
                self._endpoint.url, f"block {name}: its transactions are not those of its header"
            )
        return block

    def _head_if_known(self, tag: str) -> Head | None:
        try:
            return self._head(tag)
        except Refused:
            return None

    def _head(self, tag: str) -> Head | None:
        answer = self._endpoint.request("eth_getBlockByNumber", [tag, False])
        if answer is None:
            return None
        try:
            block = Fields(answer)
            return Head(block.number("number"), block.hash("hash"))
        except ValueError as why:
            raise NotAnAnswer(self._endpoint.url, f"block {tag}: {why}") from why
