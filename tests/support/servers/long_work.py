"""Threads beside a loop, as a worker has them, for tests of what runs on them."""

from foreblock.ledger.calls.call import Pool
from foreblock.methods.placement import Placement
from foreblock.methods.reads import Reads
from foreblock.methods.simulations import Simulations
from foreblock.methods.threads import Threads


def threads(running: int = 1, begun: int = 4, capacity: int = 8) -> Threads:
    """A set of threads of its own."""
    return Threads(Pool(threads=running, begun=begun, capacity=capacity))


def long_work(timeout_ms: int) -> tuple[Placement, Simulations, Reads]:
    """Where calls, simulations and reads run, as methods are given it."""
    shared = threads()
    simulations = Simulations(shared, timeout_ms)
    return Placement(shared, timeout_ms), simulations, Reads(simulations)
