"""Logs: filters, matching logs, and the log index.

A term represents an address, or a topic at a position, in 8 bytes. A section of the index is stored
in chunks whose keys are the prefix of the section and the first entry of the chunk (10 bytes);
`ledger/storage/section_index.py` has the layout. Other rows raise `StoreDamaged`.
"""

from collections.abc import Sequence
from typing import Final, Self, final

from foreblock._engine.store import View

@final
class LogFilter:
    """Addresses, and topics by position; an empty list matches all."""

    size: Final[int]  # the number of addresses and topics

    def __new__(cls, addresses: Sequence[bytes], topics: Sequence[Sequence[bytes]]) -> Self: ...
    def matches(self, address: bytes, topics: tuple[bytes, ...]) -> bool:
        """True if a log with these matches; it must have a topic for each position."""

    def in_bloom(self, bloom: bytes) -> bool:
        """True if logs with this bloom may match."""

    def blocks_in_bloom(self, view: View, prefix: bytes, first: int, stop: int) -> list[int]:
        """The blocks of a range whose bloom may contain matching logs.

        Headers are in rows with the key `prefix` and the block number, after 32 other bytes.
        """

@final
class LogSearch:
    """A search in the index for blocks that may contain matching logs."""

    def __new__(
        cls,
        filter: LogFilter,
        runs: Sequence[tuple[tuple[bytes, int], tuple[int, int]]],
        first: int,
        stop: int,
    ) -> Self:
        """Search blocks from `first` up to `stop`.

        A run is a range of consecutive sections: their common prefix and their number of blocks,
        then the first block and the one after the last.
        """

    @property
    def reached(self) -> int | None:
        """The first block that is not searched yet; None at the end."""

    def go_on(self, view: View, look_ups: int) -> list[int]:
        """Look up this many terms; return the blocks in the sections completed."""

@final
class BlockLogs:
    """The matching logs of one block, read incrementally."""

    def __new__(
        cls, filter: LogFilter, portions: Sequence[tuple[bytes, bytes]], end: bytes
    ) -> Self:
        """`portions` are the keys of transactions and receipts; `end` are the last members."""

    def read(self, view: View, items: int, bytes: int) -> tuple[bytes, int] | None:
        """The next logs as JSON objects, separated by commas, and their number; None at the end.

        Stops after this many receipts and logs, or about this many bytes of JSON.
        """

def log_terms(view: View, receipts: Sequence[bytes]) -> bytes:
    """The terms of all logs in the rows of receipts under these keys, sorted."""

def log_section(blocks: Sequence[bytes]) -> list[bytes]:
    """The chunks of a section of blocks with these terms."""

def merge_log_sections(
    view: View, sources: Sequence[tuple[bytes, int]], start: bytes, most: int
) -> tuple[list[bytes], bytes | None]:
    """Merge sections, starting with the entry `start`; return chunks of the new section.

    `sources` are the prefixes of the sections, each with the offset of its first block in the new
    one. About `most` entries are taken from each. Also returns the entry to continue with; None at
    the end.
    """
