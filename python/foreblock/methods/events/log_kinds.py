"""Subscriptions to logs: of sealed blocks, and of flashblocks before their block is sealed.

Logs of blocks that leave the chain come again with `removed: true`, the last one first.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast

import msgspec
from msgspec import Raw

from foreblock.errors import InvalidParams
from foreblock.ledger.reading.events import BlockRemoved, Event, FlashblockDropped
from foreblock.ledger.reading.logs import PlacedLog, header_of, read_logs
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.events.kinds import (
    SEALED,
    Kind,
    Notice,
    Track,
    Wanted,
)
from foreblock.methods.events.log_index import ANY, LogIndex, LogsWanted, keys_of
from foreblock.methods.events.log_methods import FilterObject, log_end, log_text, make_query
from foreblock.methods.params import DECODING, refuse
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.types import Header

T = TypeVar("T")


def read_wanted(raw: Raw, argument: int) -> LogsWanted:
    """Read the filter of a subscription; null matches any log.

    Refuses ranges as geth does.
    """
    query, text = make_query(read_filter(raw, argument), argument), bytes(raw)
    first, last = query.first, query.last
    if "pending" in (first, last):
        raise InvalidParams("pending logs are not supported")
    if first == "earliest":
        first = 0
    if first == last == "latest":
        return LogsWanted(query.filter, text, query.values)
    if isinstance(first, int) and last == "latest":
        return LogsWanted(query.filter, text, query.values, first)
    if isinstance(first, int) and isinstance(last, int) and first <= last:
        return LogsWanted(query.filter, text, query.values, first, last)
    raise InvalidParams("invalid block range params")


def read_filter(raw: Raw, argument: int) -> FilterObject:
    """A filter object as it comes; raises `InvalidParams`."""
    try:
        return _decode(raw) or FilterObject()
    except DECODING:
        refuse(argument, "", "not a filter of address, topics, fromBlock and toBlock")


_decode = msgspec.json.Decoder(FilterObject | None).decode


class LogKind(Kind):
    """Logs of one sequence of events."""

    def __init__(self, code: str, track: Track) -> None:
        self.code = code
        self.track = track
        self._index: Final = LogIndex()

    def join(self, wanted: Wanted) -> Wanted:
        """Add a filter to the index."""
        return self._index.add(cast("LogsWanted", wanted))

    def leave(self, wanted: Wanted) -> None:
        """Remove a filter from the index."""
        self._index.remove(cast("LogsWanted", wanted))

    def update(self) -> Steps[bool]:
        """Bring a part of the index up to date."""
        return self._index.update()

    def render(
        self, view: LedgerView, event: Event, wanted: Collection[Wanted]
    ) -> Steps[Mapping[Wanted, list[Notice]]]:
        """The logs that each wants. More than a few filters must have joined before."""
        is_removal = isinstance(event, BlockRemoved | FlashblockDropped)
        matching = _Matching(header_of(event), is_removal=is_removal)
        if len(wanted) > THRESHOLDS.unlisted_filters:
            yield from matching.search(self._index, wanted)
        elif not matching.ask(cast("Collection[LogsWanted]", wanted)):
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
    """Matches the logs of one event with filters."""

    def __init__(self, header: Header, *, is_removal: bool) -> None:
        self.found: Final[dict[Wanted, list[Notice]]] = {}
        self._number: Final = header.number
        self._end: Final = log_end(header, removed=is_removal)
        self._is_removal: Final = is_removal
        self._index: LogIndex | None = None
        self._wanted: Collection[Wanted] = ()
        self._unlisted: set[LogsWanted] = set()
        # By the keys under which they are listed, those that include the height of the event.
        self._candidates: Final[dict[int, list[LogsWanted]]] = {}

    def ask(self, wanted: Collection[LogsWanted]) -> bool:
        """Match all logs with these filters; false if none includes the height of the event."""
        self._candidates[ANY] = [each for each in wanted if each.includes(self._number)]
        return bool(self._candidates[ANY])

    def search(self, index: LogIndex, wanted: Collection[Wanted]) -> Steps[None]:
        """Match each log with those of these filters that an index finds for it."""
        self._index, self._wanted = index, wanted
        self._unlisted = set(index.unlisted)
        listed = yield from self._look_up(ANY)
        unlisted = [each for each in self._unlisted if each in wanted]
        self._candidates[ANY] = listed + [each for each in unlisted if each.includes(self._number)]

    def take(self, logs: Sequence[PlacedLog]) -> Steps[None]:
        """Match these logs."""
        index, candidates = self._index, self._candidates
        for number, placed in enumerate(logs, 1):
            notice: Notice | None = None
            address, topics, _ = placed.log
            for key in (ANY,) if index is None else keys_of(address, topics):
                filters = candidates.get(key)
                if filters is None:
                    filters = yield from self._look_up(key)
                for some in _portions(filters, THRESHOLDS.matched_filters):
                    for each in some:
                        if each.filter.matches(address, topics):
                            notice = notice or self._notice(placed)
                            self.found.setdefault(each, []).append(notice)
                    yield None
            if number % THRESHOLDS.matched_logs == 0:
                yield None

    def _look_up(self, key: int) -> Steps[list[LogsWanted]]:
        """The filters under a key, found once for all logs of the event."""
        index, found = self._index, list[LogsWanted]()
        if index is None or not (ids := index.find(key)):
            return found
        for some in _portions(tuple(ids), THRESHOLDS.matched_filters):
            found += filter(self._is_wanted, map(index.known.__getitem__, some))
            yield None
        self._candidates[key] = found
        return found

    def _is_wanted(self, listed: LogsWanted) -> bool:
        return (
            listed.includes(self._number)
            and listed in self._wanted
            and listed not in self._unlisted
        )

    def _notice(self, placed: PlacedLog) -> Notice:
        seen = placed.log_index if self._is_removal else placed.log_index + 1
        return Notice(log_text(placed, self._end), seen)


def _portions(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


LOGS: Final = LogKind("l", SEALED)  # for filters
