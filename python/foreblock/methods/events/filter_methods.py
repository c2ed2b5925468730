"""eth_newFilter, eth_getFilterChanges and others: create, poll and remove filters.

A filter is a subscription whose client polls: a poll returns the events after the cursor of the
last poll. Long changes are returned in portions, one per poll.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast

from msgspec import Raw

from foreblock.errors import CursorTooOld, FilterNotFound, RefusedFilter, TooManyWaiting
from foreblock.ledger.reading.events import Cursor, read_cursor
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.events.filter_table import FilterTable, StoredFilter
from foreblock.methods.events.flashblock_kinds import (
    FlashblockTransactions,
    TransactionsWanted,
)
from foreblock.methods.events.kinds import BLOCK_HASHES, Kind, Wanted, position_after
from foreblock.methods.events.log_kinds import LOGS, read_wanted
from foreblock.methods.params import Params, reader, take_none
from foreblock.methods.table import MethodFunction
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Mapped, Steps
from foreblock.scheduling.thresholds import THRESHOLDS

ID_BYTES: Final = 16
TRANSACTIONS: Final = FlashblockTransactions()
KINDS: Final[Mapping[str, Kind]] = {
    "blocks": BLOCK_HASHES,
    "logs": LOGS,
    "transactions": TRANSACTIONS,
}
T = TypeVar("T")


class NewFilterParams(Params):
    """The arguments of eth_newFilter."""

    filter: Raw


class NewTransactionFilterParams(Params):
    """The arguments of eth_newPendingTransactionFilter."""

    full_transactions: bool | None = None


class FilterIdParams(Params):
    """The arguments of a method that names a filter."""

    id: str


_read_new = reader(NewFilterParams)
_read_new_transactions = reader(NewTransactionFilterParams)
_read_id = reader(FilterIdParams)


class PolledChanges(NamedTuple):
    """The results of one poll, and where the next one continues."""

    texts: list[bytes]
    then: Cursor


class FilterMethods:
    """The methods of filters."""

    def __init__(self, scheduler: Scheduler, table: FilterTable, find_logs: MethodFunction) -> None:
        """`find_logs` answers eth_getLogs."""
        self._scheduler: Final = scheduler
        self._table: Final = table
        self._find_logs: Final = find_logs

    def new_filter(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The id of a filter for logs of blocks to come."""
        criteria = bytes(_read_new(raw).filter)
        if len(criteria) > THRESHOLDS.filter_bytes:
            raise RefusedFilter(f"a filter has at most {THRESHOLDS.filter_bytes} bytes")
        read_wanted(Raw(criteria), 0)
        return self._add(StoredFilter("logs", *_end(view, LOGS), criteria))

    def new_block_filter(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The id of a filter for hashes of blocks to come."""
        take_none(raw)
        return self._add(StoredFilter("blocks", *_end(view, BLOCK_HASHES)))

    def new_transaction_filter(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The id of a filter for transactions that become pending."""
        full = bool(_read_new_transactions(raw).full_transactions)
        return self._add(StoredFilter("transactions", *_end(view, TRANSACTIONS), full=full))

    def get_changes(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The changes since the last poll, or since the filter was made."""
        return self._reply(self._poll(view, _read_id(raw).id))

    def get_logs(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """All logs that a filter names, those of past blocks too."""
        reading = self._patiently(partial(self._table.read, _read_id(raw).id))
        found = self._scheduler.read(reading)
        find = partial(self._find, view)
        return find(found) if isinstance(found, StoredFilter) else Mapped(found, find)

    def uninstall(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """True if the filter existed; it is removed."""
        return self._reply(self._remove(_read_id(raw).id))

    def _find(self, view: LedgerView, found: StoredFilter) -> bytes | Awaitable[Text]:
        if found.kind != "logs":
            raise FilterNotFound
        return self._find_logs(view, Raw(b"[%b]" % found.criteria))

    def _add(self, found: StoredFilter) -> bytes | Awaitable[Text]:
        name = f"{int.from_bytes(secrets.token_bytes(ID_BYTES)):#x}"

        def add() -> Steps[Text]:
            yield from self._patiently(partial(self._table.add, name, found))
            return b'"%b"' % name.encode()

        return self._reply(add())

    def _remove(self, name: str) -> Steps[Text]:
        was_there = yield from self._patiently(partial(self._table.remove, name))
        return b"true" if was_there else b"false"

    def _reply(self, steps: Steps[Text]) -> bytes | Awaitable[Text]:
        return self._scheduler.coalesce((self, object()), lambda: steps)

    def _patiently(self, attempt: Callable[[], T]) -> Steps[T]:
        """The result of an operation of the table; tried again while a file of it is locked."""
        deadline = self._scheduler.deadline()
        while True:
            try:
                return attempt()
            except TooManyWaiting:
                if self._scheduler.time_is_up(deadline, THRESHOLDS.filter_wait):
                    raise
            yield None

    def _poll(self, view: LedgerView, name: str) -> Steps[Text]:
        while True:
            found = yield from self._patiently(partial(self._table.read, name))
            if found.commit > view.commit and _newest_commit(view) >= found.commit:
                return b"[]"  # another poll, on a later view, has returned all that this one sees
            try:
                changes = yield from read_changes(view, found)
            except CursorTooOld:
                if (yield from self._patiently(partial(self._table.remove, name, found))):
                    raise FilterNotFound from None  # clients make a new one then
                continue
            moving = partial(self._table.move, name, found, changes.then.text, view.commit)
            if (yield from self._patiently(moving)):
                return in_pieces(_listed(changes.texts))


def _end(view: LedgerView, kind: Kind) -> tuple[str, int]:
    """The cursor at the end of what a view has, and the commit of the view."""
    return kind.track.end(view).text, view.commit


def _newest_commit(view: LedgerView) -> int:
    """The last commit; it is before one that was seen if the store was replaced."""
    newest = view.renewed()
    try:
        return newest.commit
    finally:
        newest.close()


def read_changes(view: LedgerView, found: StoredFilter) -> Steps[PolledChanges]:
    """Return the changes after the cursor of a filter, up to the bounds of one poll."""
    kind, wanted = KINDS[found.kind], cast("Wanted", None)
    at, texts, size = read_cursor(found.cursor), list[bytes](), 0
    if at is None:
        raise FilterNotFound
    for _ in range(THRESHOLDS.polled_events):
        step = kind.track.next(view, at)
        if step is None:
            break
        if step.event is not None:
            if wanted is None:  # most polls find no event and need not read it
                wanted = _wanted(found)
            notices = (yield from kind.render(view, step.event, [wanted])).get(wanted, [])
            for notice in notices:
                texts.append(notice.text)
                size += len(notice.text)
                if len(texts) >= THRESHOLDS.polled_results or size >= THRESHOLDS.polled_bytes:
                    return PolledChanges(texts, position_after(at, step, notice.seen))
        at = step.then
        yield None
    return PolledChanges(texts, at)


def _wanted(found: StoredFilter) -> Wanted:
    match found.kind:
        case "blocks":
            return None
        case "transactions":
            return TransactionsWanted(full=found.full, of_pool=True)
        case "logs":
            return read_wanted(Raw(found.criteria), 0)


def _listed(texts: list[bytes]) -> list[bytes]:
    """A JSON array in pieces."""
    some = THRESHOLDS.joined_transactions
    portions = (texts[start : start + some] for start in range(0, len(texts), some))
    joined = [(b"," if number else b"") + b",".join(each) for number, each in enumerate(portions)]
    return [b"[", *joined, b"]"]
