"""The blocking client: each call runs the asynchronous one to its result."""

import asyncio
import copy
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

from foreblock.client.async_client import TRIES, AsyncClient
from foreblock.client.request_batch import RequestBatch
from foreblock.client.typed_requests import BlockName
from foreblock.client.values import FlashblockData
from foreblock.upstream.rpc_client import DEFAULT_URL, TIMEOUT_SECONDS

if TYPE_CHECKING:
    from foreblock.client.flashblocks import FlashblockStream

P = ParamSpec("P")
T = TypeVar("T")


class LoopRunner:
    """A loop that runs while a call is in progress, for one call at a time."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._runner: asyncio.Runner | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the result; on another thread where a loop is running, such as in a notebook."""
        with self._lock:
            if self._runner is None:
                # With a factory it does not set the loop of the thread.
                runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
                runner.get_loop()
                self._runner = runner
            if not _is_in_loop():
                return self._runner.run(work)
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(self._runner.run, work).result()

    def interrupt(self, callback: Callable[[], object]) -> None:
        """Call this in the loop if a call of another thread is in progress."""
        runner = self._runner
        if runner is not None and self._lock.locked():
            runner.get_loop().call_soon_threadsafe(callback)

    def close(self) -> None:
        with self._lock:
            if self._runner is not None:
                self._runner.close()
            self._runner = None


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Client", P], T]:
    """Make a blocking method of an asynchronous one."""

    @wraps(method)
    def run(client: "Client", /, *arguments: P.args, **named: P.kwargs) -> T:
        return client.loop.run(method(client.asynchronous, *arguments, **named))

    return run


def copying(
    method: Callable[Concatenate[AsyncClient, P], AsyncClient],
) -> Callable[Concatenate["Client", P], "Client"]:
    """Make a method that returns a copy of the blocking client."""

    @wraps(method)
    def copied(client: "Client", /, *arguments: P.args, **named: P.kwargs) -> "Client":
        return client.over(method(client.asynchronous, *arguments, **named))

    return copied


class FlashblockIterator:
    """A blocking iterator of flashblocks; closed with its client, or by `close` in any thread.

    It has a loop of its own, so other calls of the client do not wait for the next flashblock.
    """

    def __init__(self, stream: "FlashblockStream") -> None:
        self._stream: Final = stream
        self._loop: Final = LoopRunner()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> FlashblockData:
        """The next flashblock. Raises `EndpointError`."""
        try:
            if not self._stream.is_closed:
                return self._loop.run(self._stream.__anext__())
        except StopAsyncIteration:
            pass
        raise StopIteration

    def close(self) -> None:
        """Close the connection, and end the iteration."""
        self._stream.is_closed = True  # so nothing begins to wait after the interruption
        self._loop.interrupt(self._stream.abort)
        self._loop.run(self._stream.aclose())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """A blocking `AsyncClient`, with the same methods; use it as a context manager or `close` it.

    Threads may share it; their calls run one after the other.
    """

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
        self.asynchronous = AsyncClient(
            url, block=block, timeout=timeout, tries=tries, websocket=websocket
        )
        self.loop: Final = LoopRunner()
        self._iterators: Final[list[FlashblockIterator]] = []

    rpc = blocking(AsyncClient.rpc)
    chain_id = blocking(AsyncClient.chain_id)
    block_number = blocking(AsyncClient.block_number)
    block = blocking(AsyncClient.block)
    transaction = blocking(AsyncClient.transaction)
    receipt = blocking(AsyncClient.receipt)
    receipts = blocking(AsyncClient.receipts)
    balance = blocking(AsyncClient.balance)
    nonce = blocking(AsyncClient.nonce)
    code = blocking(AsyncClient.code)
    storage = blocking(AsyncClient.storage)
    call = blocking(AsyncClient.call)
    estimate_gas = blocking(AsyncClient.estimate_gas)
    simulate = blocking(AsyncClient.simulate)
    logs = blocking(AsyncClient.logs)
    send_raw = blocking(AsyncClient.send_raw)
    send_raw_sync = blocking(AsyncClient.send_raw_sync)
    wait_for_receipt = blocking(AsyncClient.wait_for_receipt)
    at = copying(AsyncClient.at)
    at_least = copying(AsyncClient.at_least)

    @property
    def url(self) -> str:
        return self.asynchronous.url

    @property
    def commit(self) -> int:
        """The highest commit that a response named; 0 for a node that names none."""
        return self.asynchronous.commit

    def pin(self) -> Self:
        """Return a copy whose reads are at the newest flashblock, or else at the latest block."""
        return self.over(self.loop.run(self.asynchronous.pin()))

    @contextmanager
    def batch(self) -> Iterator[RequestBatch]:
        """Collect requests, and send them in one body at the end of the context."""
        batch = RequestBatch()
        yield batch
        self.loop.run(self.asynchronous.send_batch(batch))

    def flashblocks(self, patience: float = 60.0) -> FlashblockIterator:
        """The flashblocks from the first `next` on, as `AsyncClient.flashblocks`."""
        from foreblock.client.flashblocks import FlashblockStream  # noqa: PLC0415, takes 30 ms

        found = FlashblockIterator(FlashblockStream(self.asynchronous.websocket, patience))
        self._iterators.append(found)
        return found

    def close(self) -> None:
        """Close all connections, those of its copies too."""
        while self._iterators:
            self._iterators.pop().close()
        self.loop.run(self.asynchronous.aclose())
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def over(self, client: AsyncClient) -> Self:
        """Return a copy that uses this asynchronous client."""
        found = copy.copy(self)
        found.asynchronous = client
        return found
