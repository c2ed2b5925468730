"""A batch on its way: what is answered, what is left, and when it has had enough.

A value without a clock or a loop; the dispatcher asks it what comes next. The limits
and their answers are geth's: too many items refuse the whole batch, too many bytes or
too long a time refuse what is left, and what was answered stays.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from foreblock.rpc.envelope import (
    BATCH_TOO_LARGE,
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

    def __init__(self, items: list[Item], limits: Limits, now: float) -> None:
        self.slice: Final = limits.slice_seconds
        self.until: Final = now + limits.batch_seconds
        self.rest: Final[Iterator[Item]] = iter(items)  # whoever takes an item, answers it
        self.done = False  # whether nothing is left to take
        self.answers: list[bytes] = []
        self.bytes_left = limits.batch_bytes

    def take(self, answer: bytes) -> None:
        """Note the answer to an item that was taken; an empty one is no answer."""
        if answer:
            self.answers.append(answer)
            self.bytes_left -= len(answer)

    def refuse_beyond_limits(self, now: float) -> None:
        """Answer all the rest, if nothing further may run."""
        if self.bytes_left < 0:
            self.refuse(RESPONSE_TOO_LARGE)
        elif now >= self.until:
            self.refuse(REQUEST_TIMED_OUT)

    def refuse(self, fault: Fault) -> None:
        """Answer all the rest with this fault."""
        for item in self.rest:
            self.take(failure(item, fault))
        self.done = True


def too_large(items: list[Item]) -> bytes:
    """The answer to a batch of too many items: one fault with the id of its first call."""
    calls = (item for item in items if isinstance(item, tuple) and item[1])
    return join([failure(next(calls, Malformed(BATCH_TOO_LARGE)), BATCH_TOO_LARGE)])
