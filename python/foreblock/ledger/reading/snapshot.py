"""One commit as all its views see it.

Read from the heads once per commit and shared from then on. What depends on the time is
not in it: whether the pending block still counts is decided with each view, and once it
does not, `expired` is what the commit looks like for good.
"""

from dataclasses import dataclass

from foreblock._engine import Heads
from foreblock.ledger.reading.preconfirmed_block import PreconfirmedBlock
from foreblock.ledger.reading.sealed_block import SealedBlock


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The heads of one commit."""

    heads: Heads  # the very object that views of this commit have
    latest: SealedBlock
    pending: PreconfirmedBlock | None
    deadline_ns: int  # monotonic; from then on there is no pending block
    header_line: bytes  # names the snapshot in answers; empty where nobody wants that


def make_snapshot(
    heads: Heads,
    latest: SealedBlock,
    pending: PreconfirmedBlock | None,
    deadline_ns: int,
    *,
    announce: bool,
) -> Snapshot:
    """The snapshot of these heads."""
    line = b""
    if announce:
        text = f"commit={heads.commit}; latest={latest.number:#x}:0x{latest.hash.hex()}"
        if pending is not None:
            text += f"; pending={pending.number:#x}.{pending.index}:0x{pending.hash.hex()}"
        line = f"Foreblock-Snapshot: {text}\r\n".encode()
    return Snapshot(heads, latest, pending, deadline_ns, line)


def expired(snapshot: Snapshot) -> Snapshot:
    """The same commit after the deadline."""
    announce = bool(snapshot.header_line)
    return make_snapshot(snapshot.heads, snapshot.latest, None, 0, announce=announce)
