"""Check the head of a request before its body is read. No I/O.

`check` returns `AcceptedHead`, with all that framing and answering need, or `RefusedRequest`, after
which the connection closes because the start of the next request is uncertain. A complete request
for an unknown path or another method is accepted with its response: its body is skipped and the
connection stays open.

A request may demand a minimum state:

    Foreblock-Min-Commit: 56
    Foreblock-Min-Commit: 56; wait=100
    Foreblock-Min-Place: 0x37.4

Browsers cannot set headers of a handshake, so a request for WebSocket may have the same values
as the parameters `min_commit` and `min_place` of its query.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Self
from urllib.parse import unquote_to_bytes

from foreblock.scheduling.reply import Minimum
from foreblock.server import answers
from foreblock.server.answers import (
    JSON,
    MOVED,
    NO_DOCUMENTS,
    Answer,
    Documents,
    Probe,
    Scrape,
    accepts,
    bad_request,
    prefers_page,
    serve_document,
)
from foreblock.server.compression import coding_of
from foreblock.server.head import ALL_ORIGINS, KEPT, RequestHead, host_allowed, origin_allowed
from foreblock.server.key_table import KeyTable
from foreblock.server.keyed import HEADERS, key_of
from foreblock.server.upgrade import Upgrade, check_upgrade, wants_websocket
from foreblock.settings import Access, ServerLimits

MIN_COMMIT: Final = b"foreblock-min-commit"
MIN_PLACE: Final = b"foreblock-min-place"
NAMES: Final = frozenset({MIN_COMMIT, MIN_PLACE})
_PARAMETERS: Final = {b"min_commit": MIN_COMMIT, b"min_place": MIN_PLACE}

# Numbers of up to 64 bits, in decimal or as quantities; the wait in milliseconds.
_NUMBER: Final = rb"(0x[0-9a-fA-F]{1,16}|[0-9]{1,20})"
_WAIT: Final = rb"(?:[ \t]*;[ \t]*wait=([0-9]{1,9}))?"
_COMMIT: Final = re.compile(_NUMBER + _WAIT)
_PLACE: Final = re.compile(rb"(0x[0-9a-fA-F]{1,16})\.([0-9]{1,20})" + _WAIT)
_LARGEST: Final = 2**64 - 1

_BAD_COMMIT: Final = bad_request(
    "Foreblock-Min-Commit is not the number of a commit, as in 56 or 56; wait=100"
)
_BAD_PLACE: Final = bad_request(
    "Foreblock-Min-Place is not the place of a flashblock, as in 0x37.4 or 0x37.4; wait=100"
)
_TWICE: Final = bad_request("more than one minimum of a kind")


def read_minimum(head: RequestHead, query: bytes = b"") -> Minimum | Answer | None:
    """Return the minimum of a request, None without one, or the refusal of an unreadable one."""
    given = [each for each in head.headers if each[0] in NAMES]
    if query:
        given += _from_query(query)
    if not given:
        return None
    values = dict(given)
    if len(values) < len(given):
        return _TWICE
    commit = _COMMIT.fullmatch(values.get(MIN_COMMIT, b"0"))
    place = _PLACE.fullmatch(values.get(MIN_PLACE, b"0x0.0"))
    if commit is None or (number := _number(commit[1])) > _LARGEST:
        return _BAD_COMMIT
    if place is None or (index := int(place[2])) > _LARGEST:
        return _BAD_PLACE
    waits = [int(each) for each in (commit[2], place[3]) if each is not None]
    at = (_number(place[1]), index) if MIN_PLACE in values else None
    return Minimum(number, at, min(waits, default=None))


def _from_query(query: bytes) -> list[tuple[bytes, bytes]]:
    pairs = (each.partition(b"=") for each in query.split(b"&"))
    return [
        (_PARAMETERS[name], unquote_to_bytes(value))
        for name, _, value in pairs
        if name in _PARAMETERS
    ]


def _number(text: bytes) -> int:
    return int(text, 16 if text.startswith(b"0x") else 10)


CHUNKED: Final = -1  # in place of a length
ROOT: Final = b"/"
METRICS: Final = b"/metrics"
REQUEST_ID: Final = b"x-request-id"
_REQUEST_ID: Final = re.compile(rb"[!-~]{1,128}")
TRACEPARENT: Final = b"traceparent"  # of W3C Trace Context
_TRACEPARENT: Final = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
NO_IDS: Final[Mapping[str, str]] = MappingProxyType({})

# geth's three (`rpc/http.go`), with any parameters.
CONTENT_TYPES: Final = frozenset(
    {b"application/json", b"application/json-rpc", b"application/jsonrequest"}
)


class AcceptedHead(NamedTuple):
    """A valid head; `answer` is set if the handler is not needed."""

    length: int
    keep_alive: bool
    headers: bytes  # lines for the response
    expects_continue: bool
    answer: Answer | Probe | Scrape | Upgrade | None
    repeatable: bool  # equal bytes may be accepted without parsing
    path: bytes = ROOT  # one of the rules' paths and its codings, which have a handler of their own
    ids: Mapping[str, str] = NO_IDS  # of the request, which its log has
    minimum: Minimum | None = None  # the state that it demands at least


class RefusedRequest(NamedTuple):
    """A request after which the connection closes."""

    answer: Answer


class RequestRules(NamedTuple):
    """The rules of one endpoint."""

    body_limit: int
    header_limit: int
    hosts: frozenset[bytes]  # lower case, as are origins; * allows all
    origins: frozenset[bytes]  # as in `head`
    exposed: bytes  # headers that pages of other origins may read
    paths: frozenset[bytes] = frozenset({ROOT})  # that have a handler
    documents: Documents = NO_DOCUMENTS
    metrics: bool = False  # whether /metrics is served
    gzip_from: int = 0  # bytes of a response that is compressed; 0 disables compression
    kept: frozenset[bytes] = KEPT  # names of the headers that are used
    keys: KeyTable | None = None  # without, no request needs a key

    def with_keys(self, keys: KeyTable) -> Self:
        """These rules, and that each request to a handler has a key."""
        return self._replace(keys=keys, kept=KEPT | HEADERS)

    @classmethod
    def of(cls, limits: ServerLimits, access: Access, exposed: bytes = b"") -> Self:
        """The rules of the settings."""
        return cls(
            limits.body_limit,
            limits.header_limit,
            frozenset(host.lower().encode() for host in access.hosts),
            frozenset(origin.lower().encode() for origin in access.cors_origins),
            exposed,
            gzip_from=limits.gzip_from,
        )


def check(head: RequestHead, rules: RequestRules) -> AcceptedHead | RefusedRequest:
    """Decide whether a head begins a valid request, and how to answer it."""
    length = _length(head)
    if isinstance(length, Answer):
        return _refused(head, length)
    target = _target(head)
    if isinstance(target, Answer):
        return _refused(head, target)
    answer, minimum = _with_minimum(head, target[1], _answer(head, *target, length, rules))
    key = b""
    if rules.keys is not None and (answer is None or isinstance(answer, Upgrade)):
        answer, key = _with_key(head, target[1], answer, rules.keys)
    if length > rules.body_limit:
        too_large = answers.body_too_large(length, rules.body_limit)
        return _refused(head, answer if isinstance(answer, Answer) and answer.text else too_large)
    expectation = _expectation(head)
    if expectation not in (b"", b"100-continue"):
        return _refused(head, answers.UNKNOWN_EXPECTATION)
    expects = expectation != b"" and length != 0
    if answer is not None and expects:
        # Whether the body follows is unknown, so the connection closes.
        return _refused(head, answer if isinstance(answer, Answer) else answers.OK)
    return AcceptedHead(
        length,
        head.keep_alive,
        _connection(head) + cors_headers(head, rules) + _id_header(head),
        expects,
        _bodiless(head, answer) if isinstance(answer, Answer) else answer,
        minimum is None and _repeatable(head, length, answer, expectation),
        ROOT if answer is not None else _handler_path(head, target[1], rules) + key,
        _ids(head),
        minimum,
    )


def _length(head: RequestHead) -> int | Answer:
    """The length of the body, or a refusal if readers could disagree about it."""
    length, coding = head.get(b"content-length"), head.get(b"transfer-encoding")
    if head.version not in ("1.0", "1.1"):
        return answers.UNKNOWN_VERSION
    if head.repeats(b"content-length") or head.repeats(b"transfer-encoding"):
        return answers.bad_request("contradictory lengths")
    if coding is not None:
        # RFC 9112 section 6.1: with a length it may be an attack, in HTTP/1.0 it is faulty.
        if length is not None or head.version == "1.0":
            return answers.bad_request("contradictory lengths")
        return CHUNKED if coding.lower() == b"chunked" else answers.UNKNOWN_CODING
    if length is None:
        return 0
    return int(length) if length.isdigit() else answers.bad_request("the length is not a number")


def _target(head: RequestHead) -> tuple[bytes, bytes] | Answer:
    """Host, and path with query."""
    host, target = head.get(b"host"), head.target
    if head.repeats(b"host"):
        return answers.bad_request("more than one Host")
    if not host and (host is not None or head.version == "1.1"):
        return answers.bad_request("no Host")
    if target[:7].lower() == b"http://":
        # The absolute form, which proxies use; its host takes precedence.
        host, slash, path = target[7:].partition(b"/")
        target = b"/" + path if slash else b"/"
    return host or b"", target


def _answer(
    head: RequestHead, host: bytes, target: bytes, length: int, rules: RequestRules
) -> Answer | Probe | Scrape | Upgrade | None:
    """The response if the handler is not needed, in geth's order of checks."""
    path, query = _path(target), target.partition(b"?")[2]
    if not host_allowed(host, rules.hosts):
        return answers.FORBIDDEN_HOST
    if head.method == b"OPTIONS" and (path in rules.paths or path == b"*"):
        return _preflight(head, rules)
    if path not in rules.paths:
        return _answer_elsewhere(head, host, path, query, rules)
    if wants_websocket(head):
        return check_upgrade(head, host, path, length, rules.origins, rules.documents.siblings)
    if path == ROOT and not query and not length and prefers_page(head, rules.documents):
        return serve_document(head, host, rules.documents.page, rules.documents)
    return _answer_by_method(head, query, length, rules)


def _with_minimum(
    head: RequestHead, target: bytes, answer: Answer | Probe | Scrape | Upgrade | None
) -> tuple[Answer | Probe | Scrape | Upgrade | None, Minimum | None]:
    """The response, and the minimum of a request that is answered from the state of a network."""
    if answer is not None and not isinstance(answer, Upgrade):
        return answer, None
    minimum = read_minimum(head, b"" if answer is None else target.partition(b"?")[2])
    if isinstance(minimum, Answer):
        return minimum, None
    return answer, minimum


def _with_key(
    head: RequestHead, target: bytes, answer: Upgrade | None, keys: KeyTable
) -> tuple[Answer | Upgrade | None, bytes]:
    """The response, and the suffix of the path for the key that pays for the request."""
    found = key_of(head, target.partition(b"?")[2], keys)
    if isinstance(found, Answer):
        return found, b""
    return (None if answer is None else answer._replace(path=answer.path + found)), found


def _answer_elsewhere(
    head: RequestHead, host: bytes, path: bytes, query: bytes, rules: RequestRules
) -> Answer | Probe | Scrape:
    """The response at a path without a handler."""
    if path in (b"/healthz", b"/readyz") or (path == METRICS and rules.metrics):
        return _probe(head, path, query)
    if path in rules.documents.by_path:
        return serve_document(head, host, path, rules.documents)
    page = rules.documents.page
    return MOVED if page and path == page + b"/" else answers.NOT_FOUND


def _path(target: bytes) -> bytes:
    return target.partition(b"?")[0]


def _handler_path(head: RequestHead, target: bytes, rules: RequestRules) -> bytes:
    """The path of a handler, which also depends on codings if there is compression."""
    return _path(target) + (coding_of(head) if rules.gzip_from else b"")


def _probe(head: RequestHead, path: bytes, query: bytes) -> Answer | Probe | Scrape:
    """Answer a liveness probe; a readiness probe is for the network, metrics for the worker."""
    if head.method not in (b"GET", b"HEAD"):
        return answers.METHOD_NOT_ALLOWED
    if path == b"/healthz":
        return answers.HEALTHY
    if path == METRICS:
        return Scrape(head.method == b"HEAD")
    parameters = dict(each.partition(b"=")[::2] for each in query.split(b"&"))
    as_json = parameters.get(b"format") == b"json" or accepts(head, JSON)
    return Probe(b"verbose" in parameters, head.method == b"HEAD", as_json)


def _answer_by_method(
    head: RequestHead, query: bytes, length: int, rules: RequestRules
) -> Answer | None:
    if head.method in (b"GET", b"HEAD") and length == 0 and not query:
        return answers.OK
    if head.method != b"POST":
        return answers.METHOD_NOT_ALLOWED
    if length <= rules.body_limit and not _is_json(head):
        return answers.UNSUPPORTED_CONTENT
    return None


def _is_json(head: RequestHead) -> bool:
    kind = (head.get(b"content-type") or b"").lower()
    return kind.partition(b";")[0].strip() in CONTENT_TYPES


def cors_headers(head: RequestHead, rules: RequestRules) -> bytes:
    """Headers that let a page of an allowed origin read the response."""
    origin = head.get(b"origin")
    if origin is None or not rules.origins:
        return b""
    if ALL_ORIGINS in rules.origins:
        named = b"Access-Control-Allow-Origin: *\r\n"
    elif origin_allowed(origin, rules.origins):
        named = b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n" % origin
    else:
        return b"Vary: Origin\r\n"
    return named + (b"Access-Control-Expose-Headers: %b\r\n" % rules.exposed)


def _preflight(head: RequestHead, rules: RequestRules) -> Answer:
    """The response to OPTIONS: GET and POST, any header, for ten minutes, as geth has it."""
    asked = head.get(b"access-control-request-method") is not None
    if not asked or b"Allow-Origin" not in cors_headers(head, rules):
        return answers.NO_CONTENT
    wanted = head.get(b"access-control-request-headers")
    allow = b"Access-Control-Allow-Headers: %b\r\n" % wanted if wanted else b""
    granted = b"Access-Control-Allow-Methods: GET, POST\r\nAccess-Control-Max-Age: 600\r\n" + allow
    return answers.NO_CONTENT._replace(headers=answers.ALLOW + granted)


def _connection(head: RequestHead) -> bytes:
    if not head.keep_alive:
        return answers.CLOSE
    return answers.KEEP_ALIVE if head.version == "1.0" else b""


def _expectation(head: RequestHead) -> bytes:
    """The expectation; HTTP/1.0 has none."""
    return (head.get(b"expect") or b"").lower() if head.version == "1.1" else b""


def _repeatable(
    head: RequestHead,
    length: int,
    answer: Answer | Probe | Scrape | Upgrade | None,
    expectation: bytes,
) -> bool:
    return (
        answer is None
        and head.method == b"POST"
        and head.version == "1.1"
        and head.keep_alive
        and length != CHUNKED
        and head.get(b"content-length") is not None
        and not expectation
        and head.get(b"upgrade") is None
        and head.get(REQUEST_ID) is None
        and head.get(TRACEPARENT) is None
    )


def _request_id(head: RequestHead) -> bytes:
    """The id of a request, if it has one that can be logged."""
    given = head.get(REQUEST_ID) or b""
    return given if _REQUEST_ID.fullmatch(given) else b""


def _ids(head: RequestHead) -> Mapping[str, str]:
    """The ids of a request by their names in its log; invalid ids are ignored."""
    request, trace = _request_id(head), head.get(TRACEPARENT) or b""
    if not request and not trace:
        return NO_IDS
    found = {"request_id": request.decode("ascii")} if request else {}
    if _TRACEPARENT.fullmatch(trace) and not head.repeats(TRACEPARENT):
        found["traceparent"] = trace.decode("ascii")
    return found


def _id_header(head: RequestHead) -> bytes:
    given = _request_id(head)
    return b"X-Request-Id: %b\r\n" % given if given else b""


def _refused(head: RequestHead, answer: Answer) -> RefusedRequest:
    return RefusedRequest(_bodiless(head, answer))


def _bodiless(head: RequestHead, answer: Answer) -> Answer:
    """The response without its body for HEAD."""
    return answer._replace(text=b"") if head.method == b"HEAD" else answer
