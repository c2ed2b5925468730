"""Questions about the pool of a network: a bounded queue, answered between other work.

Only references are taken on the thread that writes; encoding them is the loop's, a part in each
turn. A question whose deadline has passed is dropped, since nobody waits for its answer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from foreblock.bus.exchange import Respond
from foreblock.bus.frames import AskPool, PoolNotRead
from foreblock.bus.pool_question import MOST_ABOUT, in_parts
from foreblock.clock import Clock
from foreblock.sequencer.pool_look import PoolLook, PoolWindow

MOST: Final = 512  # questions that wait; a worker asks four at a time

# Runs something on the thread that writes.
OnThread = Callable[[Callable[[], list[PoolLook]]], Awaitable[list[PoolLook]]]


class HasPool(Protocol):
    """A source of blocks whose pool can be looked at."""

    @property
    def window(self) -> PoolWindow:
        """A look at the transactions that wait."""


class PoolQuestions:
    """The questions that wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._waiting: Final[deque[tuple[AskPool, Respond]]] = deque()
        self._sending: Final[set[asyncio.Task[None]]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: AskPool, respond: Respond) -> None:
        """Queue a question; beyond a number there is no answer."""
        if len(self._waiting) >= MOST or len(message.about) > MOST_ABOUT:
            respond(PoolNotRead(message.id))
        else:
            self._waiting.append((message, respond))

    def refuse_all(self) -> None:
        """Answer all with nothing: the network ends."""
        while self._waiting:
            message, respond = self._waiting.popleft()
            respond(PoolNotRead(message.id))
        for sending in self._sending:
            sending.cancel()

    async def answer(self, on_thread: OnThread, source: HasPool) -> None:
        """Answer all that wait; the parts are sent while the network goes on."""
        now = self._clock.monotonic_ns()
        due = [each for each in self._waiting if now < each[0].deadline_ns]
        self._waiting.clear()
        looks = await on_thread(lambda: [look(source.window, message) for message, _ in due])
        for (message, respond), found in zip(due, looks, strict=True):
            sending = asyncio.create_task(_send(message.id, respond, found))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)


async def _send(number: int, respond: Respond, found: PoolLook) -> None:
    for part in in_parts(number, *found):
        respond(part)
        await asyncio.sleep(0)


def look(window: PoolWindow, question: AskPool) -> PoolLook:
    """On the thread: what the pool has of what is asked for."""
    match question.wanted:
        case "found":
            return window.found(question.about)
        case "of_senders":
            return window.of_senders(question.about)
        case "all":
            return window.all()
        case "numbers":
            return window.numbers()
