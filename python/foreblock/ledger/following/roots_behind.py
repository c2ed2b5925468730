"""State roots of sealed blocks above a partial base, computed behind the head. No network.

A block that is sealed by its name has the state root that its header announces. If the nodes on
the path to all that it changed are known, from proofs and from the blocks before it, the root is
computed here, compared with the announced one, and the nodes are kept for proofs at the block or
above it. So is the storage root of the contract from which withdrawals begin, which is the
withdrawals root of headers since Isthmus.

A block whose nodes cannot be fetched is skipped once the chain is far ahead of it: the next one
begins at the announced root of its parent.

`rebase_proof` makes a proof of a stored block from the nodes of a later one. Nodes of tries are
found by their hashes, whatever block they come from. If no block between has changed the lower
part of the path to a key, the nodes there are the same at both; those above are known from
executing the blocks. So an upstream that proves only its latest block can be followed although its
tip is always a little ahead.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import Changes, Header, Proof, ProofsNeeded, StateTrie, Store, View
from foreblock.errors import IncompleteState, MissingNode, NotHere, StateMissing
from foreblock.ledger.rules.forks import OptimismFork
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.ledger.storage.chain_head import read_header
from foreblock.primitives import format_data

__all__ = ["DueRoot", "Proof", "ProofsNeeded", "RootOutcome", "RootsBehind", "rebase_proof"]

MOST_BEHIND: Final = 32  # blocks that wait for their roots
MOST_REMEMBERED: Final = 2 * MOST_BEHIND


class DueRoot(Struct, frozen=True):
    """A sealed block whose root is to be computed."""

    epoch: int
    header: Header
    parent: Header


class RootOutcome(Struct, frozen=True):
    """The outcome: computed, unless proofs are needed first or something differs."""

    needed: ProofsNeeded | None = None
    difference: str = ""


class RootsBehind:
    """The roots of one store; `due` and `compute` may be called on any thread, one at a time."""

    def __init__(self, store: Store, profile: ChainProfile) -> None:
        self._store: Final = store
        self._profile: Final = profile
        self._computed: dict[int, bytes] = {}  # hashes of the last blocks, by number

    def due(self) -> DueRoot | None:
        """The next block; None if all are computed."""
        with self._store.view() as view:
            heads = view.heads
            if heads.base.is_complete or heads.latest is None:
                return None
            latest = heads.latest[0]
            number = self._last(view, latest) + 1
            if number > latest:
                return None
            if latest - number >= MOST_BEHIND:
                number = latest
            header, _ = read_header(view, number)
            parent, _ = read_header(view, number - 1)
            return DueRoot(heads.base.epoch, header, parent)

    def _last(self, view: View, latest: int) -> int:
        """The last block of the chain whose nodes are known."""
        for number in sorted(self._computed, reverse=True):
            sealed = view.sealed(number)
            if number <= latest and sealed is not None and sealed[0] == self._computed[number]:
                return number
        stored, base = view.heads.nodes, view.heads.base.number
        # None are stored after a rewind below the oldest that are kept.
        return latest - 1 if stored is None else max(base, min(stored, latest))

    def compute(self, due: DueRoot, nodes: list[bytes]) -> RootOutcome:
        """Compute and keep the nodes of a block, with these of proofs beside those here.

        Raises `NotHere` where the block is not of the chain any more.
        """
        header = due.header
        with self._store.view() as view:
            changes = view.changes(header.number)
        trie = self._trie(due, nodes)
        try:
            trie.apply(changes)
            root, written = trie.root(), trie.take()
        except MissingNode:
            return RootOutcome(needed=self._trie(due, nodes).needs(changes))
        assert written is not None, "the trie of a store gives them"
        difference = _differs("state root", header.state_root, root)
        difference = difference or self._withdrawals(due, trie, changes)
        if not difference and self._store.keep_nodes(header.number, header.hash, written):
            self._computed[header.number] = header.hash
            while len(self._computed) > MOST_REMEMBERED:
                del self._computed[min(self._computed)]
        return RootOutcome(difference=difference)

    def _trie(self, due: DueRoot, nodes: list[bytes]) -> StateTrie:
        trie = self._store.trie_behind(due.parent.number, due.parent.state_root)
        trie.fill(nodes, due.header.state_root)
        return trie

    def _withdrawals(self, due: DueRoot, trie: StateTrie, changes: Changes) -> str:
        """The difference in the withdrawals root of a block that changed it."""
        header = due.header
        rules = self._profile.rules(header.number, header.timestamp, merged=True)
        if not rules.includes(OptimismFork.ISTHMUS) or not changes.touches(MESSAGE_PASSER):
            return ""
        found = trie.storage_root(MESSAGE_PASSER)
        return _differs("withdrawals root", header.withdrawals_root or b"", found)


def _differs(what: str, announced: bytes, found: bytes) -> str:
    if announced == found:
        return ""
    return f"the {what} is {format_data(found)} here and {format_data(announced)} in the header"


def rebase_proof(view: View, address: bytes, slots: Sequence[int]) -> Proof | None:
    """The keys proven at the last block whose nodes are stored; None if some are not known.

    Those of proofs of other blocks count once they are learned.
    """
    heads = view.heads
    assert heads.latest is not None, "a store begins with its anchor"
    base = heads.base.number
    number = base if heads.nodes is None else min(max(base, heads.nodes), heads.latest[0])
    header, _ = read_header(view, number)
    try:
        return view.state(number).prove(address, slots, root=header.state_root)
    except (StateMissing, IncompleteState, NotHere):
        return None
