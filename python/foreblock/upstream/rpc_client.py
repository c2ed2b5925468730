"""A blocking JSON-RPC client: one endpoint over HTTP, one connection kept open.

Used by the reading verbs, conformance and benchmarks. It runs a loop of its own while a request is
in progress. A request is retried if the server had closed the idle connection before it arrived,
and a few times if it is refused with 503 and a time to retry. It demands the highest commit that
was seen at this address (`ShownCommit`), so answers never go backwards. `exchange` and `post` keep
bytes, for tools that compare bytes.
"""

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Self

import msgspec

from foreblock.errors import ErrorAnswer, NotAnAnswer, RefusedAnswer, Unreachable
from foreblock.secret_urls import redact_urls
from foreblock.upstream.http import ClientConnection, HttpReply, HttpServer, reason_of

SNAPSHOT: Final = "Foreblock-Snapshot"
MIN_COMMIT: Final = "Foreblock-Min-Commit"
TRIES: Final = 4  # of one request, until an instance has the commit
LONGEST_PAUSE: Final = 2.0  # seconds; with a longer one there is no retry

_COMMIT: Final = re.compile(r"\bcommit=([0-9]{1,20})(?![0-9])")
_SECONDS: Final = re.compile(r"[0-9]{1,3}")


def shown_snapshot(headers: Mapping[str, str]) -> str:
    """The snapshot that a response is of; empty for other servers."""
    return _value(headers, SNAPSHOT)


def shown_commit(snapshot: str) -> int | None:
    """The commit of a snapshot, if it names one."""
    found = _COMMIT.search(snapshot)
    return None if found is None else int(found[1])


class ShownCommit:
    """The highest commit that one address has shown."""

    __slots__ = ("highest",)

    def __init__(self) -> None:
        self.highest = 0

    def demand(self) -> dict[str, str]:
        """The header of a request that accepts nothing older."""
        return {MIN_COMMIT: str(self.highest)} if self.highest else {}

    def see(self, headers: Mapping[str, str]) -> None:
        """Take note of the snapshot of a response."""
        self.highest = max(self.highest, shown_commit(shown_snapshot(headers)) or 0)

    def give_up(self, answer: bytes) -> None:
        """Accept any commit again if it was refused for good: the chain may be a new one."""
        if answer.startswith(b"commit %d is not here yet" % self.highest):
            self.highest = 0


def pause_before_next(status: int, headers: Mapping[str, str]) -> float | None:
    """Seconds after which to ask again; None if this is the response."""
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
EXCERPT: Final = 200  # characters of a response that an error message quotes
DEEPEST: Final = 64  # nesting of a response from an untrusted endpoint


class Endpoint:
    """A JSON-RPC endpoint at a URL; use it as a context manager or `close` it."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        timeout: float = TIMEOUT_SECONDS,
        longest_answer: int | None = None,
    ) -> None:
        """`timeout` bounds each step of an exchange, and all pauses of one request together.

        `longest_answer`, in bytes, is for untrusted endpoints: it also bounds the nesting and the
        number of values of a response.
        """
        self.url = url
        self.shown = redact_urls(url)  # in errors, which go to logs
        self._longest_answer = longest_answer
        self._server = HttpServer(url)
        self._runner: asyncio.Runner | None = None
        self._connection: ClientConnection | None = None
        self._timeout = timeout
        self._seen = ShownCommit()
        self._number = 0
        self.headers: Mapping[str, str] = {}  # of the last answer to `request`

    def exchange(self, body: bytes) -> bytes:
        """Post a body and return the body of the response, also of an HTTP error with JSON."""
        return self.exchange_with_headers(body)[0]

    def exchange_with_headers(self, body: bytes) -> tuple[bytes, Mapping[str, str]]:
        """`exchange`, with the headers of the response."""
        status, answer, headers = self._post_with_deadline(body)
        if status != HTTPStatus.OK and not answer.lstrip().startswith((b"{", b"[")):
            text = answer[:EXCERPT].decode("utf-8", "replace").strip()
            raise NotAnAnswer(self.shown, f"HTTP {status} {text}".strip())
        return answer, headers

    def post(self, body: bytes) -> tuple[int, bytes]:
        """Post a body and return status and body of any answer."""
        status, answer, _ = self._post_with_deadline(body)
        return status, answer

    def _post_with_deadline(self, body: bytes) -> HttpReply:
        """Post, and post again after a pause where the server names one."""
        left = self._timeout
        for tries_left in reversed(range(TRIES)):
            reply = self._send(self._server.post(body, self._seen.demand()))
            self._seen.see(reply.headers)
            pause = pause_before_next(reply.status, reply.headers)
            if pause is None:
                break
            if not tries_left or pause > left:
                self._seen.give_up(reply.body)
                break
            left -= pause
            time.sleep(pause)
        return reply

    def get(self, path: str, accept: str = "*/*") -> tuple[int, str]:
        """Status and text of a GET on the same server, such as a health probe."""
        reply = self._send(self._server.get(path, accept))
        return reply.status, reply.body.decode("utf-8", "replace")

    def _send(self, request: bytes) -> HttpReply:
        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            kept, self._connection = self._connection, None
            send = partial(self._send_on, request)
            return self._runner.run(self._server.exchange(kept, send, self._timeout))
        except RefusedAnswer as refused:
            self.close()
            raise NotAnAnswer(self.shown, refused.why) from None
        except TimeoutError as failure:
            self.close()
            raise Unreachable(self.shown, "timed out") from failure
        except (OSError, EOFError) as failure:
            self.close()
            raise Unreachable(self.shown, reason_of(failure)) from failure

    async def _send_on(self, request: bytes, connection: ClientConnection) -> HttpReply:
        reply = await connection.send(request, longest=self._longest_answer, stall=self._timeout)
        if connection.is_open:
            self._connection = connection
        return reply

    def request(self, method: str, params: Sequence[object] = ()) -> object:
        """Call a method. Raises `ErrorAnswer` for an error response."""
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
        if self._connection is not None:
            self._connection.abort()
        if self._runner is not None:
            self._runner.close()
        self._connection = self._runner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
