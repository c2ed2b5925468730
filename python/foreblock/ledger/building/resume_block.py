"""A block that a writer has left unfinished, read back from its rows.

Nothing is executed again: its state is that of its last partial, and the rest is in the
rows. So it goes on with the same payload id to the same hashes.
"""

from foreblock._engine import View
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.parent_state import read_block
from foreblock.ledger.rules.profile import ChainProfile


def read_open_block(view: View, profile: ChainProfile) -> BlockInProgress | None:
    """The pending block, if it stands on the latest; the view is its own from then on."""
    heads = view.heads
    partial = None if heads.pending is None else view.partial(heads.pending)
    if heads.pending is None or heads.latest is None or partial is None:
        return None
    if partial.status != "live" or partial.block != heads.latest[0] + 1:
        return None
    return read_block(view, profile, heads.pending)
