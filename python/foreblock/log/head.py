"""The announcement of the head of a log, 81 bytes. No I/O.

    format, 1 (1) ‖ epoch (8) ‖ commit (8) ‖ sequence (8) ‖ link (32)
    ‖ boot id of the writer (16) ‖ its monotonic clock, nanoseconds (8)

The writer sends it after each acknowledged append and once a second, and answers questions about
its clock with it. Replicas apply nothing that was published until a head covers it, because a
publish may have been refused by the stream. A head whose clock is 0 is the last one of its
writer, which has stopped and will not append any more.
"""

import struct
from dataclasses import dataclass
from typing import Final

from foreblock.errors import MalformedLogMessage, NewerLogFormat

HEAD_FORMAT: Final = 1
HEAD: Final = struct.Struct(">BQQQ32s16sQ")


@dataclass(frozen=True, slots=True)
class HeadAnnouncement:
    """The last commit of a log, and the writer's clock when it said so."""

    epoch: int
    commit: int
    sequence: int
    link: bytes
    boot_id: bytes
    monotonic_ns: int

    @property
    def is_last(self) -> bool:
        """Whether the writer has said that it stops."""
        return self.monotonic_ns == 0

    def encode(self) -> bytes:
        return HEAD.pack(
            HEAD_FORMAT,
            self.epoch,
            self.commit,
            self.sequence,
            self.link,
            self.boot_id,
            self.monotonic_ns,
        )


def decode_head(data: bytes) -> HeadAnnouncement:
    """Raises `MalformedLogMessage` or `NewerLogFormat`."""
    what = "head announcement"
    if not data:
        raise MalformedLogMessage(what, "it is empty")
    if data[0] > HEAD_FORMAT:
        raise NewerLogFormat(f"format of a {what}", data[0], HEAD_FORMAT)
    if data[0] < HEAD_FORMAT:
        raise MalformedLogMessage(what, f"format {data[0]}")
    if len(data) != HEAD.size:
        raise MalformedLogMessage(what, f"{len(data)} bytes, not {HEAD.size}")
    return HeadAnnouncement(*HEAD.unpack(data)[1:])
