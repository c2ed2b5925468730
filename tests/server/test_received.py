"""Long requests that are received or wait: their bytes are bounded."""

import asyncio

import pytest

from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Client, Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import ServerLimits
from support.servers.wire import Wire, endpoint_for

LONG = THRESHOLDS.long_bytes

LIMIT = 4 * LONG
REFUSED = b"503 Service Unavailable"
LONG_BODY = b"x" * LONG


def budget() -> WorkerBudget:
    return WorkerBudget(received=LIMIT)


def head(length: int | None) -> bytes:
    framing = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
    return (
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n%b\r\n\r\n"
        % framing
    )


def brief(_body: bytes, _client: Client) -> Reply:
    return Reply(b"brief")


def wire(budget: WorkerBudget) -> Wire:
    return Wire(brief, endpoint=endpoint_for(brief, ServerLimits(), budget=budget))


def test_room_is_taken_when_a_body_is_announced_and_given_back_with_the_answer() -> None:
    shared = budget()
    client = wire(shared)
    assert client.send(head(3 * LONG), b"x" * LONG) == b""
    assert shared.received.left == LONG
    assert b"200 OK" in client.send(b"x" * 2 * LONG)
    assert shared.received.left == LIMIT


def test_a_body_for_which_there_is_no_room_is_refused_and_short_ones_are_not() -> None:
    shared = budget()
    first, second, short = wire(shared), wire(shared), wire(shared)
    assert first.send(head(3 * LONG)) == b""
    assert REFUSED in second.send(head(2 * LONG))
    assert b"200 OK" in short.send(head(5), b"short")
    assert b"200 OK" in first.send(b"x" * 3 * LONG)
    assert b"200 OK" in wire(shared).send(head(2 * LONG), b"x" * 2 * LONG)


@pytest.mark.parametrize("chunks", [1, 3])
def test_chunks_take_room_as_they_come(chunks: int) -> None:
    shared = budget()
    client, other = wire(shared), wire(shared)
    other.send(head(2 * LONG))
    chunk = b"%x\r\n%b\r\n" % (LONG, LONG_BODY)
    answer = client.send(head(None), *[chunk] * chunks, b"0\r\n\r\n")
    assert (b"200 OK" in answer) == (chunks == 1)
    assert (REFUSED in answer) == (chunks == 3)


def test_who_goes_in_the_middle_gives_its_room_back() -> None:
    shared = budget()
    client = wire(shared)
    client.send(head(3 * LONG), b"x" * LONG)
    client.connection.connection_lost(None)
    assert shared.received.left == LIMIT


def test_room_is_held_while_a_request_waits_and_not_after_its_client_has_gone() -> None:
    shared = budget()

    async def never() -> Reply:
        await asyncio.Event().wait()
        return Reply(b"")

    def waiting(_body: bytes, _client: Client) -> asyncio.Future[Reply]:
        return asyncio.ensure_future(never())

    async def leave() -> tuple[int, int]:
        client = Wire(waiting, endpoint=endpoint_for(waiting, ServerLimits(), budget=shared))
        client.send(head(LONG), LONG_BODY)
        held = shared.received.left
        client.connection.connection_lost(None)
        return held, shared.received.left

    assert asyncio.run(leave()) == (LIMIT - LONG, LIMIT)
