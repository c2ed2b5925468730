"""The format of WebSocket frames (RFC 6455, section 5): opcodes, heads, closes. No I/O."""

from typing import Final, NamedTuple

from websockets.frames import Close, CloseCode, Opcode

CONTINUED: Final = int(Opcode.CONT)
TEXT: Final = int(Opcode.TEXT)
CLOSE: Final = int(Opcode.CLOSE)
PING: Final = int(Opcode.PING)
PONG: Final = int(Opcode.PONG)

FINAL: Final = 0x80  # bits of the first byte
OPCODE: Final = 0x0F
CONTROL: Final = 0x08  # a bit of the opcode
MASKED: Final = 0x80  # a bit of the second byte
SHORT_HEAD: Final = 6  # bytes of a client's head: two and the mask
LONG_HEADS: Final = {126: 8, 127: 14}  # by what stands in place of a short length
MASK_BYTES: Final = 4

_OPCODES: Final = frozenset(map(int, Opcode))
_RESERVED: Final = 0x70
_REASON_BYTES: Final = 123  # of a close frame


class Violation(NamedTuple):
    """What ends the connection: the close code and the reason."""

    code: int
    reason: str


def wrong(reason: str) -> Violation:
    """A violation of the protocol itself."""
    return Violation(CloseCode.PROTOCOL_ERROR, reason)


def fault_of_head(first: int, second: int, opcode: int, size: int) -> Violation | None:
    """What is wrong with the first two bytes of a frame."""
    if first & _RESERVED:
        return wrong("reserved bits are set; no extension was agreed on")
    if opcode not in _OPCODES:
        return wrong("unknown opcode")
    if not second & MASKED:
        return wrong("frames of clients must be masked")
    if opcode & CONTROL:
        if not first & FINAL:
            return wrong("a control frame is fragmented")
        if size in LONG_HEADS:
            return wrong("a control frame is too long")
    return None


def frame_head(opcode: int, size: int, *, final: bool = True) -> bytes:
    """The head of a frame to send with a payload of this size."""
    first = (FINAL if final else 0) | opcode
    if size < 126:
        return bytes((first, size))
    if size < 1 << 16:
        return bytes((first, 126)) + size.to_bytes(2)
    return bytes((first, 127)) + size.to_bytes(8)


def close_frame(code: int, reason: str) -> bytes:
    """A close frame; a long reason is cut."""
    text = reason.encode("utf-8", "replace")[:_REASON_BYTES].decode("utf-8", "ignore")
    payload = Close(code, text).serialize()
    return frame_head(CLOSE, len(payload)) + payload
