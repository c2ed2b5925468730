"""What a simulation is asked for, and how much that may be."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import Overrides, PlainCalls
from foreblock.ledger.calls.block_overrides import AS_IT_IS, BlockOverrides
from foreblock.ledger.calls.request import Call

__all__ = [
    "FILLER",
    "BlockRequest",
    "CallRequest",
    "PlainCalls",
    "SimulationLimits",
    "SimulationRequest",
    "plain_request",
]


class CallRequest(Struct, frozen=True):
    """A call of a simulated block; its own gas counts for nothing, `gas` does."""

    call: Call
    gas: int | None = None  # all that is left in the block
    nonce: int | None = None  # what the state says at that point


def plain_request(calls: PlainCalls, index: int) -> CallRequest:
    """One of many plain calls as one of any kind."""
    sender, to, value, data, gas = calls[index]
    return CallRequest(Call(to, 0, sender, data, value), gas)


class BlockRequest(Struct, frozen=True):
    """A block to be simulated. Its calls are plain ones where all of them are."""

    calls: Sequence[CallRequest] | PlainCalls = ()
    overrides: Overrides | None = None
    block: BlockOverrides = AS_IT_IS


FILLER: Final = BlockRequest()  # a block that nobody asked for


class SimulationRequest(Struct, frozen=True):
    """Blocks to be simulated one after the other."""

    blocks: Sequence[BlockRequest]
    validation: bool = False  # whether nonces and fees are judged as in a real block
    trace_transfers: bool = False  # whether transfers of ether are shown as logs
    state_roots: bool = True  # whether they are computed; else they are zero


class SimulationLimits(Struct, frozen=True):
    """How much one simulation may ask for: the numbers of geth."""

    blocks: int = 256  # entries, and how far the last block may be from the base
    block_calls: int = 5_000
    calls: int = 10_000
    gas: int = 50_000_000  # of all calls together; calls are lowered to what is left of it
    output: int = 16 << 20  # bytes that all calls return; ours, for half of the gas buys 50 MB
