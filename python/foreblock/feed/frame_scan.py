"""Count the frames in the bytes of a WebSocket before they are parsed. No I/O.

A frame of two to six bytes costs a parser as much time as one of a megabyte. So frames are
counted first, by their headers alone (RFC 6455, 5.2), up to a maximum. The bytes before the
first frame are the handshake, which ends with its first empty line. Violations of the protocol
are left to the parser.
"""

from typing import Final, NamedTuple

_END_OF_HEAD: Final = b"\r\n\r\n"
_CONTROL: Final = 0x08  # this bit of the opcode
_MASKED: Final = 0x80
_LONGEST: Final = 14  # bytes of a frame header
_LENGTH_BYTES: Final = {126: 2, 127: 8}


class Scanned(NamedTuple):
    """The bytes scanned, and the frames that begin in them."""

    bytes: int
    frames: int
    control: int  # pings, pongs and closes among them


class FrameScan:
    """Scans one direction of a connection, from its first byte on."""

    def __init__(self) -> None:
        self.in_handshake = True
        self._begun = b""  # a partial header
        self._skip = 0  # bytes of a payload still to come

    def scan(self, data: bytes, begin: int, most: int) -> Scanned:
        """Scan data from `begin` to its end, or to the header of frame number `most + 1`."""
        at = begin
        if self.in_handshake:
            at = self._handshake(data, at)
        frames = control = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
                continue
            if frames == most:
                break
            head = self._begun + data[at : at + _LONGEST - len(self._begun)]
            size = _head_size(head)
            if size is None:
                self._begun, at = head, len(data)
                break
            at += size - len(self._begun)
            self._begun, self._skip = b"", _payload_size(head)
            frames += 1
            control += head[0] & _CONTROL != 0
        return Scanned(at - begin, frames, control)

    def _handshake(self, data: bytes, at: int) -> int:
        """The position of the first frame, or the end of the data if it is not there yet."""
        joined = self._begun + data[at:]
        end = joined.find(_END_OF_HEAD)
        if end < 0:
            self._begun = joined[-len(_END_OF_HEAD) + 1 :]
            return len(data)
        at += end + len(_END_OF_HEAD) - len(self._begun)
        self.in_handshake, self._begun = False, b""
        return at


def _head_size(head: bytes) -> int | None:
    """The size of a header, or none if it is incomplete."""
    if len(head) < 2:
        return None
    size = 2 + _LENGTH_BYTES.get(head[1] & ~_MASKED & 0xFF, 0) + (4 if head[1] & _MASKED else 0)
    return size if len(head) >= size else None


def _payload_size(head: bytes) -> int:
    short = head[1] & ~_MASKED & 0xFF
    more = _LENGTH_BYTES.get(short)
    return short if more is None else int.from_bytes(head[2 : 2 + more])
