"""Commands of a dev chain, by subject: each function executes one command of `bus.commands`."""

from foreblock.sequencer.commands import blocks, branches, faults, pool, state
from foreblock.sequencer.commands.execution import execute, is_short

__all__ = ["blocks", "branches", "execute", "faults", "is_short", "pool", "state"]
