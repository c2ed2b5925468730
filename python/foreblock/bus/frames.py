"""Transport of bus messages: as frames over a socket, or as objects. No I/O.

A frame is a length (4 bytes, big-endian) and one message in MessagePack. A message longer than
`LONGEST` is sent as several `MessagePart`s, and other messages may come between them.

Within one process a message is passed as it is, and received before `send` returns.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from foreblock.bus.messages import Failed, Print
from foreblock.errors import BusBroken, BusMessageTooLong

LENGTH: Final = 4
LONGEST: Final = 1 << 20  # of a frame
PART_BYTES: Final = 256 << 10  # of a longer message
MOST_BYTES: Final = 16 << 20  # of a message


class MessagePart(Struct, frozen=True, tag=True, array_like=True):
    """A part of a long message. A new id abandons the message before it."""

    id: int
    data: bytes
    is_last: bool


_encode = msgspec.msgpack.Encoder().encode
_part_ids: Final = count()


def frame(message: Struct) -> bytes:
    """Encode a message; raises `BusMessageTooLong`."""
    return b"".join(frames_of(message))


def frames_of(message: Struct) -> list[bytes]:
    """Encode a message as the frames it is sent in: one, or one for each part."""
    body = _encoded(message)
    if len(body) <= LONGEST:
        return [len(body).to_bytes(LENGTH) + body]
    if len(body) > MOST_BYTES:
        raise BusMessageTooLong(len(body), MOST_BYTES)
    number, last = next(_part_ids), (len(body) - 1) // PART_BYTES * PART_BYTES
    return [
        frame(MessagePart(number, body[start : start + PART_BYTES], start == last))
        for start in range(0, len(body), PART_BYTES)
    ]


def _encoded(message: Struct) -> bytes:
    try:
        return _encode(message)
    except UnicodeEncodeError:  # text from outside must not fail the sender
        return _encode(_encodable(message))


def _encodable(value: Any) -> Any:  # noqa: ANN401, a message or a part of it
    """The value with question marks for lone surrogates in its texts."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case tuple():
            return tuple(map(_encodable, value))
        case Struct():
            return type(value)(*map(_encodable, structs.astuple(value)))
        case _:
            return value


class Frames:
    """Decodes the messages of one direction."""

    def __init__(self, kind: Any) -> None:  # noqa: ANN401, a type or a union
        self._decode: Final = msgspec.msgpack.Decoder(kind | MessagePart).decode
        self._held = bytearray()
        self._part_id = -1
        self._parts = bytearray()  # of a long message

    def feed(self, data: bytes) -> Iterator[object]:
        """Yield the complete messages. Raises `BusBroken` for anything else."""
        held = self._held
        held += data
        while len(held) >= LENGTH:
            length = int.from_bytes(held[:LENGTH])
            if length > LONGEST:
                raise BusBroken(f"a frame of {length} bytes")
            if len(held) < LENGTH + length:
                return
            body = bytes(held[LENGTH : LENGTH + length])
            del held[: LENGTH + length]
            message = self._decoded(body)
            if isinstance(message, MessagePart):
                message = self._joined(message)
            if message is not None:
                yield message

    def _joined(self, part: MessagePart) -> object | None:
        """The whole message if this was its last part."""
        if part.id != self._part_id:
            self._parts, self._part_id = bytearray(), part.id
        self._parts += part.data
        if len(self._parts) > MOST_BYTES:
            raise BusBroken(f"a message of more than {MOST_BYTES} bytes")
        if not part.is_last:
            return None
        whole, self._parts = self._decoded(self._parts), bytearray()
        return whole

    def _decoded(self, body: bytes | bytearray) -> object:
        try:
            return self._decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as why:
            raise BusBroken(str(why)) from None


class BusEnd(asyncio.Protocol, ABC):
    """One end of a connection."""

    @abstractmethod
    def on_message(self, message: Struct) -> None:
        """Receive a message."""


class DirectTransport(asyncio.Transport):
    """A connection within one process, in one direction."""

    def __init__(self) -> None:
        super().__init__()
        self._receiver: BusEnd | None = None

    def connect(self, receiver: BusEnd) -> None:
        self._receiver = receiver

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._receiver is not None:
            self._receiver.data_received(bytes(data))

    def pass_message(self, message: Struct) -> None:
        if self._receiver is not None:
            self._receiver.on_message(message)

    def is_closing(self) -> bool:
        return self._receiver is None

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self._receiver = None

    def abort(self) -> None:
        self.close()


def send(transport: asyncio.Transport, message: Struct) -> None:
    """Send a message to the other end."""
    if isinstance(transport, DirectTransport) and _is_encodable(message):
        transport.pass_message(message)
    else:
        transport.write(frame(message))


def _is_encodable(message: Struct) -> bool:
    """Return true if encoding would not change its text."""
    match message:
        case Print():
            return message.text.isascii()
        case Failed():
            return all(not isinstance(each, str) or each.isascii() for each in message.facts)
        case _:
            return True
