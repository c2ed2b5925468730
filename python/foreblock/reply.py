"""What a handler gives back for one HTTP body, known to the server and to JSON-RPC alike."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec import Struct


class Reply(Struct, frozen=True, gc=False):
    """An answer: its bytes, and header lines that go with them.

    An empty body is the answer to notifications, which have none. A Struct because every
    request makes one: a NamedTuple takes ten times as long to make.
    """

    body: bytes
    headers: bytes = b""  # whole lines, each ending in CRLF


class Readiness(NamedTuple):
    """Whether a network can be served as promised, and the facts that say so."""

    ready: bool
    facts: tuple[str, ...]


# From a request's body to a reply. It never raises. It answers at once where it can; an
# awaitable keeps its place in the order of answers and is cancelled when the client goes away.
Handler = Callable[[bytes], Reply | Awaitable[Reply]]


class Served(NamedTuple):
    """One network, as a server needs it."""

    answer: Handler
    readiness: Callable[[], Readiness]
