"""What a simulation is asked for."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from foreblock.ledger.block_overrides import BlockOverrides
from foreblock.ledger.call_request import Call
from foreblock.ledger.overrides import AccountOverride


class CallRequest(Struct, frozen=True):
    """A call of a simulated block; its own gas counts for nothing, `gas` does."""

    call: Call
    gas: int | None = None  # all that is left in the block
    nonce: int | None = None  # what the state says at that point


class BlockRequest(Struct, frozen=True):
    """A block to be simulated."""

    calls: Sequence[CallRequest] = ()
    accounts: Mapping[bytes, AccountOverride] = {}
    block: BlockOverrides = BlockOverrides()


class SimulationRequest(Struct, frozen=True):
    """Blocks to be simulated one after the other."""

    blocks: Sequence[BlockRequest]
    validation: bool = False  # whether nonces and fees are judged as in a real block
    trace_transfers: bool = False  # whether transfers of ether are shown as logs
    state_roots: bool = True  # whether they are computed; else they are zero
