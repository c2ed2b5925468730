"""The row that says where the rules end that this version knows (`rules.rules_end`).

    rows             key                    value
    rules end        U                      block (8) ‖ length of the version (1) ‖ version ‖ why

It is written in the commit that brings the first such block, and holds for the version that
wrote it: another one may know the rules, so it ignores the row and deletes it when it writes.
"""

import struct
from typing import Final

from foreblock._engine import Batch, View
from foreblock.errors import StoreDamaged
from foreblock.ledger.rules.rules_end import RulesEnd

RULES_END: Final = b"U"

_HEAD: Final = struct.Struct(">QB")


def put_rules_end(batch: Batch, end: RulesEnd | None) -> None:
    """Note the end of the rules with a commit, or that they are known again."""
    if end is None:
        batch.delete(RULES_END)
        return
    version = _version().encode()
    batch.put(RULES_END, _HEAD.pack(end.block, len(version)) + version + end.why.encode())


def read_rules_end(view: View) -> RulesEnd | None:
    """Where the rules of a stored chain end for this version; none where they do not.

    Raises `StoreDamaged`.
    """
    row = view.row(RULES_END)
    if row is None:
        return None
    try:
        block, length = _HEAD.unpack_from(row)
        version, why = row[_HEAD.size :][:length], row[_HEAD.size + length :]
        if version.decode() != _version():
            return None
        return RulesEnd(block, why.decode())
    except (struct.error, UnicodeDecodeError) as damage:
        raise StoreDamaged(f"the row of the end of the rules: {damage}") from damage


def _version() -> str:
    """Of this program; looking it up takes longer than importing all of it."""
    from foreblock import __version__  # noqa: PLC0415, see above

    return __version__
