"""eth_simulateV1: blocks that could follow one, run and shown as whole blocks."""

from collections.abc import Awaitable

from msgspec import Raw
from msgspec.json import Decoder

from foreblock.ledger.simulation.limits import SimulationLimits
from foreblock.ledger.simulation.request import SimulationRequest
from foreblock.ledger.simulation.run import simulate
from foreblock.ledger.simulation.steps import Steps
from foreblock.ledger.view import LedgerView
from foreblock.methods.block_param import find_block
from foreblock.methods.call_object import UNCAPPED
from foreblock.methods.options import Options
from foreblock.methods.params import DECODING, explain
from foreblock.methods.simulate_params import SimulateParams, read_simulation
from foreblock.methods.simulate_text import BlockShape, render
from foreblock.methods.simulations import Simulations

_decode = Decoder(SimulateParams).decode


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
        """The simulated blocks with the results of their calls."""
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, SimulateParams, self._required)
        if params.payload is None or (params.block is None and self._required == 2):
            params = explain(raw, SimulateParams, self._required)
        assert params.payload is not None, "explain refuses a missing one"
        request = read_simulation(params.payload, self._limits, state_roots=self._state_roots)
        full = bool(params.payload.return_full_transactions)
        shape = BlockShape(self._dialect, full_transactions=full)
        return self._simulations.run(self._steps(view, params, request, shape))

    def _steps(
        self,
        view: LedgerView,
        params: SimulateParams,
        request: SimulationRequest,
        shape: BlockShape,
    ) -> Steps[bytes]:
        base = find_block(view, params.block, 1)
        blocks = yield from simulate(base, view.state(base), view.unused, request, self._limits)
        return (yield from render(blocks, shape))
