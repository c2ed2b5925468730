"""The filter object: what logs are asked for, and in which blocks.

It names one address or many, topics by position (one, many, or null for any), and either the
hash of a block or a range. A range is given by numbers or tags, or as block parameters are. An
end that is left out is `latest`; one that follows `pending` is `pending` too. Limits and
refusals are geth's.
"""

from dataclasses import dataclass
from typing import Final

from msgspec import Raw, Struct

from foreblock.errors import RefusedFilter
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
    log_filter = _make_filter(given, argument)
    if given.block_hash is not None:
        return LogQuery(log_filter, hash32(given.block_hash, argument, "$.blockHash"))
    first = _read_end(given.from_block, argument, "latest")
    return LogQuery(
        log_filter,
        first=first,
        last=_read_end(given.to_block, argument, "pending" if first == "pending" else "latest"),
    )


def _read_end(given: BlockParam, argument: int, default: BlockId) -> BlockId:
    return default if given is None else read_block(given, argument)


def _make_filter(given: FilterObject, argument: int) -> LogFilter:
    texts = [given.address] if isinstance(given.address, str) else given.address or []
    if len(given.topics or ()) > MOST_POSITIONS:
        refuse(argument, "", "exceed max topics")
    if len(texts) > MOST_VALUES:
        raise RefusedFilter("exceed max addresses or topics per search position")
    addresses = [
        address(text, argument, "$.address" if texts == [given.address] else f"$.address[{index}]")
        for index, text in enumerate(texts)
    ]
    topics = [
        _read_position(position, argument, f"$.topics[{index}]")
        for index, position in enumerate(given.topics or ())
    ]
    return LogFilter(addresses, topics)


def _read_position(given: str | list[str | None] | None, argument: int, path: str) -> list[bytes]:
    """The topics of a position; none match every topic, and so does a null among them."""
    if given is None:
        return []
    if isinstance(given, str):
        return [hash32(given, argument, path)]
    if len(given) > MOST_VALUES:
        refuse(argument, "", "exceed max topics")
    topics: list[bytes] = []
    for index, text in enumerate(given):
        if text is None:
            return []
        topics.append(hash32(text, argument, f"{path}[{index}]"))
    return topics
