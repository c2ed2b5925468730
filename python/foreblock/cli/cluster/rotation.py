"""Which node gets the next request: one after the other, those that answer first. No I/O.

A node that could not be reached, or that answered 503, rests for a moment: it is asked last.
Nodes in reserve are asked where no other one is left. Times are of a monotonic clock, passed in.
"""

from collections.abc import Sequence
from typing import Final

REST_SECONDS: Final = 0.5


class Rotation:
    """The nodes behind one address."""

    def __init__(self, nodes: Sequence[str], reserve: Sequence[str] = ()) -> None:
        self._nodes: Final = list(nodes)
        self._reserve: Final = list(reserve)
        self._next = 0
        self._resting: Final[dict[str, float]] = {}  # until when

    def order(self, now: float) -> list[str]:
        """All nodes, in the order in which one request may be tried on them."""
        at = self._next = (self._next + 1) % max(1, len(self._nodes))
        turned = [*self._nodes[at:], *self._nodes[:at], *self._reserve]
        awake = [each for each in turned if self._resting.get(each, now) <= now]
        return awake + [each for each in turned if each not in awake]

    def failed(self, node: str, now: float) -> None:
        """A node did not answer, or not yet."""
        self._resting[node] = now + REST_SECONDS

    def answered(self, node: str) -> None:
        """A node is there."""
        self._resting.pop(node, None)
