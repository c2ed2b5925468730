"""A block that a writer has left unfinished, read back from its rows.

Nothing is executed again: its state is that of its last partial, and the rest is in the
rows. So it goes on with the same payload id to the same hashes.
"""

from foreblock._engine import View
from foreblock.ledger import partial_rows
from foreblock.ledger.block_in_progress import BlockInProgress, Foundation, StoredIndices
from foreblock.ledger.partial_rows import decode_partial_row, decode_seals_as
from foreblock.ledger.profile import ChainProfile
from foreblock.ledger.rows import decode_items
from foreblock.ledger.state_roots import SealsAs, StateRoots
from foreblock.ledger.tip import read_header, read_row, rules_of
from foreblock.model import FlashblockId


def read_open_block(view: View, profile: ChainProfile) -> BlockInProgress | None:
    """The pending block, if it stands on the latest; the view is its own from then on."""
    heads = view.heads
    partial = None if heads.pending is None else view.partial(heads.pending)
    if heads.pending is None or heads.latest is None or partial is None:
        return None
    if partial.status != "live" or partial.block != heads.latest[0] + 1:
        return None
    stored = _read_indices(view, partial.block, heads.pending)
    parent, total_difficulty = read_header(view, partial.block - 1)
    state = view.state_of_partial(heads.pending)
    foundation = Foundation(
        profile=profile,
        parent=parent,
        parent_rules=rules_of(parent, total_difficulty, profile),
        previous=last_index(view, parent.number),
        view=view,
        overlay=state.overlay(),
        roots=_roots(view, StateRoots(state.trie), stored),
    )
    return BlockInProgress.resume(foundation, stored)


def last_index(view: View, block: int) -> FlashblockId | None:
    """The index with which a sealed block ended, if it was made of indices."""
    made_of = view.row(partial_rows.made_of_key(block))
    if made_of is None:
        return None
    return FlashblockId(block, len(partial_rows.decode_numbers(made_of)) - 1)


def _read_indices(view: View, block: int, last: int) -> StoredIndices:
    row = decode_partial_row(read_row(view, partial_rows.partial_key(block, last), block))
    partials = (*row.before, last)
    transactions: list[bytes] = []
    receipts: list[bytes] = []
    for each in partials:
        key = partial_rows.transactions_key(block, each)
        transactions += decode_items(read_row(view, key, block))
        key = partial_rows.receipts_key(block, each)
        receipts += decode_items(read_row(view, key, block))
    return StoredIndices(row.payload_id, partials, row.header, transactions, receipts)


def _roots(view: View, roots: StateRoots, stored: StoredIndices) -> StateRoots:
    """The roots from the last partial on, its own included if the writer got to it."""
    last = stored.partials[-1]
    row = view.row(partial_rows.seals_as_key(stored.header.number, last))
    if row is None:
        roots.add(last, stored.header)
    else:
        root, _ = decode_seals_as(row)
        roots.last = SealsAs(last, stored.header.replace(state_root=root))
    return roots
