"""The filter object of logs: which logs, and of which blocks.

As in geth: an empty list of addresses, or of topics at a position, means any; a null among the
topics of a position does as well. A log with fewer topics than the filter has positions does
not match.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from foreblock.errors import RefusedLogFilter
from foreblock.ledger.reading.blocks import TAGS, Tag
from foreblock.methods.block_param import MAX_NUMBER
from foreblock.methods.params import DECODING, address, hash32, quantity, refuse

MAX_TOPICS: Final = 4
MAX_CHOICES: Final = 1000  # addresses, and topics at one position


class LogFilter(Struct, frozen=True):
    """Which logs: of any of these addresses, with any of these topics at each position."""

    addresses: frozenset[bytes] | None = None
    topics: tuple[frozenset[bytes] | None, ...] = ()

    def matches(self, address: bytes, topics: Sequence[bytes]) -> bool:
        """Whether a log is one of them."""
        if self.addresses is not None and address not in self.addresses:
            return False
        if len(topics) < len(self.topics):
            return False
        return all(
            wanted is None or found in wanted
            for wanted, found in zip(self.topics, topics, strict=False)
        )


class LogQuery(Struct, frozen=True):
    """Which logs, and of which blocks."""

    filter: LogFilter
    from_block: Tag | int | None = None
    to_block: Tag | int | None = None
    block_hash: bytes | None = None


class _Fields(Struct, rename="camel", gc=False):
    address: str | list[str] | None = None
    topics: list[str | list[str | None] | None] | None = None
    from_block: str | None = None
    to_block: str | None = None
    block_hash: str | None = None


_decode = msgspec.json.Decoder(_Fields).decode


def read_log_filter(raw: Raw, argument: int) -> LogQuery:
    """The filter object; raises `BadArgument` and `RefusedLogFilter`."""
    try:
        fields = _decode(raw)
    except DECODING:
        refuse(argument, "", "a filter is an object of address, topics, fromBlock and toBlock")
    ranged = fields.from_block is not None or fields.to_block is not None
    if fields.block_hash is not None and ranged:
        why = "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other"
        refuse(argument, "", why)
    found = LogFilter(_addresses(fields, argument), _topics(fields, argument))
    return LogQuery(
        found,
        _block(fields.from_block, argument, "$.fromBlock"),
        _block(fields.to_block, argument, "$.toBlock"),
        None if fields.block_hash is None else hash32(fields.block_hash, argument, "$.blockHash"),
    )


def _addresses(fields: _Fields, argument: int) -> frozenset[bytes] | None:
    given = fields.address
    if given is None or given == []:
        return None
    texts = [given] if isinstance(given, str) else given
    if len(texts) > MAX_CHOICES:
        raise RefusedLogFilter("exceed max addresses or topics per search position")
    return frozenset(address(text, argument, "$.address") for text in texts)


def _topics(fields: _Fields, argument: int) -> tuple[frozenset[bytes] | None, ...]:
    given = fields.topics or []
    if len(given) > MAX_TOPICS:
        raise RefusedLogFilter("exceed max topics")
    return tuple(_choices(each, argument) for each in given)


def _choices(given: str | list[str | None] | None, argument: int) -> frozenset[bytes] | None:
    texts = [given] if given is None or isinstance(given, str) else given
    if len(texts) > MAX_CHOICES:
        raise RefusedLogFilter("exceed max addresses or topics per search position")
    found = [text and hash32(text, argument, "$.topics") for text in texts]
    if not found or any(each is None for each in found):
        return None
    return frozenset(each for each in found if isinstance(each, bytes))


def _block(text: str | None, argument: int, path: str) -> Tag | int | None:
    if text is None:
        return None
    tag = TAGS.get(text)
    if tag is not None:
        return tag
    number = quantity(text, 64, argument, path)
    if number > MAX_NUMBER:
        refuse(argument, path, "block number larger than int64")
    return number
