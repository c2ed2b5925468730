"""Find partial blocks, the freshness of the pending one, and the empty indexes between them.

The rows that find a partial are hints: they may outlive it. A partial can be shown while its branch
is live, and afterwards if its block was sealed with it. The store knows which were dropped; for a
sealed block, its `made of` row names the partials that belong to it.

The writer stores a deadline with each flashblock that it applies. Readers compare it with their
own clock, so the pending block of a dead writer expires everywhere at the same moment. The note in
the heads row holds it:

    boot id (16) ‖ deadline, monotonic nanoseconds (8)
    and, if empty indexes follow the last partial,
    partial (8) ‖ the last of them (8) ‖ received at, wall nanoseconds (8)

After a restart of the machine the boot id differs and the clock has started again: then the
deadline has passed, whatever it says.

An empty index is a flashblock without transactions: hash, state and everything else are those of
the index before. Nine of ten flashblocks of an idle chain are empty, so they are not stored; the
partial before represents them. While such an index is the last one of the pending block, the note
says so, and it is the only row that its commit writes. Later it follows from the partials on both
sides, because each knows the one before it. If a sealed block ends with empty indexes, the row of
its last one is kept.
"""

import struct
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from foreblock._engine import Transaction, View, decode_transactions
from foreblock.errors import DroppedPartial, UnknownPartial
from foreblock.ledger.storage.chain_head import partials_of_sealed, read_row
from foreblock.ledger.storage.partial_rows import (
    END,
    PartialRow,
    by_hash_key,
    by_position_key,
    decode_by_hash,
    decode_numbers,
    decode_partial_row,
    partial_key,
    position_of_key,
    positions_prefix,
    senders_key,
    split_senders,
    transactions_key,
)
from foreblock.ledger.storage.rows import block_index_key, decode_block_entry, decode_items

_NOTE: Final = struct.Struct(">16sQ")
_TAIL: Final = struct.Struct(">QQQ")
_ALL: Final = 1 << 20  # more places than a height can have


class EmptyTail(Struct, frozen=True):
    """The last empty index after a partial."""

    partial: int
    index: int
    received_at_ns: int


class Freshness(Struct, frozen=True):
    """A deadline, and the start of the machine that it counts from."""

    boot_id: bytes
    until_ns: int
    empty_tail: EmptyTail | None = None

    def encode(self) -> bytes:
        note, empty_tail = _NOTE.pack(self.boot_id, self.until_ns), self.empty_tail
        if empty_tail is None:
            return note
        return note + _TAIL.pack(empty_tail.partial, empty_tail.index, empty_tail.received_at_ns)

    def deadline_ns(self, boot_id: bytes) -> int:
        """The deadline as a process of this start of the machine sees it."""
        return self.until_ns if boot_id == self.boot_id else 0


def decode_freshness(note: bytes) -> Freshness | None:
    """The freshness in a note; None if nothing was ever pending."""
    if not note:
        return None
    boot_id, until_ns = _NOTE.unpack_from(note)
    empty_tail = EmptyTail(*_TAIL.unpack_from(note, _NOTE.size)) if len(note) > _NOTE.size else None
    return Freshness(boot_id, until_ns, empty_tail)


class _IndexRow(Struct, frozen=True):
    index: int
    partial: int


def empty_tail_of(view: View, partial: int) -> EmptyTail | None:
    """The last empty index after this partial, if it is pending and has any."""
    if view.heads.pending != partial:
        return None
    freshness = decode_freshness(view.heads.note)
    empty_tail = None if freshness is None else freshness.empty_tail
    return empty_tail if empty_tail is not None and empty_tail.partial == partial else None


def representative_of(view: View, block: int, index: int) -> int | None:
    """The partial that represents an empty index; None if there is no such index."""
    places = [each for each in _index_rows(view, block) if not is_gone(view, each.partial)]
    below = next((each for each in reversed(places) if each.index < index), None)
    above = next((each for each in places if each.index > index), None)
    if below is None:
        return None
    if above is None:
        empty_tail = empty_tail_of(view, below.partial)
        return below.partial if empty_tail is not None and index <= empty_tail.index else None
    return below.partial if _follows(view, block, above.partial, below.partial) else None


def is_gone(view: View, partial: int) -> bool:
    """True if a partial was abandoned or pruned, so that its index row means nothing."""
    found = view.partial(partial)
    return found is None or found.status == "dropped"


def last_index_of(view: View, block: int, partial: int) -> int | None:
    """The index with which a sealed block ended whose last partial this is, while it is kept."""
    return max(
        (each.index for each in _index_rows(view, block) if each.partial == partial), default=None
    )


def _index_rows(view: View, block: int) -> list[_IndexRow]:
    """The places of partials of a block, in the order of the indices."""
    rows = view.rows(positions_prefix(block), _ALL) if block < 1 << 64 else []
    return [_IndexRow(position_of_key(key)[1], decode_numbers(value)[0]) for key, value in rows]


def _follows(view: View, block: int, partial: int, before: int) -> bool:
    """True if one partial is the next after another, or the same at a later index."""
    if partial == before:
        return True
    row = view.row(partial_key(block, partial))
    return row is not None and decode_partial_row(row).before[-1:] == (before,)


def pending_partial(view: View) -> int | None:
    """The partial that the heads call pending, if it is live and above the latest block."""
    number, latest = view.heads.pending, view.heads.latest
    partial = None if number is None else view.partial(number)
    if partial is None or latest is None or partial.status != "live":
        return None
    return number if partial.block > latest[0] else None


def partial_at(view: View, block: int, index: int) -> int:
    """The partial of a block at this index; raises `UnknownPartial`."""
    row = view.row(by_position_key(block, index)) if max(block, index) < 1 << 64 else None
    number = None if row is None else decode_numbers(row)[0]
    if number is None or is_gone(view, number):
        # An empty index may be at an index that an abandoned branch had filled.
        number = representative_of(view, block, index) or number
    if number is None:
        raise UnknownPartial(index)
    return number


def check_reachable(view: View, number: int) -> None:
    """Raise `UnknownPartial` or `DroppedPartial` unless the view may show this partial."""
    view.state_of_partial(number)  # raises if it, or one below it, was dropped
    partial = view.partial(number)
    assert partial is not None, "it has a state"
    sealed_with = partials_of_sealed(view, partial.block)
    if sealed_with and number not in sealed_with:
        raise DroppedPartial(number)


def read_partial(view: View, number: int) -> PartialRow:
    """The row of a partial; raises `UnknownPartial` when it is pruned."""
    partial = view.partial(number)
    row = None if partial is None else view.row(partial_key(partial.block, number))
    if row is None:
        raise UnknownPartial(number)
    return decode_partial_row(row)


def read_end(view: View, block: int, partial: int) -> bytes | None:
    """The transaction with which a block would end after this partial, if there is one."""
    row = view.row(transactions_key(block, partial | END))
    return None if row is None else decode_items(row)[0]


def first_partials(view: View, block: int) -> tuple[int, ...]:
    """The partials that a sealed block begins with that came as a whole, while they are kept.

    Those that it contradicts were dropped when it came.
    """
    for _, value in reversed(view.rows(positions_prefix(block), _ALL)):
        (number,) = decode_numbers(value)
        partial = view.partial(number)
        if partial is not None and partial.status == "live":
            return (*read_partial(view, number).before, number)
    return ()


def sealed_number(view: View, block_hash: bytes) -> int | None:
    """The number of the sealed block that has this hash."""
    latest = view.heads.latest
    hint = view.row(by_hash_key(block_hash))
    if hint is not None:
        number, _ = decode_by_hash(hint)
        sealed = view.sealed(number)
        if sealed is not None and sealed[0] == block_hash:
            return number
    known = None if latest is None else view.state(latest[0]).index(block_index_key(block_hash))
    return None if known is None else decode_block_entry(known)


def transactions_in(view: View, block: int, partials: Iterable[int]) -> list[Transaction]:
    """The transactions that these partials of a block have brought, in order."""
    raws: list[bytes] = []
    senders: list[bytes] = []
    for each in partials:
        raws += decode_items(read_row(view, transactions_key(block, each), block))
        row = read_row(view, senders_key(block, each), block)
        senders += split_senders(row)
    return decode_transactions(raws, senders=senders)
