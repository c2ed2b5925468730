"""Transactions between the nodes of a log: handed to the writer, and taken in as the writer.

A worker of a replica hands in as ever. `Forwarding` sends it to the writer of the epoch that the
replica has applied; the sender's next nonce comes back with the answer, and all workers here
have it before the client has its answer. `Reception` gives the transactions of replicas to the
network that this node writes, as if a worker had sent them.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

from foreblock.bus.exchange import Respond
from foreblock.bus.frames import (
    Accepted,
    Busy,
    NextNonce,
    Rejected,
    Submit,
    TakenUp,
    ToWorker,
)
from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import OutcomeUnknown, SequencerBusy, SequencerUnavailable
from foreblock.log.connection import LogConnection
from foreblock.log.forwarding import SUBMIT_SECONDS, submit
from foreblock.log.submission import ForwardedAnswer, ForwardedTransaction

MOST_WAITING: Final = 4096  # transactions that a replica has sent and that are not answered


class Forwarding:
    """Hands the transactions of one replica to the writer."""

    def __init__(
        self,
        network: str,
        connection: LogConnection,
        epoch: Callable[[], int],
        clock: Clock,
        tell: Callable[[ToWorker], None],
    ) -> None:
        """`epoch` is the one that was applied last; `tell` reaches all workers."""
        self._network: Final = network
        self._connection: Final = connection
        self._epoch: Final = epoch
        self._clock: Final = clock
        self._tell: Final = tell
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def submit(self, message: Submit, respond: Respond) -> None:
        """Send a transaction on; `respond` gets the answers, as from a writer here."""
        if len(self._tasks) >= MOST_WAITING:
            respond(Busy(message.id))
            return
        left = (message.deadline_ns - self._clock.monotonic_ns()) / SECOND_NS
        if left <= 0 or respond(TakenUp((message.id,))) is False:
            respond(Rejected(message.id, str(SequencerUnavailable())))
            return
        task = asyncio.create_task(self._forward(message, respond, min(left, SUBMIT_SECONDS)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, message: Submit, respond: Respond, seconds: float) -> None:
        transaction = ForwardedTransaction(message.sender, message.raw)
        try:
            answer = await submit(self._connection, self._epoch(), transaction, seconds)
        except SequencerUnavailable as why:
            respond(Rejected(message.id, str(why)))
            return
        except OutcomeUnknown:
            return  # the worker says so at its deadline
        if answer.next_nonce:
            self._tell(NextNonce(self._network, message.sender, answer.next_nonce))
        if answer.rejected is None:
            respond(Accepted(message.id))
        else:
            respond(Rejected(message.id, answer.rejected))

    def close(self) -> None:
        """Answer no more."""
        for task in self._tasks:
            task.cancel()


class Written(Protocol):
    """A network that this node writes."""

    def submit(self, message: Submit, respond: Respond) -> None:
        """Submit a transaction; `respond` gets the answers."""

    def told_nonce(self, sender: bytes) -> int:
        """The next nonce of a sender that workers were told last; 0 if none."""


class Reception:
    """Takes in the transactions of replicas."""

    def __init__(self, network: str, written: Written, clock: Clock) -> None:
        self._network: Final = network
        self._written: Final = written
        self._clock: Final = clock
        self._numbers: Final = count(1)

    async def examine(self, transaction: ForwardedTransaction) -> ForwardedAnswer:
        """The answer of the network."""
        answered: asyncio.Future[ForwardedAnswer] = asyncio.get_running_loop().create_future()
        sender = transaction.sender

        def respond(word: ToWorker) -> bool:
            # The nonce is read at once: it is told just before the answer.
            if not answered.done() and (why := _reason(word)) is not None:
                nonce = self._written.told_nonce(sender)
                answered.set_result(ForwardedAnswer(nonce, why or None))
            return True

        deadline_ns = self._clock.monotonic_ns() + round(SUBMIT_SECONDS * SECOND_NS)
        message = Submit(next(self._numbers), self._network, transaction.raw, sender, deadline_ns)
        self._written.submit(message, respond)
        return await answered


def _reason(word: ToWorker) -> str | None:
    """Why a transaction is not taken; empty if it is, none if nothing is said of that."""
    match word:
        case Accepted():
            return ""
        case Rejected(_, why):
            return why or "rejected"
        case Busy():
            return str(SequencerBusy())
        case _:
            return None
