"""Flashblocks as they are made, over WebSocket: resumed after a lost connection, gaps reported.

`Continuity` is pure; `FlashblockStream` connects and reads.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, InvalidURI, WebSocketException

from foreblock.backoff import Backoff, Waits
from foreblock.client.exchange import MIN_PLACE
from foreblock.client.values import FlashblockData, Hex, read
from foreblock.errors import ErrorAnswer, NotAnAnswer, Unreachable
from foreblock.primitives import harmless
from foreblock.secret_urls import redact, redact_urls, secrets_of
from foreblock.upstream.http import reason_of
from foreblock.upstream.json_rpc import body_of

WAITS: Final = Waits(0.1, 5.0)  # between connections
KEPT: Final = 512  # positions: more than a reorganisation drops
ALL: Final = (1 << 31) - 1  # transactions of a flashblock that are requested

LONGEST: Final = 64 * 1024 * 1024  # bytes of a message
PLACED: Final = 5  # attempts that demand an instance with the last flashblock
SERVER_ERROR: Final = 500  # the first status that another attempt may change

Position = tuple[int, int]  # block number and index

_library_log: Final = logging.getLogger("foreblock.client.flashblocks")


class KnownFlashblock(NamedTuple):
    """The fields of a flashblock that later ones are compared with."""

    position: Position
    hash: Hex
    parent_hash: Hex
    transactions_root: Hex


class Continuity:
    """The flashblocks so far, to which each next one is compared.

    The hash of a block so far is mostly not that of the sealed block, as it has no state root; so
    the transactions root of the sealed block says with which flashblock it was sealed.
    """

    def __init__(self) -> None:
        self._kept: Final[deque[KnownFlashblock]] = deque(maxlen=KEPT)

    @property
    def last(self) -> Position | None:
        return self._kept[-1].position if self._kept else None

    def needs_parent(self, flashblock: FlashblockData) -> bool:
        """Return True if the transactions root of its parent tells what `add` cannot know."""
        before = [each.position for each in self._kept if each.position < flashblock.position]
        is_at_boundary = bool(before) and before[-1][0] == flashblock.number - 1
        return flashblock.index == 0 and is_at_boundary and not self._sealed(flashblock, None)

    def add(
        self, flashblock: FlashblockData, parent: Hex | None = None, *, is_broken: bool = False
    ) -> FlashblockData:
        """Return the next one with `gap` and `dropped`.

        `parent` is the transactions root of its parent; `is_broken` if some are known to miss.
        """
        kept, dropped = self._kept, []
        while kept and kept[-1].position >= flashblock.position:
            dropped.append(kept.pop().position)
        sealed = self._sealed(flashblock, parent)
        while sealed and kept[-1].position > sealed[-1]:
            dropped.append(kept.pop().position)
        is_gap = is_broken or not (sealed or self._is_next(flashblock, parent))
        hashes = flashblock.hash, flashblock.parent_hash, flashblock.transactions_root
        kept.append(KnownFlashblock(flashblock.position, *hashes))
        return replace(flashblock, gap=is_gap, dropped=tuple(sorted(dropped)))

    def _sealed(self, flashblock: FlashblockData, parent: Hex | None) -> list[Position]:
        """The flashblocks with whose transactions the parent of a block's first one was sealed."""
        return [
            each.position
            for each in self._kept
            if each.position[0] == flashblock.number - 1
            and flashblock.index == 0
            and (each.hash == flashblock.parent_hash or each.transactions_root == parent)
        ]

    def _is_next(self, flashblock: FlashblockData, parent: Hex | None) -> bool:
        if not self._kept:
            return True  # the first, or one that replaces all
        last, number = self._kept[-1], flashblock.number
        if flashblock.index:
            is_same_block = last.parent_hash == flashblock.parent_hash
            return is_same_block and last.position == (number, flashblock.index - 1)
        return parent is None and last.position[0] == number - 1  # nothing is known


class FlashblockStream:
    """An asynchronous iterator of flashblocks; closed with its client, or by `aclose`."""

    def __init__(self, url: str, patience: float) -> None:
        self._url: Final = url
        self._shown: Final = redact_urls(url)  # in errors
        self._patience: Final = patience
        self._continuity: Final = Continuity()
        self._waits: Final = Backoff(WAITS)
        self._socket: ClientConnection | None = None
        self._held: Final[deque[_Notice]] = deque()  # received, in order
        self._cursor: str | None = None
        self._is_broken = False  # flashblocks are known to be missing
        self._failures = 0  # since the last message
        self._lost_at = 0.0  # monotonic time of the first of them
        self._connected_at = 0.0  # monotonic
        self.is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FlashblockData:
        """The next flashblock. Raises `EndpointError`."""
        while not self.is_closed:
            try:
                if self._socket is None:
                    self._socket = await self._subscribed()
                    self._connected_at = time.monotonic()
                else:
                    return await self._next(self._socket)
            except (OSError, EOFError, WebSocketException) as why:
                await self._lost(why)
            except ValueError as why:  # also of msgspec
                raise NotAnAnswer(self._shown, self._hide(str(why))) from why
        await self.aclose()  # it may have been closed while it connected
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the connection, and end the iteration."""
        self.is_closed = True
        if self._socket is not None:
            await self._socket.close()

    def abort(self) -> None:
        """Lose the connection at once, also while a flashblock is awaited."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def _subscribed(self) -> ClientConnection:
        """Connect, and subscribe after the last flashblock that was received."""
        socket = await connect(
            self._url,
            additional_headers=self._demand(),
            compression=None,
            proxy=None,
            max_size=LONGEST,
            max_queue=4,
            logger=_library_log,
        )
        try:
            await self._subscribe(socket)
        except BaseException:
            socket.transport.abort()
            raise
        return socket

    def _demand(self) -> dict[str, str]:
        """Demand an instance that has the last flashblock; not for long, as it may be gone."""
        last = self._continuity.last
        if last is None or self._failures > PLACED:
            return {}
        return {MIN_PLACE: f"{last[0]:#x}.{last[1]}"}

    async def _subscribe(self, socket: ClientConnection) -> None:
        params: list[object] = ["newFlashblocks", {"newest": ALL}]
        if self._cursor is not None:
            params.append({"cursor": self._cursor})
        try:
            await self._request(socket, "eth_subscribe", params)
        except ErrorAnswer:
            if self._cursor is None:
                raise
            self._cursor, self._is_broken = None, True  # what follows it is no longer kept
            await self._subscribe(socket)

    async def _request(
        self, socket: ClientConnection, method: str, params: Sequence[object]
    ) -> object:
        """The result of a request; notifications that come before it are held."""
        try:
            await socket.send(body_of([(method, params)]), text=True)
            while True:
                message = msgspec.json.decode(await socket.recv(), type=_Message)
                if message.params is not None:
                    self._held.append(message.params)
                elif message.error is not None:
                    raise ErrorAnswer(message.error.code, self._hide(message.error.message))
                else:
                    return message.result
        except asyncio.CancelledError:
            socket.transport.abort()  # its response would be taken for that of the next request
            raise

    async def _next(self, socket: ClientConnection) -> FlashblockData:
        """The next flashblock; if the connection is lost meanwhile, it comes again."""
        while not self._held:
            message = msgspec.json.decode(await socket.recv(), type=_Message)
            if message.params is not None:
                self._held.append(message.params)
        notice = self._held.popleft()
        flashblock = read(FlashblockData, notice.result)
        parent = None
        if self._continuity.needs_parent(flashblock):
            params = [str(flashblock.parent_hash), False]
            block = await self._request(socket, "eth_getBlockByHash", params)
            if isinstance(block, dict):  # null if it is not sealed yet
                parent = read(Hex, block.get("transactionsRoot"))
        self._failures = 0
        self._waits.succeeded()
        is_broken, self._is_broken = self._is_broken, False
        self._cursor = notice.cursor
        return self._continuity.add(flashblock, parent, is_broken=is_broken)

    async def _lost(self, why: Exception) -> None:
        """Wait until the next connection. Raises `Unreachable` after too long."""
        lived = time.monotonic() - self._connected_at if self._socket is not None else 0.0
        self._socket = None
        self._held.clear()
        if self.is_closed:
            return
        if not self._failures or lived >= WAITS.longest:
            self._failures, self._lost_at = 0, time.monotonic()
        self._failures += 1
        wait = self._waits.after(lived)
        is_final = isinstance(why, InvalidURI) or (
            isinstance(why, InvalidStatus) and why.response.status_code < SERVER_ERROR
        )
        if is_final or time.monotonic() + wait > self._lost_at + self._patience:
            raise Unreachable(self._shown, self._hide(reason_of(why))) from None
        await asyncio.sleep(wait)

    def _hide(self, text: str) -> str:
        """One line of a text, without the secrets of the URL."""
        return harmless(redact(text, secrets_of(self._url)))


class _Error(Struct):
    code: int
    message: str


class _Notice(Struct):
    result: Any
    cursor: str | None = None


class _Message(Struct):
    """A notification, or a response."""

    params: _Notice | None = None
    result: Any = None
    error: _Error | None = None
