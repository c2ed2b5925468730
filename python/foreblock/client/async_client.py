"""The asynchronous client of a JSON-RPC endpoint.

A read is repeated a few times if the exchange failed; a transaction is sent once. Responses of a
foreblock never go backwards: each request demands the highest commit that was seen.
"""

import asyncio
import copy
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

import msgspec
from msgspec import Raw

from foreblock.backoff import Backoff, Waits
from foreblock.client import typed_requests
from foreblock.client.exchange import (
    Demand,
    Exchanged,
    SnapshotData,
    exchanged,
    failure_of_read,
    failure_of_send,
    snapshot_of,
)
from foreblock.client.request_batch import RequestBatch
from foreblock.client.typed_requests import BlockName, Data, RpcRequest
from foreblock.client.values import ReceiptData
from foreblock.errors import (
    ErrorAnswer,
    ForeblockError,
    NoSuchBlock,
    RefusedAnswer,
    StaleEndpoint,
    SyncTimedOut,
)
from foreblock.primitives import parse_data
from foreblock.secret_urls import redact_urls
from foreblock.upstream.http import Connections
from foreblock.upstream.json_rpc import RefusalKind, body_of, refuse
from foreblock.upstream.rpc_client import DEFAULT_URL, TIMEOUT_SECONDS, ShownCommit

if TYPE_CHECKING:
    from foreblock.client.flashblocks import FlashblockStream

P = ParamSpec("P")
T = TypeVar("T")

TRIES: Final = 4  # of one read
WAITS: Final = Waits(0.1, 2.0)  # between them
POLLS: Final = Waits(0.02, 0.5)  # for a receipt
MARGIN: Final = 5.0  # seconds that a send may take beyond its own timeout
NOT_EXECUTED: Final = frozenset({-32601, -32602, -32604})  # the method or a parameter is unknown


def asking(
    make: Callable[P, RpcRequest[T]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    """A method of the client that sends a request."""

    @wraps(make)
    async def ask(client: "AsyncClient", /, *arguments: P.args, **named: P.kwargs) -> T:
        return await client.ask(make(*arguments, **named))

    return ask


class AsyncClient:
    """A client of any JSON-RPC endpoint; use it as a context manager or `aclose` it."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        block: BlockName = "latest",
        timeout: float = TIMEOUT_SECONDS,
        tries: int = TRIES,
        websocket: str | None = None,
    ) -> None:
        """Reads without a block are of `block`.

        `timeout` bounds a request with its retries, in seconds. `websocket` is the URL of
        subscriptions; by default it is that of the endpoint with another scheme.
        """
        self.url: Final = url
        self.websocket: Final = websocket or re.sub("^http", "ws", url)
        self.shown: Final = redact_urls(url)  # in errors
        self._here = block
        self._timeout: Final = timeout
        self._tries: Final = max(1, tries)
        self._wanted = Demand()
        self._seen: Final = ShownCommit()
        self._connections: Final = Connections(url)
        self._streams: Final[list[FlashblockStream]] = []

    rpc = asking(typed_requests.rpc)
    chain_id = asking(typed_requests.chain_id)
    block_number = asking(typed_requests.block_number)
    block = asking(typed_requests.block)
    transaction = asking(typed_requests.transaction)
    receipt = asking(typed_requests.receipt)
    receipts = asking(typed_requests.receipts)
    balance = asking(typed_requests.balance)
    nonce = asking(typed_requests.nonce)
    code = asking(typed_requests.code)
    storage = asking(typed_requests.storage)
    call = asking(typed_requests.call)
    estimate_gas = asking(typed_requests.estimate_gas)
    simulate = asking(typed_requests.simulate)
    logs = asking(typed_requests.logs)
    send_raw = asking(typed_requests.send_raw)

    @property
    def commit(self) -> int:
        """The highest commit that a response named; 0 for a node that names none."""
        return self._seen.highest

    def at(self, block: BlockName) -> Self:
        """Return a copy whose reads are at another block."""
        found = copy.copy(self)
        found._here = block  # noqa: SLF001
        return found

    def at_least(
        self,
        *,
        commit: int | None = None,
        flashblock: tuple[int, int] | None = None,
        wait: float | None = None,
    ) -> Self:
        """Return a copy whose reads include a commit or a flashblock.

        The endpoint waits for it, `wait` seconds at most; by default it chooses the time, and reads
        are repeated. Then reads raise `StaleEndpoint`, as they do at a node that names no snapshot.
        """
        found = copy.copy(self)
        found._wanted = Demand(commit, flashblock, wait)  # noqa: SLF001
        return found

    async def pin(self) -> Self:
        """Return a copy whose reads are at the newest flashblock, or else at the latest block.

        Its reads are of exactly that state, or raise `NoSuchBlock`.
        """
        async with self.batch() as batch:
            latest = batch.block("latest")
        snapshot = batch.snapshot
        if snapshot is not None and snapshot.pending is not None:
            return self.at(snapshot.pending.hash)
        return self.at(latest.value.hash or "latest")

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[RequestBatch]:
        """Collect requests, and send them in one body at the end of the context."""
        batch = RequestBatch()
        yield batch
        await self.send_batch(batch)

    async def send_batch(self, batch: RequestBatch) -> None:
        """Send the requests of a batch, whose results are then available."""
        requests = [each.request for each in batch.deferred]
        found, batch.snapshot = await self._exchange(requests, self._timeout)
        for deferred, result in zip(batch.deferred, found, strict=True):
            deferred.outcome = partial(self._value, deferred.request, result)

    async def ask(self, request: RpcRequest[T], *, seconds: float | None = None) -> T:
        """Send one request. Raises `EndpointError`, and `Reverted` for a call."""
        (result,), _ = await self._exchange([request], seconds or self._timeout)
        return self._value(request, result)

    async def send_raw_sync(self, transaction: Data, seconds: float | None = None) -> ReceiptData:
        """Send a signed transaction, and return its receipt (EIP-7966).

        The node waits for `seconds`, or for its own time. At a node without the method, or without
        its second parameter, the receipt is polled. Raises `SyncTimedOut` if no block has the
        transaction in time, and `OutcomeUnknown` if the endpoint did not respond.
        """
        timeout_ms = None if seconds is None else round(1000 * seconds)
        request = typed_requests.send_raw_sync(transaction, timeout_ms)
        begun = time.monotonic()
        try:
            return await self.ask(request, seconds=(seconds or self._timeout) + MARGIN)
        except SyncTimedOut as why:
            raise SyncTimedOut(why.hash, round(1000 * (time.monotonic() - begun))) from None
        except ErrorAnswer as why:
            if why.code not in NOT_EXECUTED:
                raise
        return await self.wait_for_receipt(await self.send_raw(transaction), seconds)

    async def wait_for_receipt(self, hash: Data, seconds: float | None = None) -> ReceiptData:
        """Poll a receipt until a block has the transaction. Raises `SyncTimedOut`."""
        seconds = seconds or self._timeout
        until = time.monotonic() + seconds
        polls = Backoff(POLLS)
        while (found := await self.receipt(hash)) is None:
            pause = polls.after()
            if time.monotonic() + pause > until:
                name = hash if isinstance(hash, bytes) else parse_data(hash)
                raise SyncTimedOut(name, round(1000 * seconds))
            await asyncio.sleep(pause)
        return found

    def flashblocks(self, patience: float = 60.0) -> "FlashblockStream":
        """The flashblocks from now on, for `async for`.

        After a lost connection it resumes where it was; without one for `patience` seconds it
        raises `Unreachable`.
        """
        from foreblock.client.flashblocks import FlashblockStream  # noqa: PLC0415, takes 30 ms

        found = FlashblockStream(self.websocket, patience)
        self._streams.append(found)
        return found

    async def aclose(self) -> None:
        """Close all connections, those of its copies too."""
        self._connections.close()
        while self._streams:
            await self._streams.pop().aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _exchange(
        self, requests: Sequence[RpcRequest[Any]], seconds: float
    ) -> tuple[Sequence[Raw | RefusedAnswer], SnapshotData | None]:
        """The results of one body, and its snapshot."""
        if not requests:
            return [], None
        body = body_of([each.at(self._here) for each in requests])
        is_read = all(each.is_idempotent for each in requests)
        until, waits = time.monotonic() + seconds, Backoff(WAITS)
        for tries_left in reversed(range(self._tries if is_read else 1)):
            attempt = await self._attempt(body, len(requests), until, is_read=is_read)
            pause = attempt.pause(waits, self._wanted, time.time())
            if not tries_left or pause is None or time.monotonic() + pause > until:
                break
            await asyncio.sleep(pause)
        if attempt.refused is not None:
            raise self._failure(requests, attempt, attempt.refused) from attempt.refused
        snapshot = snapshot_of(attempt.headers)
        if is_read and not self._wanted.is_met(snapshot):
            why = "the response names no snapshot" if snapshot is None else "the response is older"
            raise StaleEndpoint(self.shown, str(self._wanted), why)
        return attempt.results, snapshot

    async def _attempt(self, body: bytes, count: int, until: float, *, is_read: bool) -> Exchanged:
        headers = self._wanted.headers(self._seen.highest if is_read else 0)
        left = max(0.0, until - time.monotonic())
        try:
            reply = await self._connections.post(body, left, headers=headers, is_once=not is_read)
        except RefusedAnswer as refused:
            return Exchanged(refused=refused)
        self._seen.see(reply.headers)
        return exchanged(reply, count)

    def _failure(
        self, requests: Sequence[RpcRequest[Any]], attempt: Exchanged, refused: RefusedAnswer
    ) -> ForeblockError:
        """The exception of a body without results."""
        if attempt.is_stale:
            self._seen.give_up(attempt.body)
            return StaleEndpoint(self.shown, str(self._wanted), attempt.text)
        refused = self._connections.hidden(refused)
        if all(each.is_idempotent for each in requests):
            return failure_of_read(self.shown, refused)
        return failure_of_send(self.shown, refused)

    def _value(self, request: RpcRequest[T], result: Raw | RefusedAnswer) -> T:
        block = request.block_at(self._here) or ""
        name = block if isinstance(block, str) else msgspec.json.encode(block).decode()
        if isinstance(result, RefusedAnswer):
            refused = self._connections.hidden(result)
            if request.is_idempotent:
                raise failure_of_read(self.shown, refused, name) from None
            raise failure_of_send(self.shown, refused) from None
        try:
            return request.read(msgspec.json.decode(result))
        except LookupError:
            raise NoSuchBlock(self.shown, name) from None
        except ValueError as why:
            raise refuse(RefusalKind.WRONG_SHAPE, f"{request.method}: {why}") from None
