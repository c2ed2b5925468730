"""Proofs of accounts and slots at a block of a view (EIP-1186).

The engine has three ways to make one, by the age of the state; the quick one runs in place,
and a thread does the others. What a proof verifies against is the state root of the block. A
partial block has none on the wire: it is the root that the block would have, were it sealed at
this index. A proof at `latest` is of the sealed state, without cheats after it.

Above a partial base a proof is made of the nodes that are known; which are not, `WaysMissing` says.
"""

from collections.abc import Sequence
from functools import partial

from foreblock._engine import Proof
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.scheduling.steps import Steps

__all__ = ["Proof", "prove"]


def prove(
    view: LedgerView, block: ReadableBlock, address: bytes, slots: Sequence[int]
) -> Steps[Proof]:
    """The account and these of its slots, proven; raises `PrunedState`, `WaysMissing`."""
    state = view.state_of_header(block)
    proof: Proof = yield partial(state.prove, address, slots, root=view.root_below(state))
    return proof
