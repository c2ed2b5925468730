"""Harmful clients, on a small scale: other clients are served, and no memory is kept."""

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from support.servers.dev_processes import median_loop_seconds
from support.servers.serving import Service, serving
from support.servers.waiting import until
from support.servers.wire import answers, post

MEGABYTE = 1_000_000


def median_of_asking(service: Service, count: int) -> float:
    """The CPU seconds of the loop until a response."""
    (worker,) = service.workers()
    with service.connect() as client:

        def ask() -> None:
            assert client.ask(b"x").text.endswith(":x")

        return median_loop_seconds(worker, ask, count)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving("workers=1") as running:
        yield running


def test_random_bytes_are_answered_or_refused_cleanly(service: Service) -> None:
    chance = random.Random(4)
    workers = service.workers()
    for _ in range(500):
        throw(service, chance)
    before = service.resident()
    for _ in range(1500):
        throw(service, chance)
    assert service.resident() < before + 4 * MEGABYTE
    with service.connect() as client:
        assert client.ask(b"well").text.endswith(":well")
    assert service.workers() == workers


def throw(service: Service, chance: random.Random) -> None:
    """Noise, or a valid request with a few bytes changed."""
    if chance.random() < 0.5:
        data = chance.randbytes(chance.randrange(1, 80))
    else:
        mutable = bytearray(post(b"{}") + post(b"x" * 50))
        for _ in range(chance.randrange(1, 6)):
            mutable[chance.randrange(len(mutable))] = chance.randrange(256)
        data = bytes(mutable)
    with service.connect() as client:
        client.send(data)
        client.sock.shutdown(socket.SHUT_WR)
        answers(client.receive_all())


def test_slow_and_resting_clients_do_not_slow_others_and_are_let_go() -> None:
    limits = ("header_timeout=1", "body_timeout=1", "idle_timeout=2")
    with serving("workers=1", *limits) as service, ExitStack() as stack:
        files = service.open_files()
        alone = median_of_asking(service, 200)
        for number in range(300):
            other = stack.enter_context(service.connect())
            other.send((b"", post()[:20], post()[:-1])[number % 3])
        assert median_of_asking(service, 200) < 5 * alone
        until(lambda: service.open_files() == files, "all are released")


def test_client_that_never_reads_is_held_back_and_dropped() -> None:
    with serving("workers=1", "write_timeout=1") as service, ExitStack() as stack:
        files = service.open_files()
        with service.connect() as client:
            assert len(client.ask(b"big").body) == MEGABYTE
        before = service.resident()
        deaf = [stack.enter_context(service.connect()) for _ in range(4)]
        for each in deaf:
            each.send(post(b"big") * 100)
        with service.connect() as client:
            assert client.ask(b"x").status == 200
        # Each of them has received a few of its hundred responses.
        assert service.resident() < before + 30 * MEGABYTE
        until(lambda: service.open_files() == files, "all are dropped")


def test_large_answers_arrive_whole_at_a_slow_reader(service: Service) -> None:
    with service.connect() as client:
        client.send(post(b"big") * 19 + post(b"big", b"Connection: close"))
        found = answers(client.receive_all())
        assert [len(each.body) for each in found] == [MEGABYTE] * 20


def test_refused_upload_still_reads_the_refusal(service: Service) -> None:
    """Closing with unread input would reset the connection and lose the response."""
    head = post(b"").replace(b"Content-Length: 0", b"Content-Length: 6000000")
    with service.connect() as client:
        client.send(head + b"x" * 3_000_000)
        found = client.receive()
        assert (found.status, found.text) == (413, "content length too large (6000000>5242880)\n")
