"""Places of flashblocks as text: the block and the index in decimal, as in ``7-3``."""

import re
from typing import Final

from foreblock.primitives import parse_number
from foreblock.types import FlashblockId

_PLACE: Final = re.compile(r"(0|[1-9][0-9]{0,19})-(0|[1-9][0-9]{0,19})", re.ASCII)


def parse_place(text: str) -> FlashblockId:
    """The place; a `ValueError` where the text is none."""
    found = _PLACE.fullmatch(text)
    if not found:
        raise ValueError("expected <block>-<index>")
    return FlashblockId(parse_number(found[1], 64), parse_number(found[2], 64))


def format_place(place: FlashblockId) -> str:
    """The place as text."""
    return f"{place.block_number}-{place.index}"
