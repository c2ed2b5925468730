"""Which rows hold the body of a sealed block: its own, or those of its partials."""

from foreblock._engine import View
from foreblock.ledger.storage import partial_rows, rows


def made_of(view: View, block: int) -> tuple[int, ...]:
    """The partials that a sealed block is made of; none where it was imported whole.

    A row left by an earlier branch at this height ends with another partial than the one
    that the block was sealed by.
    """
    sealed, row = view.sealed(block), view.row(partial_rows.made_of_key(block))
    if sealed is None or row is None:
        return ()
    numbers = partial_rows.decode_numbers(row)
    return numbers if numbers[-1] == sealed[1] else ()


def body_keys(block: int, partials: tuple[int, ...]) -> list[tuple[bytes, bytes]]:
    """The keys of transactions and receipts of each portion of a block."""
    if not partials:
        return [(rows.body_key(block), rows.receipts_key(block))]
    return [
        (partial_rows.transactions_key(block, each), partial_rows.receipts_key(block, each))
        for each in partials
    ]
