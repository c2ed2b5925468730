"""In-memory connections that stay open; sent messages are recorded."""

import inspect
import itertools
import json
from typing import Any

from foreblock.scheduling.reply import Client, OpenSession
from support.servers.asking import body_of, request
from support.servers.in_loop import until

Json = Any
_numbers = itertools.count(1)


class RecordingChannel:
    """The sending end of a connection."""

    def __init__(self) -> None:
        self.client = Client("127.0.0.1", next(_numbers))
        self.sent: list[bytes] = []
        self.budget = 1 << 30  # messages that it accepts
        self.closed: tuple[int, str] | None = None

    @property
    def unsent(self) -> int:
        return 0

    def send(self, message: bytes) -> bool:
        if self.closed is not None or self.budget <= 0:
            return False
        self.budget -= 1
        self.sent.append(message)
        return True

    def close(self, code: int, reason: str) -> None:
        self.closed = self.closed or (code, reason)


class Connection:
    """A client on such a connection."""

    def __init__(self, open_session: OpenSession) -> None:
        self.channel = RecordingChannel()
        self.session = open_session(self.channel)

    async def send(self, body: bytes) -> Json:
        """Return the response to a message, which precedes everything it causes."""
        reply = self.session.receive(body)
        found = await reply if inspect.isawaitable(reply) else reply
        return json.loads(body_of(found))

    async def ask(self, method: str, *params: object) -> Json:
        """Return the result, or the error object."""
        answer = await self.send(request(method, *params))
        return answer["result"] if "result" in answer else answer["error"]

    async def notifications(self, count: int) -> list[Json]:
        """Remove and return the next notifications."""
        await until(lambda: len(self.channel.sent) >= count)
        messages = [json.loads(each) for each in self.channel.sent[:count]]
        del self.channel.sent[:count]
        for message in messages:
            assert set(message) == {"jsonrpc", "method", "params"}
            assert message["method"] == "eth_subscription"
        return [message["params"] for message in messages]
