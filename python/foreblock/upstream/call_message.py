"""The call that a request is about, from its parameters: who calls whom, with what. No I/O."""

from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from foreblock.primitives import parse_address, parse_data

NOBODY: Final = bytes(20)


class CallMessage(NamedTuple):
    """A call; without `to` it creates a contract."""

    sender: bytes
    to: bytes | None
    data: bytes


class _Message(Struct, rename={"sender": "from"}):
    sender: str | None = None
    to: str | None = None
    input: str | None = None
    data: str | None = None


_decode_params: Final = msgspec.json.Decoder(list[Raw]).decode
_decode_message: Final = msgspec.json.Decoder(_Message).decode


def call_message(params: Raw) -> CallMessage | None:
    """The call in the first parameter; none where it has not its form."""
    try:
        message = _decode_message(_decode_params(params)[0])
        sender = parse_address(message.sender) if message.sender else NOBODY
        to = parse_address(message.to) if message.to else None
        return CallMessage(sender, to, parse_data(message.input or message.data or "0x"))
    except (ValueError, IndexError, msgspec.MsgspecError):
        return None
