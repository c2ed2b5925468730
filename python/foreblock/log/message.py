"""A commit as a message of the log: its header, its link, its packed body. No I/O.

`docs/design/log.md` has the layout. The link covers everything but the packing and the parts, so
each commit names all commits before it.

Bytes that are not a commit raise `MalformedLogMessage` with the reason; a newer format raises
`NewerLogFormat`, and is never read in part. `parts` splits a message; the engine encodes the body.
"""

import struct
from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property
from hashlib import sha256
from typing import Final

import zstandard
from msgspec import Struct

from foreblock.errors import LogMessageTooLarge, MalformedLogMessage, NewerLogFormat

MAGIC: Final = b"FBLC"
WIRE_FORMAT: Final = 1
STORE_FORMAT: Final = 1
HEADER: Final = struct.Struct(">4sBBBBQQQ16s32sI")
NO_LINK: Final = bytes(32)
LINKED: Final = slice(8, 80)  # the bytes of the header that the link covers
# No commit comes near it; a length above it is damage, and is not allocated.
LONGEST_BODY: Final = 1 << 30
_LEVEL: Final = 1


class Flags(IntFlag):
    """How the body is sent."""

    ZSTD = 1
    PARTS = 2


_KNOWN_FLAGS: Final = int(Flags.ZSTD | Flags.PARTS)


@dataclass(frozen=True)
class LogMessage:
    """One commit of the log."""

    epoch: int
    before: int
    after: int
    log_id: bytes
    previous: bytes  # the link of the commit before
    body: bytes  # unpacked

    @cached_property
    def link(self) -> bytes:
        """The name of this commit and of all before it."""
        return sha256(self._header(Flags(0))[LINKED] + self.body).digest()

    def encode(self) -> bytes:
        """The message as one piece."""
        if len(self.body) > LONGEST_BODY:
            raise LogMessageTooLarge(len(self.body), LONGEST_BODY)
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(self.body)
        return self._header(Flags.ZSTD) + packed

    def _header(self, flags: Flags) -> bytes:
        return HEADER.pack(
            MAGIC,
            WIRE_FORMAT,
            STORE_FORMAT,
            flags,
            0,
            self.epoch,
            self.before,
            self.after,
            self.log_id,
            self.previous,
            len(self.body),
        )


class MessageHeader(Struct, frozen=True):
    """The header of a message, which is read before its body is unpacked."""

    flags: Flags
    epoch: int
    before: int
    after: int
    log_id: bytes
    previous: bytes
    length: int  # of the unpacked body


def decode_header(data: bytes, what: str = "commit") -> MessageHeader:
    """The header of a message, or of its first part; `what` names it in refusals."""
    if len(data) < HEADER.size:
        raise MalformedLogMessage(what, f"{len(data)} bytes are too few for a header")
    magic, wire, store, flags, reserved, *fields = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise MalformedLogMessage(what, "it does not begin with FBLC")
    _check_format(what, "wire format", wire, WIRE_FORMAT)
    _check_format(what, "store format", store, STORE_FORMAT)
    if flags & ~_KNOWN_FLAGS:
        raise MalformedLogMessage(what, f"unknown flags {flags:#04x}")
    if reserved:
        raise MalformedLogMessage(what, f"the reserved byte is {reserved}")
    header = MessageHeader(Flags(flags), *fields)
    if header.after <= header.before:
        raise MalformedLogMessage(what, f"commit {header.after} after {header.before}")
    if header.length > LONGEST_BODY:
        raise MalformedLogMessage(what, f"a body of {header.length} bytes")
    return header


def decode_message(data: bytes, what: str = "commit") -> LogMessage:
    """The commit of a message whose parts are joined."""
    header = decode_header(data, what)
    packed = memoryview(data)[HEADER.size :]
    body = _unpack(packed, header.length, what) if Flags.ZSTD in header.flags else bytes(packed)
    if len(body) != header.length:
        raise MalformedLogMessage(what, f"a body of {len(body)} bytes, not {header.length}")
    return LogMessage(
        header.epoch, header.before, header.after, header.log_id, header.previous, body
    )


def _check_format(what: str, name: str, found: int, known: int) -> None:
    if found > known:
        raise NewerLogFormat(f"{name} of a {what}", found, known)
    if found < known:
        raise MalformedLogMessage(what, f"{name} {found}")


def _unpack(packed: memoryview, length: int, what: str) -> bytes:
    """The content of one zstd frame that announces this length."""
    try:
        claimed = zstandard.get_frame_parameters(packed).content_size
        if claimed != length:  # before anything of that size is allocated
            raise MalformedLogMessage(what, f"a zstd frame of {claimed} bytes, not {length}")
        if length:
            return zstandard.ZstdDecompressor().decompress(packed, allow_extra_data=False)
        return _decompress_nothing(packed)
    except zstandard.ZstdError as why:
        raise MalformedLogMessage(what, f"not one zstd frame: {why}") from None


def _decompress_nothing(frame: memoryview) -> bytes:
    """The content of an empty frame, whose bytes the library does not look at by itself."""
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    body = unpacker.decompress(frame)
    if not unpacker.eof or unpacker.unused_data:
        raise zstandard.ZstdError("it does not end with the message")
    return body
