"""A store that was served and cannot be any more: every request is told so.

A worker that ended instead would be begun again and again, and whoever came to its socket in
between would wait. So it answers, and ends when there is a store again that can be served.
"""

from collections.abc import Callable, Hashable
from typing import Final

from foreblock.errors import StoreError, StoreReplaced
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage.seen_commits import SeenCommit


class AbsentLedger:
    """What stands in for the ledger of a folder."""

    def __init__(self, path: str, reason: StoreReplaced, *, announce: bool) -> None:
        self._path: Final = path
        self._reason = reason
        self._announce: Final = announce

    def view(self, client: Hashable | None = None) -> LedgerView:
        """Raises why there is none."""
        del client
        raise StoreReplaced(self._reason.path, self._reason.why)

    def watch(self, seen: SeenCommit) -> Callable[[], None]:
        """What sees whether there is a store to serve again; raises `StoreReplaced` then."""

        def look() -> None:
            found = open_served(self._path, seen, announce=self._announce)
            if isinstance(found, Ledger):
                found.close()
                raise StoreReplaced(self._path, "it can be served again")
            self._reason = found._reason  # noqa: SLF001, one of the same kind

        return look


def open_served(
    path: str, seen: SeenCommit, *, announce: bool, max_readers: int | None = None
) -> Ledger | AbsentLedger:
    """The ledger in a folder; where one was served that is gone or behind, what says so.

    Raises what opening raises, where nothing was served before.
    """
    try:
        return Ledger.open(path, announce=announce, seen=seen, max_readers=max_readers)
    except StoreError as why:
        if not seen.highest:
            raise
        reason = why if isinstance(why, StoreReplaced) else StoreReplaced(path, str(why))
        return AbsentLedger(path, reason, announce=announce)
