"""Counts how requests ended, by method, and logs slow ones.

A request that ends well at once is counted where it is answered, without a call in between; all
others are counted here. Methods that are not in the table share one row, so that no client adds
to the metrics.
"""

import math
import time
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from foreblock.metrics.catalogue import CANCELLED, ERROR, FAILED, OK, REFUSED
from foreblock.metrics.meters import RequestMeter
from foreblock.rpc.envelope import Item
from foreblock.rpc.error_codes import INTERNAL, OVERLOADED, TIMED_OUT, Fault

# Codes of faults that are not about the request.
_OUTCOMES: Final = {INTERNAL: FAILED, OVERLOADED: REFUSED, TIMED_OUT: REFUSED}

log = structlog.get_logger()


def outcome_of(fault: Fault) -> int:
    """Return the outcome of a request that ended with this fault."""
    return _OUTCOMES.get(fault.code, ERROR)


class RequestCounts:
    """Counts the requests of one view of a network."""

    def __init__(
        self,
        meter: RequestMeter,
        methods: Iterable[str],
        clock: Callable[[], float] | None = None,
        note: Callable[[int, int, float], None] | None = None,
    ) -> None:
        """Another clock than the system's is for tests; `note` takes counts of runs instead.

        What is noted is counted by `count_noted`, once it is known that a run is the last one.
        """
        if note is not None:
            clock = clock or time.monotonic
        self._slow_seconds: Final = meter.slow_seconds if note is None else math.inf
        self._methods: Final = tuple(methods)
        methods = self._methods
        self._meter: Final = meter
        self._clock: Final = clock or time.monotonic
        self._is_driven: Final = clock is not None
        self._began = 0.0
        # Called around a method: it begins; the method of this row has ended well, and whether it
        # was slow. The engine has the clock of the system, and saves a tenth of a microsecond.
        native = meter.native
        self.begin: Final[Callable[[], None]] = self._begin if clock else native.begin
        self.answered: Final[Callable[[int], bool]] = self._answered if clock else native.answered
        self.rows: Final = meter.rows(methods)
        self.unknown: Final = meter.unknown
        self.invalid: Final = meter.invalid
        # The row of a method, an outcome, and seconds.
        self.count: Final[Callable[[int, int, float], None]] = note or meter.request

    def noting(self, note: Callable[[int, int, float], None]) -> "RequestCounts":
        """Counts of runs that may be repeated."""
        clock = self._clock if self._is_driven else None
        return RequestCounts(self._meter, self._methods, clock, note)

    def count_noted(self, noted: Iterable[tuple[int, int, float]], waited: float) -> None:
        """Count what was noted of the last run of a body, which began after some seconds."""
        for row, outcome, seconds in noted:
            self.count(row, outcome, seconds + waited)
            if seconds + waited >= self._slow_seconds:
                named = (name for name, at in self.rows.items() if at == row)
                self.report_slow(next(named, "unknown"), None, seconds + waited)

    @property
    def began(self) -> float:
        """When the last request began."""
        return self._began if self._is_driven else self._meter.native.began

    def ended(self, method: str, fault: Fault | None, began: float) -> None:
        """Count a request of the table, and log it if it was slow."""
        seconds = self.waited(method, fault, began)
        if seconds >= self._slow_seconds:
            self.report_slow(method, fault, seconds)

    def waited(self, method: str, fault: Fault | None, began: float) -> float:
        """Count a request that may take long and is not slow; return its time."""
        seconds = self._clock() - began
        self.count(self.rows[method], OK if fault is None else outcome_of(fault), seconds)
        return seconds

    def cancelled(self, method: str, began: float) -> None:
        """Count a request whose client went away."""
        self.count(self.rows[method], CANCELLED, self._clock() - began)

    def refused(self, item: Item, fault: Fault) -> None:
        """Count an item of a body that is not begun."""
        row = (
            self.rows.get(item[0].method, self.unknown)
            if isinstance(item, tuple)
            else (self.invalid)
        )
        self.count(row, outcome_of(fault), 0.0)

    def report_slow(
        self, method: str, fault: Fault | None = None, seconds: float | None = None
    ) -> None:
        """Log a slow request, by default the last one, which has just ended."""
        seconds = self._clock() - self.began if seconds is None else seconds
        self._meter.slow.add()
        log.warning(
            "slow_request",
            network=self._meter.network,
            method=method,
            seconds=round(seconds, 6),
            code=None if fault is None else fault.code,
        )

    def _begin(self) -> None:
        self._began = self._clock()

    def _answered(self, row: int) -> bool:
        seconds = self._clock() - self._began
        self.count(row, OK, seconds)
        return seconds >= self._slow_seconds
