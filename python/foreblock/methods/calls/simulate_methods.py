"""eth_simulateV1: blocks that could follow one, run and shown as whole blocks, in either dialect.

a failed call     preconf: `error` is a text, revert data is what it returned
                  ethereum: `error` is an object with the data, nothing is returned
fillers           preconf: left out; ethereum: shown

The engine writes the parts that are equal in both dialects: headers, results, logs.
"""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, structs

from foreblock._engine import read_simulation
from foreblock.errors import IncompleteState, MissingTrieNodes, PartialState
from foreblock.ledger.calls.call import Outcome
from foreblock.ledger.calls.request import (
    AS_IT_IS,
    BlockOverrides,
    BlockRequest,
    CallRequest,
    PlainCalls,
    SimulationLimits,
    SimulationRequest,
)
from foreblock.ledger.calls.simulated_block import plain_simulation
from foreblock.ledger.calls.simulation import BodyText, SealedBody, SimulatedBlock, simulate
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.calls.call_methods import UNCAPPED, read_fields
from foreblock.methods.params import BlockParam, find_block, is_long, named_block, read_in_turn
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import Dialect, Settings
from foreblock.types import revert_reason

REVERTED: Final = 3  # the code of a call that reverted, in `ethereum`
VM_ERROR: Final = -32015  # the code of one that failed otherwise
LOWERED: Final = " (gas limit was capped by the RPC server's global gas cap)"


class BlockShape(Struct, frozen=True):
    """The options for the text of a block."""

    dialect: Dialect
    full_transactions: bool


def render(blocks: Sequence[SimulatedBlock], shape: BlockShape, pace: Pace) -> Steps[Text]:
    """All blocks that are shown; in pieces where that is long."""
    texts: list[Text] = []
    size = 0
    for block in blocks:
        if texts and pace.is_over():
            yield None
        if block.is_filler and shape.dialect == "preconf":
            continue
        transactions = None
        if shape.full_transactions:
            transactions = yield from _full_transactions(block, pace)
        if is_long_block(block.block):
            texts.append((yield from _long_block(block.block, shape, transactions, pace)))
            size += THRESHOLDS.pieces_bytes
        else:
            text = _block_text(block.block, shape.dialect, transactions)
            texts.append(text)
            size += len(text)
    if size < THRESHOLDS.pieces_bytes:
        return shapes.array(texts)  # type: ignore[arg-type]  # nothing long is among them
    yield None
    return join_array(texts)


def is_long_block(block: SealedBody) -> bool:
    """Return whether the text of a block has to be written in pieces."""
    return block.results_size > THRESHOLDS.pieces_bytes


def _long_block(
    block: SealedBody, shape: BlockShape, transactions: bytes | None, pace: Pace
) -> Steps[list[bytes]]:
    failures: list[tuple[bytes, bytes]] = []
    for outcome, lowered in block.failures:
        failures.append(_failure(outcome, shape.dialect, lowered=lowered))
        if pace.is_over():
            yield None
    return (yield from text_pieces(block.long_json(failures, transactions), pace))


def text_pieces(text: BodyText, pace: Pace) -> Steps[list[bytes]]:
    pieces: list[bytes] = []
    while piece := text.take(THRESHOLDS.piece_bytes):
        pieces.append(piece)
        if pace.is_over():
            yield None
    return pieces


def join_array(texts: Sequence[Text]) -> list[bytes]:
    """The pieces of an array of texts, without copying them."""
    pieces = [b"["]
    for text in texts:
        if isinstance(text, bytes):
            pieces.append(text)
        else:
            pieces += text
        pieces.append(b",")
    pieces[-1] = b"]"
    return pieces


def render_block(block: SealedBody, dialect: Dialect) -> bytes:
    """One block alone, with the hashes of its transactions."""
    return shapes.array((_block_text(block, dialect),))


def _block_text(block: SealedBody, dialect: Dialect, transactions: bytes | None = None) -> bytes:
    failures = [_failure(outcome, dialect, lowered=lowered) for outcome, lowered in block.failures]
    return block.json(failures, transactions)


def _full_transactions(simulated: SimulatedBlock, pace: Pace) -> Steps[bytes]:
    header = simulated.block.header
    fragments = []
    some = THRESHOLDS.rendered_simulated
    for index, transaction in enumerate(simulated.block.transactions()):
        fragments.append(transaction.fragment(header, index))
        if index % some == some - 1 and pace.is_over():
            yield None
    return shapes.join_fragments(header.hash, fragments)


def _failure(outcome: Outcome, dialect: Dialect, *, lowered: bool) -> tuple[bytes, bytes]:
    """The `returnData` and `error` members of a failed call.

    `lowered` tells whether it could have had more gas in its block.
    """
    if outcome.status == "revert":
        output = outcome.output
        reason = revert_reason(output)
        message = f"execution reverted: {reason}" if reason else "execution reverted"
        error = {"code": REVERTED, "message": message, "data": "0x" + output.hex()}
    else:
        output = b""
        message = (outcome.halt or "execution failed") + (LOWERED if lowered else "")
        error = {"code": VM_ERROR, "message": message}
    if dialect == "preconf":
        return output, b',"error":' + msgspec.json.encode(message)
    return b"", b',"error":' + msgspec.json.encode(error)


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
            return self._scheduler.run_text(
                partial(self._read_and_simulate, view, raw), view.client
            )
        params = self._read(raw)
        text = self._single_block(view, params)
        return text or self._scheduler.run_text(partial(self._simulate, view, params), view.client)

    def _single_block(self, view: LedgerView, params: SimulateParams) -> bytes | None:
        """Return the result if one short block of plain calls is requested."""
        if params.full_transactions or len(params.request.blocks) > 1:
            return None
        base = find_block(view, params.block, 1)
        view.check_rules(base.number + 1)
        plain = plain_simulation(base, view.state(base), params.request, self._limits)
        most_us = THRESHOLDS.single_block_us
        if plain is None or plain.run(most_us, most_us, THRESHOLDS.call_step_us) != "finished":
            return None
        (block,) = plain.take()
        return None if is_long_block(block) else render_block(block, self._dialect)

    def _read_and_simulate(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        params = yield from read_in_turn(self._read, raw)
        text = self._single_block(view, params)
        return text or (yield from self._simulate(view, params, pace))

    def _simulate(self, view: LedgerView, params: SimulateParams, pace: Pace) -> Steps[Text]:
        base = find_block(view, params.block, 1)
        view.check_rules(base.number + 1)
        state = view.state(base)
        run = partial(simulate, base, state, view.unused, limits=self._limits, pace=pace)
        try:
            blocks = yield from run(params.request, root=view.root_below(state))
        except PartialState as why:
            if not _has_no_root(why):
                raise
            blocks = yield from run(structs.replace(params.request, state_roots=False))
        shape = BlockShape(self._dialect, full_transactions=params.full_transactions)
        return (yield from render(blocks, shape, pace))


def _has_no_root(why: PartialState) -> bool:
    """Return whether so little of the trie is known that roots are omitted."""
    if isinstance(why, MissingTrieNodes):
        return len(why.misses.accounts) > MOST_WAYS
    return isinstance(why, IncompleteState)
