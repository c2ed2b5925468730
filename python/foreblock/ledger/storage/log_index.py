"""The index of logs: which blocks have a log with an address or a topic.

It is an index in sections (`section_index`), under the key `L`. Blocks after its end are found
by the blooms of their headers. `log_indexing` writes it.
"""

from typing import Final

from foreblock._engine import View
from foreblock.ledger.storage.section_index import Indexed, SectionIndex

LOGS: Final = SectionIndex(b"L")


def read_indexed(view: View) -> Indexed:
    """How far the logs of a view are indexed."""
    return LOGS.read(view)
