"""Write the index of logs behind the head: its terms are those of a block's receipts."""

import time
from collections.abc import Callable

from foreblock._engine import Store, View, log_terms
from foreblock.ledger.storage.body_rows import body_keys, made_of
from foreblock.ledger.storage.log_index import LOGS
from foreblock.ledger.storage.section_indexing import SectionIndexing


class LogIndexing(SectionIndexing):
    """The writer of the index of logs of one store."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(store, LOGS, _terms_of, clock)


def _terms_of(view: View, block: int) -> bytes:
    keys = [receipts for _, receipts in body_keys(block, made_of(view, block))]
    return log_terms(view, keys)
