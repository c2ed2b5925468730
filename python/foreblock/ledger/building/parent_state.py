"""What a block that is begun or gone on with can stand on.

Either on a stored state, sealed or partial, of which a view is opened, or on another block
in progress as it is in memory, whose last index need not be stored yet. Whoever gets a
foundation owns its view.
"""

from collections.abc import Iterable
from functools import partial as bound

from foreblock._engine import (
    Header,
    Partial,
    Store,
    Transaction,
    View,
    decode_transactions,
    receipts_end,
)
from foreblock.ledger.building.block_in_progress import BlockInProgress, Foundation, StoredIndices
from foreblock.ledger.building.state_roots import OpenTrie, SealsAs, StateRoots
from foreblock.ledger.reading.partials import made_of
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.chain_head import read_header, read_row, rules_of
from foreblock.ledger.storage.freshness import last_index_of, quiet_end
from foreblock.ledger.storage.partial_rows import decode_partial_row, decode_seals_as
from foreblock.ledger.storage.rows import decode_items
from foreblock.types import FlashblockId


def on_sealed(store: Store, profile: ChainProfile, number: int) -> Foundation:
    """On a sealed block: `UnknownBlock`, `PrunedState`."""
    view = store.view()
    parent, total_difficulty = read_header(view, number)
    state, latest = view.state(number), view.heads.latest
    assert latest is not None, "a store is begun with its genesis"
    # Only the latest block's trie gives nodes to be stored. Of old blocks the state is kept
    # and the nodes are not: a branch may begin there all the same.
    old_trie: OpenTrie = bound(state.trie, rebuild=True)
    open_trie = store.trie if number == latest[0] else old_trie
    return Foundation(
        profile=profile,
        parent=parent,
        parent_rules=rules_of(parent, total_difficulty, profile),
        previous=last_index(view, number),
        view=view,
        overlay=state.overlay(),
        roots=StateRoots(open_trie),
    )


def on_partial(
    store: Store,
    profile: ChainProfile,
    place: FlashblockId,
    partial: int,
    sealed: Header,
    *,
    parent_hash: bytes | None = None,
    open_trie: OpenTrie | None = None,
) -> Foundation:
    """On a stored partial, which stands at that place and has or will have that header.

    While its state root is not computed, `parent_hash` is what the next block calls it.
    """
    view = store.view()
    state = view.state_of_partial(partial)
    overlay = state.overlay()
    parent_hash = parent_hash or sealed.hash
    overlay.set_block_hash(sealed.number, parent_hash)
    return Foundation(
        profile=profile,
        parent=sealed,
        parent_rules=profile.rules(sealed.number, sealed.timestamp, merged=True),
        previous=place,
        view=view,
        overlay=overlay,
        roots=StateRoots(open_trie or state.trie),
        proven=sealed.hash == parent_hash,
    )


def resume(store: Store, profile: ChainProfile, partial: int) -> BlockInProgress:
    """A block after this partial, which is live: nothing is executed again."""
    view = store.view()
    try:
        return read_block(view, profile, partial)
    except BaseException:
        view.close()
        raise


def read_block(view: View, profile: ChainProfile, partial: int) -> BlockInProgress:
    """A block after this partial of a view, which is the block's own from then on."""
    found = view.partial(partial)
    assert found is not None, "whoever goes on with a partial knows it"
    stored = _read_indices(view, found.block, partial)
    parent, parent_rules, proven = _parent(view, profile, found)
    state = view.state_of_partial(partial)
    foundation = Foundation(
        profile=profile,
        parent=parent,
        parent_rules=parent_rules,
        previous=last_index(view, parent.number),
        view=view,
        overlay=state.overlay(),
        roots=_roots(view, StateRoots(state.trie, whole=False), stored),
        proven=proven,
    )
    return BlockInProgress.resume(foundation, stored)


def transactions_in(view: View, block: int, partials: Iterable[int]) -> list[Transaction]:
    """The transactions that these partials of a block have brought, in order."""
    raws: list[bytes] = []
    senders: list[bytes] = []
    for each in partials:
        raws += decode_items(read_row(view, partial_rows.transactions_key(block, each), block))
        row = read_row(view, partial_rows.senders_key(block, each), block)
        senders += partial_rows.split_senders(row)
    return decode_transactions(raws, senders=senders)


def last_index(view: View, block: int) -> FlashblockId | None:
    """The index with which a sealed block ended, if it was made of indices."""
    partials = made_of(view, block)
    if not partials:
        return None
    index = last_index_of(view, block, partials[-1])
    return FlashblockId(block, len(partials) - 1 if index is None else index)


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
    logs = 0
    for each in partials:
        key = partial_rows.transactions_key(block, each)
        transactions += decode_items(read_row(view, key, block))
        key = partial_rows.receipts_key(block, each)
        receipts += decode_items(read_row(view, key, block))
        logs += receipts_end(view, key)[1]
    quiet = quiet_end(view, last)
    index = row.index if quiet is None else quiet.index
    return StoredIndices(
        row.payload_id,
        partials,
        row.header,
        index + 1,
        index - row.index,
        transactions,
        receipts,
        logs,
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
