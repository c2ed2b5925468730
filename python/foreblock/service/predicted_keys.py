"""The keys that calls of a body will read besides what they have missed, as templates say."""

from collections.abc import Sequence
from typing import Final

from foreblock.ledger.calls.predicted_calls import MissedCall, PredictedCalls
from foreblock.rpc.fetching import Missed
from foreblock.upstream.call_message import call_message
from foreblock.upstream.wanted import Wanted

CALLS: Final = frozenset({"eth_call", "eth_createAccessList", "eth_estimateGas"})
MOST_CALLS: Final = 16  # of one body that are looked at


def predicted_keys(calls: PredictedCalls, missed: Sequence[Missed]) -> Wanted:
    """What these requests will read, and is not known yet; what they missed is learned."""
    found = []
    for each in [each for each in missed if each.method in CALLS][:MOST_CALLS]:
        message = call_message(each.params)
        if message is not None:
            found.append(MissedCall(*message, each.why.misses))
    slots = calls.slots(found) if found else {}
    return Wanted(slots={address: frozenset(keys) for address, keys in slots.items()})
