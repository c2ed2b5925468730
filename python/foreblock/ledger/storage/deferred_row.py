"""How much of what was put off is carried out.

One row, written with the commit that does it. What waits is in the journal of a `CommandQueue`.

rows        key    value
deferred    D      batch (8) ‖ how many of its steps are carried out (4)
"""

import struct
from typing import Final, NamedTuple

from foreblock._engine import CommandQueue, View

__all__ = ["KEY", "CarriedOut", "CommandQueue", "encode_carried_out", "read_carried_out"]

KEY: Final = b"D"
_ROW: Final = struct.Struct(">QI")


class CarriedOut(NamedTuple):
    """The last batch, and its steps that are carried out."""

    batch: int
    steps: int


def encode_carried_out(carried_out: CarriedOut) -> bytes:
    """The row."""
    return _ROW.pack(*carried_out)


def read_carried_out(view: View) -> CarriedOut:
    """The row as of a view; batches begin with 1."""
    row = view.row(KEY)
    return CarriedOut(0, 0) if row is None else CarriedOut(*_ROW.unpack(row))
