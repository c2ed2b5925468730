"""Whether a network is what it promises to be, and the facts that say so.

A chain that was imported is ready: it does not move. One that a source writes is ready as
long as its pending block is fresh, which is what tells that the source lives. No I/O but
what the view reads.
"""

from typing import Final

from foreblock.ledger.reading.view import Behind, LedgerView

_SECOND_NS: Final = 10**9


def readiness(view: LedgerView, wall_ns: int, *, moves: bool) -> tuple[bool, tuple[str, ...]]:
    """Whether it is ready at this date, and the facts, a line each."""
    latest, pending = view.latest, view.pending
    age = wall_ns / _SECOND_NS - latest.header.timestamp
    facts = [
        f"commit: {view.commit}",
        f"latest: block {latest.number}, {age:.1f} s old, 0x{latest.hash.hex()}",
    ]
    if pending is not None:
        age = (wall_ns - pending.received_at_ns) / _SECOND_NS
        distance = pending.number - latest.number
        place = f"block {pending.number}, flashblock {pending.index}"
        facts.append(f"pending: {place}, {age:.2f} s old, 0x{pending.hash.hex()}")
        facts.append(f"distance: pending is {distance} above latest")
    elif moves:
        facts.append("pending: none; no flashblock came in time, so pending means latest")
    else:
        facts.append("pending: none; nothing is written to this chain, so pending means latest")
    behind = view.behind
    facts.append(f"states: from block {behind.earliest} on")
    if moves:
        facts.append(_maintenance(behind))
    return (pending is not None or not moves), tuple(facts)


def _maintenance(behind: Behind) -> str:
    """How far the store's own work is behind; blocks that are not folded make reads longer."""
    return f"maintenance: {behind.to_fold} blocks to fold, {behind.to_clear} things to clear"
