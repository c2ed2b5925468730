"""Blocks before the anchor, from an upstream, verified against their hashes.

A block is identified by its hash: the header is rebuilt and hashed, the transactions and the
receipts have the roots that it names. Whether the block is of this chain is for the caller to
prove. Receipts are read by themselves, as not every endpoint has eth_getBlockReceipts. Nothing here
is believed because an endpoint said it, but that something does not exist.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from foreblock.errors import InvalidProofData
from foreblock.ledger.rules.profile import unknown_type
from foreblock.ledger.rules.transaction_rules import DEPOSIT
from foreblock.lru_cache import LruCache
from foreblock.primitives import RlpItem, encode_rlp, format_data, format_quantity
from foreblock.types import Block, keccak256, transactions_root
from foreblock.upstream.block_json import (
    Fields,
    UnclesMissing,
    rebuild_block,
    rebuild_header,
)


def encode_receipt(receipt: Fields) -> bytes:
    """The receipt as the receipts trie holds it (EIP-2718)."""
    kind = receipt.number_or_none("type") or 0
    outcome: RlpItem = receipt.hash("root") if receipt.has("root") else receipt.number("status")
    fields: list[RlpItem] = [
        outcome,
        receipt.number("cumulativeGasUsed"),
        receipt.data("logsBloom"),
        [_log(each) for each in receipt.items("logs")],
    ]
    if kind == DEPOSIT and receipt.has("depositReceiptVersion"):
        # From Canyon on; before it the nonce was not hashed.
        fields += [receipt.number("depositNonce"), receipt.number("depositReceiptVersion")]
    return (bytes([kind]) if kind else b"") + encode_rlp(fields)


def _log(log: Fields) -> RlpItem:
    return [log.address("address"), log.hashes("topics"), log.data("data")]


KEPT: Final = 64  # blocks
MOST_UNCLES: Final = 2  # of a block
UNCLE: Final = "eth_getUncleByBlockHashAndIndex"

# From a method and the JSON of its parameters to the JSON of the result; raises `NoUpstream`.
AskUpstream = Callable[[str, bytes], Awaitable[bytes]]


class OldBlock(NamedTuple):
    """A block and its receipts as in their trie."""

    block: Block
    receipts: tuple[bytes, ...]


class OldBlocks:
    """Reads blocks through an upstream, and keeps the last ones."""

    def __init__(self, ask: AskUpstream) -> None:
        self._ask: Final = ask
        self._blocks: Final = LruCache[bytes, Block](KEPT)
        self._receipts: Final = LruCache[bytes, tuple[bytes, ...]](KEPT)

    async def by_hash(self, block_hash: bytes) -> Block | None:
        """The block of this hash; None if the upstream has none. Raises `InvalidProofData`."""
        known = self._blocks.get(block_hash)
        if known is not None:
            return known
        answer = await self._read("eth_getBlockByHash", [format_data(block_hash), True])
        if answer is None:
            return None
        try:
            block = _rebuilt(answer, block_hash)
        except UnclesMissing as missing:
            uncles = [
                await self._read(UNCLE, [format_data(block_hash), format_quantity(at)])
                for at in range(min(len(missing.hashes), MOST_UNCLES))
            ]
            block = _rebuilt(answer, block_hash, uncles)
        self._blocks.keep(block_hash, block)
        return block

    async def receipts_of(self, block: Block) -> tuple[bytes, ...]:
        """The receipts of a block as in their trie. Raises `InvalidProofData`."""
        known = self._receipts.get(block.hash)
        if known is not None:
            return known
        answer = await self._read("eth_getBlockReceipts", [format_data(block.hash)])
        receipts = _receipts(answer, block)
        self._receipts.keep(block.hash, receipts)
        return receipts

    async def hash_of_number(self, number: int) -> bytes | None:
        """The hash of a block by number, as the upstream claims; nothing proves it."""
        answer = await self._read("eth_getBlockByNumber", [format_quantity(number), False])
        return None if answer is None else _named(answer, "hash")

    async def block_of(self, transaction_hash: bytes) -> bytes | None:
        """The hash of a transaction's block, as the upstream claims; None if it is in none."""
        answer = await self._read("eth_getTransactionByHash", [format_data(transaction_hash)])
        if answer is None or not Fields(answer).has("blockHash"):
            return None
        return _named(answer, "blockHash")

    async def _read(self, method: str, params: list[object]) -> object:
        text = await self._ask(method, msgspec.json.encode(params))
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as why:
            raise InvalidProofData(f"{method}: {why}") from None


def index_of(block: Block, transaction_hash: bytes) -> int | None:
    """The index of a transaction in a block; None if it is not in it."""
    hashes = (keccak256(raw) for raw in block.transactions)
    return next((at for at, each in enumerate(hashes) if each == transaction_hash), None)


def _named(answer: object, name: str) -> bytes:
    try:
        return Fields(answer).hash(name)
    except ValueError as why:
        raise InvalidProofData(str(why)) from None


def _rebuilt(answer: object, block_hash: bytes, uncles: Sequence[object] = ()) -> Block:
    try:
        block = rebuild_block(answer, [rebuild_header(each) for each in uncles])
    except UnclesMissing:
        if uncles:
            raise InvalidProofData(f"the uncles of {format_data(block_hash)} are others") from None
        raise
    except ValueError as why:
        raise InvalidProofData(str(why)) from None
    if any(unknown_type(raw) is not None for raw in block.transactions):
        raise InvalidProofData(f"{format_data(block_hash)} has a transaction of an unknown type")
    if block.hash != block_hash:
        raise InvalidProofData(f"the block of {format_data(block_hash)} has another hash")
    if transactions_root(block.transactions) != block.header.transactions_root:
        raise InvalidProofData(f"the transactions of {format_data(block_hash)} are others")
    return block


def _receipts(answer: object, block: Block) -> tuple[bytes, ...]:
    try:
        given = Fields({"receipts": answer}).items("receipts")
        receipts = tuple(encode_receipt(each) for each in given)
    except ValueError as why:
        raise InvalidProofData(str(why)) from None
    # The trie of receipts is made as that of transactions is: by index.
    if transactions_root(receipts) != block.header.receipts_root:
        raise InvalidProofData(f"the receipts of {format_data(block.hash)} are others")
    return receipts
