"""Messages on the bus about state that a store does not have, and about what lies before it.

A worker asks; the process of the network, which alone has upstreams, answers in parts of a
bounded size, or says why not. What is asked for and found is packed by `follow.wire`: the bus
does not look into it. No I/O.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

PART_BYTES: Final = 256 << 10
MOST_BYTES: Final = 64 << 20  # of an answer

# Why there is no answer: no upstream gave one in time, the budget is spent, the store has begun a
# new epoch since, the upstreams gave what is not true, or one answered the request with an error.
Reason = Literal["unavailable", "spent", "moved", "untrue", "error"]


class AskState(Struct, frozen=True, tag=True, array_like=True):
    """A question of a worker: keys of the state that its store does not know."""

    id: int
    network: str
    epoch: int  # of the base that the keys are missing in
    keys: bytes  # packed
    deadline_ns: int  # monotonic; later nobody waits for the answer


class AskUpstream(Struct, frozen=True, tag=True, array_like=True):
    """A request that a worker wants an upstream to answer, such as an old block by its hash."""

    id: int
    network: str
    method: str
    params: bytes  # JSON
    deadline_ns: int  # monotonic


class StatePart(Struct, frozen=True, tag=True, array_like=True):
    """A part of an answer: packed state, or the JSON of an upstream's result."""

    id: int
    data: bytes
    is_last: bool = True


class StateNotFound(Struct, frozen=True, tag=True, array_like=True):
    """There is no answer."""

    id: int
    reason: Reason
    why: str = ""
    retry_after: int = 1  # seconds
    code: int = 0  # of an error, which has its message in `why`
    data: str = ""


def state_parts(number: int, data: bytes) -> Iterator[StatePart]:
    """An answer in parts, each of which fits into a frame."""
    last = max(0, len(data) - 1) // PART_BYTES * PART_BYTES
    for start in range(0, last + 1, PART_BYTES):
        yield StatePart(number, data[start : start + PART_BYTES], start == last)
