"""The build jobs that were heard of, and the chain they are to continue.

Values that `placement` looks at, made anew for every message from what the ledger keeps. A
candidate is a job: all messages of one payload id for one block.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

# How many blocks may be stacked on the sealed chain.
DEFAULT_DEPTH: Final = 4


class Standing(Enum):
    """What has become of a job."""

    WAITING = auto()  # nothing of it is executed: index 0 or the parent is missing
    OPEN = auto()  # served, and growing
    FROZEN = auto()  # served up to its last good flashblock; the next one was refused
    CLOSED = auto()  # served or sealed; its successor began where more of it is missing
    DROPPED = auto()  # lost to another job of its height
    ASIDE = auto()  # executed beside a sealed block of its height, and not served


SERVED: Final = frozenset({Standing.OPEN, Standing.FROZEN, Standing.CLOSED})


@dataclass(frozen=True, slots=True)
class Step:
    """An executed flashblock of a candidate."""

    block_hash: bytes
    seals_as: bytes | None = None  # the block's hash if it ends here; none until it is computed


@dataclass(frozen=True, slots=True)
class Candidate:
    """A build job that was heard of."""

    block: int
    payload_id: bytes
    standing: Standing
    parent_hash: bytes | None = None  # of the sealed parent; none while index 0 is missing
    prefix: tuple[Step, ...] = ()  # what is executed, from index 0 on without a gap
    # Messages that are kept and not executed: buffered, alternates, refused.
    held: frozenset[tuple[int, bytes]] = field(default_factory=frozenset)

    def hashes_at(self, index: int) -> Iterator[bytes]:
        """The block hashes of the messages of this index, the executed one first."""
        if index < len(self.prefix):
            yield self.prefix[index].block_hash
        yield from (block_hash for at, block_hash in self.held if at == index)

    @property
    def has_first(self) -> bool:
        """Whether index 0 was heard of."""
        return next(self.hashes_at(0), None) is not None


@dataclass(frozen=True, slots=True)
class PartialPlace:
    """A flashblock of a known job."""

    payload_id: bytes
    index: int


@dataclass(frozen=True, slots=True)
class Known:
    """The chain and the jobs, at the moment in which a message arrives."""

    latest_number: int
    latest_hash: bytes
    sealed: Mapping[int, bytes] = field(default_factory=dict)  # hashes of retained blocks
    candidates: tuple[Candidate, ...] = ()
    depth: int = DEFAULT_DEPTH

    def job(self, block: int, payload_id: bytes) -> Candidate | None:
        """The job of this height and payload id."""
        for candidate in self.candidates:
            if candidate.block == block and candidate.payload_id == payload_id:
                return candidate
        return None

    def served(self, block: int) -> Candidate | None:
        """The job that is served at this height, if the height is not sealed."""
        if block <= self.latest_number:
            return None
        for candidate in self.candidates:
            if candidate.block == block and candidate.prefix and candidate.standing in SERVED:
                return candidate
        return None

    @property
    def tip(self) -> int:
        """The height of the newest block that is served, sealed or not."""
        number = self.latest_number
        while self.served(number + 1) is not None:
            number += 1
        return number

    def sealing_as(self, block: int, block_hash: bytes) -> PartialPlace | None:
        """The partial of this height that seals as this hash, of whatever job."""
        for candidate in self.candidates:
            if candidate.block == block:
                for index, step in enumerate(candidate.prefix):
                    if step.seals_as == block_hash:
                        return PartialPlace(candidate.payload_id, index)
        return None
