"""Texts that others have written, made harmless where they are noted.

What a feed or an endpoint has us say goes to logs, over the bus and to whoever asks how a
network is. There it is one line, of characters that can be printed and encoded, and short.
"""

from typing import Final

LONGEST: Final = 200  # characters of what others may have us say

_INSTEAD: Final = "\N{REPLACEMENT CHARACTER}"


def harmless(text: str, longest: int = LONGEST) -> str:
    """The beginning of a text as one line that can be printed and encoded."""
    line = " ".join(text[: 4 * longest].split())[:longest]
    return "".join(each if each.isprintable() else _INSTEAD for each in line)
