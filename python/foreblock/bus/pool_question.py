"""A question about the pool of a network, from its first to its last part. No I/O.

Answers are bounded: the writer sends parts of `PART_BYTES`, and of more than `MOST_BYTES` only
how many bytes it would be.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from msgspec import Struct

from foreblock.bus.frames import PoolNotRead, PoolPart, WaitingTransaction
from foreblock.errors import PoolUnavailable

PART_BYTES: Final = 64 << 10  # of transactions, which one turn of the writer's loop encodes
MOST_BYTES: Final = 4 << 20  # of an answer, as transactions are encoded
MOST_ABOUT: Final = 32  # transactions of at most 128 KiB that one question may name


class Encoded(Protocol):
    """A transaction, as far as an answer needs it."""

    @property
    def hash(self) -> bytes:
        """Its hash."""

    @property
    def raw(self) -> bytes:
        """Its encoding."""

    @property
    def sender(self) -> bytes:
        """The account that signed it."""


class PoolContent(Struct, frozen=True):
    """A whole answer."""

    transactions: tuple[WaitingTransaction, ...]
    pending: int  # transactions in all of the pool that can run
    queued: int  # those that wait for a nonce
    left_out: int = 0  # bytes that were too many; `transactions` is empty then


class PoolQuestion:
    """A question, as its worker knows it."""

    def __init__(self) -> None:
        self._heard: list[WaitingTransaction] = []
        self.answer: asyncio.Future[PoolContent] = asyncio.get_running_loop().create_future()

    def hear(self, word: PoolPart | PoolNotRead) -> None:
        """Apply a message of the writer."""
        if self.answer.done():
            return
        if isinstance(word, PoolNotRead):
            self.give_up()
            return
        self._heard += word.transactions
        if word.is_last:
            self.answer.set_result(
                PoolContent(tuple(self._heard), word.pending, word.queued, word.left_out)
            )

    def give_up(self) -> None:
        """Fail without an answer."""
        if not self.answer.done():
            self.answer.set_exception(PoolUnavailable())


def in_parts(
    number: int,
    found: Sequence[tuple[Encoded, bool]],
    size: int,
    pending: int,
    queued: int,
) -> Iterator[PoolPart]:
    """The answer to a question: transactions of `size` bytes, each with whether it can run."""
    if size > MOST_BYTES:
        yield PoolPart(number, (), pending=pending, queued=queued, left_out=size)
        return
    part: list[WaitingTransaction] = []
    held = 0
    for transaction, can_run in found:
        raw = transaction.raw
        if part and held + len(raw) > PART_BYTES:
            yield PoolPart(number, tuple(part), is_last=False)
            part, held = [], 0
        part.append(WaitingTransaction(transaction.hash, raw, transaction.sender, can_run))
        held += len(raw)
    yield PoolPart(number, tuple(part), pending=pending, queued=queued)
