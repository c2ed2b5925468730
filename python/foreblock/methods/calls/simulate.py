"""eth_simulateV1: blocks that could follow one, run and shown as whole blocks."""

from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

from msgspec import Raw, Struct, structs

from foreblock._engine import read_simulation
from foreblock.errors import IncompleteState, PartialState, WaysMissing
from foreblock.ledger.calls.block_overrides import AS_IT_IS, BlockOverrides
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.simulation.run import simulate
from foreblock.ledger.simulation.simulation_request import (
    BlockRequest,
    CallRequest,
    PlainCalls,
    SimulationLimits,
    SimulationRequest,
)
from foreblock.ledger.simulation.single_block import simulate_single_block
from foreblock.methods.block_param import BlockParam, find_block, named_block
from foreblock.methods.calls.call_params import UNCAPPED, read_fields
from foreblock.methods.calls.simulate_text import BlockShape, is_long_block, render, render_block
from foreblock.methods.options import Options
from foreblock.methods.params import is_long, read_in_turn
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps

NONCE: Final = 5  # the place of the nonce among the fields of a call
GAS: Final = 4


class SimulateParams(Struct, frozen=True, gc=False):
    """What is to be simulated, after which block, and how it is shown."""

    request: SimulationRequest
    block: BlockParam
    full_transactions: bool


class SimulateReader:
    """Reads params by what a method requires and an operator chose."""

    def __init__(self, required: int, limits: SimulationLimits, *, state_roots: bool) -> None:
        self._bounds: Final = required, limits.blocks, limits.block_calls, limits.calls
        self._state_roots: Final = state_roots

    def read(self, raw: Raw) -> SimulateParams:
        """The arguments; raises `InvalidParams`, `RefusedSimulation` before any call is judged."""
        given, (validation, transfers, full), named = read_simulation(raw, *self._bounds)
        blocks = [_block(*block) for block in given]
        request = SimulationRequest(blocks, validation, transfers, self._state_roots)
        return SimulateParams(request, None if named is None else named_block(named), full)


def _block(calls: Any, overrides: Any, changes: tuple[Any, ...] | None) -> BlockRequest:  # noqa: ANN401, of the engine
    if not isinstance(calls, PlainCalls):
        calls = [
            CallRequest(read_fields(fields, UNCAPPED, UNCAPPED), fields[GAS], fields[NONCE])
            for fields in calls
        ]
    return BlockRequest(calls, overrides, AS_IT_IS if changes is None else BlockOverrides(*changes))


MOST_WAYS: Final = 64  # of accounts in a trie that are fetched for roots; zeros with more


class SimulateMethods:
    """Methods that simulate blocks."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._dialect = options.dialect
        self._limits = SimulationLimits(
            blocks=options.simulate_blocks,
            block_calls=options.simulate_block_calls,
            calls=options.simulate_calls,
            gas=options.gas_cap or UNCAPPED,
            output=options.simulate_output,
        )
        # Roots are zero in the published contract: nothing is committed to a trie.
        state_roots = options.dialect == "ethereum"
        required = 2 if options.block_required else 1
        self._read = SimulateReader(required, self._limits, state_roots=state_roots).read

    def simulate(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The simulated blocks with the results of their calls."""
        if is_long(raw):
            return self._scheduler.write(partial(self._read_and_simulate, view, raw), view.client)
        asked = self._read(raw)
        text = self._single_block(view, asked)
        return text or self._scheduler.write(partial(self._simulate, view, asked), view.client)

    def _single_block(self, view: LedgerView, asked: SimulateParams) -> bytes | None:
        """The answer, if one block of plain calls is asked for and it is short."""
        if asked.full_transactions:
            return None
        base = find_block(view, asked.block, 1)
        view.check_rules(base.number + 1)
        block = simulate_single_block(base, view.state(base), asked.request, self._limits)
        if block is None or is_long_block(block):
            return None
        return render_block(block, self._dialect)

    def _read_and_simulate(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        asked = yield from read_in_turn(self._read, raw)
        text = self._single_block(view, asked)
        return text or (yield from self._simulate(view, asked, pace))

    def _simulate(self, view: LedgerView, asked: SimulateParams, pace: Pace) -> Steps[Text]:
        base = find_block(view, asked.block, 1)
        view.check_rules(base.number + 1)
        state = view.state(base)
        run = partial(simulate, base, state, view.unused, limits=self._limits, pace=pace)
        try:
            blocks = yield from run(asked.request, root=view.root_below(state))
        except PartialState as why:
            if not _has_no_root(why):
                raise
            blocks = yield from run(structs.replace(asked.request, state_roots=False))
        shape = BlockShape(self._dialect, full_transactions=asked.full_transactions)
        return (yield from render(blocks, shape, pace))


def _has_no_root(why: PartialState) -> bool:
    """Whether so little of the trie is known that roots are left out."""
    if isinstance(why, WaysMissing):
        return len(why.misses.accounts) > MOST_WAYS
    return isinstance(why, IncompleteState)
