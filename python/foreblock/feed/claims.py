"""Receipts, balances and edited accounts in the metadata of a flashblock.

Receipts and balances are of older dialects. Feeds have changed and dropped them without notice,
so nothing depends on them: if one cannot be read, or they are too large, the result is None.
Keys inside receipts are in camel case. The type of a receipt is a key around it in the oldest
dialect and inside it in a later one; it is not needed.

State edits are accounts that a user of a dev chain has set by hand:

    "metadata": {"foreblock": {"state_edits": [{"address", "balance", "nonce", "code", "storage"}]}}

All but the address may be absent; `storage` is an object from slots to words. They cannot be
verified, so a follower applies them only if its settings trust them. Other sequencers have
nothing under this name, so the value is read strictly.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from foreblock.errors import MalformedFlashblock
from foreblock.primitives import (
    format_data,
    format_quantity,
    parse_address,
    parse_data,
    parse_hash,
    parse_quantity,
)
from foreblock.primitives import parse_quantity as quantity
from foreblock.types import ClaimedReceipt, Claims, StateEdit

# Larger metadata is ignored; a full block of 200 transactions has a quarter of this.
LONGEST: Final = 1024 * 1024


class _WireLog(msgspec.Struct):
    address: str
    topics: list[str]
    data: str


class _WireReceipt(msgspec.Struct, rename="camel"):
    status: str | bool
    cumulative_gas_used: str
    logs: list[_WireLog]
    deposit_nonce: str | None = None


_receipts: Final = msgspec.json.Decoder(dict[str, dict[str, Any]])
_balances: Final = msgspec.json.Decoder(dict[str, str])


def read_claims(receipts: msgspec.Raw, balances: msgspec.Raw) -> Claims | None:
    """Return the claimed receipts and balances, or None if none can be read."""
    texts = (bytes(receipts), bytes(balances))
    if not any(texts) or sum(map(len, texts)) > LONGEST:
        return None
    try:
        said = Claims(_read_receipts(texts[0]), _read_balances(texts[1]))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return said if said.receipts or said.balances else None


def _read_receipts(text: bytes) -> dict[bytes, ClaimedReceipt]:
    if text in (b"", b"null"):
        return {}
    return {parse_hash(key): _receipt(said) for key, said in _receipts.decode(text).items()}


def _receipt(said: dict[str, Any]) -> ClaimedReceipt:
    if len(said) == 1:  # its type is the key
        (said,) = said.values()
    wire = msgspec.convert(said, _WireReceipt)
    status = wire.status if isinstance(wire.status, bool) else parse_quantity(wire.status, 1)
    nonce = wire.deposit_nonce
    return ClaimedReceipt(
        success=bool(status),
        cumulative_gas_used=parse_quantity(wire.cumulative_gas_used, 64),
        logs=tuple(
            (parse_address(log.address), tuple(map(parse_hash, log.topics)), parse_data(log.data))
            for log in wire.logs
        ),
        deposit_nonce=None if nonce is None else parse_quantity(nonce, 64),
    )


def _read_balances(text: bytes) -> dict[bytes, int]:
    if text in (b"", b"null"):
        return {}
    return {
        parse_address(key): parse_quantity(said) for key, said in _balances.decode(text).items()
    }


FIELD: Final = "metadata.foreblock"


class _WireEdit(msgspec.Struct):
    address: str
    balance: str | None = None
    nonce: str | None = None
    code: str | None = None
    storage: dict[str, str] = {}


class _Extension(msgspec.Struct):
    """The fields that foreblock adds to a message."""

    state_edits: list[_WireEdit] = []


_decode: Final = msgspec.json.Decoder(_Extension).decode


def read_edits(text: msgspec.Raw) -> tuple[StateEdit, ...]:
    """The state edits; raises `MalformedFlashblock`."""
    if bytes(text) in (b"", b"null"):
        return ()
    try:
        return tuple(_edit(each) for each in _decode(text).state_edits)
    except (msgspec.MsgspecError, ValueError, RecursionError) as why:
        raise MalformedFlashblock(FIELD, str(why)) from why


def extension(edits: Iterable[StateEdit]) -> dict[str, object]:
    """Return the object under `FIELD`."""
    return {"state_edits": [_object(each) for each in edits]}


def _edit(wire: _WireEdit) -> StateEdit:
    return StateEdit(
        parse_address(wire.address),
        None if wire.balance is None else quantity(wire.balance),
        None if wire.nonce is None else quantity(wire.nonce, 64),
        None if wire.code is None else parse_data(wire.code),
        tuple((quantity(slot), quantity(value)) for slot, value in wire.storage.items()),
    )


def _object(edit: StateEdit) -> dict[str, object]:
    said: dict[str, object] = {"address": format_data(edit.address)}
    if edit.balance is not None:
        said["balance"] = format_quantity(edit.balance)
    if edit.nonce is not None:
        said["nonce"] = format_quantity(edit.nonce)
    if edit.code is not None:
        said["code"] = format_data(edit.code)
    if edit.storage:
        said["storage"] = {
            format_quantity(slot): format_quantity(value) for slot, value in edit.storage
        }
    return said
