"""HTTP answers as bytes, and the documents of the page. No I/O.

An `Answer` needs no handler: a refusal, a health probe, a preflight. Its texts are geth's where
geth has one. `checks` decides which answer applies.

A `Document` is kept in memory and answers a GET: the page and its parts. Documents may run and
load nothing but each other: their policy forbids everything else and lets the page connect to
this service alone, at the address that the client has used and at the ports of its other
networks. A browser keeps documents and revalidates them by their tags.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from foreblock.scheduling.reply import Readiness, Reply
from foreblock.server.head import RequestHead, without_port

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

CLOSE: Final = b"Connection: close\r\n"
KEEP_ALIVE: Final = b"Connection: keep-alive\r\n"  # HTTP/1.0 closes by default

ALLOW: Final = b"Allow: GET, HEAD, OPTIONS, POST\r\n"


PLAIN: Final = b"text/plain; charset=utf-8"
JSON: Final = b"application/json"


class Answer(NamedTuple):
    """Status code and reason, a text without its last line feed, and header lines."""

    status: bytes
    text: bytes = b""
    headers: bytes = b""  # complete lines
    kind: bytes = PLAIN  # of the text


class Probe(NamedTuple):
    """A readiness probe, which the network answers."""

    verbose: bool
    bodiless: bool
    as_json: bool = False


class Scrape(NamedTuple):
    """A question for metrics, which the worker answers."""

    bodiless: bool


METRICS_KIND: Final = b"text/plain; version=0.0.4; charset=utf-8"  # Prometheus' own

OK: Final = Answer(b"200 OK")
HEALTHY: Final = Answer(b"200 OK", b"ok")
NO_CONTENT: Final = Answer(b"204 No Content", headers=ALLOW)
FORBIDDEN_HOST: Final = Answer(b"403 Forbidden", b"invalid host specified")
NOT_FOUND: Final = Answer(b"404 Not Found", b"not found")
METHOD_NOT_ALLOWED: Final = Answer(b"405 Method Not Allowed", b"method not allowed", ALLOW)
REQUEST_TIMEOUT: Final = Answer(b"408 Request Timeout", b"request not received in time")
UNSUPPORTED_CONTENT: Final = Answer(
    b"415 Unsupported Media Type", b"invalid content type, only application/json is supported"
)
UNKNOWN_EXPECTATION: Final = Answer(b"417 Expectation Failed", b"only 100-continue can be expected")
TOO_MANY_CONNECTIONS: Final = Answer(
    b"429 Too Many Requests", b"Too many connections. Please try again later."
)
INTERNAL_ERROR: Final = Answer(b"500 Internal Server Error", b"internal error")
UNKNOWN_CODING: Final = Answer(
    b"501 Not Implemented", b"only the transfer coding chunked is supported"
)
TOO_MUCH_RECEIVED: Final = Answer(
    b"503 Service Unavailable", b"too much is being received, try again later"
)
NO_METRICS: Final = Answer(b"503 Service Unavailable", b"metrics could not be read in time")
UNKNOWN_VERSION: Final = Answer(
    b"505 HTTP Version Not Supported", b"only HTTP/1.1 and HTTP/1.0 are supported"
)


def bad_request(why: str) -> Answer:
    """The request is not HTTP, or ambiguous."""
    return Answer(b"400 Bad Request", b"bad request: " + why.encode("latin-1"))


def not_here_yet(why: str) -> Answer:
    """The state that a request demands has not arrived; another instance may have it."""
    return Answer(b"503 Service Unavailable", why.encode("ascii"), b"Retry-After: 1\r\n")


def body_too_large(length: int, limit: int) -> Answer:
    """The announced body exceeds the limit."""
    return Answer(b"413 Content Too Large", b"content length too large (%d>%d)" % (length, limit))


def head_too_large(limit: int) -> Answer:
    """Request line and headers exceed their limit."""
    return Answer(
        b"431 Request Header Fields Too Large", b"request head too large (more than %d)" % limit
    )


def readiness(found: Readiness, probe: Probe) -> Answer:
    """The response to a probe: one word, if verbose with lines for people, or all of it as JSON."""
    status = b"200 OK" if found.ready else b"503 Service Unavailable"
    if probe.bodiless:
        return Answer(status)
    if probe.as_json:
        value = {"ready": found.ready, "networks": found.networks}
        return Answer(status, msgspec.json.encode(value), kind=JSON)
    word = "ready" if found.ready else "not ready"
    lines = (word, *found.lines) if probe.verbose else (word,)
    return Answer(status, "\n".join(lines).encode())


def metrics(text: bytes) -> Answer:
    """The response to a scrape; the text ends with a line feed, which every answer has."""
    return Answer(b"200 OK", text.removesuffix(b"\n"), kind=METRICS_KIND)


def render(answer: Answer, date: bytes, headers: bytes) -> bytes:
    """Render a response; `date` and `headers` are complete lines."""
    if not answer.text:
        length = b"" if answer.status[:3] in (b"204", b"304") else b"Content-Length: 0\r\n"
        return b"HTTP/1.1 %b\r\n%b%b%b%b\r\n" % (
            answer.status, date, answer.headers, headers, length,
        )  # fmt: skip
    return (
        b"HTTP/1.1 %b\r\n%b%b%bContent-Type: %b\r\n"
        b"X-Content-Type-Options: nosniff\r\nContent-Length: %d\r\n\r\n%b\n"
    ) % (
        answer.status, date, answer.headers, headers, answer.kind, len(answer.text) + 1,
        answer.text,
    )  # fmt: skip


def reply_parts(reply: Reply, date: bytes, headers: bytes) -> tuple[bytes, ...]:
    """Head and body of a handler's reply, to be joined once with other output.

    Does not include the rest of a body in pieces. Nothing is formatted: `%` takes 0.2 µs for a
    head, and 68 µs for a body of 157 kB that is joined in 4 µs.
    """
    body = reply.body
    length = len(body) if reply.rest is None else reply.size
    ends = HEAD_ENDS[length] if length < SHORT else _head_end(length)
    return SUCCESS, date, reply.headers, headers, ends, body


SUCCESS: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _head_end(length: int) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % length


SHORT: Final = 2048  # bytes; the last header lines of shorter answers are precomputed
HEAD_ENDS: Final = tuple(_head_end(length) for length in range(SHORT))


_NAME: Final = re.compile(rb"[A-Za-z0-9.:_-]+")  # of a host, as a policy can hold it
_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src %b; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Final = (
    b"Content-Security-Policy: %b\r\n"
    b"Cache-Control: no-cache\r\nVary: Accept\r\nETag: %b\r\n"
    b"Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n"
    b"Cross-Origin-Resource-Policy: same-origin\r\n"
)


class Document(NamedTuple):
    """A text of some media type, without its last line feed."""

    kind: bytes
    text: bytes
    tag: bytes  # changes with the text

    @classmethod
    def of(cls, kind: str, text: bytes) -> "Document":
        tag = hashlib.sha256(text).hexdigest()[:16]
        return cls(kind.encode(), text.removesuffix(b"\n"), b'"%b"' % tag.encode())


class Documents(NamedTuple):
    """All documents of an address."""

    by_path: Mapping[bytes, Document]
    page: bytes = b""  # the path of the one that a browser gets at the root
    siblings: frozenset[int] = frozenset()  # ports of the service's other networks


NO_DOCUMENTS: Final = Documents({})
MOVED: Final = Answer(b"308 Permanent Redirect", headers=b"Location: ../ui\r\n")


def prefers_page(head: RequestHead, documents: Documents) -> bool:
    """Return whether a request for the root accepts HTML, and so gets the page."""
    if not documents.page or head.method not in (b"GET", b"HEAD"):
        return False
    return accepts(head, b"text/html")


def accepts(head: RequestHead, kind: bytes) -> bool:
    """Return whether a request names a media type in `Accept`."""
    ranges = (head.get(b"accept") or b"").lower().split(b",")
    return any(each.partition(b";")[0].strip() == kind for each in ranges)


def serve_document(head: RequestHead, host: bytes, path: bytes, documents: Documents) -> Answer:
    """The response to a request for a document."""
    if head.method not in (b"GET", b"HEAD"):
        return METHOD_NOT_ALLOWED
    document = documents.by_path[path]
    headers = _HEADERS % (_POLICY % _reachable(host, documents.siblings), document.tag)
    known = (head.get(b"if-none-match") or b"").split(b",")
    if any(each.strip().removeprefix(b"W/") == document.tag for each in known):
        return Answer(b"304 Not Modified", headers=headers)
    return Answer(b"200 OK", document.text, headers, document.kind)


def _reachable(host: bytes, siblings: frozenset[int]) -> bytes:
    """The sources that the page may connect to: its own address, and those of the siblings."""
    name = without_port(host)
    if not _NAME.fullmatch(name):
        return b"'self'"
    if b":" in name:
        # A policy cannot name an IPv6 address, so ports stand for it there.
        return b"'self' " + b" ".join(b"ws://*:%d" % port for port in sorted(siblings))
    own = (b"ws://%b" % host, b"wss://%b" % host)
    others = (b"%b://%b:%d" % (s, name, port) for port in sorted(siblings) for s in (b"ws", b"wss"))
    return b" ".join((b"'self'", *own, *others))
