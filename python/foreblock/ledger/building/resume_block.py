"""A block after its last stored index, read back from its rows.

Nothing is executed again: its state is that of its last partial, and the rest is in the
rows. So it continues with the same payload id to the same hashes.
"""

from foreblock._engine import (
    Header,
    Partial,
    Store,
    StoredBlock,
    View,
)
from foreblock.ledger.building.block_in_progress import BlockInProgress, StoredIndices
from foreblock.ledger.building.parent_state import (
    ParentState,
    SealsAs,
    StateFinder,
    StateRoots,
    last_index,
    roots_above,
)
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.chain_head import read_header, read_row, rules_of
from foreblock.ledger.storage.partial_rows import decode_partial_row, decode_seals_as
from foreblock.ledger.storage.partials import empty_tail_of, read_end
from foreblock.ledger.storage.rows import decode_items


def resume_pending(
    store: Store, profile: ChainProfile, finder: StateFinder | None = None
) -> BlockInProgress | None:
    """The pending block, if it stands on the latest."""
    with store.view() as view:
        heads = view.heads
        partial = None if heads.pending is None else view.partial(heads.pending)
    if heads.pending is None or heads.latest is None or partial is None:
        return None
    if partial.status != "live" or partial.block != heads.latest[0] + 1:
        return None
    return resume(store, profile, heads.pending, finder)


def resume(
    store: Store, profile: ChainProfile, partial: int, finder: StateFinder | None = None
) -> BlockInProgress:
    """A block after this partial, which is live."""
    view = store.view()
    try:
        return _read_block(view, profile, partial, finder)
    except BaseException:
        view.close()
        raise


def _read_block(
    view: View, profile: ChainProfile, partial: int, finder: StateFinder | None
) -> BlockInProgress:
    """A block after this partial; it owns the view."""
    found = view.partial(partial)
    assert found is not None, "the caller knows the partial"
    stored = _read_indices(view, found.block, partial)
    parent, parent_rules, proven = _parent(view, profile, found)
    state = view.state_of_partial(partial)
    parent_state = ParentState(
        profile=profile,
        parent=parent,
        parent_rules=parent_rules,
        previous=last_index(view, parent.number),
        view=view,
        overlay=state.overlay(remember=True),
        roots=_roots(view, roots_above(view, state.trie, whole=False, finder=finder), stored),
        proven=proven,
        finder=finder,
    )
    return BlockInProgress.resume(parent_state, stored)


def _parent(view: View, profile: ChainProfile, child: Partial) -> tuple[Header, Rules, bool]:
    """A block's parent, its rules, and whether its header has the hash that the block names."""
    number = child.block - 1
    sealed = view.sealed(number)
    if sealed is not None and sealed[0] == child.parent_hash:
        parent, total_difficulty = read_header(view, number)
        return parent, rules_of(parent, total_difficulty, profile), True
    assert child.stacked_on is not None, "it stands on a sealed block or on a partial"
    key = partial_rows.partial_key(number, child.stacked_on)
    parent = decode_partial_row(read_row(view, key, number)).header
    row = view.row(partial_rows.seals_as_key(number, child.stacked_on))
    if row is not None:
        parent = parent.replace(state_root=decode_seals_as(row)[0])
    rules = profile.rules(number, parent.timestamp, merged=True)
    return parent, rules, parent.hash == child.parent_hash


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
    stored = StoredBlock(row.header, partials, homestead=True)
    _, _, logs = stored.position(view, len(partials))
    empty_tail = empty_tail_of(view, last)
    index = row.index if empty_tail is None else empty_tail.index
    return StoredIndices(
        row.payload_id,
        partials,
        row.header,
        index + 1,
        index - row.index,
        transactions,
        receipts,
        logs,
        view.row(partial_rows.before_end_key(block, last)),
        read_end(view, block, last),
    )


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
