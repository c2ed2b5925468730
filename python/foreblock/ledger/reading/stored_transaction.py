"""Where a transaction stands in a view, found by its hash."""

from foreblock.ledger.reading.preconfirmed_block import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.storage import rows


def find_transaction(view: LedgerView, transaction_hash: bytes) -> tuple[ReadableBlock, int] | None:
    """The block of a transaction and its place in it; none where it is in no block.

    A pre-confirmed transaction is found in the pending block, or in the one below it that is
    not sealed yet. Past the deadline of that, nothing of either is found until it is sealed,
    as in everything else.
    """
    head = view.latest if view.pending is None else view.pending
    entry = view.state(head).index(rows.transaction_index_key(transaction_hash))
    if entry is None:
        return None
    number, place = rows.decode_transaction_entry(entry)
    if number == head.number:
        return head, place
    above = number > view.latest.number
    return view.unsealed(number) if above else view.resolve(number), place
