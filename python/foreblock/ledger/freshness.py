"""Until when the pending block counts as fresh: the note in the heads row.

The writer leaves a deadline with each flashblock that it applies. Readers compare it with
their own clock, so a dead writer's pending block expires everywhere at the same moment.

    boot id (16) ‖ deadline, monotonic nanoseconds (8)

After a restart of the machine the clock has begun anew and the boot id is another: then
the deadline has passed, whatever it says.
"""

import struct
from dataclasses import dataclass
from typing import Final

_NOTE: Final = struct.Struct(">16sQ")


@dataclass(frozen=True, slots=True)
class Freshness:
    """A deadline, and the start of the machine that it counts from."""

    boot_id: bytes
    until_ns: int

    def encode(self) -> bytes:
        """The note."""
        return _NOTE.pack(self.boot_id, self.until_ns)

    def deadline_ns(self, boot_id: bytes) -> int:
        """The deadline as a process of this start of the machine sees it."""
        return self.until_ns if boot_id == self.boot_id else 0


def decode_freshness(note: bytes) -> Freshness | None:
    """What a note says; none where nothing was ever pending."""
    if not note:
        return None
    boot_id, until_ns = _NOTE.unpack(note)
    return Freshness(boot_id, until_ns)
