"""The state that all connections to one address share: handlers by path, rules, accepted heads.

A network has one endpoint. All endpoints of a worker share its ticker, its limit of connections
and its budget for answers.

`HeadCache` keeps heads that passed every check. A keep-alive client repeats its head. Equal
bytes parse equally, so a cached head needs no parsing and no rule is weakened: 1 µs for a whole
request instead of 9. A head that differs only in unused headers, such as a cookie, is parsed
and then found by its used parts. Each endpoint has its own cache, since its rules decide. The
fast path of the endpoint gets the same heads.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Final, Protocol

from foreblock.errors import ForeblockError
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.api_keys import ApiKey
from foreblock.scheduling.reply import (
    NO_FAST_PATH,
    FastPath,
    OpenSession,
    Served,
    Text,
    whole,
)
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server import answers
from foreblock.server.answers import SUCCESS, Answer, Scrape
from foreblock.server.checks import ROOT, AcceptedHead, RefusedRequest, RequestRules, check
from foreblock.server.compression import CodedHandler, coded_handlers
from foreblock.server.head import RequestHead
from foreblock.server.key_table import KeyTable
from foreblock.server.keyed import Admitting, ByKey, refuse_unknown, session_of_key
from foreblock.server.sweep import SweptConnection, Ticker
from foreblock.settings import WebSocketLimits

LONGEST: Final = 1024  # bytes; longer heads are rare
MOST: Final = 1024  # heads; then the cache is cleared


class HeadCache(dict[bytes, AcceptedHead]):
    """Accepted heads by their bytes without the final empty line; a dict, for its speed."""

    __slots__ = ("_fast_path", "_verdicts")

    def __init__(self, fast_path: FastPath = NO_FAST_PATH) -> None:
        super().__init__()
        self._fast_path: Final = fast_path
        self._verdicts: dict[RequestHead, AcceptedHead] = {}

    def remember(self, head: bytes, accepted: AcceptedHead) -> None:
        """Cache a head that may be repeated."""
        if accepted.repeatable and len(head) <= LONGEST:
            if len(self) >= MOST:
                self.clear()
                self._fast_path.clear_heads()
            self[head] = accepted
            if b" " in accepted.path:  # compressed in threads, or paid for by a key
                return
            is_at_root = accepted.path == ROOT
            self._fast_path.cache_head(
                head, accepted.length, SUCCESS, accepted.headers, is_at_root=is_at_root
            )

    def forget(self) -> None:
        """Check every head again."""
        self.clear()
        self._verdicts.clear()
        self._fast_path.clear_heads()

    def judge(self, head: RequestHead, rules: RequestRules) -> AcceptedHead | RefusedRequest:
        """Check a head, or return the cached verdict of an equal one."""
        known = self._verdicts.get(head)
        if known is not None:
            return known
        verdict = check(head, rules)
        if isinstance(verdict, AcceptedHead) and verdict.repeatable:
            if len(self._verdicts) >= MOST:
                self._verdicts.clear()
            self._verdicts[head] = verdict
        return verdict


class Flushed(Protocol):
    """A connection with something to write."""

    def flush(self) -> None: ...


class Flusher:
    """The connections to one address that have something to write."""

    __slots__ = ("_clock", "_due")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._due: Final[deque[Flushed]] = deque()

    def add(self, connection: Flushed) -> None:
        """Flush a connection soon."""
        if not self._due:
            asyncio.get_running_loop().call_soon(self._run)
        self._due.append(connection)

    def _run(self) -> None:
        due, until = self._due, self._clock() + THRESHOLDS.flush_seconds
        while due:
            due.popleft().flush()
            if self._clock() >= until:
                break
        if due:
            asyncio.get_running_loop().call_soon(self._run)


# Connections beyond the limit that get a response before they are closed.
REFUSED_AT_ONCE: Final = 64


class Admission(Enum):
    """The decision about a new connection."""

    ADMITTED = auto()
    REFUSED = auto()  # with a response
    DROPPED = auto()  # without one


class HttpEndpoint:
    """The shared parts of the connections to one address."""

    def __init__(
        self,
        served: Served,
        rules: RequestRules,
        ticker: Ticker,
        connections: int,
        budget: WorkerBudget,
        websocket: WebSocketLimits | None = None,
    ) -> None:
        paths = () if served.only_metrics else (ROOT, *served.at_paths)
        self.handlers: dict[bytes, CodedHandler]
        self.sessions: dict[bytes, OpenSession | None]
        self.websocket: Final = websocket or WebSocketLimits()
        self.flusher: Final = Flusher()
        self.readiness: Final = served.readiness
        self._metrics: Final = served.metrics
        self.check_minimum: Final = served.check_minimum
        self.rules: Final = rules._replace(
            paths=frozenset(paths), metrics=served.metrics is not None
        )
        self.counts: Final = served.counts
        self.ticker: Final = ticker
        self.fast_path: Final = served.fast_path.answer
        self.heads: Final = HeadCache(served.fast_path)
        self.budget: Final = budget
        self._connections: Final = connections
        if rules.keys is None:
            self.handlers, self.sessions = self._handlers_of(served), _sessions_of(served)
        else:
            assert served.for_key is not None, "whatever needs keys knows what to do with them"
            self._open_to_keys(rules.keys, served.for_key)

    def _handlers_of(self, served: Served) -> dict[bytes, CodedHandler]:
        """The handlers by path and codings."""
        rules, at_paths = self.rules, {ROOT: served.answer, **served.at_paths}
        found: dict[bytes, CodedHandler] = {path: at_paths[path] for path in rules.paths}
        if rules.gzip_from:
            for path in rules.paths:
                found |= coded_handlers(
                    path, at_paths[path], self.budget, rules.gzip_from, rules.body_limit
                )
        return found

    def _open_to_keys(self, keys: KeyTable, for_key: Callable[[ApiKey], Served]) -> None:
        """Let each key have handlers and sessions of its own."""

        def handlers(key: ApiKey) -> dict[bytes, CodedHandler]:
            own = self._handlers_of(for_key(key))
            return {path: Admitting(key, each) for path, each in own.items()}

        def sessions(key: ApiKey) -> dict[bytes, OpenSession | None]:
            own = _sessions_of(for_key(key))
            return {path: session_of_key(key, each) for path, each in own.items() if each}

        def forget() -> None:
            self.heads.forget()
            self.handlers.clear()
            self.sessions.clear()

        self.handlers = ByKey(keys, handlers, refuse_unknown)
        self.sessions = ByKey(keys, sessions, None)
        keys.when_changed(forget)

    def session_at(self, path: bytes) -> OpenSession | None:
        """Opens sessions at a path of `handlers`, without codings."""
        try:
            return self.sessions[path]
        except KeyError:
            return None

    def scrape(self, scrape: Scrape) -> Answer | Awaitable[Answer]:
        """The response to a request for metrics, at once or later."""
        assert self._metrics is not None, "it was accepted"
        text = b"" if scrape.bodiless else self._metrics()
        return answers.metrics(text) if isinstance(text, bytes) else _later(text)

    def admit(self, connection: SweptConnection) -> Admission:
        """Count a new connection and decide about it."""
        self.ticker.add(connection)
        beyond = self.ticker.count - self._connections
        if beyond <= 0:
            self.counts.opened()
            return Admission.ADMITTED
        self.counts.refused()
        return Admission.REFUSED if beyond <= REFUSED_AT_ONCE else Admission.DROPPED

    def forget(self, connection: SweptConnection) -> None:
        self.ticker.discard(connection)


def _sessions_of(served: Served) -> dict[bytes, OpenSession | None]:
    """The functions that open sessions, by path."""
    return {ROOT: served.open_session, **served.sessions_at}


async def _later(text: Awaitable[Text]) -> Answer:
    """The response to a scrape, when its text is made."""
    try:
        return answers.metrics(whole(await text))
    except ForeblockError:
        return answers.NO_METRICS
