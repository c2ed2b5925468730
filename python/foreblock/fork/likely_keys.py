"""Keys that are likely to be needed with others, and are fetched with them. No I/O."""

from typing import Final

from foreblock.follow.worker_state import called_among
from foreblock.ledger.rules.execution import BEACON_ROOTS, HISTORY_STORAGE, HISTORY_WINDOW
from foreblock.ledger.storage.state_keys import StateKeys

AHEAD: Final = 128  # slots of a system contract's ring that are fetched together


def likely_with(needed: StateKeys) -> StateKeys:
    """Keys that are likely to be needed with these: codes, and slots that later blocks write."""
    rings = ring_slots(needed).slots
    slots = {at: frozenset().union(*map(slots_around, each)) for at, each in rings.items()}
    return StateKeys(slots=slots, codes_of=called_among(needed))


def ring_slots(needed: StateKeys) -> StateKeys:
    """The slots among these keys that blocks overwrite in turn."""
    rings = needed.slots.keys() & {BEACON_ROOTS, HISTORY_STORAGE}
    return StateKeys(slots={address: needed.slots[address] for address in rings})


def slots_around(slot: int) -> frozenset[int]:
    """The slots around one in the ring of a system contract: those of the next blocks, mostly."""
    ring, at = divmod(slot, HISTORY_WINDOW)
    first = ring * HISTORY_WINDOW + at // AHEAD * AHEAD
    return frozenset(range(first, min(first + AHEAD, (ring + 1) * HISTORY_WINDOW)))
