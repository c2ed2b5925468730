"""eth_simulateV1: blocks that could follow one, run and shown as whole blocks."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Raw
from msgspec.json import Decoder

from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.simulation.run import simulate
from foreblock.ledger.simulation.simulation_request import SimulationLimits
from foreblock.methods.block_param import BlockParam, find_block
from foreblock.methods.call_object import UNCAPPED
from foreblock.methods.options import Options
from foreblock.methods.params import DECODING, explain
from foreblock.methods.simulate_long import read_long_params
from foreblock.methods.simulate_params import (
    BlockwiseParams,
    Payload,
    UsualParams,
    read_simulation,
)
from foreblock.methods.simulate_text import BlockShape, render
from foreblock.methods.simulate_usual import answer_usual
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps

SHORT: Final = 256 * 1024  # bytes of params that the engine may read at once
FEW: Final = 16 * 1024  # bytes of params that cannot hold many calls or accounts
MANY: Final = 300  # of them, which are read and laid over the state in steps

_decode = Decoder(UsualParams).decode


class SimulateMethods:
    """Methods that simulate blocks."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._required = 2 if options.block_required else 1
        self._scheduler = scheduler
        # Roots are zero in the published contract: nothing is committed to a trie.
        self._state_roots = options.dialect == "ethereum"
        self._dialect = options.dialect
        self._limits = SimulationLimits(
            blocks=options.simulate_blocks,
            block_calls=options.simulate_block_calls,
            calls=options.simulate_calls,
            gas=options.gas_cap or UNCAPPED,
            output=options.simulate_output,
        )

    def simulate(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The simulated blocks with the results of their calls.

        Most simulations are answered by `answer_usual`, in half the time and, as a test shows,
        with the same bytes. It gives up on whatever is not as it expects.
        """
        size = memoryview(raw).nbytes
        if size >= FEW and (size >= SHORT or bytes(raw).count(b"{") > MANY):
            return self._simulate(view, partial(self._long_steps, view, raw))
        if not self._state_roots:
            answer = answer_usual(view, raw, self._limits, self._dialect)
            if answer is not None:
                return answer if isinstance(answer, bytes) else self._simulate(view, answer)
        params: UsualParams | BlockwiseParams
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, BlockwiseParams, self._required)
        if params.payload is None or (params.block is None and self._required == 2):
            params = explain(raw, BlockwiseParams, self._required)
        assert params.payload is not None, "explain refuses a missing one"
        return self._simulate(view, partial(self._steps, view, params.payload, params.block))

    def _simulate(
        self, view: LedgerView, begin: Callable[[Pace], Steps[Text]]
    ) -> bytes | Awaitable[Text]:
        text = self._scheduler.run(begin, view.client)
        assert not isinstance(text, list), "pieces come after a turn of others"
        return text

    def _long_steps(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        params = yield from read_long_params(raw, self._required, self._limits.blocks, pace)
        assert params.payload is not None, "a missing one is refused"
        return (yield from self._steps(view, params.payload, params.block, pace))

    def _steps(
        self, view: LedgerView, payload: Payload, block: BlockParam, pace: Pace
    ) -> Steps[Text]:
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
