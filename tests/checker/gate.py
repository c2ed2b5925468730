"""The common start and end of all processes of a run."""

from dataclasses import dataclass
from multiprocessing.synchronize import Barrier, Event


@dataclass(frozen=True, slots=True)
class Gate:
    """All processes begin when the last one has arrived, and end on command."""

    start: Barrier
    stop: Event
