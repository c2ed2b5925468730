"""Until when the pending block counts as fresh: the note in the heads row.

The writer leaves a deadline with each flashblock that it applies. Readers compare it with
their own clock, so a dead writer's pending block expires everywhere at the same moment.

    boot id (16) ‖ deadline, monotonic nanoseconds (8)
    and where the block goes on in quiet indices (`quiet_indices`)
    partial (8) ‖ the last of them (8) ‖ when it came, wall nanoseconds (8)

After a restart of the machine the clock has begun anew and the boot id is another: then
the deadline has passed, whatever it says.
"""

import struct
from dataclasses import dataclass
from typing import Final

_NOTE: Final = struct.Struct(">16sQ")
_QUIET: Final = struct.Struct(">QQQ")


@dataclass(frozen=True, slots=True)
class Quiet:
    """How far a block has come since its last partial without a change."""

    partial: int
    index: int
    received_at_ns: int


@dataclass(frozen=True, slots=True)
class Freshness:
    """A deadline, and the start of the machine that it counts from."""

    boot_id: bytes
    until_ns: int
    quiet: Quiet | None = None

    def encode(self) -> bytes:
        """The note."""
        note, quiet = _NOTE.pack(self.boot_id, self.until_ns), self.quiet
        if quiet is None:
            return note
        return note + _QUIET.pack(quiet.partial, quiet.index, quiet.received_at_ns)

    def deadline_ns(self, boot_id: bytes) -> int:
        """The deadline as a process of this start of the machine sees it."""
        return self.until_ns if boot_id == self.boot_id else 0


def decode_freshness(note: bytes) -> Freshness | None:
    """What a note says; none where nothing was ever pending."""
    if not note:
        return None
    boot_id, until_ns = _NOTE.unpack_from(note)
    quiet = Quiet(*_QUIET.unpack_from(note, _NOTE.size)) if len(note) > _NOTE.size else None
    return Freshness(boot_id, until_ns, quiet)
