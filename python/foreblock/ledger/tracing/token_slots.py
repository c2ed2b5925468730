"""Find the slot in which a contract keeps a number that one of its functions gives.

As anvil finds the balance of a token: the access list of the call says which slots it reads.
Each is set to another number for a trial, until the function gives that number.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from foreblock._engine import Outcome
from foreblock.ledger.calls.block_overrides import state_and_context
from foreblock.ledger.calls.call import Call, prepare, ready
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing.traces import TraceBounds, access_list
from foreblock.scheduling.steps import Steps

MOST_SLOTS: Final = 64  # that are tried
WORD: Final = 32


class _Accessed(Struct, rename="camel"):
    address: str
    storage_keys: list[str]


_decode: Final = msgspec.json.Decoder(list[_Accessed]).decode


def find_slot(
    view: LedgerView, call: Call, wanted: int, bounds: TraceBounds
) -> Steps[tuple[bytes, int] | None]:
    """The account and the slot at `pending` whose word the call gives; `wanted` is to be there."""
    state, context = state_and_context(view, "pending", None)
    found: tuple[bytes, Outcome] = yield access_list(prepare(call, state, context, None), bounds)
    listed, now = found
    # A trial with the number that it gives already would succeed with any slot.
    trial = wanted if _number(now) != wanted else wanted ^ 1
    for count, (address, slot) in enumerate(_slots(listed)):
        if count == MOST_SLOTS:
            return None
        overlay = state.overlay()
        overlay.set(address, state_diff={slot: trial})
        outcome: Outcome = yield ready(call, state, context, overlay, None).here
        if _number(outcome) == trial:
            return address, slot
    return None


def _number(outcome: Outcome) -> int | None:
    """The word that a call gave, if it gave one."""
    if outcome.status != "success" or len(outcome.output) < WORD:
        return None
    return int.from_bytes(outcome.output[:WORD])


def _slots(listed: bytes) -> Iterator[tuple[bytes, int]]:
    for each in _decode(listed):
        for key in each.storage_keys:
            yield bytes.fromhex(each.address[2:]), int(key, 16)
