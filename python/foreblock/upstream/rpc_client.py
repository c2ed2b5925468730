"""A blocking JSON-RPC client: one endpoint over HTTP, one connection kept open.

Used by the reading verbs, conformance and benchmarks. A request is
retried if the server had closed the idle connection before it arrived, and a few times if it
is refused with 503 and a time to ask again. It demands the highest commit that was seen at this
address (`shown_commit`), so answers never go backwards. `exchange` and `post` keep bytes, for tools
that compare bytes.
"""

import http.client
import json
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import SplitResult, urlsplit

import msgspec

from foreblock.errors import ErrorAnswer, InvalidArgument, NotAnAnswer, Unreachable
from foreblock.secret_urls import redact_urls

SNAPSHOT: Final = "Foreblock-Snapshot"
MIN_COMMIT: Final = "Foreblock-Min-Commit"
TRIES: Final = 4  # of one request, until an instance has the commit
LONGEST_PAUSE: Final = 2.0  # seconds; where a longer one is wanted, it is not asked again

_COMMIT: Final = re.compile(r"\bcommit=([0-9]{1,20})(?![0-9])")
_SECONDS: Final = re.compile(r"[0-9]{1,3}")


class ShownCommit:
    """The highest commit that one address has shown."""

    __slots__ = ("highest",)

    def __init__(self) -> None:
        self.highest = 0

    def demand(self) -> dict[str, str]:
        """The header of a request that accepts nothing older."""
        return {MIN_COMMIT: str(self.highest)} if self.highest else {}

    def see(self, headers: Mapping[str, str]) -> None:
        """Take note of the snapshot of an answer."""
        found = _COMMIT.search(_value(headers, SNAPSHOT))
        if found is not None:
            self.highest = max(self.highest, int(found[1]))

    def give_up(self, answer: bytes) -> None:
        """Accept any commit again if it was refused for good: the chain may be a new one."""
        if answer.startswith(b"commit %d is not here yet" % self.highest):
            self.highest = 0


def pause_before_next(status: int, headers: Mapping[str, str]) -> float | None:
    """Seconds after which to ask again; None if this is the answer."""
    if status != HTTPStatus.SERVICE_UNAVAILABLE:
        return None
    named = _value(headers, "Retry-After")
    if not _SECONDS.fullmatch(named) or int(named) > LONGEST_PAUSE:
        return None
    return float(named)


def _value(headers: Mapping[str, str], name: str) -> str:
    """The value of a header; proxies may write its name in lower case."""
    return next((each for key, each in headers.items() if key.lower() == name.lower()), "")


DEFAULT_URL: Final = "http://127.0.0.1:8545"
TIMEOUT_SECONDS: Final = 30.0
EXCERPT: Final = 200  # characters of an answer that an error message quotes
# Bounds of an answer from an untrusted endpoint: nesting depth, and commas and brackets, since
# a value takes many times the memory of its text.
DEEPEST: Final = 64
MOST_VALUES: Final = 500_000

_PIECE: Final = 1 << 16  # bytes read at once
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


class Endpoint:
    """A JSON-RPC endpoint at a URL; use it as a context manager or `close` it."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        timeout: float = TIMEOUT_SECONDS,
        longest_answer: int | None = None,
    ) -> None:
        """`timeout` bounds each step of an exchange, and all pauses of one request together.

        `longest_answer`, in bytes, is for untrusted endpoints: it also bounds the nesting and
        the number of values of an answer.
        """
        self.url = url
        self.shown = redact_urls(url)  # in errors, which go to logs
        self._longest_answer = longest_answer
        parts = split_http_url(url)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._connection = _connection(parts, timeout)
        self._timeout = timeout
        self._seen = ShownCommit()
        self._number = 0
        self.headers: Mapping[str, str] = {}  # of the last answer to `request`

    def exchange(self, body: bytes) -> bytes:
        """Post a body and return the body of the answer, also of an HTTP error with JSON."""
        return self.exchange_with_headers(body)[0]

    def exchange_with_headers(self, body: bytes) -> tuple[bytes, Mapping[str, str]]:
        """`exchange`, with the headers of the answer."""
        status, answer, headers = self._post_until_here(body)
        if status != http.HTTPStatus.OK and not answer.lstrip().startswith((b"{", b"[")):
            text = answer[:EXCERPT].decode("utf-8", "replace").strip()
            raise NotAnAnswer(self.shown, f"HTTP {status} {text}".strip())
        return answer, headers

    def post(self, body: bytes) -> tuple[int, bytes]:
        """Post a body and return status and body of any answer."""
        status, answer, _ = self._post_until_here(body)
        return status, answer

    def _post_until_here(self, body: bytes) -> tuple[int, bytes, Mapping[str, str]]:
        """Post, and post again after a pause where the server names one."""
        left = self._timeout
        for tries_left in reversed(range(TRIES)):
            status, answer, headers = self._post_again(body)
            pause = pause_before_next(status, headers)
            if pause is None:
                break
            if not tries_left or pause > left:
                self._seen.give_up(answer)
                break
            left -= pause
            time.sleep(pause)
        return status, answer, headers

    def _post_again(self, body: bytes) -> tuple[int, bytes, Mapping[str, str]]:
        """Post, and post again if the kept connection turns out to be closed."""
        reused = self._connection.sock is not None
        try:
            return self._post(body)
        except (http.client.RemoteDisconnected, ConnectionError) as failure:
            self.close()
            if not reused:
                raise Unreachable(self.shown, _reason(failure)) from failure
        except (OSError, http.client.HTTPException) as failure:
            self.close()
            raise Unreachable(self.shown, _reason(failure)) from failure
        try:
            return self._post(body)
        except (OSError, http.client.HTTPException) as failure:
            self.close()
            raise Unreachable(self.shown, _reason(failure)) from failure

    def _post(self, body: bytes) -> tuple[int, bytes, Mapping[str, str]]:
        self._connection.request("POST", self._target, body, _HEADERS | self._seen.demand())
        response = self._connection.getresponse()
        answer = response.read() if self._longest_answer is None else self._read_some(response)
        headers = dict(response.headers)
        self._seen.see(headers)
        return response.status, answer, headers

    def _read_some(self, response: http.client.HTTPResponse) -> bytes:
        assert self._longest_answer is not None
        answer = bytearray()
        while piece := response.read(_PIECE):
            answer += piece
            if len(answer) > self._longest_answer:
                self.close()
                raise NotAnAnswer(self.shown, f"more than {self._longest_answer} bytes")
        if response.length:  # CPython 3.11 does not say it
            raise http.client.IncompleteRead(bytes(answer), response.length)
        if sum(map(answer.count, (b",", b"[", b"{"))) > MOST_VALUES:
            raise NotAnAnswer(self.shown, f"more than {MOST_VALUES} values")
        return bytes(answer)

    def get(self, path: str, accept: str = "*/*") -> tuple[int, str]:
        """Status and text of a GET on the same server, such as a health probe."""
        try:
            self._connection.request("GET", path, headers={"Accept": accept})
            response = self._connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as failure:
            self.close()
            raise Unreachable(self.shown, _reason(failure)) from failure

    def request(self, method: str, params: Sequence[object] = ()) -> object:
        """Call a method. Raises `ErrorAnswer` for an error answer."""
        self._number += 1
        envelope = {
            "jsonrpc": "2.0",
            "id": self._number,
            "method": method,
            "params": list(params),
        }
        body, self.headers = self.exchange_with_headers(json.dumps(envelope).encode())
        answer = _parsed(self.shown, body)
        if self._longest_answer is not None and _is_deep(answer):
            raise NotAnAnswer(self.shown, f"nested more than {DEEPEST} times: {body[:EXCERPT]!r}")
        del body  # long, and its content is in `answer`
        if "error" in answer:
            raise _refusal(self.shown, answer["error"])
        if "result" not in answer or answer.get("id") != self._number:
            raise NotAnAnswer(self.shown, "neither a result nor an error of this request")
        return answer["result"]

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def split_http_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as failure:
        raise InvalidArgument(f"{redact_urls(url)!r} is not a URL: {failure}") from failure
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidArgument(f"{redact_urls(url)!r} is not a URL of the form http://HOST:PORT")
    return parts


def _connection(parts: SplitResult, timeout: float) -> http.client.HTTPConnection:
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout, context=context
        )
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)


def _reason(failure: Exception) -> str:
    if isinstance(failure, TimeoutError):
        return "timed out"
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror.lower()
    return str(failure) or type(failure).__name__


def _parsed(url: str, body: bytes) -> dict[str, object]:
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as failure:
        raise NotAnAnswer(url, f"not JSON: {body[:EXCERPT]!r}") from failure
    if not isinstance(answer, dict):
        raise NotAnAnswer(url, f"not an object: {body[:EXCERPT]!r}")
    return answer


def _is_deep(answer: dict[str, object]) -> bool:
    """Return True if the nesting is so deep that encoding it again could fail."""
    level: list[Any] = [answer]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _refusal(url: str, error: object) -> Exception:
    match error:
        case {"code": int(code), "message": str(message), **rest}:
            return ErrorAnswer(code, message, _text(rest.get("data")))
        case _:
            return NotAnAnswer(url, f"an error without code and message: {error!r}"[:EXCERPT])


def _text(data: object) -> str:
    if data is None:
        return ""
    return data if isinstance(data, str) else json.dumps(data)
