"""eth_newFilter and its kin: filters are made, polled and removed.

A filter is a subscription whose client comes for the changes: what a poll gives are the events
after the cursor that the last one left. Long changes are given in portions, one a poll.
"""

import secrets
from collections.abc import Awaitable
from functools import partial
from typing import Final, NamedTuple

from msgspec import Raw

from foreblock.errors import CursorTooOld, FilterNotFound, RefusedFilter
from foreblock.ledger.reading.cursors import Cursor, read_cursor
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.filters.filter_table import FilterTable, StoredFilter
from foreblock.methods.node.about import take_none
from foreblock.methods.params import Params, reader
from foreblock.methods.subscriptions.flashblock_kinds import (
    FlashblockTransactions,
    TransactionsWanted,
)
from foreblock.methods.subscriptions.kinds import BLOCK_HASHES, Kind, Wanted, position_after
from foreblock.methods.subscriptions.log_kinds import LOGS, read_wanted
from foreblock.methods.table import MethodFunction
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

ID_BYTES: Final = 16
TRANSACTIONS: Final = FlashblockTransactions()


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

    def new_filter(self, view: LedgerView, raw: Raw) -> bytes:
        """The id of a filter for logs of blocks to come."""
        criteria = bytes(_read_new(raw).filter)
        if len(criteria) > THRESHOLDS.filter_bytes:
            raise RefusedFilter(f"a filter has at most {THRESHOLDS.filter_bytes} bytes")
        read_wanted(Raw(criteria), 0)
        return self._add(StoredFilter("logs", LOGS.track.end(view).text, criteria))

    def new_block_filter(self, view: LedgerView, raw: Raw) -> bytes:
        """The id of a filter for hashes of blocks to come."""
        take_none(raw)
        return self._add(StoredFilter("blocks", BLOCK_HASHES.track.end(view).text))

    def new_transaction_filter(self, view: LedgerView, raw: Raw) -> bytes:
        """The id of a filter for transactions that become pending."""
        full = bool(_read_new_transactions(raw).full_transactions)
        cursor = TRANSACTIONS.track.end(view).text
        return self._add(StoredFilter("transactions", cursor, full=full))

    def get_changes(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """What happened since the last poll, or since the filter was made."""
        return self._scheduler.share((self, object()), partial(self._poll, view, _read_id(raw).id))

    def get_logs(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """All logs that a filter names, those of past blocks too."""
        found = self._table.read(_read_id(raw).id)
        if found.kind != "logs":
            raise FilterNotFound
        return self._find_logs(view, Raw(b"[%b]" % found.criteria))

    def uninstall(self, _view: LedgerView, raw: Raw) -> bytes:
        """Whether there was such a filter, which is removed."""
        return b"true" if self._table.remove(_read_id(raw).id) else b"false"

    def _add(self, found: StoredFilter) -> bytes:
        name = f"{int.from_bytes(secrets.token_bytes(ID_BYTES)):#x}"
        self._table.add(name, found)
        return b'"%b"' % name.encode()

    def _poll(self, view: LedgerView, name: str) -> Steps[Text]:
        while True:
            found = self._table.read(name)
            try:
                changes = yield from read_changes(view, found)
            except CursorTooOld:
                self._table.remove(name)
                raise FilterNotFound from None  # clients make a new one then
            if self._table.move(name, found, changes.then.text):
                return in_pieces(_listed(changes.texts))


def read_changes(view: LedgerView, found: StoredFilter) -> Steps[PolledChanges]:
    """What a filter has to tell after its cursor, as far as one poll may hold."""
    kind, wanted = _wanted(found)
    at, texts, size = read_cursor(found.cursor), list[bytes](), 0
    if at is None:
        raise FilterNotFound
    for _ in range(THRESHOLDS.polled_events):
        step = kind.track.next(view, at)
        if step is None:
            break
        if step.event is not None:
            notices = (yield from kind.render(view, step.event, [wanted])).get(wanted, [])
            for notice in notices:
                texts.append(notice.text)
                size += len(notice.text)
                if len(texts) >= THRESHOLDS.polled_results or size >= THRESHOLDS.polled_bytes:
                    return PolledChanges(texts, position_after(at, step, notice.seen))
        at = step.then
        yield None
    return PolledChanges(texts, at)


def _wanted(found: StoredFilter) -> tuple[Kind, Wanted]:
    match found.kind:
        case "blocks":
            return BLOCK_HASHES, None
        case "transactions":
            return TRANSACTIONS, TransactionsWanted(full=found.full, of_pool=True)
        case "logs":
            return LOGS, read_wanted(Raw(found.criteria), 0)


def _listed(texts: list[bytes]) -> list[bytes]:
    """A JSON array in pieces."""
    some = THRESHOLDS.joined_transactions
    portions = (texts[start : start + some] for start in range(0, len(texts), some))
    joined = [(b"," if number else b"") + b",".join(each) for number, each in enumerate(portions)]
    return [b"[", *joined, b"]"]
