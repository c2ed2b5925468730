"""The params of eth_simulateV1, read by the engine into a request."""

from typing import Any, Final

from msgspec import Raw, Struct

from foreblock._engine import read_simulation
from foreblock.ledger.calls.block_overrides import AS_IT_IS, BlockOverrides
from foreblock.ledger.simulation.simulation_request import (
    BlockRequest,
    CallRequest,
    PlainCalls,
    SimulationLimits,
    SimulationRequest,
)
from foreblock.methods.block_param import BlockParam, named_block
from foreblock.methods.calls.call_params import UNCAPPED, read_fields

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
