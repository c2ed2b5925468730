"""Sessions and subscriptions without a chain: ids, order, limits and ends."""

import asyncio
import json
from collections.abc import Awaitable

import pytest

from foreblock.errors import NotificationsUnsupported, SubscriptionNotFound, TooManySubscriptions
from foreblock.rpc.subscriptions import OpenSubscription, Sessions, new_id
from foreblock.scheduling.reply import Client, Reply
from support.servers.in_loop import in_loop, turns
from support.servers.long_work import thresholds
from support.servers.sessions import RecordingChannel


class Toy:
    """A service whose only method subscribes, with a record of starts and ends."""

    def __init__(self, most: int = 9) -> None:
        self.sessions = Sessions(most)
        self.started: list[str] = []
        self.ended: list[OpenSubscription] = []
        self.made: list[OpenSubscription] = []
        self.wait = asyncio.Event()

    def answer(self, body: bytes, client: Client) -> Reply | Awaitable[Reply]:
        if body == b"later":
            return self._later(client)
        return Reply(self.subscribe(client).encode())

    async def _later(self, client: Client) -> Reply:
        name = self.subscribe(client)
        await self.wait.wait()
        return Reply(name.encode())

    def subscribe(self, client: Client) -> str:
        made = self.sessions.subscribe(client, b"toy_news", self.ended.append)
        made.when_replied(lambda: self.started.append(made.id))
        self.made.append(made)
        return made.id


def test_ids_are_quantities_that_nobody_guesses() -> None:
    names = {new_id() for _ in range(1000)}
    assert len(names) == 1000
    assert all(name == hex(int(name, 16)) for name in names)
    assert max(map(len, names)) == 34


@in_loop
async def test_a_notification_names_its_method_and_its_subscription() -> None:
    toy, channel = Toy(), RecordingChannel()
    session = toy.sessions.open(toy.answer, channel)
    reply = session.receive(b"now")
    assert isinstance(reply, Reply)
    assert toy.made[0].notify(b'{"a":1},"cursor":"x"}}')
    assert json.loads(channel.sent[0]) == {
        "jsonrpc": "2.0",
        "method": "toy_news",
        "params": {"subscription": reply.body.decode(), "result": {"a": 1}, "cursor": "x"},
    }


@in_loop
async def test_it_starts_when_the_reply_was_handed_over() -> None:
    toy, channel = Toy(), RecordingChannel()
    session = toy.sessions.open(toy.answer, channel)
    session.receive(b"now")
    assert toy.started == []
    await turns()
    assert toy.started == [toy.made[0].id]

    later = asyncio.ensure_future(session.receive(b"later"))  # type: ignore[arg-type] # it waits
    await turns()
    session.receive(b"now")  # another reply does not start the waiting subscription
    await turns()
    assert toy.started == [toy.made[0].id, toy.made[2].id]
    toy.wait.set()
    handed_over = []
    later.add_done_callback(lambda _: handed_over.append(len(toy.started)))
    await turns()
    assert handed_over == [2], "the transport had the reply first"
    assert toy.started[-1] == toy.made[1].id


@in_loop
async def test_what_ends_before_it_starts_does_not_start() -> None:
    toy = Toy()
    channel, other = RecordingChannel(), RecordingChannel()
    session = toy.sessions.open(toy.answer, channel)
    session.receive(b"now")
    toy.sessions.unsubscribe(channel.client, toy.made[0].id)
    gone = toy.sessions.open(toy.answer, other)
    gone.receive(b"now")
    gone.ended()
    await turns()
    assert toy.started == []
    assert toy.ended == toy.made


@in_loop
async def test_the_end_of_a_connection_ends_its_subscriptions_once() -> None:
    toy, channel, other = Toy(), RecordingChannel(), RecordingChannel()
    session = toy.sessions.open(toy.answer, channel)
    toy.sessions.open(toy.answer, other).receive(b"now")
    session.receive(b"now")
    session.receive(b"now")
    channel.budget = 0
    assert not toy.made[1].notify(b"1}}")
    session.ended()
    assert toy.ended == toy.made[1:]
    assert toy.made[0].notify(b"1}}")
    with pytest.raises(NotificationsUnsupported):
        toy.subscribe(channel.client)


@in_loop
async def test_a_failure_closes_the_connection_with_the_reason() -> None:
    toy, channel = Toy(), RecordingChannel()
    session = toy.sessions.open(toy.answer, channel)
    session.receive(b"now")
    toy.made[0].fail("events were missed")
    assert channel.closed == (1013, "events were missed")
    assert toy.ended == toy.made
    assert not toy.made[0].notify(b"1}}")


@in_loop
async def test_limits_count_what_is_open() -> None:
    toy, channel, other = Toy(most=2), RecordingChannel(), RecordingChannel()
    for each in (channel, other):
        toy.sessions.open(toy.answer, each)
    with thresholds(worker_subscriptions=3):
        for client in (channel.client, channel.client, other.client):
            toy.subscribe(client)
        with pytest.raises(TooManySubscriptions):
            toy.subscribe(channel.client)
        with pytest.raises(TooManySubscriptions):
            toy.subscribe(other.client)
        toy.sessions.unsubscribe(channel.client, toy.made[0].id)
        toy.subscribe(other.client)


@in_loop
async def test_others_cannot_end_a_subscription() -> None:
    toy, channel, other = Toy(), RecordingChannel(), RecordingChannel()
    for each in (channel, other):
        toy.sessions.open(toy.answer, each)
    toy.subscribe(channel.client)
    with pytest.raises(SubscriptionNotFound):
        toy.sessions.unsubscribe(other.client, toy.made[0].id)
    toy.sessions.unsubscribe(channel.client, toy.made[0].id)
    with pytest.raises(SubscriptionNotFound):
        toy.sessions.unsubscribe(channel.client, toy.made[0].id)
