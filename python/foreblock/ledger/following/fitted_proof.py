"""A proof of a later block as one of a block that is here, as far as its nodes fit. No network.

Nodes of tries are found by their hashes, whatever block they come from. Where no block between
has changed anything on the lower part of the way to a key, the nodes there are the same at both;
those above, which others have changed, are known from executing the blocks. So an upstream that
proves its latest block only can be followed although its tip is always a little ahead.
"""

from collections.abc import Sequence

from foreblock._engine import Proof, View
from foreblock.errors import IncompleteState, NotHere, StateMissing
from foreblock.ledger.storage.chain_head import read_header

__all__ = ["Proof", "fitted_proof"]


def fitted_proof(view: View, address: bytes, slots: Sequence[int]) -> Proof | None:
    """The keys proven at the last block whose nodes are stored; none where some are not known.

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
