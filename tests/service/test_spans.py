"""Spans of requests: which have one, what they say, and that a collector gets them."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from foreblock.errors import BadSetting
from foreblock.scheduling.reply import Client, Reply
from foreblock.scheduling.steps import discard
from foreblock.service import spans
from foreblock.service.spans import Spans, check_endpoint, traces_url
from support.each_case import each_case
from support.servers.dev_processes import SOLO, dev_chain, package_environment
from support.servers.toy_endpoint import HttpRequest, ToyResponse, http_endpoint
from support.servers.toys import call
from support.servers.waiting import PATIENCE, until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = (f"00-{TRACE}-{PARENT}-{flags}" for flags in ("01", "00"))
SNAPSHOT = b"Foreblock-Snapshot: commit=56; latest=0x36\r\n"


def asks(traceparent: str = "") -> Client:
    return Client("192.0.2.1", 0, traceparent=traceparent)


class Traced:
    """A handler with spans, which are kept."""

    def __init__(self, ratio: float = 0.0, chance: float = 0.5) -> None:
        self._kept = InMemorySpanExporter()
        own = Spans(SimpleSpanProcessor(self._kept), ratio, lambda: chance)
        self.handler = own.traced("main", {"eth_call", "later"}, self._answer)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._kept.get_finished_spans()

    def count(self) -> int:
        return len(self.spans)

    def _answer(self, body: bytes, _: Client) -> Reply | Awaitable[Reply]:
        if b"fail" in body:
            return Reply(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}')
        reply = Reply(b'{"jsonrpc":"2.0","id":1,"result":"\\"error\\":{\\"code\\":1"}', SNAPSHOT)
        return self._later(reply) if b"later" in body else reply

    async def _later(self, reply: Reply) -> Reply:
        await asyncio.sleep(0)
        return reply


def test_a_sampled_request_has_a_span_below_that_of_its_client() -> None:
    traced = Traced()
    for parent in (SAMPLED, UNSAMPLED, ""):
        assert isinstance(traced.handler(call("eth_call"), asks(parent)), Reply)
    (span,) = traced.spans
    assert span.name == "eth_call"
    assert span.kind is SpanKind.SERVER
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.attributes == {
        "rpc.system": "jsonrpc",
        "rpc.method": "eth_call",
        "foreblock.network": "main",
        "foreblock.commit": 56,
    }
    assert span.status.status_code is StatusCode.UNSET


@each_case(
    ("body", "name", "code"),
    [
        (call("fail"), "unknown method", -32601),
        (b"no JSON: fail", "unknown method", -32601),
        (b" [" + call("eth_call") + b"]", "batch", None),
        (call("eth_call", '["' + "x" * 300_000 + '"]'), "unknown method", None),
    ],
)
def test_names_are_those_of_methods_and_errors_are_told(
    body: bytes, name: str, code: int | None
) -> None:
    traced = Traced()
    traced.handler(body, asks(SAMPLED))
    (span,) = traced.spans
    assert span.name == name
    assert span.attributes is not None
    assert span.attributes.get("rpc.jsonrpc.error_code") == code
    assert span.status.status_code is (StatusCode.UNSET if code is None else StatusCode.ERROR)


def later(traced: Traced) -> Awaitable[Reply]:
    reply = traced.handler(call("later"), asks(SAMPLED))
    assert not isinstance(reply, Reply)
    return reply


def test_a_later_reply_ends_its_span_whatever_becomes_of_it() -> None:
    async def scene() -> None:
        traced = Traced()
        waiting = [later(traced) for _ in range(3)]
        assert traced.count() == 0
        answered, cancelled, unwanted = waiting
        assert (await answered).headers == SNAPSHOT
        assert traced.count() == 1
        task = asyncio.ensure_future(cancelled)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert traced.count() == 2
        discard(unwanted)
        assert traced.count() == 3

    asyncio.run(scene())


@pytest.mark.parametrize(("chance", "count"), [(0.24, 1), (0.25, 0)])
def test_a_part_of_the_other_requests_has_spans(chance: float, count: int) -> None:
    traced = Traced(0.25, chance)
    traced.handler(call("eth_call"), asks())
    traced.handler(call("eth_call"), asks(UNSAMPLED))
    assert len(traced.spans) == count
    assert all(each.parent is None for each in traced.spans)


def test_a_collector_is_named_by_its_address_or_by_a_whole_url() -> None:
    assert traces_url("http://a:4318") == traces_url("http://a:4318/") == "http://a:4318/v1/traces"
    assert traces_url("https://a/b/v1/traces") == "https://a/b/v1/traces"
    check_endpoint("http://a:4318")
    with pytest.raises(BadSetting, match="expected http") as refused:
        check_endpoint("ftp://user:password@a/")
    assert "password" not in str(refused.value)
    for url in ("http://[::1", "http://a:99999", "a:4318"):
        with pytest.raises(BadSetting, match="expected http"):
            check_endpoint(url)


def test_missing_packages_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "EXPORTER", "no_such_package.exporter")
    with pytest.raises(BadSetting, match=r"pip install 'foreblock\[otlp\]'"):
        check_endpoint("http://a:4318")


@contextmanager
def collector(found: list[Any]) -> Iterator[str]:
    """A receiver of OTLP over HTTP, in protobuf."""

    def take(request: HttpRequest) -> ToyResponse:
        assert request.path == "/v1/traces"
        sent = ExportTraceServiceRequest.FromString(request.body)
        found.extend(
            span
            for resource in sent.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        )
        return ToyResponse()

    with http_endpoint(take) as url:
        yield url


def test_a_service_exports_spans_and_logs_the_trace() -> None:
    found: list[Any] = []
    options = ("--slow-request=0.0000001", "--log-format=json")
    with collector(found) as url, dev_chain(*SOLO, *options, f"--otlp-endpoint={url}") as dev:
        connection = HTTPConnection(dev.main.url.removeprefix("http://"), timeout=PATIENCE)
        for parent in (SAMPLED, UNSAMPLED, "no parent"):
            headers = {"Content-Type": "application/json", "traceparent": parent}
            connection.request("POST", "/eth", call("eth_chainId"), headers)
            assert json.loads(connection.getresponse().read())["result"] == "0x7a69"
        connection.close()
        (worker,) = dev.pids("worker")
        dev.process.terminate()
        assert dev.process.stdout is not None
        said = dev.process.stdout.read()
        until(lambda: bool(found), "the last batch comes when the service stops")
    assert worker
    (span,) = found
    assert (span.name, span.trace_id.hex(), span.parent_span_id.hex()) == (
        "eth_chainId", TRACE, PARENT,
    )  # fmt: skip
    logged = [json.loads(each) for each in said.splitlines() if "slow_request" in each]
    assert {SAMPLED, UNSAMPLED} == {each.get("traceparent") for each in logged} - {None}


def test_without_the_setting_nothing_of_opentelemetry_is_loaded() -> None:
    code = """
import sys
import foreblock.service.app, foreblock.service.launch, foreblock.service.worker
print([each for each in sys.modules if each.startswith("opentelemetry")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=package_environment(),
    )  # fmt: skip
    assert done.stdout == "[]\n"
