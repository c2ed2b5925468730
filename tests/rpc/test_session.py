"""Messages of a WebSocket get the same responses as bodies of HTTP."""

from foreblock.rpc.subscriptions import Sessions
from foreblock.scheduling.reply import Client, Reply
from support.servers.toys import Toys, call, parse


class ToyChannel:
    """A connection without sent messages."""

    client = Client("192.0.2.1", 7)
    unsent = 0

    def send(self, message: bytes) -> bool:
        raise AssertionError(message)

    def close(self, code: int, reason: str) -> None:
        raise AssertionError(code, reason)


def test_a_batch_is_one_message_on_one_view() -> None:
    toys = Toys()
    session = Sessions().open(toys.dispatcher.answer, ToyChannel())
    reply = session.receive(b"[" + b",".join([call("context")] * 3) + b"]")
    assert isinstance(reply, Reply)
    assert len({each["result"] for each in parse(reply)}) == 1
    assert [context.closed for context in toys.contexts] == [1]
    session.ended()


def test_requests_are_those_of_the_client() -> None:
    asked: list[tuple[bytes, Client]] = []

    def answer(body: bytes, client: Client) -> Reply:
        asked.append((body, client))
        return Reply(b"x")

    Sessions().open(answer, ToyChannel()).receive(b"y")
    assert asked == [(b"y", ToyChannel.client)]
