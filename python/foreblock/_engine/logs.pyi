"""Logs: filters, the logs that match, and the index of logs.

A term stands for an address, or for a topic at a position, in 8 bytes. A section of the index
is stored in chunks under the prefix of the section and the first entry of the chunk (10 bytes);
`ledger/storage/section_index.py` has the layout. Other rows raise `StoreDamaged`.
"""

from collections.abc import Sequence
from typing import Final, Self, final

from foreblock._engine.codec import Log
from foreblock._engine.store import View

@final
class LogFilter:
    """Addresses, and topics by position; where none are given, all match."""

    size: Final[int]  # the number of addresses and topics

    def __new__(cls, addresses: Sequence[bytes], topics: Sequence[Sequence[bytes]]) -> Self: ...
    def matches(self, log: Log) -> bool:
        """Whether its address and its topics match; it must have a topic for each position."""

    def in_bloom(self, bloom: bytes) -> bool:
        """Whether logs with this bloom may match."""

    def blocks_in_bloom(self, view: View, prefix: bytes, first: int, stop: int) -> list[int]:
        """The blocks of a range whose bloom allows that logs match.

        Headers are in rows under `prefix` and the number of the block, after 32 other bytes.
        """

@final
class LogSearch:
    """A search in the index for blocks that may have logs which match a filter."""

    def __new__(
        cls,
        filter: LogFilter,
        runs: Sequence[tuple[tuple[bytes, int], tuple[int, int]]],
        first: int,
        stop: int,
    ) -> Self:
        """Look for blocks from `first` up to `stop`.

        A run is consecutive sections: the prefix of all of one size and their number of blocks,
        then the first block and the one after the last.
        """

    @property
    def reached(self) -> int | None:
        """The first block that is not searched yet; None at the end."""

    def go_on(self, view: View, look_ups: int) -> list[int]:
        """The blocks in the sections that are finished within this many terms looked up."""

@final
class BlockLogs:
    """The logs of one block that match a filter, read some at a time."""

    def __new__(
        cls, filter: LogFilter, portions: Sequence[tuple[bytes, bytes]], end: bytes
    ) -> Self:
        """`portions` are the keys of transactions and receipts; `end` are the last members."""

    def read(self, view: View, items: int, bytes: int) -> tuple[bytes, int] | None:
        """The next logs as JSON objects, joined by commas, and their number; None at the end.

        It stops after this many receipts and logs, or about this many bytes of text.
        """

def log_terms(view: View, receipts: Sequence[bytes]) -> bytes:
    """The terms of all logs in the rows of receipts under these keys, sorted."""

def log_section(blocks: Sequence[bytes]) -> list[bytes]:
    """The chunks of a section of blocks whose terms are given."""

def merge_log_sections(
    view: View, sources: Sequence[tuple[bytes, int]], start: bytes, most: int
) -> tuple[list[bytes], bytes | None]:
    """Chunks of a section that is merged from others, beginning with the entry `start`.

    `sources` are prefixes of sections, each with the place of its first block in the new one.
    About `most` entries are taken from each. Gives the entry to go on with; None at the end.
    """
