"""The client with toy endpoints: results, errors, and every kind of invalid response."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from foreblock.errors import ErrorAnswer, InvalidArgument, NotAnAnswer, Unreachable
from foreblock.upstream.rpc_client import Endpoint
from support.each_case import each_case
from support.servers.toy_endpoint import (
    HttpRequest,
    ToyError,
    ToyResponse,
    http_endpoint,
    toy_endpoint,
)


def fail(_: object) -> object:
    raise ToyError({"code": 3, "message": "execution reverted", "data": "0x01"})


def test_result_comes_back() -> None:
    with toy_endpoint({"echo": lambda params: params}) as url, Endpoint(url) as endpoint:
        assert endpoint.request("echo", ["0x1", {"a": None}]) == ["0x1", {"a": None}]
        assert endpoint.request("echo") == []


def test_error_carries_code_message_and_data() -> None:
    with toy_endpoint({"fail": fail}) as url, Endpoint(url) as endpoint:
        with pytest.raises(ErrorAnswer, match="error 3: execution reverted") as refused:
            endpoint.request("fail")
        assert (refused.value.code, refused.value.data) == (3, "0x01")
        with pytest.raises(ErrorAnswer, match="-32601"):
            endpoint.request("nothing")


def test_connection_is_kept() -> None:
    ports: list[int] = []

    def answer(request: HttpRequest) -> ToyResponse:
        ports.append(request.port)
        number = json.loads(request.body)["id"]
        return ToyResponse(body=b'{"jsonrpc":"2.0","id":%d,"result":null}' % number)

    with http_endpoint(answer) as url, Endpoint(url) as endpoint:
        endpoint.request("echo")
        endpoint.request("echo")
    assert len(ports) == 2
    assert len(set(ports)) == 1


def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(Unreachable, match=f"no response from {url}: connection refused"):
            Endpoint(url).request("echo")


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A server that sends each of these responses on a separate connection, then closes it."""

    def serve() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def http(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@each_case(
    ("answer", "why"),
    [
        (http(b"<html>"), "not JSON"),
        (http(b"[]"), "not an object"),
        (http(b'{"jsonrpc":"2.0","id":7,"result":1}'), "neither a result nor an error"),
        (http(b'{"error":"no"}'), "an error without code and message"),
        (http(b"go away", b"403 Forbidden"), "HTTP 403 go away"),
    ],
)
def test_not_an_endpoint(answer: bytes, why: str) -> None:
    with answering(answer) as url, Endpoint(url) as endpoint, pytest.raises(NotAnAnswer, match=why):
        endpoint.request("echo")


def test_request_is_sent_again_when_the_idle_connection_was_closed() -> None:
    one, two = (http(b'{"jsonrpc":"2.0","id":%d,"result":%d}' % (n, n)) for n in (1, 2))
    with answering(one, two) as url, Endpoint(url) as endpoint:
        assert (endpoint.request("echo"), endpoint.request("echo")) == (1, 2)


def test_half_an_answer_is_no_answer() -> None:
    with answering(http(b"{}")[:-1]) as url, pytest.raises(Unreachable):
        Endpoint(url).request("echo")


@each_case("url", ["", "localhost:8545", "ftp://a", "http://", "http://a:b", "http://[::1"])
def test_bad_urls(url: str) -> None:
    with pytest.raises(InvalidArgument):
        Endpoint(url)
