"""Counters of requests and bytes in memory shared with other processes."""

from collections.abc import Sequence
from typing import Self, final

@final
class Meter:
    """Counters in cells that one process writes."""

    def __new__(
        cls,
        cells: memoryview[float],
        *,
        bounds: Sequence[float],
        outcomes: int,
        traffic: int,
        slow: float = ...,
    ) -> Self:
        """`cells` are writable floats; `bounds` are those of the buckets, in seconds.

        Bytes received and sent are counted in two cells from `traffic` on. A request is slow from
        `slow` seconds on; without it, none is.
        """

    def begin(self) -> None:
        """Record the start of a request."""

    @property
    def began(self) -> float:
        """The start of the last request, in the time of `time.monotonic`."""

    def answered(self, row: int, /) -> bool:
        """Count the last request as successful, ending now; return True if it was slow."""

    def request(self, row: int, outcome: int, seconds: float, /) -> None:
        """Count a request of this duration.

        A row has one cell for each outcome, one for each bucket, the last without a bound, and one
        for the sum of all durations. Cells that do not exist are ignored.
        """

    def traffic(self, received: int, sent: int, /) -> None:
        """Count bytes."""
