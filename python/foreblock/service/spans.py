"""Spans of requests, exported to a collector of OpenTelemetry (`otlp_endpoint`).

A request has a span if its `traceparent` is sampled, or by chance (`otlp_sample`). Without the
setting no package of OpenTelemetry is loaded and no handler is wrapped. A span is named after its
method, if the table has it, and ends with the response; the exporter sends batches in a thread.
"""

import random
import re
from collections.abc import Awaitable, Callable, Collection, Generator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from foreblock import __version__
from foreblock.errors import BadSetting
from foreblock.rpc.envelope import read_usual
from foreblock.scheduling.reply import Client, Handler, Reply
from foreblock.scheduling.steps import Mapped
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.secret_urls import redact_urls

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span, Tracer

EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http"
TRACES: Final = "v1/traces"  # below the address of a collector
EXPORT_SECONDS: Final = 2.0  # for a batch: a stopping worker waits for it
BATCH: Final = "batch"
OTHER: Final = "unknown method"

_SAMPLED: Final = 1  # a flag of traceparent
_COMMIT: Final = re.compile(rb"\bcommit=(\d+)")
_ERROR: Final = re.compile(rb'"error":\{"code":(-?\d+)')
_WITHIN: Final = 256  # bytes of a response that begins with an error


class Traceparent(NamedTuple):
    """A valid header of W3C Trace Context."""

    trace: int
    span: int
    is_sampled: bool

    @classmethod
    def of(cls, text: str) -> "Traceparent":
        _, trace, span, flags = text.split("-")
        return cls(int(trace, 16), int(span, 16), bool(int(flags, 16) & _SAMPLED))


def check_endpoint(url: str) -> None:
    """Raise `BadSetting` if an endpoint is no URL, or its packages are not installed."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        expected = "http://HOST:PORT or https://HOST:PORT"
        raise BadSetting("otlp_endpoint", f"expected {expected}, found {redact_urls(url)!r}")
    if not _is_installed():
        why = "opentelemetry is not installed: pip install 'foreblock[otlp]'"
        raise BadSetting("otlp_endpoint", why)


def _is_installed() -> bool:
    try:
        return find_spec(EXPORTER) is not None
    except (ImportError, ValueError):
        return False


def traces_url(endpoint: str) -> str:
    """Where a collector takes spans: below its address, unless the endpoint has a path."""
    bare = urlsplit(endpoint).path in ("", "/")
    return f"{endpoint.removesuffix('/')}/{TRACES}" if bare else endpoint


def exporting_to(endpoint: str) -> "SpanProcessor":
    """Send batches of spans to a collector, in a thread."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    return BatchSpanProcessor(OTLPSpanExporter(traces_url(endpoint), timeout=EXPORT_SECONDS))


class Spans:
    """The spans of a worker."""

    def __init__(
        self,
        processor: "SpanProcessor",
        ratio: float = 0.0,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Of the requests without a `traceparent`, this ratio has spans."""
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

        about = {"service.name": "foreblock", "service.version": __version__}
        provider = TracerProvider(resource=Resource.create(about))  # it ends with the process
        provider.add_span_processor(processor)
        self.ratio: Final = ratio
        self._chance: Final = chance
        self._tracer: Final[Tracer] = provider.get_tracer("foreblock", __version__)

    def traced(self, network: str, methods: Collection[str], handler: Handler) -> Handler:
        """A handler whose requests have spans."""
        return _TracedHandler(self, network, methods, handler)

    def begin(self, client: Client) -> "_Begun | None":
        """Where the span of a request belongs, if it has one."""
        if client.traceparent:
            parent = Traceparent.of(client.traceparent)
            return _Begun(self._tracer, _context_of(parent)) if parent.is_sampled else None
        if self.ratio and self._chance() < self.ratio:
            return _Begun(self._tracer, None)
        return None


def _context_of(parent: Traceparent) -> "Context":
    from opentelemetry import trace  # noqa: PLC0415

    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    remote = trace.SpanContext(parent.trace, parent.span, is_remote=True, trace_flags=flags)
    return trace.set_span_in_context(trace.NonRecordingSpan(remote))


class _Begun(NamedTuple):
    """A request that has a span, and the context of its parent."""

    tracer: "Tracer"
    parent: "Context | None"

    def span(self, name: str, network: str) -> "Span":
        from opentelemetry.trace import SpanKind  # noqa: PLC0415

        attributes = {"rpc.system": "jsonrpc", "rpc.method": name, "foreblock.network": network}
        return self.tracer.start_span(
            name, self.parent, kind=SpanKind.SERVER, attributes=attributes
        )


class _TracedHandler:
    """A handler of a network whose requests have spans."""

    def __init__(
        self, spans: Spans, network: str, methods: Collection[str], handler: Handler
    ) -> None:
        self._spans: Final = spans
        self._network: Final = network
        self._methods: Final = methods
        self._handler: Final = handler

    def __call__(self, body: bytes, client: Client) -> Reply | Awaitable[Reply]:
        begun = self._spans.begin(client)
        if begun is None:
            return self._handler(body, client)
        span = begun.span(self._name(body), self._network)
        reply = self._handler(body, client)
        if isinstance(reply, Reply):
            return _ended(span, reply)
        return _LaterReply(span, reply)

    def _name(self, body: bytes) -> str:
        """The method; no name that only a client has chosen."""
        asked = read_usual(body) if len(body) < THRESHOLDS.long_body_bytes else None
        if asked is None:
            return BATCH if body.lstrip()[:1] == b"[" else OTHER
        return asked[0].method if asked[0].method in self._methods else OTHER


class _LaterReply(Mapped[Reply, Reply]):
    """A reply that ends its span, also when the client does not wait for it."""

    __slots__ = ("_span",)

    def __init__(self, span: "Span", reply: Awaitable[Reply]) -> None:
        super().__init__(reply, lambda found: _ended(span, found))
        self._span: Final = span

    def __await__(self) -> Generator[Any, None, Reply]:
        try:
            return (yield from super().__await__())
        except BaseException:
            self._span.end()
            raise

    def close(self) -> None:
        super().close()
        self._span.end()


def _ended(span: "Span", reply: Reply) -> Reply:
    """End a span with the commit and the error of its response."""
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415

    commit = _COMMIT.search(reply.headers)
    if commit is not None:
        span.set_attribute("foreblock.commit", int(commit[1]))
    error = _ERROR.search(reply.body, 0, _WITHIN) if reply.body[:1] == b"{" else None
    if error is not None:
        span.set_attribute("rpc.jsonrpc.error_code", int(error[1]))
        span.set_status(Status(StatusCode.ERROR))
    span.end()
    return reply
