"""Damage, as a check tells it: where it is and what is wrong. No I/O."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

ROWS: Final = "rows"  # the table that Python's rows are in
FLAT: Final = "flat"  # the one that index rows are in


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a store that no commit can have written."""

    table: str
    key: bytes  # of the row; empty where it is of the whole table
    why: str


Tell = Callable[[Damage], None]
# What is being checked, how much of it is done, and about how much there is.
Report = Callable[[str, int, int], None]
