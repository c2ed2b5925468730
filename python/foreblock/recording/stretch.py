"""The blocks of a recorded feed: their hashes follow from the messages alone. No I/O.

The first flashblock of a block names the hash of the block before it. So the first of them names
the anchor, each further one a block of the stretch, and the last block of a recording, which no
message names, is left out. A gap ends the stretch.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from foreblock.errors import MalformedFlashblock
from foreblock.feed.messages import decode
from foreblock.types import Flashblock


@dataclass(frozen=True, slots=True)
class Stretch:
    """Blocks of a chain, by the hash of the block before them and their own, in order."""

    anchor: bytes
    first: int  # the number of the first block
    blocks: tuple[bytes, ...]


def stretch_of(messages: Iterable[bytes]) -> Stretch | None:
    """The stretch that these messages of a feed go over; none where no whole block is in them.

    Of two flashblocks that begin the same block, the later counts: the chain went on with it.
    """
    parents: dict[int, bytes] = {}  # named by the block of this number
    first: int | None = None
    for message in messages:
        begun = _begun(message)
        if begun is not None:
            number, parent = begun
            first = number if first is None else first
            parents[number] = parent
    if first is None:
        return None
    blocks: list[bytes] = []
    while first + len(blocks) + 1 in parents:
        blocks.append(parents[first + len(blocks) + 1])
    return Stretch(parents[first], first, tuple(blocks)) if blocks else None


def _begun(message: bytes) -> tuple[int, bytes] | None:
    """The number and the parent of the block that a message begins; none for other messages."""
    try:
        found = decode(message)
    except MalformedFlashblock:
        return None
    if not isinstance(found, Flashblock) or found.base is None:
        return None
    return found.base.block_number, found.base.parent_hash
