"""eth_simulateV1: blocks that could follow one, run and shown as whole blocks."""

from collections.abc import Awaitable
from functools import partial
from typing import Final

from msgspec import Raw
from msgspec.json import Decoder

from foreblock.ledger.simulation.limits import SimulationLimits
from foreblock.ledger.simulation.request import PlainCalls
from foreblock.ledger.simulation.run import simulate
from foreblock.ledger.simulation.steps import Pace, Steps
from foreblock.ledger.simulation.usual import simulate_usual
from foreblock.ledger.view import LedgerView
from foreblock.methods.block_param import BlockParam, find_block
from foreblock.methods.call_object import UNCAPPED
from foreblock.methods.options import Options
from foreblock.methods.overrides import read_overrides
from foreblock.methods.params import DECODING, UNUSUAL, explain
from foreblock.methods.simulate_params import (
    BlockwiseParams,
    Payload,
    UsualBlock,
    UsualParams,
    read_simulation,
)
from foreblock.methods.simulate_text import BlockShape, render, render_block
from foreblock.methods.simulations import Simulations

MANY: Final = 200  # calls that are not begun in place, where they could not end
LONG: Final = 512 * 1024  # bytes of params that are not decoded all at once

_decode = Decoder(UsualParams).decode
_decode_blockwise = Decoder(BlockwiseParams).decode


class SimulateMethods:
    """Methods that simulate blocks."""

    def __init__(self, options: Options, simulations: Simulations) -> None:
        self._required = 2 if options.block_required else 1
        self._simulations = simulations
        # Roots are zero in the published contract: nothing is committed to a trie.
        self._state_roots = options.dialect == "ethereum"
        self._dialect = options.dialect
        self._limits = SimulationLimits(
            blocks=options.simulate_blocks,
            block_calls=options.simulate_block_calls,
            calls=options.simulate_calls,
            gas=options.gas_cap or UNCAPPED,
        )

    def simulate(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The simulated blocks with the results of their calls.

        Most simulations are answered by `_simulate_usual`, in half the time and, as a test
        shows, with the same bytes. It gives up on whatever is not as it expects.
        """
        params: UsualParams | BlockwiseParams
        try:
            if memoryview(raw).nbytes < LONG:
                params = _decode(raw)
                answer = self._simulate_usual(view, params)
                if answer is not None:
                    return answer
            else:
                params = _decode_blockwise(raw)
        except DECODING:
            params = explain(raw, BlockwiseParams, self._required)
        if params.payload is None or (params.block is None and self._required == 2):
            params = explain(raw, BlockwiseParams, self._required)
        assert params.payload is not None, "explain refuses a missing one"
        return self._simulations.run(partial(self._steps, view, params.payload, params.block))

    def _simulate_usual(self, view: LedgerView, params: UsualParams) -> bytes | None:
        block = _only_block(params)
        if block is None or self._state_roots:
            return None
        calls = PlainCalls.read(block.calls)
        if calls is None or len(calls) > MANY:
            return None
        try:
            accounts = read_overrides(block.state_overrides or {}, 0)
            base = find_block(view, params.block, 1)
            sealed = simulate_usual(base, view.state(base), accounts, calls, self._limits)
        except UNUSUAL:
            return None
        return None if sealed is None else render_block(sealed, self._dialect)

    def _steps(
        self, view: LedgerView, payload: Payload, block: BlockParam, pace: Pace
    ) -> Steps[bytes]:
        request = yield from read_simulation(
            payload, self._limits, pace, state_roots=self._state_roots
        )
        base = find_block(view, block, 1)
        blocks = yield from simulate(
            base, view.state(base), view.unused, request, self._limits, pace
        )
        full = bool(payload.return_full_transactions)
        shape = BlockShape(self._dialect, full_transactions=full)
        return (yield from render(blocks, shape, pace))


def _only_block(params: UsualParams) -> UsualBlock | None:
    """The block of a payload that says nothing else, nor anything of the block itself."""
    payload = params.payload
    if payload is None or payload.validation or payload.trace_transfers:
        return None
    blocks = payload.block_state_calls
    if blocks is None or len(blocks) != 1 or payload.return_full_transactions:
        return None
    named = params.block is not None and blocks[0].block_overrides is None
    return blocks[0] if named else None
