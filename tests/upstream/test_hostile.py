"""Endpoints with malicious responses: by number, by hash and for heads, over real sockets.

Any response gives an `EndpointError` whose text can be sent over the bus; the source continues, and
fills its chain when the endpoint has recovered.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random

import pytest

from foreblock._engine import Block
from foreblock.backoff import Waits
from foreblock.bus.frames import frame
from foreblock.bus.messages import SourceReport
from foreblock.clock import SystemClock
from foreblock.errors import EndpointError
from foreblock.status.network_status import SourceStatus
from foreblock.upstream import block_fetcher
from foreblock.upstream.block_fetcher import BlockFetcher, CanonicalHead
from foreblock.upstream.canonical_source import CanonicalOptions, CanonicalSource
from foreblock.upstream.endpoint import Upstream
from foreblock.upstream.http import LONGEST_ANSWER, MOST_VALUES
from foreblock.upstream.rpc_client import DEEPEST, Endpoint
from support.each_case import each_case
from support.servers.in_loop import run, until
from support.servers.toy_endpoint import HttpRequest, ToyResponse, block_json, grow, http_endpoint
from support.servers.waiting import PATIENCE

GOOD = grow(None, 1)[0]
NULL = b"null"
QUICK = CanonicalOptions(poll=0.001, waits=Waits(0.001, 0.01))


def result(value: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":ID,"result":' + value + b"}"


def error(members: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":ID,"error":{' + members + b"}}"


def head(number: bytes) -> bytes:
    return b'{"number":' + number + b',"hash":"0x' + b"11" * 32 + b'"}'


HOSTILE = {
    "deep lists": b"[" * 2_000,
    "deep objects": b'{"a":' * 100_000,
    "a deep result": result(b"[" * 900 + b"]" * 900),
    "a deep result of objects": result(b'{"number":' * 300 + NULL + b"}" * 300),
    "a deep error": error(b'"code":1,"message":' + b"[" * 900 + b"]" * 900),
    "deep data": error(b'"code":1,"message":"no","data":' + b"[" * 900 + b"]" * 900),
    "a deep id": b'{"id":' + b"[" * 900 + b"]" * 900 + b',"result":null}',
    "a lone surrogate in an error": error(rb'"code":-1,"message":"\ud800 \udfff"'),
    "a lone surrogate in data": error(rb'"code":-1,"message":"no","data":"\ud800"'),
    "a lone surrogate as a key": result(rb'{"\ud800":1}'),
    "a lone surrogate as a number": result(head(rb'"\ud800"')),
    "a lone surrogate as bytes": result(b'"0x\xed\xa0\x80"'),
    "bytes that are no text": b"\xff\xfe" * 100,
    "UTF-16": '{"id":1,"result":null}'.encode("utf-16"),
    "zeros": bytes(1_000),
    "not a number": result(b"NaN"),
    "infinity": result(head(b"Infinity")),
    "a number beyond floats": result(head(b"1e999")),
    "a number of a million digits": result(head(b"9" * 1_000_000)),
    "a code of four thousand digits": error(b'"code":' + b"9" * 4_000 + b',"message":"no"'),
    "a code that is no integer": error(b'"code":1e999,"message":"no"'),
    "hex of a million digits": result(head(b'"0x' + b"f" * 1_000_000 + b'"')),
    "terminal escapes": error(rb'"code":-1,"message":"\u001b[2J\u0007\r\n"'),
    "values without number": result(b"[" + b"{}," * MOST_VALUES + b"{}]"),
    "a list": b"[]",
    "nothing": b"",
}
QUESTIONS: dict[str, Callable[[BlockFetcher], Awaitable[object]]] = {
    "by number": lambda reader: reader.block_at(7),
    "by hash": lambda reader: reader.block(bytes(32)),
    "heads": lambda reader: reader.heads(),
}


class Mood:
    """The responses of an endpoint, which a test may change."""

    def __init__(self, answer: bytes) -> None:
        self.answer: bytes | None = answer


@contextmanager
def hostile(answer: bytes) -> Iterator[tuple[Mood, str]]:
    mood = Mood(answer)

    def reply(request: HttpRequest) -> ToyResponse:
        good = result(json.dumps(block_json(GOOD)).encode())
        body = good if mood.answer is None else mood.answer
        number = json.loads(request.body)["id"]
        return ToyResponse(body=body.replace(b"ID", str(number).encode()))

    with http_endpoint(reply) as url:
        yield mood, url


class Empty:
    """A chain that knows the one block named by a good endpoint."""

    async def latest(self) -> CanonicalHead:
        return CanonicalHead(0, GOOD.hash)

    async def knows(self, hash: bytes) -> bool:
        return hash == GOOD.hash

    async def earliest(self) -> int:
        return 0

    async def add(self, blocks: Sequence[Block]) -> None:
        assert not blocks, "there was none"

    async def heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        pass


@each_case("question", QUESTIONS.items(), ids=lambda it: it[0])
@each_case("answer", HOSTILE.items(), ids=lambda it: it[0])
def test_whatever_is_answered_is_an_error_of_the_endpoint(
    answer: tuple[str, bytes],
    question: tuple[str, Callable[[BlockFetcher], Awaitable[object]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_fetcher, "TRIES", 1)

    async def body() -> None:
        with hostile(answer[1]) as (_, url):
            blocks = BlockFetcher([Upstream(url, SystemClock())], is_unmetered=True)
            with pytest.raises(EndpointError) as caught:
                await question[1](blocks)
            assert str(caught.value)
            blocks.close()

    run(body)


@each_case("answer", HOSTILE.items(), ids=lambda it: it[0])
def test_a_source_goes_on_and_what_it_notes_can_be_told(
    answer: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_fetcher, "TRIES", 1)

    async def body() -> None:
        with hostile(answer[1]) as (mood, url):
            source = CanonicalSource.at(url, Empty(), SystemClock(), QUICK, Random(1))
            task = asyncio.create_task(source.run())
            await until(lambda: source.failures >= 2 or task.done())
            assert not task.done(), "nothing that an endpoint does ends a source"
            assert source.last_error.isprintable()
            assert frame(SourceReport("main", 1, SourceStatus(failure=source.last_error)))
            mood.answer = None
            await until(lambda: source.tip is not None)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(body)


def test_nesting_is_bounded_where_answers_are() -> None:
    deep = result(b"[" * DEEPEST + b"]" * DEEPEST)
    with hostile(deep) as (_, url):
        with Endpoint(url, PATIENCE) as trusted:
            assert trusted.request("any")
        with (
            Endpoint(url, PATIENCE, LONGEST_ANSWER) as bounded,
            pytest.raises(EndpointError, match="nested"),
        ):
            bounded.request("any")
