"""Sessions of connections that stay open, and the subscriptions of each.

A session answers messages as any request is answered. A method that subscribes finds the
session of its connection here; over plain HTTP there is none. Nothing of a subscription is sent
before the reply that has its id: what a method starts, begins when the reply is handed over.

What is notified, and when, is not known here. A client that does not read is closed by the
transport, which ends its session with all subscriptions.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from functools import partial
from typing import Final

from foreblock.errors import (
    NotificationsUnsupported,
    SubscriptionNotFound,
    SubscriptionsTooLarge,
    TooManySubscriptions,
)
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Channel, Client, Handler, Reply
from foreblock.scheduling.thresholds import THRESHOLDS

ID_BYTES: Final = 16
TRY_AGAIN: Final = 1013  # RFC 6455's registry: the service cannot go on with this client now

Starting = list[Callable[[], None]]

# Subscriptions that start with the current reply.
_starting: ContextVar[Starting | None] = ContextVar("starting", default=None)


def new_id() -> str:
    """An id as other nodes make it: a quantity of up to 16 random bytes."""
    return f"{int.from_bytes(secrets.token_bytes(ID_BYTES)):#x}"


class OpenSubscription:
    """One subscription of a session; it ends with it."""

    __slots__ = ("_on_end", "_opening", "_session", "id", "size")

    def __init__(
        self,
        session: "JsonRpcSession",
        notification: bytes,
        on_end: Callable[["OpenSubscription"], None],
        size: int,
    ) -> None:
        self.size: Final = size
        self.id: Final = new_id()
        self._session: Final = session
        self._on_end: Final = on_end
        self._opening: Final = (
            b'{"jsonrpc":"2.0","method":"%b","params":{"subscription":"%b","result":'
        ) % (notification, self.id.encode())

    def notify(self, rest: bytes) -> bool:
        """Send a notification: its result, then what closes the message.

        False where nothing more can be sent; the subscription has ended then.
        """
        session = self._session
        if session.is_open and session.channel.send(self._opening + rest):
            return True
        session.ended()
        return False

    def when_replied(self, start: Callable[[], None]) -> None:
        """Call this once the client knows the id, if it has not ended by then."""
        starting = _starting.get()
        if starting is None:
            start()
        else:
            starting.append(partial(self._start, start))

    def _start(self, start: Callable[[], None]) -> None:
        if self._session.subscriptions.get(self.id) is self:
            start()

    def fail(self, reason: str) -> None:
        """Close the connection: the client would miss something."""
        session = self._session
        if session.is_open:
            session.channel.close(TRY_AGAIN, reason)
            session.ended()

    def ended(self) -> None:
        """It gets nothing more."""
        self._on_end(self)


class JsonRpcSession:
    """The subscriptions of one connection."""

    __slots__ = ("_sessions", "answer", "bytes", "channel", "is_open", "subscriptions")

    def __init__(self, sessions: "Sessions", channel: Channel, answer: Handler) -> None:
        self._sessions: Final = sessions
        self.channel: Final = channel
        self.answer: Final = answer
        self.is_open = True
        self.bytes = 0  # of all subscriptions
        self.subscriptions: dict[str, OpenSubscription] = {}

    def receive(self, message: bytes) -> Reply | Awaitable[Reply]:
        """Answer a message; never raises."""
        starting: Starting = []
        before = _starting.set(starting)
        try:
            reply = self.answer(message, self.channel.client)
        finally:
            _starting.reset(before)
        if isinstance(reply, Reply):
            if starting:
                self._start_soon(starting)
            return reply
        return self._receive_later(reply, starting)

    async def _receive_later(self, reply: Awaitable[Reply], starting: Starting) -> Reply:
        before = _starting.set(starting)
        try:
            found = await reply
        finally:
            _starting.reset(before)
        if starting:
            self._start_soon(starting)
        return found

    def _start_soon(self, starting: Starting) -> None:
        """Start after the reply to the request was sent."""
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._start, starting)

    def _start(self, starting: Starting) -> None:
        for start in starting:
            start()

    def ended(self) -> None:
        """The connection is gone."""
        if not self.is_open:
            return
        self.is_open = False
        self._sessions.closed(self)
        for each in self.subscriptions.values():
            each.ended()
        self.subscriptions = {}


class Sessions:
    """The sessions of one service in one worker."""

    def __init__(self, most: int = 256, budget: WorkerBudget | None = None) -> None:
        """`most` is the limit of subscriptions of a connection."""
        self._most: Final = most
        self._budget: Final = budget or WorkerBudget()
        self._open: Final[dict[int, JsonRpcSession]] = {}
        self._subscriptions = 0

    @property
    def connections(self) -> int:
        """Open sessions."""
        return len(self._open)

    @property
    def subscriptions(self) -> int:
        return self._subscriptions

    def open(self, answer: Handler, channel: Channel) -> JsonRpcSession:
        """The session of a connection that was opened."""
        session = JsonRpcSession(self, channel, answer)
        self._open[channel.client.connection] = session
        return session

    def closed(self, session: JsonRpcSession) -> None:
        """Forget a session that ended."""
        self._open.pop(session.channel.client.connection, None)
        self._subscriptions -= len(session.subscriptions)
        self._budget.filters_left += session.bytes

    def subscribe(
        self,
        client: Hashable | None,
        notification: bytes,
        on_end: Callable[[OpenSubscription], None],
        size: int = 0,
    ) -> OpenSubscription:
        """A subscription of this client, whose notifications are of this method.

        `size` is the memory that its filter takes. Raises `NotificationsUnsupported` if the
        connection has no session, `TooManySubscriptions` and `SubscriptionsTooLarge`.
        """
        session = self._session(client)
        if len(session.subscriptions) >= self._most:
            raise TooManySubscriptions(self._most)
        if self._subscriptions >= THRESHOLDS.worker_subscriptions:
            raise TooManySubscriptions(THRESHOLDS.worker_subscriptions)
        if session.bytes + size > THRESHOLDS.connection_filters_bytes:
            raise SubscriptionsTooLarge("connection", THRESHOLDS.connection_filters_bytes)
        if size > self._budget.filters_left:
            raise SubscriptionsTooLarge("worker", THRESHOLDS.worker_filters_bytes)
        made = OpenSubscription(session, notification, on_end, size)
        session.subscriptions[made.id] = made
        session.bytes += size
        self._subscriptions += 1
        self._budget.filters_left -= size
        return made

    def unsubscribe(self, client: Hashable | None, id: str) -> None:
        """End a subscription of this client.

        Raises `NotificationsUnsupported`, `SubscriptionNotFound`.
        """
        session = self._session(client)
        found = session.subscriptions.pop(id, None)
        if found is None:
            raise SubscriptionNotFound
        session.bytes -= found.size
        self._subscriptions -= 1
        self._budget.filters_left += found.size
        found.ended()

    def check_supported(self, client: Hashable | None) -> None:
        """Raise `NotificationsUnsupported` where the connection of a client has no session."""
        self._session(client)

    def _session(self, client: Hashable | None) -> JsonRpcSession:
        found = self._open.get(client.connection) if isinstance(client, Client) else None
        if found is None:
            raise NotificationsUnsupported
        return found
