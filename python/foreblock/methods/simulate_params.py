"""The payload of eth_simulateV1 as JSON, read into a request.

A payload is decoded all at once, which is quickest, or block by block: where it is long, so
that others have their turn, and where something is wrong with it, so that a refusal can name
the account. The calls of
a block are left to the engine, which reads plain ones; what it leaves is decoded here.
Blocks after the first call too many are never looked at.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.errors import BadArgument
from foreblock.ledger.calls.block_overrides import AS_IT_IS
from foreblock.ledger.calls.overrides import AccountOverride
from foreblock.ledger.simulation.simulation_request import (
    BlockRequest,
    CallRequest,
    PlainCalls,
    SimulationLimits,
    SimulationRequest,
    check_blocks,
    check_calls,
)
from foreblock.long_json import is_long
from foreblock.methods.block_overrides import BlockOverridesObject, read_simulated_overrides
from foreblock.methods.block_param import BlockParam
from foreblock.methods.call_object import CallObject, CallReader
from foreblock.methods.long_overrides import read_long_overrides
from foreblock.methods.overrides import AccountObject, read_many_overrides, read_overrides
from foreblock.methods.params import DECODING, decode, quantity
from foreblock.methods.simulate_long_block import Calls, LongBlock, read_long_block
from foreblock.scheduling.steps import Pace, Steps

NO_CALLS: Final = Raw(b"[]")

# What an account's override and a block are decoded into: all of it at once, or nothing yet.
Account = TypeVar("Account")
Block = TypeVar("Block")


class BlockStateCall(Struct, Generic[Account], rename="camel", gc=False, frozen=True):
    """A block to be simulated."""

    calls: Raw = NO_CALLS
    state_overrides: dict[str, Account] | None = None
    block_overrides: BlockOverridesObject | None = None


class SimulationPayload(Struct, Generic[Block], rename="camel", gc=False, frozen=True):
    """The whole of it. Unknown keys are ignored."""

    block_state_calls: list[Block] | None = None
    trace_transfers: bool | None = None
    validation: bool | None = None
    return_full_transactions: bool | None = None


class SimulateParams(Struct, Generic[Block], array_like=True, forbid_unknown_fields=True, gc=False):
    """The arguments of eth_simulateV1."""

    payload: SimulationPayload[Block] | None = None
    block: BlockParam = None


UsualBlock = BlockStateCall[AccountObject | None]
UndecodedBlock = BlockStateCall[Raw]  # its accounts are not
UsualParams = SimulateParams[UsualBlock]
BlockwiseParams = SimulateParams[Raw]
Payload = SimulationPayload[UsualBlock] | SimulationPayload[Raw]

_decode_block = Decoder(UndecodedBlock).decode
_reader = CallReader(0, creates=True)
LARGE: Final = 64  # calls of any kind, or accounts, that are read at once
PORTION: Final = 64  # calls that are read between two looks at the time
_NOTHING: Final = BlockOverridesObject()


def read_simulation(
    payload: Payload, limits: SimulationLimits, pace: Pace, *, state_roots: bool
) -> Steps[SimulationRequest]:
    """The request; raises `InvalidParams`, and `RefusedSimulation` before any call is judged."""
    given: Sequence[UsualBlock | Raw] = payload.block_state_calls or []
    check_blocks(len(given), limits)
    decoded: list[tuple[UsualBlock | UndecodedBlock | LongBlock, Calls]] = []
    total = 0
    for index, found in enumerate(given):
        if decoded and pace.is_over():
            yield None
        block: UsualBlock | UndecodedBlock | LongBlock
        if isinstance(found, Raw) and is_long(found):
            place = f"$.blockStateCalls[{index}]"
            block = yield from read_long_block(found, place, limits.block_calls, pace)
            calls, count = block.calls, block.count
        else:
            block = _decode(found, index) if isinstance(found, Raw) else found
            calls = _decode_calls(block.calls, index)
            count = len(calls)
        total += count
        check_calls(count, total, limits)
        decoded.append((block, calls))
    blocks: list[BlockRequest] = []
    for index, (block, calls) in enumerate(decoded):
        if blocks and pace.is_over():
            yield None
        if isinstance(block, LongBlock) or _is_large(block, calls):
            blocks.append((yield from _read_large_block(block, calls, index, pace)))
        else:
            blocks.append(_read_block(block, calls, index))
    return SimulationRequest(
        blocks=blocks,
        validation=bool(payload.validation),
        trace_transfers=bool(payload.trace_transfers),
        state_roots=state_roots,
    )


def _decode(raw: Raw, index: int) -> UndecodedBlock:
    try:
        return _decode_block(raw)
    except DECODING:
        found: UndecodedBlock = decode(raw, UndecodedBlock, 0, f"$.blockStateCalls[{index}]")
        return found


def _decode_calls(raw: Raw, index: int) -> Calls:
    plain = PlainCalls.read(raw)
    if plain is not None:
        return plain
    place = f"$.blockStateCalls[{index}].calls"
    calls: Sequence[CallObject] = decode(raw, list[CallObject] | None, 0, place) or ()
    return calls


def _is_large(block: UsualBlock | UndecodedBlock, calls: Calls) -> bool:
    """Whether there is so much to read that the time is to be looked at."""
    many = not isinstance(calls, PlainCalls) and len(calls) > LARGE
    return many or len(block.state_overrides or ()) > LARGE


def _read_block(given: UsualBlock | UndecodedBlock, found: Calls, index: int) -> BlockRequest:
    accounts: dict[bytes, AccountOverride] = {}
    overrides = AS_IT_IS
    reading = ""
    try:
        calls = found if isinstance(found, PlainCalls) else _read_calls(found)
        if given.state_overrides:
            reading = ".stateOverrides"
            accounts = read_overrides(given.state_overrides, 0)
        if given.block_overrides not in (None, _NOTHING):
            reading = ".blockOverrides"
            overrides = read_simulated_overrides(given.block_overrides, 0)
    except BadArgument as bad:
        place = f"$.blockStateCalls[{index}]{reading}{bad.path.removeprefix('$')}"
        raise BadArgument(bad.why, 0, place) from None
    return BlockRequest(calls, accounts, overrides)


def _read_large_block(
    given: UsualBlock | UndecodedBlock | LongBlock, found: Calls, index: int, pace: Pace
) -> Steps[BlockRequest]:
    """The same as `_read_block` does, in steps."""
    overrides, reading = AS_IT_IS, ""
    calls: PlainCalls | list[CallRequest]
    try:
        if isinstance(found, PlainCalls):
            calls = found
        else:
            calls = yield from _read_many_calls(found, pace)
        reading = ".stateOverrides"
        accounts = yield from _read_accounts(given, pace)
        if given.block_overrides not in (None, _NOTHING):
            reading = ".blockOverrides"
            overrides = read_simulated_overrides(given.block_overrides, 0)
    except BadArgument as bad:
        place = f"$.blockStateCalls[{index}]{reading}{bad.path.removeprefix('$')}"
        raise BadArgument(bad.why, 0, place) from None
    return BlockRequest(calls, accounts, overrides, in_steps=bool(accounts))


def _read_accounts(
    given: UsualBlock | UndecodedBlock | LongBlock, pace: Pace
) -> Steps[dict[bytes, AccountOverride]]:
    accounts: Mapping[str, Raw | AccountObject | None] | None
    if not isinstance(given, LongBlock):
        accounts = given.state_overrides
    elif is_long(given.state_overrides):
        return (yield from read_long_overrides(given.state_overrides, 0, pace))
    else:
        accounts = decode(given.state_overrides, dict[str, Raw] | None, 0)
    return (yield from read_many_overrides(accounts or {}, 0, pace))


def _read_many_calls(given: Sequence[CallObject], pace: Pace) -> Steps[list[CallRequest]]:
    calls: list[CallRequest] = []
    while len(calls) < len(given):
        done = len(calls)
        calls += _read_calls(given[done : done + PORTION], done)
        if pace.is_over():
            yield None
    return calls


def _read_calls(given: Sequence[CallObject], first: int = 0) -> list[CallRequest]:
    calls: list[CallRequest] = []
    try:
        for call in given:
            calls.append(_read_call(call))  # noqa: PERF401, their number tells which is bad
    except BadArgument as bad:
        place = f".calls[{first + len(calls)}]{bad.path.removeprefix('$')}"
        raise BadArgument(bad.why, 0, place) from None
    return calls


def _read_call(given: CallObject) -> CallRequest:
    call = _reader.read(given, 0)
    gas = None if given.gas is None else quantity(given.gas, 64, 0, "$.gas")
    nonce = None if given.nonce is None else quantity(given.nonce, 64, 0, "$.nonce")
    return CallRequest(call, gas, nonce)
