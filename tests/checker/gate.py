"""When all processes of a run begin and end together."""

from dataclasses import dataclass
from multiprocessing.synchronize import Barrier, Event


@dataclass(frozen=True, slots=True)
class Gate:
    """All begin when the last one has come, and end when told to."""

    start: Barrier
    stop: Event
