"""Malformed requests, and the verdict on their responses.

Everything is a function of a seed, so a failure can be reproduced.
"""

import json
import random
import socket
from collections.abc import Callable, Iterator
from typing import Any

from abuse.wire import Address, Answer, Closed, Connection, Malformed, post, request

VALID: list[tuple[str, list[Any]]] = [
    ("eth_getBalance", ["0x" + "11" * 20, "latest"]),
    ("eth_getBalance", ["0x" + "11" * 20, {"blockNumber": "0x1"}]),
    ("eth_getBlockByNumber", ["0x1", True]),
    ("eth_getBlockByNumber", ["latest", False]),
    ("eth_call", [{"to": "0x" + "fa" * 20, "data": "0x" + "00" * 32, "gas": "0xffff"}, "latest"]),
    ("eth_call", [
        {"from": "0x" + "22" * 20, "to": "0x" + "33" * 20, "value": "0x1", "maxFeePerGas": "0x0"},
        "0x1",
        {"0x" + "33" * 20: {"code": "0x5f5ff3", "balance": "0xff", "stateDiff": {}}},
        {"number": "0x5", "time": "0x64"},
    ]),
    ("eth_simulateV1", [{"blockStateCalls": [{"calls": [{}]}]}, "latest"]),
]  # fmt: skip
NASTY: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, 2**64, 2**300, "", "0x", "0x0", "0x00", "0xg", "-0x1",
    "0x" + "f" * 65, "0x" + "0" * 5000, "latest", "Latest", "pending", "earliest", "\ud800".encode(
        "utf-8", "surrogatepass").decode("latin-1"), "\0", "é", [], {}, [[]], [{}], {"": None},
    {"blockHash": "0x" + "00" * 32}, {"blockNumber": "0x1", "blockHash": "0x" + "11" * 32},
]  # fmt: skip
TOKENS = [
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u", b"\\ud800", b"null", b"NaN", b"1e999",
    b"-", b"0x", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\0", b"/*", b"'", b"[" * 3000,
    b'{"a":' * 2000, b'"id":', b'"method":"eth_call",', b"1" * 400, b" " * 1000,
]  # fmt: skip
CLEAN_REFUSALS = {400, 403, 404, 405, 408, 411, 413, 414, 415, 417, 429, 431, 501, 503, 505}


def bodies(seed: int, count: int) -> Iterator[bytes]:
    """Bodies of every kind in turn."""
    source = random.Random(seed)
    kinds: list[Callable[[random.Random], bytes]] = [
        random_bytes, random_json, mutated_bytes, mutated_values, mutated_batch,
    ]  # fmt: skip
    for number in range(count):
        yield kinds[number % len(kinds)](source)


def random_bytes(source: random.Random) -> bytes:
    return source.randbytes(source.choice((0, 1, 7, 100, 3000)))


def random_json(source: random.Random, depth: int = 4) -> bytes:
    def value(left: int) -> object:
        match source.randrange(4 if left else 2):
            case 2:
                return [value(left - 1) for _ in range(source.randrange(4))]
            case 3:
                keys = source.sample(["jsonrpc", "id", "method", "params", "to", "x", ""], 3)
                return {key: value(left - 1) for key in keys}
            case _:
                return source.choice(NASTY)

    return json.dumps(value(depth)).encode()


def mutated_bytes(source: random.Random) -> bytes:
    """A valid request with bytes changed, removed, doubled or inserted."""
    method, params = source.choice(VALID)
    body = bytearray(request(method, *params))
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(body) + 1)
        match source.randrange(4):
            case 0:
                body[at : at + 1] = source.randbytes(1)
            case 1:
                del body[at : at + source.randint(1, 20)]
            case 2:
                body[at:at] = body[at : at + source.randint(1, 50)]
            case _:
                body[at:at] = source.choice(TOKENS)
    return bytes(body)


def mutated_values(source: random.Random) -> bytes:
    """A valid envelope with one changed value."""
    return json.dumps(_mutated(source)).encode()


def mutated_batch(source: random.Random) -> bytes:
    return json.dumps([_mutated(source) for _ in range(source.randrange(6))]).encode()


def _mutated(source: random.Random) -> object:
    method, params = source.choice(VALID)
    envelope = json.loads(request(method, *params))
    if source.random() < 0.2:
        del envelope[source.choice(list(envelope))]
    return _replace_one(source, envelope)


def _replace_one(source: random.Random, value: Any) -> Any:  # noqa: ANN401, it is any JSON
    if source.random() < 0.2 or not value or not isinstance(value, dict | list):
        return source.choice(NASTY)
    key = source.choice(list(value) if isinstance(value, dict) else range(len(value)))
    value[key] = _replace_one(source, value[key])
    return value


def raw_requests(seed: int, count: int) -> Iterator[bytes]:
    """Whole HTTP requests with errors, or no HTTP at all."""
    source = random.Random(seed)
    lines = [b"GET / HTTP/1.1", b"POST / HTTP/1.0", b"PUT / HTTP/1.1", b"POST /x HTTP/1.1",
             b"PRI * HTTP/2.0", b"POST / HTTP/9.9", b"\x16\x03\x01\x02\x00"]  # fmt: skip
    fields = [b"Content-Length: 5", b"Content-Length: -1", b"Transfer-Encoding: chunked", b"Host:",
              b"Host: a\r\nHost: b", b"Expect: 100-continue", b"Upgrade: websocket", b" folded",
              b"X: " + b"y" * 40_000, b"Connection: close", b": no name"]  # fmt: skip
    for _ in range(count):
        method, params = source.choice(VALID)
        raw = bytearray(post(request(method, *params)))
        match source.randrange(4):
            case 0:
                raw[: raw.index(b"\r\n")] = source.choice(lines)
            case 1:
                end = raw.index(b"\r\n\r\n")
                raw[end:end] = b"\r\n" + source.choice(fields)
            case 2:
                raw[source.randrange(len(raw))] = source.randrange(256)
            case _:
                raw = bytearray(source.randbytes(source.randint(1, 500)))
        yield bytes(raw)


def complaint(answer: Answer) -> str | None:
    """Return the error in a response, if any."""
    if answer.status in CLEAN_REFUSALS or (answer.status == 204 and not answer.body):
        return None
    if answer.status != 200:
        return f"status {answer.status}"
    if not answer.body:
        return None  # notifications
    try:
        found = json.loads(answer.body)
    except ValueError:
        return f"not JSON: {answer.body[:200]!r}"
    items = found if isinstance(found, list) and found else [found]
    wrong = [item for item in items if not _is_reply(item)]
    return f"not a reply: {wrong[0]!r}"[:300] if wrong else None


def _is_reply(item: object) -> bool:
    match item:
        case {"jsonrpc": "2.0", "id": _, "result": _, **rest}:
            return not rest
        case {"jsonrpc": "2.0", "id": _, "error": {"code": int(), "message": str()}, **rest}:
            return not rest
        case _:
            return False


def fuzz_bodies(address: Address, seed: int, count: int) -> Iterator[str]:
    """Send bodies on one connection; yield the errors in responses."""
    connection = Connection(address)
    for body in bodies(seed, count):
        wrong, goes_on = _exchange(connection, body)
        if wrong:
            yield f"{wrong} to {body[:300]!r}"
        if not goes_on:
            connection.close()
            connection = Connection(address)
    connection.close()


def _exchange(connection: Connection, body: bytes) -> tuple[str | None, bool]:
    """The error in the response, and whether the connection is still usable."""
    try:
        answer = connection.exchange(body)
    except (Closed, Malformed, OSError) as failure:
        return repr(failure), False
    return complaint(answer), answer.headers.get("connection", "").lower() != "close"


def fuzz_raw(address: Address, seed: int, count: int) -> Iterator[str]:
    """Send malformed HTTP, each on a separate connection; responses, if any, must be
    well-formed.
    """
    for raw in raw_requests(seed, count):
        connection = Connection(address)
        try:
            connection.socket.sendall(raw)
            connection.socket.shutdown(socket.SHUT_WR)
            while True:
                if wrong := _raw_complaint(connection.answer()):
                    yield f"{wrong} to {raw[:300]!r}"
        except (Closed, OSError):
            pass
        except Malformed as failure:
            yield f"{failure!r} to {raw[:300]!r}"
        finally:
            connection.close()


def _raw_complaint(answer: Answer) -> str | None:
    return None if answer.status in (100, 101) else complaint(answer)
