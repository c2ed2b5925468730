"""The two indexes of a store: blocks by log address and topic, and transactions by address.

Both are indexes in sections (`section_index`).

    rows             key                    value
    index, section   L …                    logs: which blocks have an address or a topic
    index, section   T …                    addresses: which blocks have transactions that touch one
    touched          a ‖ number (8)         hash of the block (32) ‖ how it was made (1)
                                            ‖ entries: address (20), transaction (4); sorted

The terms of logs are those of a block's receipts. Blocks after the end of the index are found by
the blooms of their headers.

The index of addresses is optional. A transaction touches its sender, its recipient or the contract
that it creates, and the callers and callees of all its calls. The row of a block lists the
transactions that touch an address. Its hash makes it self-validating: the row of an abandoned
branch is ignored, and overwritten when its height is indexed again.
`ledger/tracing/address_indexing` writes these rows.
"""

import time
from collections.abc import Callable
from typing import Final

from foreblock._engine import Store, View, log_terms, touched_terms
from foreblock.ledger.rules.check import EMPTY_ROOT
from foreblock.ledger.storage.chain_head import body_keys, partials_of_sealed, read_header
from foreblock.ledger.storage.section_index import Indexed, SectionIndex, SectionIndexing

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


LOGS: Final = SectionIndex(b"L")


def read_indexed(view: View) -> Indexed:
    """How far the logs of a view are indexed."""
    return LOGS.read(view)


class LogIndexing(SectionIndexing):
    """The writer of the index of logs of one store."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(store, LOGS, _terms_of, clock)


def _terms_of(view: View, block: int) -> bytes:
    keys = [receipts for _, receipts in body_keys(block, partials_of_sealed(view, block))]
    return log_terms(view, keys)
