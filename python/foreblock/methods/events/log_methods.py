"""eth_getLogs: logs that match a filter, of one block or of a range of blocks.

A filter has one address or many, topics by position (one, many, or null for any), and either the
hash of a block or a range. A range is given by numbers or tags, or as block parameters are. An
omitted end is `latest`, or `pending` if it follows `pending`. Limits and refusals are geth's.

A query over several blocks is refused when it finds too many logs, too many bytes, or takes too
long; the refusal names the blocks up to the one at which it happened. One block is never
refused: its logs could not be read otherwise, and a block is limited by its gas.
"""

from binascii import hexlify
from collections.abc import Awaitable, Callable, Sequence
from itertools import takewhile
from typing import Final, cast

from msgspec import Raw, Struct

from foreblock.errors import InvalidParams, RefusedFilter, TooManyLogs
from foreblock.ledger.reading.blocks import BlockId
from foreblock.ledger.reading.logs import (
    LogFilter,
    LogRange,
    PlacedLog,
    block_range,
    find_logs,
    number_range,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.params import (
    BlockParam,
    Params,
    address,
    hash32,
    read_block,
    read_in_turn,
    reader,
    refuse,
)
from foreblock.methods.shapes import array, members, write_data, write_quantity
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, paced
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import Settings
from foreblock.types import Header


def log_end(header: Header, *, removed: bool = False) -> bytes:
    """The members that all logs of a block end with."""
    place = {
        b"blockHash": write_data(header.hash),
        b"blockNumber": write_quantity(header.number),
        b"blockTimestamp": write_quantity(header.timestamp),
    }
    if header.timestamp_ms is not None:
        place[b"blockTimestampMs"] = write_quantity(header.timestamp_ms)
    return members(place | {b"removed": b"true" if removed else b"false"})


def log_text(placed: PlacedLog, end: bytes) -> bytes:
    """A log object; `end` are the members that all logs of its block share."""
    emitter, topics, data = placed.log
    return (
        b'{"address":"0x%b","topics":%b,"data":"0x%b","logIndex":"0x%x",'
        b'"transactionHash":"0x%b","transactionIndex":"0x%x",%b}'
    ) % (
        hexlify(emitter),
        array(list(map(write_data, topics))),
        hexlify(data),
        placed.log_index,
        hexlify(placed.transaction_hash),
        placed.transaction_index,
        end,
    )


class LogTexts:
    """The logs of one query, as far as they are found."""

    def __init__(self, where: LogRange, results: int, time_is_up: Callable[[], bool]) -> None:
        self._where: Final = where
        self._results: Final = results
        self._time_is_up: Final = time_is_up
        self._is_limited: Final = where.first != where.last
        self._block = where.first  # that is being read
        self._end = b""  # the last members of its logs
        self._pieces: Final[list[bytes]] = []
        self._texts: list[bytes] = []  # since the last piece
        self._unjoined = 0  # bytes of these
        self._count = 0
        self._bytes = 0

    def reach(self, number: int) -> None:
        """All blocks below this one are done; raises `TooManyLogs` when it took too long."""
        self._block = number
        if self._is_limited and self._time_is_up():
            self._refuse("query timeout exceeded")

    def begin(self, header: Header) -> bytes:
        """A block in which there may be logs."""
        self.reach(header.number)
        self._end = log_end(header)
        return self._end

    def take(self, log: PlacedLog) -> None:
        """One log of it; raises `TooManyLogs`."""
        self.add(log_text(log, self._end), 1)

    def add(self, text: bytes, count: int) -> None:
        """Some logs of it; raises `TooManyLogs`."""
        self._count += count
        self._bytes += len(text)
        if self._is_limited:
            if self._count > self._results:
                self._refuse(f"query returned more than {self._results} results")
            if self._bytes > THRESHOLDS.logs_bytes:
                self._refuse(f"Log response size exceeded: more than {THRESHOLDS.logs_bytes} bytes")
        self._texts += (b"," if self._texts or self._pieces else b"[", text)
        self._unjoined += len(text)
        if self._unjoined >= THRESHOLDS.piece_bytes:
            self._join()

    def text(self) -> Text:
        if not self._count:
            return b"[]"
        self._join()
        return in_pieces([*self._pieces, b"]"])

    def _join(self) -> None:
        if self._texts:
            self._pieces.append(b"".join(self._texts))
            self._texts, self._unjoined = [], 0

    def _refuse(self, why: str) -> None:
        first = self._where.first
        raise TooManyLogs(why, first, max(first, self._block - 1))


MOST_POSITIONS: Final = 4
MOST_VALUES: Final = 1000  # addresses, and topics of one position


class FilterObject(Struct, rename="camel", gc=False):
    """A filter as it comes."""

    block_hash: str | None = None
    from_block: BlockParam = None
    to_block: BlockParam = None
    address: str | list[str] | None = None
    topics: list[str | list[str | None] | None] | None = None


class FilterParams(Params):
    """The arguments of a method that takes a filter."""

    filter: FilterObject


class LogQuery(Struct, frozen=True):
    """A filter: the logs that match, and the blocks to search."""

    filter: LogFilter
    block_hash: bytes | None = None
    first: BlockId = "latest"
    last: BlockId = "latest"
    values: Sequence[Sequence[bytes]] = ()  # the addresses, and the topics of each position

    def find_range(self, view: LedgerView) -> LogRange:
        """The blocks, in a view; raises `InvalidParams`, `RefusedFilter`, `NotHere`."""
        if self.block_hash is not None:
            return block_range(view, self.block_hash)
        return number_range(view, self.first, self.last)


_read = reader(FilterParams)


def read_query(raw: Raw) -> LogQuery:
    """The query in the params of a request; raises `InvalidParams`, `RefusedFilter`."""
    return make_query(_read(raw).filter, 0)


def make_query(given: FilterObject, argument: int) -> LogQuery:
    """The query that a filter object means."""
    if given.block_hash is not None and (given.from_block or given.to_block):
        refuse(
            argument,
            "",
            "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other",
        )
    addresses, *topics = values = _read_values(given, argument)
    log_filter = LogFilter(addresses, topics)
    if given.block_hash is not None:
        block_hash = hash32(given.block_hash, argument, "$.blockHash")
        return LogQuery(log_filter, block_hash, values=values)
    first = _read_end(given.from_block, argument, "latest")
    last = _read_end(given.to_block, argument, "pending" if first == "pending" else "latest")
    return LogQuery(log_filter, first=first, last=last, values=values)


def _read_end(given: BlockParam, argument: int, default: BlockId) -> BlockId:
    return default if given is None else read_block(given, argument)


def _read_values(given: FilterObject, argument: int) -> list[list[bytes]]:
    """The addresses, then the topics of each position."""
    if len(given.topics or ()) > MOST_POSITIONS:
        refuse(argument, "", "exceed max topics")
    if isinstance(given.address, str):
        addresses = [address(given.address, argument, "$.address")]
    else:
        if len(given.address or ()) > MOST_VALUES:
            raise RefusedFilter("exceed max addresses or topics per search position")
        addresses = _read_each(address, given.address or [], argument, "$.address")
    topics = [
        _read_position(position, argument, f"$.topics[{index}]")
        for index, position in enumerate(given.topics or ())
    ]
    return [addresses, *topics]


def _read_each(
    read: Callable[[str, int, str], bytes], texts: Sequence[str], argument: int, path: str
) -> list[bytes]:
    try:
        return [read(text, argument, path) for text in texts]
    except InvalidParams:  # making a path for each value takes longer than reading it
        return [read(text, argument, f"{path}[{index}]") for index, text in enumerate(texts)]


def _read_position(given: str | list[str | None] | None, argument: int, path: str) -> list[bytes]:
    """The topics of a position; none match every topic, and so does a null among them."""
    if given is None:
        return []
    if isinstance(given, str):
        return [hash32(given, argument, path)]
    if len(given) > MOST_VALUES:
        refuse(argument, "", "exceed max topics")
    before_null = list(takewhile(lambda text: text is not None, given))
    topics = _read_each(hash32, cast("list[str]", before_null), argument, path)
    return topics if len(before_null) == len(given) else []


class LogMethods:
    """Methods that find logs."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._limits: Final = settings.logs
        self._scheduler = scheduler

    def get_logs(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The logs that match a filter, in their order in the chain."""
        deadline = self._scheduler.deadline()

        def answer(pace: Pace) -> Steps[Text]:
            query = yield from read_in_turn(read_query, raw)
            return (yield from paced(self.find(view, query, deadline), pace))

        found = self._scheduler.run(answer, view.client, self._scheduler.searches)
        return self._scheduler.send_text(found) if isinstance(found, bytes | list) else found

    def find(self, view: LedgerView, query: LogQuery, deadline: float) -> Steps[Text]:
        """Find the logs of a query before a deadline."""
        where = query.find_range(view)
        self._check_distance(where)
        texts = LogTexts(
            where,
            self._limits.results,
            lambda: self._scheduler.time_is_up(deadline, THRESHOLDS.logs_time),
        )
        yield from find_logs(view, query.filter, where, texts)
        view.remember_log_limits(self._limits.blocks, self._limits.results)
        return texts.text()

    def _check_distance(self, where: LogRange) -> None:
        most = self._limits.blocks
        if most and where.last - where.first > most:
            why = f"exceed maximum block range: {most}"
            raise TooManyLogs(why, where.first, where.first + most)
