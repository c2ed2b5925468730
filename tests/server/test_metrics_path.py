"""Metrics at their path: at the address of JSON-RPC, or at a separate one."""

import asyncio
from collections.abc import Awaitable

import pytest

from foreblock.errors import TimedOut
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Readiness, Reply, Served, ServerCounts
from foreblock.server.checks import RequestRules
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.sweep import Ticker
from support.servers.wire import ACCESS, LIMITS, Wire, answer, echo, post

TEXT = b"# TYPE a counter\na 1\n"
GET = b"%b /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


def wire(served: Served) -> Wire:
    rules = RequestRules.of(LIMITS, ACCESS)
    return Wire(
        echo, endpoint=HttpEndpoint(served, rules, Ticker(LIMITS, lambda: 0.0), 4, WorkerBudget())
    )


def served() -> Served:
    return Served(echo, lambda: Readiness(True, ()), metrics=lambda: TEXT)


def test_metrics_are_text_of_prometheus() -> None:
    client = wire(served())
    found = answer(client.send(GET % b"GET"))
    assert (found.status, found.body) == (200, TEXT)
    assert found.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer(client.send(post(b"x"))).body == b"<x>"  # the connection stays open
    assert answer(client.send(GET % b"HEAD")).body == b""
    assert answer(client.send(GET % b"POST")).status == 405


def test_there_is_no_such_path_where_metrics_are_off() -> None:
    client = wire(served()._replace(metrics=None))
    assert answer(client.send(GET % b"GET")).status == 404


def test_rules_for_hosts_apply() -> None:
    client = wire(served())
    assert answer(client.send(GET.replace(b"localhost", b"evil.example") % b"GET")).status == 403


def test_nothing_else_is_answered_at_an_address_of_metrics_alone() -> None:
    client = wire(served()._replace(only_metrics=True))
    assert answer(client.send(GET % b"GET")).body == TEXT
    assert answer(client.send(post(b"x"))).status == 404
    assert answer(client.send(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")).status == 200


@pytest.mark.parametrize("late", [False, True])
def test_metrics_that_come_later_keep_their_place(late: bool) -> None:
    async def scene() -> bytes:
        async def later() -> list[bytes]:
            await asyncio.sleep(0)
            if late:
                raise TimedOut(1)
            return [TEXT[:5], TEXT[5:]]

        def metrics() -> Awaitable[list[bytes]]:
            return later()

        client = wire(served()._replace(metrics=metrics))
        client.send(GET % b"GET" + post(b"x"))
        for _ in range(10):  # turns of the loop
            await asyncio.sleep(0)
        return client.out

    out = asyncio.run(scene())
    first = answer(out[: out.index(b"<x>")].rpartition(b"HTTP/1.1 ")[0])
    assert (first.status, first.body == TEXT) == ((503, False) if late else (200, True))


def test_every_byte_and_every_connection_counts() -> None:
    counted = [0, 0]
    opened: list[str] = []

    def traffic(received: int, sent: int) -> None:
        counted[0] += received
        counted[1] += sent

    counts = ServerCounts(traffic, lambda: opened.append("opened"), lambda: opened.append("no"))
    long = b"y" * 300_000

    def handle(body: bytes, _: object) -> Reply:
        return Reply(b"", b"", [long]) if body == b"long" else Reply(body)

    endpoint = wire(served()._replace(answer=handle, counts=counts)).endpoint
    client = Wire(echo, endpoint=endpoint)
    for data in (post(b"x"), post(b"x"), post(b"x") * 3, post(b"long"), GET % b"GET", b"POST /"):
        before = [counted[0], counted[1], len(client.out)]
        client.send(data)
        assert counted == [before[0] + len(data), before[1] + len(client.out) - before[2]]
    assert opened == ["opened"] * 2
    for _ in range(4):
        Wire(echo, endpoint=endpoint)
    assert opened == ["opened"] * 4 + ["no"] * 2
