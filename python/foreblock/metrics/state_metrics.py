"""Counts what one worker asks of the process that fetches state, for one network."""

from typing import Final

from foreblock.metrics.catalogue import (
    LEARNED_BYTES,
    STATE_KEYS,
    STATE_OUTCOMES,
    STATE_QUESTIONS,
    STATE_WAIT,
)
from foreblock.metrics.instruments import Count, Gauge, Histogram
from foreblock.metrics.sheet import Sheet


class StateMetrics:
    """The metrics of one followed network in one worker."""

    def __init__(self, sheet: Sheet, network: str) -> None:
        self.keys: Final = Count(sheet, STATE_KEYS, network)
        self.learned: Final = Gauge(sheet, LEARNED_BYTES, network)
        self._wait: Final = Histogram(sheet, STATE_WAIT, network)
        self._questions: Final = {
            each: Count(sheet, STATE_QUESTIONS, network, each) for each in STATE_OUTCOMES
        }

    @classmethod
    def private(cls) -> "StateMetrics":
        """Those that nobody reads."""
        return cls(Sheet(), "")

    def ended(self, outcome: str, seconds: float) -> None:
        """Count a question by what became of it, and its time."""
        self._questions[outcome].add()
        self._wait.observe(seconds)
