"""Counts the requests of one network by method and outcome, and its bytes.

The engine does it: a request through Python costs ten microseconds, and three additions to
cells from Python would be a fortieth of that. The fast path of the network counts in the same
cells.
"""

import math
from collections.abc import Iterable
from typing import Final

from foreblock._engine import Meter
from foreblock.metrics.catalogue import (
    CONNECTIONS_ACCEPTED,
    CONNECTIONS_REFUSED,
    INVALID,
    OUTCOMES,
    REQUEST_BOUNDS,
    REQUESTS,
    SLOW_REQUESTS,
    TRAFFIC,
    UNKNOWN,
)
from foreblock.metrics.instruments import Count
from foreblock.metrics.sheet import Sheet


class RequestMeter:
    """The counters of one network in one worker."""

    def __init__(self, sheet: Sheet, network: str, slow_seconds: float = math.inf) -> None:
        """A request that takes `slow_seconds` is slow."""
        self.slow_seconds: Final = slow_seconds
        self._sheet: Final = sheet
        self.network: Final = network
        self.native: Final = Meter(
            sheet.cells,
            bounds=REQUEST_BOUNDS,
            outcomes=len(OUTCOMES),
            traffic=sheet.row(TRAFFIC, network),
            slow=slow_seconds,
        )
        # A request of the row of its method, its outcome, and its time in seconds.
        self.request: Final = self.native.request
        # Bytes received and sent.
        self.traffic: Final = self.native.traffic
        self.unknown: Final = self.row(UNKNOWN)
        self.invalid: Final = self.row(INVALID)
        self.slow: Final = Count(sheet, SLOW_REQUESTS, network)
        self.opened: Final = Count(sheet, CONNECTIONS_ACCEPTED, network)
        self.refused: Final = Count(sheet, CONNECTIONS_REFUSED, network)

    @classmethod
    def private(cls) -> "RequestMeter":
        """One that nobody reads."""
        return cls(Sheet(), "")

    def row(self, method: str) -> int:
        """The row of a method of the table."""
        return self._sheet.row(REQUESTS, self.network, method)

    def rows(self, methods: Iterable[str]) -> dict[str, int]:
        """The rows of methods."""
        return {name: self.row(name) for name in methods}
