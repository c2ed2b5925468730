"""The index of transactions by address, which a network keeps if it is set to.

A transaction touches its sender, its recipient or the contract that it creates, and whatever the
calls in it are from and to. Each block with transactions has a row that says which of them touch
an address; an index in sections (`section_index`), whose terms are addresses, finds the blocks.

    rows             key                    value
    index, section   T …                    as `section_index` describes them
    touched          a ‖ number (8)         hash of the block (32) ‖ how it was made (1)
                                            ‖ entries: address (20), place in the block (4); sorted

The hash makes a row valid by itself: one of an abandoned branch is not read, and is overwritten
when its height is indexed again. `ledger/tracing/address_indexing` writes all of them.
"""

from typing import Final

from foreblock._engine import View, touched_terms
from foreblock.ledger.rules.empty_roots import EMPTY_ROOT
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.section_index import SectionIndex

ADDRESSES: Final = SectionIndex(b"T")

# How a row was made.
OF_TRANSACTIONS: Final = 0  # the block's state was no longer kept: calls inside are not known
OF_CALLS: Final = 1


def touched_key(number: int) -> bytes:
    """The key of the row of a block."""
    return b"a" + number.to_bytes(8)


def terms_of(view: View, number: int) -> bytes | None:
    """The terms of the addresses that a sealed block touches; none while it has no row."""
    sealed = view.sealed(number)
    if sealed is None:
        return None
    terms = touched_terms(view, touched_key(number), sealed[0])
    if terms is None and read_header(view, number)[0].transactions_root == EMPTY_ROOT:
        return b""
    return terms
