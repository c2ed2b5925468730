"""eth_simulateV1 as most ask for it: one block of plain calls, and accounts overridden.

What is not as expected here is left to `simulate`, which says what is wrong with it.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.simulation.run import SimulatedBlock
from foreblock.ledger.simulation.simulation_request import SimulationLimits
from foreblock.ledger.simulation.usual import simulate_usual
from foreblock.methods.block_param import find_block
from foreblock.methods.options import Dialect
from foreblock.methods.params import UNUSUAL
from foreblock.methods.simulate_text import (
    BlockShape,
    is_long_block,
    render,
    render_block,
)
from foreblock.scheduling.reply import Text
from foreblock.scheduling.steps import Pace, Steps

NO_CALLS: Final = Raw(b"[]")
NO_ACCOUNTS: Final = Raw(b"{}")


class UsualBlock(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """A block that nothing is said of; the engine reads what is in it."""

    calls: Raw = NO_CALLS
    state_overrides: Raw = NO_ACCOUNTS


class UsualPayload(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """One block, and what is not asked for."""

    block_state_calls: tuple[UsualBlock]
    trace_transfers: bool = False
    validation: bool = False
    return_full_transactions: bool = False


class UsualParams(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The arguments of a usual simulation: its block is named by number, tag or hash."""

    payload: UsualPayload
    block: str


_decode = Decoder(UsualParams).decode


def answer_usual(
    view: LedgerView, raw: Raw, limits: SimulationLimits, dialect: Dialect
) -> bytes | Callable[[Pace], Steps[Text]] | None:
    """The simulated block, without a state root; none where it takes more than this.

    If it returned so much that it cannot be written at once, these are the steps that do.
    """
    try:
        params = _decode(raw)
        payload = params.payload
        if payload.trace_transfers or payload.validation or payload.return_full_transactions:
            return None
        (block,) = payload.block_state_calls
        base = find_block(view, params.block, 1)
        state = view.state(base)
        sealed = simulate_usual(base, state, block.calls, block.state_overrides, limits)
    except UNUSUAL:
        return None
    if sealed is None:
        return None
    if is_long_block(sealed):
        shown = BlockShape(dialect, full_transactions=False)
        return partial(render, [SimulatedBlock(sealed, is_filler=False)], shown)
    return render_block(sealed, dialect)
