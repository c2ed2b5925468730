"""A batch on its way: what is answered, what is left, and when it has had enough.

A value without a clock or a loop; the dispatcher asks it what comes next. The limits
and their answers are geth's: too many items refuse the whole batch, too many bytes or
too long a time refuse what is left, and what was answered stays.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, Struct

from foreblock.rpc.envelope import (
    BATCH_TOO_LARGE,
    NULL,
    REQUEST_TIMED_OUT,
    RESPONSE_TOO_LARGE,
    Item,
    Malformed,
    failure,
    join,
)
from foreblock.rpc.fault import Fault


class Limits(Struct, frozen=True):
    """What one body may ask for."""

    batch_items: int = 1000
    batch_bytes: int = 25_000_000
    batch_seconds: float = 30.0  # after which no further request of a batch is begun
    slice_seconds: float = 0.002  # after which a batch lets others run


class Batch:
    """The requests of one body, answered from the first to the last."""

    def __init__(self, items: Sequence[Item], limits: Limits, now: float) -> None:
        self.slice: Final = limits.slice_seconds
        self.too_large: Final = len(items) > limits.batch_items
        self.left = list(reversed(items))  # the next one is the last
        self.answers: list[bytes] = []
        self._bytes_left = limits.batch_bytes
        self._until: Final = now + limits.batch_seconds

    def take(self, answer: bytes) -> None:
        """Note the answer to the next item; an empty one is no answer."""
        self.left.pop()
        if answer:
            self.answers.append(answer)
            self._bytes_left -= len(answer)

    def fault(self, now: float) -> Fault | None:
        """Why nothing further of this batch may run."""
        if self._bytes_left < 0:
            return RESPONSE_TOO_LARGE
        return REQUEST_TIMED_OUT if now >= self._until else None

    def refusal(self) -> bytes:
        """The answer to a batch that is too large: one fault with the id of its first call."""
        calls = (
            item.id
            for item in reversed(self.left)
            if item.id is not UNSET and not isinstance(item, Malformed)
        )
        return join([failure(next(calls, NULL), BATCH_TOO_LARGE)])
