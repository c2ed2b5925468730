"""All blocks of a simulation, one after the other."""

from foreblock._engine import State
from foreblock.ledger.reading.preconfirmed_block import PreconfirmedBlock, ReadableBlock
from foreblock.ledger.simulation.block import SimulatedBlock, run_block
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.request import SimulationLimits, SimulationRequest
from foreblock.ledger.simulation.timeline import timeline
from foreblock.scheduling.steps import UNHURRIED, Pace, Steps


def simulate(
    base: ReadableBlock,
    state: State,
    unused: int,
    request: SimulationRequest,
    limits: SimulationLimits,
    pace: Pace = UNHURRIED,
) -> Steps[list[SimulatedBlock]]:
    """Simulate blocks after `base`, fillers included; `unused` is as in `Branch`.

    A block in progress may be simulated in: the first block then has its number. That there
    are not too many blocks and calls is checked before they are read. Raises
    `RefusedSimulation`, `RefusedCall`, `RefusedOverride`, `InvalidParams`.
    """
    header, step = base.header, base.profile.block_time
    in_progress = isinstance(base, PreconfirmedBlock)
    places = timeline(
        request.blocks,
        header.number,
        header.timestamp,
        step,
        limits.blocks,
        in_progress=in_progress,
    )
    branch = Branch(base, state, unused, request, limits, pace)
    blocks: list[SimulatedBlock] = []
    for place in places:
        if blocks and pace.is_over():
            yield None
        block = run_block(branch, place)
        if not isinstance(block, SimulatedBlock):
            block = yield from block
        blocks.append(block)
    return blocks
