"""One transaction on its way to the pool, as the worker knows it: no I/O.

It was handed over, may have been taken up, and is answered or not. As long as the writer has
not said that it takes it up, nobody has looked at it, and after its deadline nobody will; so a
refusal is certain then. Afterwards, without an answer, nothing is.
"""

import asyncio

from foreblock.bus.frames import Accepted, Busy, Rejected, TakenUp
from foreblock.errors import (
    OutcomeUnknown,
    RejectedTransaction,
    SequencerBusy,
    SequencerUnavailable,
)

# What the writer says of one transaction.
Word = TakenUp | Accepted | Rejected | Busy


class Handed:
    """What is known of a transaction that was handed over."""

    def __init__(self) -> None:
        self.taken_up = False
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def hear(self, word: Word) -> None:
        """Take in what the writer says of it."""
        match word:
            case TakenUp():
                self.taken_up = True
            case Accepted():
                self._end(None)
            case Rejected(_, why):
                self._end(RejectedTransaction(why))
            case Busy():
                self._end(SequencerBusy())

    def give_up(self, *, heard_all: bool) -> None:
        """Nobody will answer any more: after the deadline, or because the writer has gone.

        `heard_all`: nothing that the writer has said by now is unread.
        """
        certain = heard_all and not self.taken_up
        self._end(SequencerUnavailable() if certain else OutcomeUnknown())

    def _end(self, failure: Exception | None) -> None:
        if self.answer.done():
            return
        if failure is None:
            self.answer.set_result(None)
        else:
            self.answer.set_exception(failure)
