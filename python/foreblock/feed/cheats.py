"""Cheats in the metadata of a flashblock: accounts that a user of a dev chain has set by hand.

    "metadata": {"foreblock": {"cheats": [{"address", "balance", "nonce", "code", "storage"}]}}

All but the address may be absent; `storage` is an object from slots to words. Nobody can verify
them, so a follower applies them only where it is told to believe them. Other sequencers have
nothing under this name, so what stands there is read strictly.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from foreblock.errors import MalformedFlashblock
from foreblock.primitives import format_data, format_quantity, parse_address, parse_data
from foreblock.primitives import parse_quantity as quantity
from foreblock.types import Cheat

FIELD: Final = "metadata.foreblock"


class _WireCheat(msgspec.Struct):
    address: str
    balance: str | None = None
    nonce: str | None = None
    code: str | None = None
    storage: dict[str, str] = {}


class _Extension(msgspec.Struct):
    """What foreblock adds to a message."""

    cheats: list[_WireCheat] = []


_decode: Final = msgspec.json.Decoder(_Extension).decode


def read_cheats(text: msgspec.Raw) -> tuple[Cheat, ...]:
    """The cheats; raises `MalformedFlashblock`."""
    if bytes(text) in (b"", b"null"):
        return ()
    try:
        return tuple(_cheat(each) for each in _decode(text).cheats)
    except (msgspec.MsgspecError, ValueError, RecursionError) as why:
        raise MalformedFlashblock(FIELD, str(why)) from why


def extension(cheats: Iterable[Cheat]) -> dict[str, object]:
    """What is said of cheats under `FIELD`."""
    return {"cheats": [_object(each) for each in cheats]}


def _cheat(wire: _WireCheat) -> Cheat:
    return Cheat(
        parse_address(wire.address),
        None if wire.balance is None else quantity(wire.balance),
        None if wire.nonce is None else quantity(wire.nonce, 64),
        None if wire.code is None else parse_data(wire.code),
        tuple((quantity(slot), quantity(value)) for slot, value in wire.storage.items()),
    )


def _object(cheat: Cheat) -> dict[str, object]:
    said: dict[str, object] = {"address": format_data(cheat.address)}
    if cheat.balance is not None:
        said["balance"] = format_quantity(cheat.balance)
    if cheat.nonce is not None:
        said["nonce"] = format_quantity(cheat.nonce)
    if cheat.code is not None:
        said["code"] = format_data(cheat.code)
    if cheat.storage:
        said["storage"] = {
            format_quantity(slot): format_quantity(value) for slot, value in cheat.storage
        }
    return said
