"""The payload of eth_simulateV1 as JSON, read into a request."""

from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.errors import BadArgument
from foreblock.ledger.block_overrides import BlockOverrides
from foreblock.ledger.simulation.limits import SimulationLimits, check_counts
from foreblock.ledger.simulation.request import BlockRequest, CallRequest, SimulationRequest
from foreblock.methods.block_overrides import BlockOverridesObject, read_simulated_overrides
from foreblock.methods.block_param import BlockParam
from foreblock.methods.call_object import CallObject, CallReader
from foreblock.methods.overrides import read_overrides
from foreblock.methods.params import DECODING, decode, quantity


class BlockStateCall(Struct, rename="camel", gc=False, frozen=True):
    """A block to be simulated."""

    calls: list[CallObject] | None = None
    state_overrides: dict[str, Raw] | None = None
    block_overrides: BlockOverridesObject | None = None


class SimulationPayload(Struct, rename="camel", gc=False, frozen=True):
    """The whole of it. Unknown keys are ignored."""

    block_state_calls: list[Raw] | None = None
    trace_transfers: bool | None = None
    validation: bool | None = None
    return_full_transactions: bool | None = None


class SimulateParams(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The arguments of eth_simulateV1."""

    payload: SimulationPayload | None = None
    block: BlockParam = None


_decode_block = Decoder(BlockStateCall).decode
_reader = CallReader(0, creates=True)
_AS_IT_IS: Final = BlockOverridesObject()


def read_simulation(
    payload: SimulationPayload, limits: SimulationLimits, *, state_roots: bool
) -> SimulationRequest:
    """The request; raises `InvalidParams`, and `RefusedSimulation` before anything is read."""
    blocks = _decode_blocks(payload.block_state_calls or [], limits)
    return SimulationRequest(
        blocks=[_read_block(block, index) for index, block in enumerate(blocks)],
        validation=bool(payload.validation),
        trace_transfers=bool(payload.trace_transfers),
        state_roots=state_roots,
    )


def _decode_blocks(given: list[Raw], limits: SimulationLimits) -> list[BlockStateCall]:
    """The blocks, one after the other: those after the first call too many are not looked at.

    A million calls fit into one request, and would take half a second and 200 MB.
    """
    counts = [0] * len(given)
    check_counts(counts, limits)
    blocks: list[BlockStateCall] = []
    total = 0
    for index, raw in enumerate(given):
        try:
            block = _decode_block(raw)
        except DECODING:
            block = decode(raw, BlockStateCall, 0, f"$.blockStateCalls[{index}]")
        blocks.append(block)
        counts[index] = len(block.calls or ())
        total += counts[index]
        if counts[index] > limits.block_calls or total > limits.calls:
            check_counts(counts, limits)
    return blocks


def _read_block(given: BlockStateCall, index: int) -> BlockRequest:
    place = f"$.blockStateCalls[{index}]"
    try:
        at = ".calls"
        calls = []
        for position, call in enumerate(given.calls or ()):
            at = f".calls[{position}]"
            calls.append(_read_call(call))
        at = ".stateOverrides"
        accounts = read_overrides(given.state_overrides, 0)
        at = ".blockOverrides"
        overrides = BlockOverrides()
        if given.block_overrides not in (None, _AS_IT_IS):
            overrides = read_simulated_overrides(given.block_overrides, 0)
    except BadArgument as bad:
        raise BadArgument(bad.why, 0, place + at + bad.path.removeprefix("$")) from None
    return BlockRequest(calls, accounts, overrides)


def _read_call(given: CallObject) -> CallRequest:
    return CallRequest(
        _reader.read(given, 0),
        gas=None if given.gas is None else quantity(given.gas, 64, 0, "$.gas"),
        nonce=None if given.nonce is None else quantity(given.nonce, 64, 0, "$.nonce"),
    )
