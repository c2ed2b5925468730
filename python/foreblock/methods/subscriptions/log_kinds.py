"""Subscriptions to logs: of sealed blocks, and of flashblocks before their block is sealed.

Logs of blocks that leave the chain come again with `removed: true`, the last one first.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast

import msgspec
from msgspec import Raw

from foreblock.errors import InvalidParams
from foreblock.ledger.reading.event_items import PlacedLog, header_of, read_logs
from foreblock.ledger.reading.events import BlockRemoved, Event, FlashblockDropped
from foreblock.ledger.reading.logs import LogFilter
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.logs.log_filter import FilterObject, make_query
from foreblock.methods.logs.log_texts import log_text
from foreblock.methods.params import DECODING, address, refuse
from foreblock.methods.subscriptions.kinds import FLASHBLOCKS, SEALED, Notice, Track, Wanted
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.types import Header

T = TypeVar("T")


class LogsWanted:
    """Which logs a subscriber wants, and of which heights.

    Two are equal if their filter objects have the same text: what is equal is rendered once.
    """

    __slots__ = ("_key", "addresses", "filter", "first", "last")

    def __init__(
        self,
        filter: LogFilter,
        key: bytes,
        addresses: frozenset[bytes] = frozenset(),
        first: int = 0,
        last: int | None = None,
    ) -> None:
        """`addresses` are those of the filter; none are any."""
        self._key: Final = key
        self.filter: Final = filter
        self.addresses: Final = addresses
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
    given = read_filter(raw, argument)
    query, key = make_query(given, argument), bytes(raw)
    texts = [given.address] if isinstance(given.address, str) else given.address or []
    addresses = frozenset(address(text, argument, "$.address") for text in texts)
    first, last = query.first, query.last
    if "pending" in (first, last):
        raise InvalidParams("pending logs are not supported")
    if first == "earliest":
        first = 0
    if first == last == "latest":
        return LogsWanted(query.filter, key, addresses)
    if isinstance(first, int) and last == "latest":
        return LogsWanted(query.filter, key, addresses, first)
    if isinstance(first, int) and isinstance(last, int) and first <= last:
        return LogsWanted(query.filter, key, addresses, first, last)
    raise InvalidParams("invalid block range params")


def read_filter(raw: Raw, argument: int) -> FilterObject:
    """A filter object as it comes; raises `InvalidParams`."""
    try:
        return _decode(raw) or FilterObject()
    except DECODING:
        refuse(argument, "", "not a filter of address, topics, fromBlock and toBlock")


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
        matching = _Matching(_end(header, removed=is_removal), is_removal=is_removal)
        for some in _portions(list(wanted), THRESHOLDS.matched_filters):
            matching.ask(cast("list[LogsWanted]", some), header.number)
            yield None
        if not matching.is_asked:
            return {}
        fresh: list[PlacedLog] = []
        for _ in read_logs(view, event, fresh.append):
            yield from matching.take(fresh)
            fresh.clear()
        yield from matching.take(fresh)
        if is_removal:
            for notices in matching.found.values():
                notices.reverse()
        return matching.found


class _Matching:
    """Logs of one event held against all filters, those for an address being found by it."""

    def __init__(self, end: bytes, *, is_removal: bool) -> None:
        self.found: Final[dict[Wanted, list[Notice]]] = {}
        self._end: Final = end
        self._is_removal: Final = is_removal
        self._of_address: Final[dict[bytes, list[LogsWanted]]] = {}
        self._of_any: Final[list[LogsWanted]] = []

    @property
    def is_asked(self) -> bool:
        """Whether anybody wants anything."""
        return bool(self._of_address or self._of_any)

    def ask(self, wanted: list[LogsWanted], number: int) -> None:
        """Hold logs against these filters too, if they want any of this height."""
        for each in wanted:
            if each.includes(number):
                for address in each.addresses:
                    self._of_address.setdefault(address, []).append(each)
                if not each.addresses:
                    self._of_any.append(each)

    def take(self, logs: list[PlacedLog]) -> Steps[None]:
        """Hold these logs against the filters."""
        for placed in logs:
            notice: Notice | None = None
            for filters in (self._of_address.get(placed.log.address, ()), self._of_any):
                for some in _portions(filters, THRESHOLDS.matched_filters):
                    for each in some:
                        if each.filter.matches(placed.log):
                            notice = notice or self._notice(placed)
                            self.found.setdefault(each, []).append(notice)
                    yield None

    def _notice(self, placed: PlacedLog) -> Notice:
        seen = placed.log_index if self._is_removal else placed.log_index + 1
        return Notice(log_text(placed, self._end), seen)


def _portions(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


LOGS: Final = LogKind("l", SEALED)
PENDING_LOGS: Final = LogKind("p", FLASHBLOCKS)


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
