"""Transactions between the nodes of a log: sent to the writer, and received by the writer.

A worker of a replica submits as to a local sequencer. `Forwarding` sends the transaction to the
writer of the epoch that the replica has applied; the sender's next nonce comes back with the
reply, and all workers here have it before the client has its reply. `Reception` submits the
transactions of replicas to the network that this node writes, as if a worker had sent them.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Final

from foreblock.bus.messages import (
    FAILURES,
    BusCall,
    BusRequest,
    Failed,
    NextNonce,
    Result,
    Submit,
    ToWorker,
)
from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import (
    OutcomeUnknown,
    RejectedTransaction,
    SequencerBusy,
    SequencerUnavailable,
)
from foreblock.log.connection import LogConnection
from foreblock.log.node_messages import SUBMIT_SECONDS, submit
from foreblock.log.submission import ForwardedAnswer, ForwardedTransaction
from foreblock.sources.network_thread import RunningNetwork

MOST_WAITING: Final = 4096  # transactions of a replica in flight


class Forwarding:
    """Sends the transactions of one replica to the writer."""

    def __init__(
        self,
        network: str,
        connection: LogConnection,
        epoch: Callable[[], int],
        clock: Clock,
        broadcast: Callable[[ToWorker], None],
    ) -> None:
        """`epoch` is the one that was applied last; `broadcast` reaches all workers."""
        self._network: Final = network
        self._connection: Final = connection
        self._epoch: Final = epoch
        self._clock: Final = clock
        self._broadcast: Final = broadcast
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def submit(self, request: BusRequest) -> None:
        """Forward a transaction; its worker gets the replies, as from a local writer."""
        if len(self._tasks) >= MOST_WAITING:
            request.fail(SequencerBusy())
            return
        left = (request.call.deadline_ns - self._clock.monotonic_ns()) / SECOND_NS
        if left <= 0 or not request.start():
            request.refuse()
            return
        task = asyncio.create_task(self._forward(request, min(left, SUBMIT_SECONDS)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, request: BusRequest, seconds: float) -> None:
        sender = request.submission.sender
        transaction = ForwardedTransaction(sender, request.submission.raw)
        try:
            answer = await submit(self._connection, self._epoch(), transaction, seconds)
        except SequencerUnavailable:
            request.refuse()
            return
        except OutcomeUnknown:
            return  # the worker reports that at its deadline
        if answer.next_nonce:
            self._broadcast(NextNonce(self._network, sender, answer.next_nonce))
        if answer.rejected is None:
            request.finish()
        else:
            request.fail(RejectedTransaction(answer.rejected))

    def close(self) -> None:
        """Stop responding."""
        for task in self._tasks:
            task.cancel()


class Reception:
    """Submits the transactions of replicas."""

    def __init__(self, network: str, writer: RunningNetwork, clock: Clock) -> None:
        self._network: Final = network
        self._writer: Final = writer
        self._clock: Final = clock
        self._numbers: Final = count(1)

    async def examine(self, transaction: ForwardedTransaction) -> ForwardedAnswer:
        """The reply of the network."""
        answered: asyncio.Future[ForwardedAnswer] = asyncio.get_running_loop().create_future()
        sender = transaction.sender

        def respond(message: ToWorker) -> bool:
            # The nonce is read at once: it is announced just before the reply.
            if not answered.done() and isinstance(message, Result | Failed):
                nonce = self._writer.announced_nonce(sender)
                answered.set_result(ForwardedAnswer(nonce, _refusal(message)))
            return True

        deadline_ns = self._clock.monotonic_ns() + round(SUBMIT_SECONDS * SECOND_NS)
        body = Submit(transaction.raw, sender)
        call = BusCall(next(self._numbers), self._network, body, deadline_ns)
        self._writer.on_call(BusRequest(call, respond))
        return await answered


def _refusal(message: Result | Failed) -> str | None:
    if isinstance(message, Result):
        return None
    return str(FAILURES[message.error](*message.facts)) or "rejected"
