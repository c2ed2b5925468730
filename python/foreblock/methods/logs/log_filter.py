"""The filter object: what logs are asked for, and in which blocks.

It names one address or many, topics by position (one, many, or null for any), and either the
hash of a block or a range. A range is given by numbers or tags, or as block parameters are. An
end that is left out is `latest`; one that follows `pending` is `pending` too. Limits and
refusals are geth's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, cast

from msgspec import Raw, Struct

from foreblock.errors import InvalidParams, RefusedFilter
from foreblock.ledger.reading.blocks import BlockId
from foreblock.ledger.reading.logs import LogFilter, LogRange, block_range, number_range
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.params import Params, address, hash32, reader, refuse

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


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A filter that was read: which logs match, and the blocks they are looked for in."""

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
    except InvalidParams:  # making the path of each value takes longer than reading it
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
