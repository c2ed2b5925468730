"""The interface between the server and JSON-RPC: replies, handlers, sessions, and minimum commits.

A client that goes from one instance to another names the highest commit it has seen, or a
flashblock that it knows (`Minimum`). The commit is exact: numbers of commits never fall. A
flashblock may be replaced by a reorganisation; it counts as here when its position in the chain
is reached. `server/checks.py` reads the minimum of a request; `methods/events/commit_watch.py`
waits for it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgspec import Struct

from foreblock.scheduling.admission import LongText
from foreblock.scheduling.fair_queue import Priority
from foreblock.scheduling.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from foreblock.scheduling.api_keys import ApiKey

FlashblockRef = tuple[int, int]  # the number of its block, and its index


class Minimum(NamedTuple):
    """The least that a request accepts."""

    commit: int = 0
    place: FlashblockRef | None = None
    wait_ms: int | None = None  # the longest wait; None is the longest that is allowed


class Reached(NamedTuple):
    """The state that a commit has."""

    commit: int
    latest: int  # the number of the last sealed block
    pending: FlashblockRef | None  # None if `pending` means the latest block


class Missing(NamedTuple):
    """Why a minimum is not met, in a sentence."""

    text: str


def is_met(minimum: Minimum, reached: Reached) -> bool:
    """Return whether a commit has all that a request demands."""
    return reached.commit >= minimum.commit and _has_flashblock(minimum.place, reached)


def missing(minimum: Minimum, reached: Reached | None) -> Missing:
    """Report the missing commit; without `reached` the store cannot be read."""
    commit, latest, pending = reached or Reached(0, 0, None)
    if minimum.place is None or commit < minimum.commit:
        wanted, at = f"commit {minimum.commit}", f"{commit}"
    else:
        wanted, at = f"flashblock {_text(minimum.place)}", f"{latest:#x}"
        at = at if pending is None else _text(pending)
    found = "cannot read its store" if reached is None else f"is at {at}"
    return Missing(f"{wanted} is not here yet, this instance {found}")


def _has_flashblock(place: FlashblockRef | None, reached: Reached) -> bool:
    if place is None or reached.latest >= place[0]:
        return True
    return reached.pending is not None and reached.pending >= place


def _text(place: FlashblockRef) -> str:
    number, index = place
    return f"{number:#x}.{index}"


# A text, or the pieces of one that is too long to be joined in one go.
Text = bytes | list[bytes]


def whole(text: Text) -> bytes:
    """The text in one piece."""
    return text if isinstance(text, bytes) else b"".join(text)


def in_pieces(pieces: list[bytes]) -> Text:
    """The text of these pieces, joined unless it is long."""
    long = sum(map(len, pieces)) >= THRESHOLDS.pieces_bytes
    return pieces if long else b"".join(pieces)


def length_of(text: Text) -> int:
    """The number of bytes of a text."""
    return len(text) if isinstance(text, bytes) else sum(map(len, text))


class Reply(Struct, frozen=True, gc=False):
    """A response: its bytes, and header lines that go with them.

    Notifications have an empty one. A Struct because every request makes one: a NamedTuple
    takes ten times as long to make.
    """

    body: bytes
    headers: bytes = b""  # whole lines, each ending in CRLF
    # The rest of a long body; a list is written in one go.
    rest: LongText | list[bytes] | None = None
    # Bytes of a list, where its maker has counted them, so that they are added up once.
    rest_size: int = 0

    @property
    def size(self) -> int:
        """The length of the whole body."""
        match self.rest:
            case None:
                return len(self.body)
            case list(pieces):
                return len(self.body) + (self.rest_size or sum(map(len, pieces)))
            case text:
                return len(self.body) + text.size

    def take_pieces(self) -> list[bytes]:
        """Return the whole body in pieces; the rest of a long text is consumed."""
        pieces = [self.body]
        if isinstance(self.rest, list):
            pieces += self.rest
        elif self.rest is not None:
            while taken := self.rest.next_pieces():
                pieces += taken
        return pieces


class Client(Struct, frozen=True, gc=False):
    """The sender of a request, as far as fairness needs to know it."""

    address: str  # of the other end, or its API key; may be empty
    connection: int  # a number that no other connection of the worker has
    priority: Priority = Priority.NORMAL
    traceparent: str = ""  # of the request, if it has a valid one


class Readiness(NamedTuple):
    """The readiness of an address, and the reasons."""

    ready: bool
    lines: tuple[str, ...]  # for people
    networks: tuple[object, ...] = ()  # their status as values that JSON can encode


# From a request's body and its sender to a reply; never raises. It answers at once where it can; an
# awaitable keeps its place in the order of responses and is cancelled when the client goes away.
Handler = Callable[[bytes, Client], Reply | Awaitable[Reply]]


class Channel(Protocol):
    """One WebSocket connection, as JSON-RPC sees it."""

    client: Client

    def send(self, message: bytes) -> bool:
        """Queue a whole text message; false once the connection is closing.

        A client that leaves more unread than the limit is closed with a reason.
        """

    @property
    def unsent(self) -> int:
        """Bytes that the socket has not taken yet."""

    def close(self, code: int, reason: str) -> None:
        """Say why, and close."""


class Session(Protocol):
    """The JSON-RPC state of one connection."""

    def receive(self, message: bytes) -> Reply | Awaitable[Reply]:
        """Answer a message; never raises. An empty body is not sent."""

    def ended(self) -> None:
        """Called once after the connection has begun to close, never from within `send`."""


OpenSession = Callable[[Channel], Session]


class FastPath(Protocol):
    """Answers some requests from bytes to bytes, as the server and the handler would."""

    def cache_head(
        self,
        head: bytes,
        length: int,
        status: bytes,
        headers: bytes,
        /,
        *,
        is_at_root: bool = False,
    ) -> None:
        """Take note of a head that was accepted, without the empty line that ends it.

        `length` bytes of body follow it. A response begins with `status` and the date, and has the
        lines `headers`.
        """

    def clear_heads(self) -> None: ...

    def answer(self, data: bytes, date: bytes, /) -> bytes | None:
        """The whole response, if `data` is one whole request that can be answered here."""


class NoFastPath:
    """A fast path that answers nothing."""

    def cache_head(
        self,
        head: bytes,
        length: int,
        status: bytes,
        headers: bytes,
        /,
        *,
        is_at_root: bool = False,
    ) -> None:
        """Nothing to take note of."""

    def clear_heads(self) -> None:
        """Nothing to forget."""

    def answer(self, data: bytes, date: bytes, /) -> None: ...


NO_FAST_PATH: Final = NoFastPath()


class ServerCounts(NamedTuple):
    """The counters of a server; these count nothing."""

    traffic: Callable[[int, int], None] = lambda received, sent: None  # noqa: ARG005, bytes
    opened: Callable[[], None] = lambda: None  # a connection
    refused: Callable[[], None] = lambda: None  # a connection beyond the limit


# None if a network has the state that a request demands, else the missing commit; an awaitable
# waits for it, and is cancelled when the client goes away.
CheckMinimum = Callable[[Minimum], Missing | Awaitable[Missing | None] | None]


class Served(NamedTuple):
    """One network, as a server needs it."""

    answer: Handler  # at the root
    readiness: Callable[[], Readiness]
    # Answers as `answer` does, at every path: where it answers, all paths answer alike.
    fast_path: FastPath = NO_FAST_PATH
    at_paths: Mapping[bytes, Handler] = {}  # the handlers at other paths than the root
    open_session: OpenSession | None = None  # None refuses upgrades to WebSocket
    sessions_at: Mapping[bytes, OpenSession] = {}  # those at other paths than the root
    # Makes what is served at addresses that other machines reach; None is the same.
    elsewhere: "Callable[[], Served] | None" = None
    # The handlers and sessions of an API key, which charge it.
    for_key: "Callable[[ApiKey], Served] | None" = None
    counts: ServerCounts = ServerCounts()
    # The text of /metrics; without it there is no such path.
    metrics: Callable[[], bytes | Awaitable[Text]] | None = None
    only_metrics: bool = False  # no request is answered
    check_minimum: CheckMinimum = lambda minimum: None  # noqa: ARG005, all are met
