"""The L1 that a dev chain pretends to stand on: a new block for every six of the L2.

A pure function of the seed and the L2 block, so that nothing has to be remembered. Its
prices do not move.
"""

from dataclasses import dataclass
from typing import Final

from foreblock.types import keccak256

BLOCKS_PER_ORIGIN: Final = 6  # 12 s of L1 over 2 s of L2
FIRST_NUMBER: Final = 1  # the origin of the L2's genesis


@dataclass(frozen=True, slots=True)
class L1Origin:
    """The L1 block that an L2 block refers to."""

    number: int
    hash: bytes
    timestamp: int
    sequence_number: int  # of the L2 block among those with this origin


def l1_origin(seed: int, block: int, timestamp: int, block_time: int) -> L1Origin:
    """The origin of an L2 block.

    Its time is that of the first L2 block that refers to it, as if no time had been jumped
    over since.
    """
    epoch, sequence_number = divmod(block, BLOCKS_PER_ORIGIN)
    number = FIRST_NUMBER + epoch
    return L1Origin(
        number=number,
        hash=derive(seed, "l1", number),
        timestamp=timestamp - sequence_number * block_time,
        sequence_number=sequence_number,
    )


def derive(seed: int, what: str, number: int, parent_hash: bytes = b"") -> bytes:
    """32 bytes that stand for something nobody chose, the same for the same seed and place."""
    return keccak256(b"".join((seed.to_bytes(8), what.encode(), parent_hash, number.to_bytes(8))))
