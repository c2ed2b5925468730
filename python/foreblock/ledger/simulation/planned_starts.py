"""What the starts of planned blocks read of a state that is known in part.

The system contracts of EIP-4788 and EIP-2935 have a slot for each block, so that a simulation of
many blocks would find out one after the other what it misses. With the first miss all are named.
"""

from collections.abc import Sequence
from typing import Final

from foreblock._engine import Misses, State
from foreblock.errors import StateMissing, WaysMissing
from foreblock.ledger.rules.block_start import BEACON_ROOTS, HISTORY_STORAGE
from foreblock.ledger.simulation.simulation_request import PlannedBlock

RING: Final = 8191  # slots of either contract


def with_starts(missing: StateMissing, state: State, plan: Sequence[PlannedBlock]) -> StateMissing:
    """The same, with what the starts of all planned blocks miss."""
    beacon = [planned.time % RING for planned in plan]
    slots = {
        BEACON_ROOTS: [*beacon, *(each + RING for each in beacon)],
        HISTORY_STORAGE: [(planned.number - 1) % RING for planned in plan],
    }
    misses = missing.misses
    seen = {at: keys for at, keys in slots.items() if at in misses.accounts or at in misses.slots}
    if not seen or not isinstance(misses, Misses):
        return missing  # they are known, or these rules do not have them
    if isinstance(missing, WaysMissing):  # the same of their tries
        return WaysMissing(misses.also(Misses([], seen)), missing.block)
    return StateMissing(misses.also(state.missing([], seen)))
