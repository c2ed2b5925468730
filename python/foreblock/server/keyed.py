"""Requests that an API key pays for.

A head that names a valid key chooses handlers of the key by its path, as one with a coding does,
so a service without keys pays nothing. They are made when a head first needs them, and forgotten
when the keys change. A key that has spent its budget is refused before its body is read, and a
little later, which slows down a client that continues.

A key is given as `Authorization: Bearer KEY`, `X-API-Key: KEY`, or `?key=KEY`, for browsers, which
cannot set headers of a WebSocket, and for wallets, which only know a URL.
"""

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Final, Generic, TypeVar
from urllib.parse import unquote_to_bytes

from foreblock.scheduling.api_keys import ApiKey, held_back
from foreblock.scheduling.reply import Channel, Client, Handler, OpenSession, Reply, Session
from foreblock.scheduling.steps import Mapped
from foreblock.server.answers import Answer
from foreblock.server.compression import CodedHandler
from foreblock.server.head import RequestHead
from foreblock.server.key_table import KeyTable

HEADERS: Final = frozenset({b"authorization", b"x-api-key"})
OF_KEY: Final = b" key="  # added to a path; no target of a request has a space

_BEARER: Final = b"bearer "
_PARAMETER: Final = b"key"

_TEXT: Final = b"an API key is needed, as in Authorization: Bearer KEY, X-API-Key: KEY, or ?key=KEY"
NO_KEY: Final = Answer(b"401 Unauthorized", _TEXT, b"WWW-Authenticate: Bearer\r\n")
UNKNOWN_KEY: Final = NO_KEY._replace(text=b"unknown API key")

T = TypeVar("T")


def secret_of(head: RequestHead, query: bytes) -> bytes | None:
    """The secret that a request names; of several forms the first of this order."""
    given = head.get(b"authorization")
    if given is not None and given[: len(_BEARER)].lower() == _BEARER:
        return given[len(_BEARER) :].strip()
    given = head.get(b"x-api-key")
    if given is not None:
        return given
    pairs = (each.partition(b"=") for each in query.split(b"&"))
    return next((unquote_to_bytes(value) for name, _, value in pairs if name == _PARAMETER), None)


def key_of(head: RequestHead, query: bytes, keys: KeyTable) -> bytes | Answer:
    """The suffix of the path for the key of a request, or a refusal."""
    secret = secret_of(head, query)
    found = keys.find(secret)
    if found is None:
        return NO_KEY if secret is None else UNKNOWN_KEY
    return OF_KEY + found.spec.name.encode()


@lru_cache(maxsize=1024)  # the refusals are as many as a client wants
def too_many_requests(seconds: int) -> Answer:
    """The key has spent its budget."""
    text = b"the budget of this API key is spent"
    return Answer(b"429 Too Many Requests", text, b"Retry-After: %d\r\n" % seconds)


class ByKey(dict[bytes, T], Generic[T]):
    """The handlers or sessions at each path for each key, created when first used."""

    def __init__(
        self, keys: KeyTable, make: Callable[[ApiKey], Mapping[bytes, T]], missing: T
    ) -> None:
        """`missing` is the value for a key that has been removed."""
        super().__init__()
        self._keys: Final = keys
        self._make: Final = make
        self._missing_value: Final = missing

    def __missing__(self, path: bytes) -> T:
        name = path.rpartition(OF_KEY)[2]
        key = self._keys.by_name.get(name)
        if key is None:
            return self._missing_value
        self.update({each + OF_KEY + name: value for each, value in self._make(key).items()})
        return self.setdefault(path, self._missing_value)


def refuse_unknown(_body: bytes, _: Client) -> Answer:
    """Refuse a request whose key was removed while it was received."""
    return UNKNOWN_KEY


class Admitting:
    """A handler that a key may use while it has units left."""

    def __init__(self, key: ApiKey, handler: CodedHandler) -> None:
        self._wait: Final = key.wait
        self._refused: Final = key.counts.refused
        self._handler: Final = handler

    def __call__(self, body: bytes, client: Client) -> Reply | Answer | Awaitable[Reply | Answer]:
        wait = self._wait()
        if wait > 0:
            self._refused(1)
            return held_back(too_many_requests(math.ceil(wait)))
        return self._handler(body, client)


class MeteredHandler:
    """A handler whose time counts for a key."""

    def __init__(self, key: ApiKey, handler: Handler) -> None:
        self._key: Final = key
        self._seconds: Final = key.counts.seconds
        self._handler: Final = handler

    def __call__(self, body: bytes, client: Client) -> Reply | Awaitable[Reply]:
        began = time.monotonic()
        reply = self._handler(body, self._key.client(client))
        if isinstance(reply, Reply):
            self._seconds(time.monotonic() - began)
            return reply

        def ended(later: Reply) -> Reply:
            self._seconds(time.monotonic() - began)
            return later

        return Mapped(reply, ended)


class _KeySession:
    """A session that ends with its key."""

    def __init__(self, key: ApiKey, channel: Channel, session: Session) -> None:
        self._key: Final = key
        self._channel: Final = channel
        self._session: Final = session
        self.receive: Final = session.receive
        key.channels.add(channel)

    def ended(self) -> None:
        """Forget the connection."""
        self._key.channels.discard(self._channel)
        self._session.ended()


def session_of_key(key: ApiKey, open_session: OpenSession) -> OpenSession:
    """Open sessions that end with their key."""
    return lambda channel: _KeySession(key, channel, open_session(channel))
