"""The steps by which partials get into a batch.

Each function adds to a batch and decides nothing about the chain; nothing is written
before the batch is committed.
"""

from collections.abc import Iterable

from foreblock._engine import Batch, Header, NodeWrites, View
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.state_roots import SealsAs
from foreblock.ledger.storage import partial_rows, rows


def add_partial(
    batch: Batch, view: View, closed: ClosedIndex, before: tuple[int, ...], received_at_ns: int
) -> int:
    """A closed index as the partial that follows those `before` it; gives its number.

    The first of a block stands on the sealed block below.
    """
    header = closed.header
    number = batch.extend(
        header.number,
        closed.index,
        header.hash,
        closed.changes,
        on_block=None if before else header.number - 1,
        parent=before[-1] if before else None,
        rows=closed.entries,
    )
    put_all(batch, closed.rows(number, before, received_at_ns))
    if not _taken(view, header.hash):
        meaning = partial_rows.encode_by_hash(header.number, number)
        batch.put(partial_rows.by_hash_key(header.hash), meaning)
    return number


def add_seal(
    batch: Batch,
    partials: tuple[int, ...],
    sealed: Header,
    total_difficulty: int,
    nodes: NodeWrites | None,
) -> None:
    """The last of these partials, from index 0 on, becomes the block of this header."""
    number = sealed.number
    batch.seal(partials[-1], sealed.hash, None if nodes is None else (number, nodes))
    put_all(
        batch,
        (
            (rows.header_key(number), rows.encode_header_row(sealed, total_difficulty)),
            (partial_rows.made_of_key(number), partial_rows.encode_numbers(partials)),
            (partial_rows.by_hash_key(sealed.hash), partial_rows.encode_by_hash(number)),
        ),
    )


def add_quiet_end(batch: Batch, block: int, index: int, partial: int) -> None:
    """A block that is sealed ends with this index, for which its last partial stands."""
    batch.put(partial_rows.by_place_key(block, index), partial_rows.encode_numbers((partial,)))


def add_seals_as(batch: Batch, computed: Iterable[SealsAs]) -> None:
    """What partials would seal as."""
    for each in computed:
        key = partial_rows.seals_as_key(each.header.number, each.partial)
        batch.put(key, partial_rows.encode_seals_as(each.header))


def put_all(batch: Batch, new: Iterable[tuple[bytes, bytes]]) -> None:
    """Rows, as keys and values."""
    for key, value in new:
        batch.put(key, value)


def _taken(view: View, block_hash: bytes) -> bool:
    """Whether a partial that can be reached has this hash already."""
    row = view.row(partial_rows.by_hash_key(block_hash))
    if row is None:
        return False
    _, number = partial_rows.decode_by_hash(row)
    partial = view.partial(number)
    return partial is not None and partial.status != "dropped"
