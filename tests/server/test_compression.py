"""Compressed responses and requests, against Python's gzip module and the package zstandard."""

import asyncio
import gzip
import sys
from collections.abc import Awaitable, Callable
from threading import Event

import pytest
import zstandard

from foreblock.scheduling.admission import LongText, WorkerBudget
from foreblock.scheduling.reply import Client, Handler, NoFastPath, Reply
from foreblock.server.compression import codings
from foreblock.settings import ServerLimits
from support.each_case import each_case
from support.servers.in_loop import in_loop, turns, until
from support.servers.wire import ACCESS, Wire, answer, answers, echo, endpoint_for, post

LIMITS = ServerLimits(body_limit=4_000, gzip_from=1_000)
ACCEPTS = b"Accept-Encoding: deflate, gzip;q=0.5, br"
PACKED = b"Content-Encoding: gzip"
LONG = b"long and repetitive " * 100


def wire(handler: Handler = echo, budget: WorkerBudget | None = None) -> Wire:
    return Wire(handler, endpoint=endpoint_for(handler, LIMITS, budget=budget))


async def answered(client: Wire, *requests: bytes) -> bytes:
    """The bytes of the responses to these requests, sent one after the other at once."""
    before = len(client.transport.written)
    client.send(b"".join(requests))

    def done() -> bool:
        return len(answers(b"".join(client.transport.written[before:]))) == len(requests)

    await until(done)
    return b"".join(client.transport.written[before:])


@in_loop
async def test_a_long_response_is_compressed_for_a_client_that_accepts_it() -> None:
    client = wire()
    for _ in range(2):  # the second time the head is known
        found = answer(await answered(client, post(LONG, ACCEPTS)))
        assert found.headers["content-encoding"] == "gzip"
        assert found.headers["vary"] == "Accept-Encoding"
        assert gzip.decompress(found.body) == b"<" + LONG + b">"
        assert len(found.body) < len(LONG) / 10


@in_loop
async def test_short_and_long_responses_keep_their_order() -> None:
    bodies = [LONG, b"short", LONG[:-20], b"shorter"]
    found = answers(await answered(wire(), *(post(body, ACCEPTS) for body in bodies)))
    texts = [
        gzip.decompress(each.body) if "content-encoding" in each.headers else each.body
        for each in found
    ]
    assert texts == [b"<" + body + b">" for body in bodies]
    assert ["content-encoding" in each.headers for each in found] == [True, False, True, False]


@each_case(
    "header", [b"Accept: */*", b"Accept-Encoding: br", b"Accept-Encoding: gzip;q=0, br",
               b"Accept-Encoding: gzip; q=0.0", b"Accept-Encoding: x-gzipped"],
)  # fmt: skip
def test_no_other_client_gets_a_compressed_response(header: bytes) -> None:
    found = answer(wire().send(post(LONG, header)))
    assert "content-encoding" not in found.headers
    assert found.body == b"<" + LONG + b">"


def test_nothing_is_compressed_by_default() -> None:
    client = Wire(echo, endpoint=endpoint_for(echo, ServerLimits(), ACCESS))
    assert answer(client.send(post(LONG, ACCEPTS))).body == b"<" + LONG + b">"


@in_loop
async def test_a_late_response_in_pieces_is_compressed_and_released() -> None:
    budget = WorkerBudget()

    def in_pieces(_body: bytes, _: Client) -> Awaitable[Reply]:
        async def late() -> Reply:
            await asyncio.sleep(0)
            return Reply(b"[", b"X-Kept: 1\r\n", rest=LongText(budget, (LONG, b"]")))

        return late()

    found = answer(await answered(wire(in_pieces, budget), post(b"{}", ACCEPTS)))
    assert gzip.decompress(found.body) == b"[" + LONG + b"]"
    assert found.headers["x-kept"] == "1"
    await turns()
    assert budget.held == 0


@in_loop
async def test_few_are_compressed_at_once_and_the_rest_is_sent_as_it_is() -> None:
    blocked, endpoint = Event(), endpoint_for(echo, LIMITS)
    loop = asyncio.get_running_loop()
    threads = [loop.run_in_executor(None, blocked.wait) for _ in range(64)]  # all that there are
    clients = [Wire(echo, endpoint=endpoint) for _ in range(20)]
    at_once = [bool(client.send(post(LONG, ACCEPTS))) for client in clients]
    blocked.set()
    await asyncio.gather(*threads)
    await until(lambda: all(client.out for client in clients))
    packed = ["content-encoding" in answer(client.out).headers for client in clients]
    assert packed == [not each for each in at_once]
    assert 0 < sum(packed) < 10


@in_loop
async def test_a_compressed_request_is_read() -> None:
    client = wire()
    body = gzip.compress(LONG)
    plain = answer(await answered(client, post(body, PACKED)))
    assert plain.body == b"<" + LONG + b">"
    both = answer(await answered(client, post(body, PACKED, ACCEPTS)))
    assert gzip.decompress(both.body) == plain.body


@in_loop
async def test_zstd_is_preferred_and_understood() -> None:
    client = wire()
    for header in (b"Accept-Encoding: gzip, zstd", b"Accept-Encoding: zstd;q=0.1,gzip"):
        found = answer(await answered(client, post(LONG, header)))
        assert found.headers["content-encoding"] == "zstd"
        assert unpacked_zstd(found.body) == b"<" + LONG + b">"
    refused = b"Accept-Encoding: zstd;q=0, gzip"
    assert answer(await answered(client, post(LONG, refused))).headers["content-encoding"] == "gzip"
    named = b"Content-Encoding: zstd"
    for body in (zstandard.compress(LONG), streamed(LONG)):
        assert answer(await answered(client, post(body, named))).body == b"<" + LONG + b">"
        both = answer(await answered(client, post(body, named, ACCEPTS)))
        assert gzip.decompress(both.body) == b"<" + LONG + b">"


@in_loop
async def test_a_zstd_request_has_the_largest_window_of_its_coding() -> None:
    for bits, status in ((23, 200), (24, 400), (27, 400)):
        parameters = zstandard.ZstdCompressionParameters(
            window_log=bits, strategy=zstandard.STRATEGY_FAST, hash_log=10, chain_log=10
        )
        packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        body = packer.compress(LONG) + packer.flush()
        assert zstandard.get_frame_parameters(body).window_size == 1 << bits
        given = await answered(wire(), post(body, b"Content-Encoding: zstd"))
        assert answer(given).status == status


def unpacked_zstd(body: bytes) -> bytes:
    """The text of a frame that does not name its length."""
    return zstandard.ZstdDecompressor().decompressobj().decompress(body)


def streamed(text: bytes) -> bytes:
    """A frame that does not name its length."""
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(text) + packer.flush()


def test_without_its_package_zstd_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    codings.cache_clear()
    try:
        found = answer(wire().send(post(LONG, b"Accept-Encoding: zstd")))
        assert "content-encoding" not in found.headers
        packed = zstandard.compress(LONG)
        given = answer(wire().send(post(packed, b"Content-Encoding: zstd")))
        assert given.body == b"<" + packed + b">", "as another unknown coding"
    finally:
        codings.cache_clear()


@in_loop
async def test_a_zstd_request_has_the_limit_of_its_content() -> None:
    for pack in (zstandard.compress, streamed):
        await limited(pack, b"Content-Encoding: zstd")


@in_loop
async def test_a_compressed_request_has_the_limit_of_its_content() -> None:
    await limited(gzip.compress, PACKED)


async def limited(pack: Callable[[bytes], bytes], named: bytes) -> None:
    budget = WorkerBudget(received=5_000)
    client = wire(budget=budget)
    for size, status in ((4_000, 200), (4_001, 413), (3_000_000, 413)):
        assert answer(await answered(client, post(pack(bytes(size)), named))).status == status
    whole = pack(LONG)
    for body in (b"{}", whole[:-1], whole + b"more", b""):
        assert answer(await answered(client, post(body, named))).status == 400
    assert budget.received.left == 5_000
    lease = budget.received.lease(2_000)
    assert answer(await answered(client, post(whole, named))).status == 503
    assert lease is not None


def test_only_a_client_that_accepts_gzip_leaves_the_fast_path() -> None:
    cached: list[bytes] = []

    class Recording(NoFastPath):
        def cache_head(
            self, head: bytes, length: int, status: bytes, headers: bytes, /, *,
            is_at_root: bool = False,
        ) -> None:  # fmt: skip
            assert (length, status[:12], headers) == (2, b"HTTP/1.1 200", b"")
            assert is_at_root
            cached.append(head)

    for limits, count in ((LIMITS, 1), (ServerLimits(), 2)):
        cached.clear()
        client = Wire(echo, endpoint=endpoint_for(echo, limits, fast_path=Recording()))
        client.send(post(b"{}"))
        client.send(post(b"{}", ACCEPTS))
        assert len(cached) == count
