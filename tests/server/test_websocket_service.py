"""WebSocket at real sockets of real workers, with the client of the websockets library."""

import os
import random
import signal
import socket

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from support.servers.serving import Service, alive, serving
from support.servers.waiting import PATIENCE, until
from support.servers.websocket_wire import handshake, masked
from support.servers.wire import post

MEBI = 1 << 20


def open_at(service: Service) -> ClientConnection:
    """A client, without the library's limits that foreblock does not have."""
    return connect(
        f"ws://127.0.0.1:{service.port}/", proxy=None, max_size=None, compression=None,
        open_timeout=PATIENCE, close_timeout=PATIENCE, ping_timeout=None,
    )  # fmt: skip


def said(message: str | bytes) -> str:
    assert isinstance(message, str)
    return message.partition(":")[2] if len(message) < MEBI // 2 else message


def test_requests_are_answered_and_slow_ones_do_not_delay_others() -> None:
    with serving("workers=1") as service, open_at(service) as client:
        client.send("slow1")
        client.send("fast")
        client.send(b"bytes")
        assert [said(client.recv(PATIENCE)) for _ in range(3)] == ["fast", "bytes", "slow1"]
        client.send("x" * MEBI)
        assert said(client.recv(PATIENCE)).endswith("x" * MEBI)
        client.ping().wait(PATIENCE)


def test_a_stop_answers_what_waits_and_says_why() -> None:
    with serving("workers=1") as service, open_at(service) as client:
        client.send("slow")
        (worker,) = service.workers()
        os.kill(worker, signal.SIGTERM)
        assert said(client.recv(PATIENCE)) == "slow"
        with pytest.raises(ConnectionClosed) as closed:
            client.recv(PATIENCE)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (
            1001,
            "the service is stopping",
        )


def test_connections_are_limited_together_with_those_of_http() -> None:
    with serving("workers=1", "connections=2") as service:
        with open_at(service), open_at(service), service.connect() as third:
            assert third.receive().status == 429
        with service.connect() as client:
            until(lambda: client.ask(b"x").status == 200, "a place is free")


def test_fuzzed_frames_end_connections_and_never_the_worker() -> None:
    source = random.Random(1)
    with serving("workers=1") as service:
        workers = service.workers()
        for _ in range(200):
            with service.connect() as client:
                client.send(handshake())
                assert client.receive().status == 101
                data = b"".join(
                    masked(source.randbytes(source.randrange(300)), source.choice([0, 1, 2, 9]))
                    for _ in range(3)
                )
                at = source.randrange(len(data))
                try:
                    client.send(data[:at] + source.randbytes(5) + data[at:])
                    client.sock.shutdown(socket.SHUT_WR)
                    client.receive_all()
                except ConnectionError:
                    continue
        assert service.workers() == workers
        assert all(map(alive, workers))
        with service.connect() as client:
            client.send(post(b"x"))
            assert client.receive().status == 200
