"""Cursors: how much of a chain a client has seen, as a value and as a text. No I/O.

A cursor is a position. One on the sealed chain names a block; all blocks up to it were seen.
One on the flashblocks names a partial and the index up to which it stood, or a sealed block, all
of whose flashblocks count as seen. Of the last block or flashblock only a part may have been
seen: `seen` items of it, which are logs or transactions, counted in their block.

Its text says all that another worker, or the next process on the same store, needs to continue:
hashes tell whether the chain still contains it, and numbers of partials never repeat.

    number.hash                     a sealed block
    number.hash.partial.index       a flashblock
    …+seen                          a part of it
"""

import re
from typing import Final

from msgspec import Struct

_HEX: Final = "0|[1-9a-f][0-9a-f]{0,15}"  # a number below 2**64
_TEXT: Final = re.compile(
    rf"({_HEX})\.([0-9a-f]{{64}})(?:\.({_HEX})\.({_HEX}))?(?:\+({_HEX}))?", flags=re.ASCII
)


class Cursor(Struct, frozen=True, gc=False):
    """How much was seen."""

    number: int
    hash: bytes  # of the block, or of the partial
    partial: int | None = None  # none: a sealed block
    index: int = 0  # of the flashblock, which may be a quiet one after the partial's own
    seen: int | None = None  # items of it; none: all

    def after(self, seen: int) -> "Cursor":
        """The same place with this many items seen."""
        return Cursor(self.number, self.hash, self.partial, self.index, seen)

    @property
    def text(self) -> str:
        """The cursor as clients keep it."""
        place = f"{self.number:x}.{self.hash.hex()}"
        if self.partial is not None:
            place += f".{self.partial:x}.{self.index:x}"
        return place if self.seen is None else f"{place}+{self.seen:x}"


def read_cursor(text: str) -> Cursor | None:
    """The cursor with this text; none where it is none."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    number, block_hash, partial, index, seen = found.groups()
    return Cursor(
        int(number, 16),
        bytes.fromhex(block_hash),
        None if partial is None else int(partial, 16),
        int(index or "0", 16),
        None if seen is None else int(seen, 16),
    )
