"""Decode and encode flashblocks as public feeds send them.

Decoding accepts every dialect that public sequencers and proxies have sent. Optional fields may
be absent or null; present fields are read strictly: widths of hex, form and size of quantities.
Each failure is a `MalformedFlashblock` that names the field. Encoding uses the newest dialect.

A message is read alone: `ledger.following.classification` decides whether it follows others,
and execution whether it is valid.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from foreblock.errors import MalformedFlashblock
from foreblock.feed.claims import extension, read_claims, read_edits
from foreblock.feed.wire import (
    MessageLimits,
    WireBase,
    WireDiff,
    WireMetadata,
    format_flashblock_id,
    parse_flashblock_id,
    read_message,
)
from foreblock.primitives import (
    ZERO_HASH,
    format_data,
    format_quantity,
    parse_address,
    parse_data,
    parse_hash,
    parse_number,
    parse_quantity,
)
from foreblock.types import Base, Diff, Flashblock, FlashblockId

T = TypeVar("T")
V = TypeVar("V")

PAYLOAD_ID_BYTES: Final = 8
BLOOM_BYTES: Final = 256

# Represents an unknown predecessor.
_UNKNOWN: Final = FlashblockId(0, 0)


class EndMarker(Struct, frozen=True):
    """A message without `diff`, which X Layer sends after the last of a job; to be ignored."""

    payload_id: bytes | None


_encoder: Final = msgspec.json.Encoder()
_DEFAULT_LIMITS: Final = MessageLimits()


def decode(data: bytes, limits: MessageLimits = _DEFAULT_LIMITS) -> Flashblock | EndMarker:
    """Decode the payload of one frame. Raises `MalformedFlashblock` and nothing else."""
    message = read_message(data, limits)
    if message.diff is None:
        return EndMarker(
            None if message.payload_id is None else _payload_id("payload_id", message.payload_id)
        )
    index = _need("index", message.index, _number)
    base = _base(index, message.base)
    metadata = message.metadata or WireMetadata()
    return Flashblock(
        payload_id=_payload_id("payload_id", message.payload_id),
        index=index,
        base=base,
        diff=_diff(message.diff),
        block_number=_block_number(metadata, base),
        previous=_previous(metadata.prev_flashblock_id),
        edits=read_edits(metadata.foreblock),
        claims=read_claims(metadata.receipts, metadata.new_account_balances),
    )


def encode(flashblock: Flashblock, *, predecessor: bool = True) -> bytes:
    """The flashblock as JSON; without `predecessor` as before June 2026.

    An unknown predecessor is left out where the block's hash is not provided either, as in
    subblocks.
    """
    message: dict[str, object] = {
        "payload_id": format_data(flashblock.payload_id),
        "index": flashblock.index,
    }
    if flashblock.base is not None:
        message["base"] = _base_object(flashblock.base)
    message["diff"] = _diff_object(flashblock.diff)
    metadata: dict[str, object] = {"block_number": flashblock.block_number}
    has_hash = flashblock.diff.block_hash != ZERO_HASH
    if predecessor and (flashblock.previous is not None or has_hash):
        metadata["prev_flashblock_id"] = format_flashblock_id(flashblock.previous or _UNKNOWN)
    if flashblock.edits:
        metadata["foreblock"] = extension(flashblock.edits)
    message["metadata"] = metadata
    return _encoder.encode(message)


def _base(index: int, base: WireBase | None) -> Base | None:
    if index > 0:
        if base is not None:
            raise MalformedFlashblock("base", "only index 0 has one")
        return None
    if base is None:
        raise MalformedFlashblock("base", "missing in index 0")
    return Base(
        parent_hash=_need("base.parent_hash", base.parent_hash, parse_hash),
        parent_beacon_block_root=_need(
            "base.parent_beacon_block_root", base.parent_beacon_block_root, parse_hash
        ),
        prev_randao=_need("base.prev_randao", base.prev_randao, parse_hash),
        fee_recipient=_need("base.fee_recipient", base.fee_recipient, parse_address),
        block_number=_need("base.block_number", base.block_number, _quantity),
        gas_limit=_need("base.gas_limit", base.gas_limit, _quantity),
        timestamp=_need("base.timestamp", base.timestamp, _quantity),
        extra_data=_need("base.extra_data", base.extra_data, parse_data),
        base_fee_per_gas=_need("base.base_fee_per_gas", base.base_fee_per_gas, parse_quantity),
    )


def _diff(diff: WireDiff) -> Diff:
    return Diff(
        state_root=_need("diff.state_root", diff.state_root, parse_hash),
        receipts_root=_need("diff.receipts_root", diff.receipts_root, parse_hash),
        logs_bloom=_need("diff.logs_bloom", diff.logs_bloom, _bloom),
        gas_used=_need("diff.gas_used", diff.gas_used, _quantity),
        block_hash=_need("diff.block_hash", diff.block_hash, parse_hash),
        transactions=_transactions(diff.transactions),
        withdrawals_root=_need("diff.withdrawals_root", diff.withdrawals_root, parse_hash),
        blob_gas_used=_blob_gas_used(diff.blob_gas_used),
        post_exec_tx=_post_exec_tx(diff.post_exec_tx),
    )


def _transactions(texts: list[str] | None) -> tuple[bytes, ...]:
    if texts is None:
        raise MalformedFlashblock("diff.transactions", "missing")
    return tuple(
        _read(f"diff.transactions[{place}]", text, _transaction) for place, text in enumerate(texts)
    )


def _blob_gas_used(text: str | None) -> int:
    """Blob gas; absent before Jovian."""
    return 0 if text is None else _read("diff.blob_gas_used", text, _quantity)


def _post_exec_tx(raw: msgspec.Raw) -> bytes | None:
    """The transaction in its encoding; None if there is none, or another form of it."""
    try:
        return _transaction(msgspec.json.decode(raw, type=str))
    except (msgspec.MsgspecError, ValueError):
        return None


def _block_number(metadata: WireMetadata, base: Base | None) -> int:
    """The block number of the metadata, which must agree with the base."""
    if metadata.block_number is None and base is not None:
        return base.block_number
    number = _need("metadata.block_number", metadata.block_number, _number)
    if base is not None and base.block_number != number:
        raise MalformedFlashblock(
            "metadata.block_number", f"is {number}, the base says {base.block_number}"
        )
    return number


def _previous(text: str | None) -> FlashblockId | None:
    if text is None:
        return None
    previous = _read("metadata.prev_flashblock_id", text, parse_flashblock_id)
    return None if previous == _UNKNOWN else previous


def _need(field: str, value: V | None, parse: Callable[[V], T]) -> T:
    if value is None:
        raise MalformedFlashblock(field, "missing")
    return _read(field, value, parse)


def _read(field: str, value: V, parse: Callable[[V], T]) -> T:
    try:
        return parse(value)
    except ValueError as why:
        raise MalformedFlashblock(field, str(why)) from why


def _payload_id(field: str, value: object) -> bytes:
    return _need(field, value, lambda text: parse_data(text, PAYLOAD_ID_BYTES))


def _bloom(value: object) -> bytes:
    return parse_data(value, BLOOM_BYTES)


def _transaction(value: object) -> bytes:
    transaction = parse_data(value)
    if not transaction:
        raise ValueError("a transaction has at least one byte")
    return transaction


def _quantity(value: object) -> int:
    return parse_quantity(value, 64)


def _number(value: object) -> int:
    return parse_number(value, 64)


def _base_object(base: Base) -> dict[str, object]:
    return {
        "parent_beacon_block_root": format_data(base.parent_beacon_block_root),
        "parent_hash": format_data(base.parent_hash),
        "fee_recipient": format_data(base.fee_recipient),
        "prev_randao": format_data(base.prev_randao),
        "block_number": format_quantity(base.block_number),
        "gas_limit": format_quantity(base.gas_limit),
        "timestamp": format_quantity(base.timestamp),
        "extra_data": format_data(base.extra_data),
        "base_fee_per_gas": format_quantity(base.base_fee_per_gas),
    }


def _diff_object(diff: Diff) -> dict[str, object]:
    optional = {} if diff.post_exec_tx is None else {"post_exec_tx": format_data(diff.post_exec_tx)}
    return {
        "state_root": format_data(diff.state_root),
        "receipts_root": format_data(diff.receipts_root),
        "logs_bloom": format_data(diff.logs_bloom),
        "gas_used": format_quantity(diff.gas_used),
        "block_hash": format_data(diff.block_hash),
        "transactions": [format_data(raw) for raw in diff.transactions],
        "withdrawals": [],  # an L2 has none
        "withdrawals_root": format_data(diff.withdrawals_root),
        "blob_gas_used": format_quantity(diff.blob_gas_used),
        **optional,
    }
