"""Logs of past blocks, found by reading the blocks one after the other.

A block without logs is passed over.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Final

from msgspec import Raw

from foreblock.errors import InvalidParams
from foreblock.ledger.reading.blocks import BlockId, ByHash, SealedBlock
from foreblock.ledger.reading.events import BlockSealed
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.logs.log_filter import FilterObject, LogQuery, make_query
from foreblock.methods.params import Params, reader
from foreblock.methods.subscriptions.log_kinds import LOGS, LogsWanted
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps

NO_LOGS: Final = bytes(256)


class LogsParams(Params):
    """The arguments of eth_getLogs."""

    filter: FilterObject


_read = reader(LogsParams)


class ScannedLogs:
    """Answers what eth_getLogs would."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler: Final = scheduler

    def get_logs(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The logs of the filter object in these params."""
        query = make_query(_read(raw).filter, 0)
        return self._scheduler.share((self, object()), partial(scan_logs, view, query))


def scan_logs(view: LedgerView, query: LogQuery) -> Steps[Text]:
    """The logs of a query, as a JSON array."""
    wanted, pieces = LogsWanted(query.filter, b""), [b"["]
    first, last = _range(view, query)
    for number in range(first, last + 1):
        block = view.resolve(number)
        assert isinstance(block, SealedBlock), "a number names a sealed block"
        if block.header.logs_bloom != NO_LOGS:
            found = yield from LOGS.render(view, BlockSealed(block), [wanted])
            texts = [notice.text for notice in found.get(wanted, [])]
            if texts:
                pieces.append((b"," if len(pieces) > 1 else b"") + b",".join(texts))
        yield None
    return in_pieces([*pieces, b"]"])


def _range(view: LedgerView, query: LogQuery) -> tuple[int, int]:
    if query.block_hash is not None:
        block = view.resolve(ByHash(query.block_hash, require_canonical=True))
        return block.number, block.number
    first, last = _number(view, query.first), _number(view, query.last)
    if first > last:
        raise InvalidParams("invalid block range params")
    if last > view.latest.number:
        raise InvalidParams("block range extends beyond current head block")
    return first, last


def _number(view: LedgerView, named: BlockId) -> int:
    return named if isinstance(named, int) else view.resolve(named).number
