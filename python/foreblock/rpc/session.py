"""The session of one WebSocket connection: each message is answered by itself."""

from collections.abc import Awaitable
from functools import partial
from typing import Final

from foreblock.scheduling.reply import Channel, Handler, OpenSession, Reply


class RequestSession:
    """Answers the requests of one connection, and keeps nothing between them."""

    __slots__ = ("_answer", "_channel")

    def __init__(self, answer: Handler, channel: Channel) -> None:
        self._answer: Final = answer
        self._channel: Final = channel

    def receive(self, message: bytes) -> Reply | Awaitable[Reply]:
        """Answer a request or a batch, each on one view, as over HTTP."""
        return self._answer(message, self._channel.client)

    def ended(self) -> None:
        """Nothing to stop: requests that wait are cancelled by the connection."""


def sessions_of(answer: Handler) -> OpenSession:
    """Sessions of connections that are answered by this handler."""
    return partial(RequestSession, answer)
