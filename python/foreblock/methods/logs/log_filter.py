"""The filter object: what logs are asked for, and in which blocks.

As in geth, an empty list of addresses, or of topics at a position, means any; a null among the
topics of a position does as well. A log with fewer topics than the filter has positions does
not match. An end of the range that is left out is `latest`.
"""

from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from foreblock.errors import RefusedFilter
from foreblock.ledger.reading.blocks import BlockId
from foreblock.ledger.reading.logs import LogFilter
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.params import address, hash32, refuse

MOST_POSITIONS: Final = 4
MOST_VALUES: Final = 1000  # addresses, and topics of one position
TOO_MANY: Final = "exceed max addresses or topics per search position"


class FilterObject(Struct, rename="camel", gc=False):
    """A filter as it comes."""

    block_hash: str | None = None
    from_block: BlockParam = None
    to_block: BlockParam = None
    address: str | list[str] | None = None
    topics: list[str | list[str | None] | None] | None = None


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A filter that was read: which logs match, and the blocks they are looked for in."""

    filter: LogFilter
    block_hash: bytes | None = None
    first: BlockId = "latest"
    last: BlockId = "latest"


def make_query(given: FilterObject, argument: int) -> LogQuery:
    """The query that a filter object means; raises `InvalidParams`, `RefusedFilter`."""
    ends = (given.from_block, given.to_block)
    if given.block_hash is not None and ends != (None, None):
        why = "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other"
        refuse(argument, "", why)
    log_filter = LogFilter(_read_addresses(given, argument), _read_topics(given, argument))
    if given.block_hash is not None:
        return LogQuery(log_filter, hash32(given.block_hash, argument, "$.blockHash"))
    first, last = ("latest" if end is None else read_block(end, argument) for end in ends)
    return LogQuery(log_filter, first=first, last=last)


def _read_addresses(given: FilterObject, argument: int) -> list[bytes]:
    texts = [given.address] if isinstance(given.address, str) else given.address or []
    if len(texts) > MOST_VALUES:
        raise RefusedFilter(TOO_MANY)
    return [address(text, argument, "$.address") for text in texts]


def _read_topics(given: FilterObject, argument: int) -> list[list[bytes]]:
    positions = given.topics or []
    if len(positions) > MOST_POSITIONS:
        refuse(argument, "", "exceed max topics")
    return [_read_position(each, argument, f"$.topics[{n}]") for n, each in enumerate(positions)]


def _read_position(given: str | list[str | None] | None, argument: int, path: str) -> list[bytes]:
    texts = [given] if isinstance(given, str) else given or []
    if len(texts) > MOST_VALUES:
        raise RefusedFilter(TOO_MANY)
    found = [text and hash32(text, argument, path) for text in texts]
    return [] if None in found else [each for each in found if isinstance(each, bytes)]
