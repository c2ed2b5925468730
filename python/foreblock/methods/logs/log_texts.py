"""Logs as JSON text, gathered within the limits of one query.

A query over several blocks is refused when it finds too many logs, too many bytes, or takes too
long; the refusal names the blocks up to the one at which it happened. One block is never
refused: its logs could not be had otherwise, and a block is limited by its gas.
"""

from binascii import hexlify
from collections.abc import Callable
from typing import Final

from foreblock.errors import TooManyLogs
from foreblock.ledger.reading.event_items import PlacedLog
from foreblock.ledger.reading.logs import LogRange
from foreblock.methods.shapes import array, members, write_data, write_quantity
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.thresholds import THRESHOLDS


def log_end(block_hash: bytes, number: int, timestamp: int, *, removed: bool = False) -> bytes:
    """The members that all logs of a block end with."""
    return members(
        {
            b"blockHash": write_data(block_hash),
            b"blockNumber": write_quantity(number),
            b"blockTimestamp": write_quantity(timestamp),
            b"removed": b"true" if removed else b"false",
        }
    )


def log_text(placed: PlacedLog, end: bytes) -> bytes:
    """A log object; `end` are the members that all logs of its block share."""
    log = placed.log
    return (
        b'{"address":"0x%b","topics":%b,"data":"0x%b","logIndex":"0x%x",'
        b'"transactionHash":"0x%b","transactionIndex":"0x%x",%b}'
    ) % (
        hexlify(log.address),
        array(list(map(write_data, log.topics))),
        hexlify(log.data),
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

    def begin(self, block_hash: bytes, number: int, timestamp: int) -> bytes:
        """A block in which there may be logs."""
        self.reach(number)
        self._end = log_end(block_hash, number, timestamp)
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
        """All of them."""
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
