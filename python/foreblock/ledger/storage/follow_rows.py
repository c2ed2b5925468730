"""Rows of a followed chain: the end of the known rules, the trust in its base, and its working set.

    rows             key                    value
    rules end        U                      block (8) ‖ length of the version (1) ‖ version ‖ why
    trust            V                      proven, audited or trusted
    working set      K ‖ address (20)       when it was last used (8), slots (32 each)

The end of the rules (`rules.profile`) is written in the commit that brings the first block with
unknown rules. It is valid for the version that wrote it: another version may know the rules, so it
ignores the row and deletes it with its first commit.

The trust is that of the least trusted value in the base of this epoch. The writer stores it before
it fetches anything. An audit replaces `audited` by `proven` when it has proven every unproven
value; if it was killed earlier, values may be false, and the store must begin at a new anchor.

The working set is fetched again at a new anchor. Its times are increasing numbers, not clock
readings. No response depends on it: the writer updates it from time to time, outside commits, and
reads it when it starts. It survives a new anchor.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final, Literal, get_args

from foreblock._engine import Batch, Store, View
from foreblock.errors import StoreDamaged
from foreblock.ledger.rules.profile import RulesEnd

RULES_END: Final = b"U"

_HEAD: Final = struct.Struct(">QB")


def put_rules_end(batch: Batch, end: RulesEnd | None) -> None:
    """Note the end of the rules with a commit, or that they are known again."""
    if end is None:
        batch.delete(RULES_END)
        return
    version = current_version().encode()
    batch.put(RULES_END, _HEAD.pack(end.block, len(version)) + version + end.why.encode())


def read_rules_end(view: View) -> RulesEnd | None:
    """Where the rules of a stored chain end for this version; None if they do not.

    Raises `StoreDamaged`.
    """
    row = view.row(RULES_END)
    if row is None:
        return None
    try:
        block, length = _HEAD.unpack_from(row)
        version, why = row[_HEAD.size :][:length], row[_HEAD.size + length :]
        if version.decode() != current_version():
            return None
        return RulesEnd(block, why.decode())
    except (struct.error, UnicodeDecodeError) as damage:
        raise StoreDamaged(f"the row of the end of the rules: {damage}") from damage


def current_version() -> str:
    """Of this program; looking it up takes longer than importing all of it."""
    from foreblock import __version__  # noqa: PLC0415, see above

    return __version__


Trust = Literal["proven", "audited", "trusted"]

TRUST: Final = b"V"
_LEVELS: Final[tuple[Trust, ...]] = get_args(Trust)


def put_trust(store: Store, trust: Trust) -> None:
    """Note how the base is learned from now on."""
    store.put_rows([(TRUST, trust.encode())], [])


def read_trust(view: View) -> Trust:
    """The trust level of a store's base; proven if none is stored.

    Raises `StoreDamaged`.
    """
    row = view.row(TRUST)
    if row is None:
        return "proven"
    for level in _LEVELS:
        if row == level.encode():
            return level
    raise StoreDamaged(f"the row of the trust: {row!r}")


def may_go_on(stored: Trust, asked: Trust) -> bool:
    """True if a base with this trust is sufficient for the requested one."""
    return asked == "trusted" or stored == "proven"


WORKING_SET: Final = b"K"
MOST_ROWS: Final = 1 << 20
ADDRESS_BYTES: Final = 20
WORD: Final = 32
_USED: Final = struct.Struct(">Q")

WorkingSetRow = tuple[int, tuple[int, ...]]


def put_working_set(
    store: Store, put: Mapping[bytes, WorkingSetRow], gone: Sequence[bytes]
) -> None:
    """Keep these accounts, and those no longer."""
    rows = [(WORKING_SET + address, _encoded(*row)) for address, row in put.items()]
    store.put_rows(rows, [WORKING_SET + address for address in gone])


def read_working_set(view: View) -> dict[bytes, WorkingSetRow]:
    """All accounts. Raises `StoreDamaged`."""
    return dict(map(_decoded, view.rows(WORKING_SET, MOST_ROWS)))


def _encoded(used: int, slots: Sequence[int]) -> bytes:
    return _USED.pack(used) + b"".join(slot.to_bytes(WORD) for slot in slots)


def _decoded(row: tuple[bytes, bytes]) -> tuple[bytes, WorkingSetRow]:
    key, value = row
    address, slots = key[len(WORKING_SET) :], value[_USED.size :]
    if len(address) != ADDRESS_BYTES or len(value) < _USED.size or len(slots) % WORD:
        raise StoreDamaged(f"the row of a hot account: {key.hex()}")
    (used,) = _USED.unpack_from(value)
    words = range(0, len(slots), WORD)
    return address, (used, tuple(int.from_bytes(slots[at : at + WORD]) for at in words))
