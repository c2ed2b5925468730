"""How a request names a block.

Values only: which block such a name means is for a view to say.
"""

from dataclasses import dataclass
from typing import Final, Literal

# Names of blocks that move with the chain.
Tag = Literal["latest", "pending", "safe", "finalized", "earliest"]
TAGS: Final[dict[str, Tag]] = {
    "latest": "latest",
    "pending": "pending",
    "safe": "safe",
    "finalized": "finalized",
    "earliest": "earliest",
}


@dataclass(frozen=True, slots=True)
class ByHash:
    """The block of this hash; it may be asked to stand in the canonical chain (EIP-1898)."""

    hash: bytes
    require_canonical: bool = False


@dataclass(frozen=True, slots=True)
class ByPlace:
    """The partial block of a number that one flashblock made."""

    number: int
    index: int


# A plain number is a block of the chain.
BlockId = Tag | int | ByHash | ByPlace
