"""eth_simulateV1: blocks that could follow one, run and shown as whole blocks, in either dialect.

a failed call     preconf: `error` is a text, revert data is what it returned
                  ethereum: `error` is an object with the data, nothing is returned
fillers           preconf: left out; ethereum: shown

The engine writes the blocks, and answers short simulations by itself (`ledger.reading.fast_path`).
"""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Raw, Struct, structs

from foreblock._engine import read_simulation
from foreblock.errors import IncompleteState, MissingTrieNodes, PartialState
from foreblock.ledger.calls.request import (
    AS_IT_IS,
    BlockOverrides,
    BlockRequest,
    CallRequest,
    PlainCalls,
    SimulationLimits,
    SimulationRequest,
)
from foreblock.ledger.calls.simulated_block import simulation_template
from foreblock.ledger.calls.simulation import SimulatedBlock, SimulationText, simulate
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.calls.call_methods import UNCAPPED, read_fields
from foreblock.methods.params import BlockParam, find_block, is_long, named_block, read_in_turn
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import Dialect, Settings


class BlockShape(Struct, frozen=True):
    """The options for the text of a block."""

    dialect: Dialect
    full_transactions: bool


def render(blocks: Sequence[SimulatedBlock], shape: BlockShape, pace: Pace) -> Steps[Text]:
    """All blocks that are shown; in pieces where that is long."""
    shown = [each for each in blocks if not each.is_filler or shape.dialect == "ethereum"]
    transactions = []
    if shape.full_transactions:
        for each in shown:
            array = yield from _full_transactions(each, pace)
            transactions.append(array)
    text = SimulationText([each.block for each in shown], shape.dialect, transactions)
    first = text.take(THRESHOLDS.pieces_bytes)
    if len(first) < THRESHOLDS.pieces_bytes:
        return first
    yield None
    return [first, *(yield from text_pieces(text, pace))]


def text_pieces(text: SimulationText, pace: Pace) -> Steps[list[bytes]]:
    pieces: list[bytes] = []
    while piece := text.take(THRESHOLDS.piece_bytes):
        pieces.append(piece)
        if pace.is_over():
            yield None
    return pieces


def _full_transactions(simulated: SimulatedBlock, pace: Pace) -> Steps[bytes]:
    header = simulated.block.header
    fragments = []
    some = THRESHOLDS.rendered_simulated
    for index, transaction in enumerate(simulated.block.transactions()):
        fragments.append(transaction.fragment(header, index))
        if index % some == some - 1 and pace.is_over():
            yield None
    return shapes.join_fragments(header.hash, fragments)


NONCE: Final = 5  # the place of the nonce among the fields of a call
GAS: Final = 4


class SimulateParams(Struct, frozen=True, gc=False):
    """The blocks to simulate, the block that they follow, and the form of the result."""

    request: SimulationRequest
    block: BlockParam
    full_transactions: bool


class SimulateReader:
    """Reads params according to the method and the settings."""

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

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._dialect = settings.dialect
        self._limits = SimulationLimits(
            blocks=settings.simulate.blocks,
            block_calls=settings.simulate.block_calls,
            calls=settings.simulate.calls,
            gas=settings.call.gas_cap or UNCAPPED,
            output=settings.simulate.output,
        )
        # Roots are zero in the published contract: nothing is committed to a trie.
        state_roots = settings.dialect == "ethereum"
        required = 2 if settings.block_required else 1
        self._read = SimulateReader(required, self._limits, state_roots=state_roots).read

    def simulate(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The simulated blocks with the results of their calls."""
        if is_long(raw):
            steps = partial(self._read_and_simulate, view, raw)
        else:
            steps = partial(self._simulate, view, self._read(raw))
        return self._scheduler.run_text(steps, view.client)

    def _read_and_simulate(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        params = yield from read_in_turn(self._read, raw)
        return (yield from self._simulate(view, params, pace))

    def _simulate(self, view: LedgerView, params: SimulateParams, pace: Pace) -> Steps[Text]:
        base = find_block(view, params.block, 1)
        view.check_rules(base.number + 1)
        state = view.state(base)
        run = partial(simulate, base, state, view.unused, limits=self._limits, pace=pace)
        request = params.request
        if view.is_fork:  # roots of its blocks are zero
            request = structs.replace(request, state_roots=False)
        try:
            blocks = yield from run(request, root=view.root_below(state))
        except PartialState as why:
            if not _has_no_root(why):
                raise
            blocks = yield from run(structs.replace(request, state_roots=False))
        if self._dialect == "preconf" and isinstance(params.block, str):  # roots are zero
            template = simulation_template(base)
            if template is not None:
                view.remember_simulations(params.block, template)
        shape = BlockShape(self._dialect, full_transactions=params.full_transactions)
        return (yield from render(blocks, shape, pace))


def _has_no_root(why: PartialState) -> bool:
    """Return whether so little of the trie is known that roots are omitted."""
    if isinstance(why, MissingTrieNodes):
        return len(why.misses.accounts) > MOST_WAYS
    return isinstance(why, IncompleteState)
