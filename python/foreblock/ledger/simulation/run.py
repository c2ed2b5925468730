"""All blocks of a simulation, one after the other."""

from foreblock._engine import State
from foreblock.ledger.preconfirmed_block import PreconfirmedBlock, ReadableBlock
from foreblock.ledger.simulation.block import SimulatedBlock, run_block
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.limits import SimulationLimits, check_counts
from foreblock.ledger.simulation.open_block import Budget
from foreblock.ledger.simulation.request import SimulationRequest
from foreblock.ledger.simulation.steps import Steps
from foreblock.ledger.simulation.timeline import timeline


def simulate(
    base: ReadableBlock,
    state: State,
    unused: int,
    request: SimulationRequest,
    limits: SimulationLimits,
) -> Steps[list[SimulatedBlock]]:
    """Simulate blocks after `base`, fillers included; `unused` is as in `Branch`.

    A block in progress may be simulated in: the first block then has its number.
    Raises `RefusedSimulation`, `RefusedCall`, `RefusedOverride`, `InvalidParams`.
    """
    check_counts([len(block.calls) for block in request.blocks], limits)
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
    branch = Branch(base, state, unused, roots=request.state_roots)
    budget = Budget(limits.gas)
    blocks = []
    for place in places:
        block = yield from run_block(branch, place, request, budget)
        blocks.append(block)
    return blocks
