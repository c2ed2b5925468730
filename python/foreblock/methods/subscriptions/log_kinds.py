"""Subscriptions to logs: of sealed blocks, and of flashblocks before their block is sealed.

Logs of blocks that leave the chain come again with `removed: true`, the last one first.
"""

from binascii import hexlify
from collections.abc import Collection, Mapping
from typing import Final, cast

import msgspec
from msgspec import Raw

from foreblock.errors import InvalidParams
from foreblock.ledger.reading.event_items import PlacedLog, header_of, read_logs
from foreblock.ledger.reading.events import BlockRemoved, Event, FlashblockDropped
from foreblock.ledger.reading.logs import LogFilter
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.logs.log_filter import FilterObject, LogQuery, make_query
from foreblock.methods.params import DECODING, refuse
from foreblock.methods.subscriptions.kinds import FLASHBLOCKS, SEALED, Notice, Track, Wanted
from foreblock.scheduling.steps import Steps
from foreblock.types import Header


class LogsWanted:
    """Which logs a subscriber wants, and of which heights.

    Two are equal if their filter objects have the same text: what is equal is rendered once.
    """

    __slots__ = ("_key", "filter", "first", "last")

    def __init__(
        self, filter: LogFilter, key: bytes, first: int = 0, last: int | None = None
    ) -> None:
        self._key: Final = key
        self.filter: Final = filter
        self.first: Final = first
        self.last: Final = last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogsWanted) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def includes(self, number: int) -> bool:
        """Whether logs of this height are wanted."""
        return number >= self.first and (self.last is None or number <= self.last)


def read_wanted(raw: Raw, argument: int) -> LogsWanted:
    """What a filter object asks for of the blocks to come; null is any log.

    Refuses ranges as geth does.
    """
    query = read_filter(raw, argument)
    first, last = query.first, query.last
    if "pending" in (first, last):
        raise InvalidParams("pending logs are not supported")
    if first == "earliest":
        first = 0
    key = bytes(raw)
    if first == last == "latest":
        return LogsWanted(query.filter, key)
    if isinstance(first, int) and last == "latest":
        return LogsWanted(query.filter, key, first)
    if isinstance(first, int) and isinstance(last, int) and first <= last:
        return LogsWanted(query.filter, key, first, last)
    raise InvalidParams("invalid block range params")


def read_filter(raw: Raw, argument: int) -> LogQuery:
    """A filter object; raises `InvalidParams`, `RefusedFilter`."""
    try:
        found = _decode(raw)
    except DECODING:
        refuse(argument, "", "not a filter of address, topics, fromBlock and toBlock")
    return make_query(found or FilterObject(), argument)


_decode = msgspec.json.Decoder(FilterObject | None).decode


class LogKind:
    """Logs of one sequence of events."""

    def __init__(self, code: str, track: Track) -> None:
        self.code: Final = code
        self.track: Final = track

    def render(
        self, view: LedgerView, event: Event, wanted: Collection[Wanted]
    ) -> Steps[Mapping[Wanted, list[Notice]]]:
        """The logs that each wants."""
        header = header_of(event)
        is_removal = isinstance(event, BlockRemoved | FlashblockDropped)
        end = _end(header, removed=is_removal)
        asking = [(each, cast("LogsWanted", each)) for each in wanted]
        asking = [(key, each) for key, each in asking if each.includes(header.number)]
        found: dict[Wanted, list[Notice]] = {}

        def take(placed: PlacedLog) -> None:
            log, notice = placed.log, None
            for key, each in asking:
                if each.filter.matches(log):
                    if notice is None:
                        seen = placed.log_index if is_removal else placed.log_index + 1
                        notice = Notice(log_text(placed, end), seen)
                    found.setdefault(key, []).append(notice)

        if asking:
            yield from read_logs(view, event, take)
        if is_removal:
            for notices in found.values():
                notices.reverse()
        return found


LOGS: Final = LogKind("l", SEALED)
PENDING_LOGS: Final = LogKind("p", FLASHBLOCKS)


def log_text(placed: PlacedLog, end: bytes) -> bytes:
    """A log object; `end` are the members that all logs of its block share."""
    log = placed.log
    return (
        b'{"address":"0x%b","topics":%b,"data":"0x%b","logIndex":"0x%x",'
        b'"transactionHash":"0x%b","transactionIndex":"0x%x",%b}'
    ) % (
        hexlify(log.address),
        shapes.array(list(map(shapes.write_data, log.topics))),
        hexlify(log.data),
        placed.log_index,
        hexlify(placed.transaction_hash),
        placed.transaction_index,
        end,
    )


def _end(header: Header, *, removed: bool) -> bytes:
    return shapes.members(
        {
            b"blockHash": shapes.write_data(header.hash),
            b"blockNumber": shapes.write_quantity(header.number),
            b"blockTimestamp": shapes.write_quantity(header.timestamp),
            b"removed": b"true" if removed else b"false",
        }
    )


def shared_log_members(header: Header) -> bytes:
    """The members that all logs of a block in the chain share."""
    return _end(header, removed=False)
