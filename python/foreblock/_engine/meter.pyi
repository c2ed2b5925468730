"""Counters of requests and bytes, in memory that other processes read."""

from collections.abc import Sequence
from typing import Self, final

@final
class Meter:
    """Counts in cells that one process writes."""

    def __new__(
        cls,
        cells: memoryview[float],
        *,
        bounds: Sequence[float],
        outcomes: int,
        traffic: int,
        slow: float = ...,
    ) -> Self:
        """`cells` are writable floats; `bounds` those of buckets, in seconds.

        Bytes received and sent are counted in two cells from `traffic` on. A request of `slow`
        seconds is slow; without it none is.
        """

    def begin(self) -> None:
        """A request begins now."""

    @property
    def began(self) -> float:
        """When the last request began, as `time.monotonic` gives it."""

    def answered(self, row: int, /) -> bool:
        """Count the last request, which ends well now; gives whether it was slow."""

    def request(self, row: int, outcome: int, seconds: float, /) -> None:
        """Count a request that took this time.

        A row has a cell for each outcome, one for each bucket, the last without a bound, and
        one for the sum of all times. A cell that does not exist counts nothing.
        """

    def traffic(self, received: int, sent: int, /) -> None:
        """Count bytes."""
