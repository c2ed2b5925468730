"""Check partial blocks: their rows, and the state that each would be sealed with."""

from collections.abc import Iterator
from typing import Final

from foreblock._engine import Partial, View, decode_transactions, transactions_root
from foreblock.errors import ForeblockError, PartialState, PrunedState
from foreblock.ledger.checking.damage import ROWS, Damage, Report, Tell
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.partial_rows import (
    PartialRow,
    decode_numbers,
    decode_partial_row,
    decode_seals_as,
    partial_key,
    place_of_key,
    places_prefix,
    receipts_key,
    seals_as_key,
    senders_key,
    split_senders,
    transactions_key,
)

_ALL: Final = 1 << 24  # more places than a store keeps


def check_partials(view: View, tell: Tell, report: Report) -> None:
    """Check every partial that can be reached by its place."""
    places = view.rows(places_prefix(), _ALL)
    for done, (key, value) in enumerate(places, 1):
        try:
            for why in _check_place(view, key, value):
                tell(Damage(ROWS, key, why))
        except (ForeblockError, ValueError, IndexError) as why:
            tell(Damage(ROWS, key, f"its partial cannot be read: {why}"))
        report("flashblocks", done, len(places))


def _check_place(view: View, key: bytes, value: bytes) -> Iterator[str]:
    block, index = place_of_key(key)
    (number,) = decode_numbers(value)
    partial = view.partial(number)
    if partial is None or partial.status == "dropped":
        return  # given up or pruned: the place means nothing
    if partial.block != block or partial.index > index:
        yield f"partial {number} is {partial.block}.{partial.index}, not {block}.{index}"
        return
    row = view.row(partial_key(block, number))
    if row is None:
        if partial.status == "live":
            yield f"partial {number} has no row"
        return
    yield from _check_rows(view, block, number, partial, decode_partial_row(row))


def _check_rows(
    view: View, block: int, number: int, partial: Partial, row: PartialRow
) -> Iterator[str]:
    if row.header.hash != partial.hash:
        yield f"partial {number} has another header than its hash says"
        return
    if row.header.parent_hash != partial.parent_hash:
        yield f"partial {number} has another parent than its header"
    chain = (*row.before, number)
    transactions = _joined(view, [transactions_key(block, each) for each in chain])
    receipts = _joined(view, [receipts_key(block, each) for each in chain])
    if transactions is None or receipts is None:
        yield f"partial {number} has no transactions or no receipts"
        return
    if transactions_root(transactions) != row.header.transactions_root:
        yield f"the transactions up to partial {number} have another root"
        return
    if transactions_root(receipts) != row.header.receipts_root:
        yield f"the receipts up to partial {number} have another root"
    own = transactions[row.transactions_before :]
    senders = split_senders(view.row(senders_key(block, number)) or b"")
    # Those of sealed blocks are recovered with their block.
    if len(own) != len(senders):
        yield f"partial {number} has {len(senders)} senders of {len(own)} transactions"
    elif partial.status == "live":
        decode_transactions(own, threads=1, senders=senders)
    yield from _check_root(view, block, number)


def _check_root(view: View, block: int, number: int) -> Iterator[str]:
    """The state after a partial has the root that it would be sealed with, where it is known."""
    row = view.row(seals_as_key(block, number))
    if row is None:
        return
    try:
        state = view.state_of_partial(number)
        is_whole = view.heads.base.is_complete
        below = None if is_whole else read_header(view, state.sealed_block)[0].state_root
        root = state.trie(root=below).root()
    except (PrunedState, PartialState):
        return  # of so old a block no trie nodes are kept, or not all of them are known
    if root != decode_seals_as(row)[0]:
        yield f"the state after partial {number} has another root than it would be sealed with"


def _joined(view: View, keys: list[bytes]) -> list[bytes] | None:
    items: list[bytes] = []
    for key in keys:
        row = view.row(key)
        if row is None:
            return None
        items += rows.decode_items(row)
    return items
