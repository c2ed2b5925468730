"""The pool of one network, asked over the bus for all views of it.

Questions of one kind go together (`bus.rounds`), so that no number of requests keeps the writer
from its work. Transactions by hash are asked for most and cost least.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from foreblock.bus.frames import WaitingTransaction
from foreblock.bus.link import QUESTION_SECONDS, WriterLink
from foreblock.bus.pool_question import MOST_ABOUT, MOST_BYTES, PoolContent
from foreblock.bus.rounds import Rounds
from foreblock.errors import PoolTooLarge

SHORT_GAP: Final = 0.005  # seconds between questions that cost the writer some microseconds
LONG_GAP: Final = 0.25  # and between those that cost it milliseconds
PATIENCE: Final = 2 * QUESTION_SECONDS  # of a request, with the round before its own


class WriterPool:
    """Asks the writer, in rounds."""

    def __init__(self, link: WriterLink, network: str) -> None:
        ask = partial(link.ask_pool, network)
        short = partial(Rounds[PoolContent], gap_seconds=SHORT_GAP, patience_seconds=PATIENCE)
        self._found: Final = short(partial(ask, "found"), most=MOST_ABOUT)
        self._of_senders: Final = short(partial(ask, "of_senders"), most=1)
        self._numbers: Final = short(lambda _: ask("numbers"), most=1)
        self._all: Final = Rounds[PoolContent](
            lambda _: ask("all"), most=1, gap_seconds=LONG_GAP, patience_seconds=PATIENCE
        )

    async def find(self, transaction_hash: bytes) -> WaitingTransaction | None:
        """The transaction with this hash; raises `PoolUnavailable`."""
        content = await self._found.answer(transaction_hash)
        return next((each for each in content.transactions if each.hash == transaction_hash), None)

    async def numbers(self) -> tuple[int, int]:
        """How many can run, and how many wait for a nonce; raises `PoolUnavailable`."""
        content = await self._numbers.answer()
        return content.pending, content.queued

    async def of_sender(self, sender: bytes) -> Sequence[WaitingTransaction]:
        """Those of a sender; raises `PoolUnavailable`, `PoolTooLarge`."""
        return _whole(await self._of_senders.answer(sender))

    async def all(self) -> Sequence[WaitingTransaction]:
        """All of them; raises `PoolUnavailable`, `PoolTooLarge`."""
        return _whole(await self._all.answer())


def _whole(content: PoolContent) -> Sequence[WaitingTransaction]:
    if content.left_out:
        raise PoolTooLarge(content.left_out, MOST_BYTES)
    return content.transactions
