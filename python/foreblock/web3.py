"""Providers of web3.py for a chain in the process, or for an endpoint.

    Web3(Provider(chain))                  as `chain.web3()`
    Web3(Provider("http://…"))
    AsyncWeb3(AsyncProvider(chain))        as `chain.async_web3()`
    AsyncWeb3(AsyncProvider("http://…"))   with web3.py's AsyncHTTPProvider
    AsyncWeb3(AsyncProvider("ws://…"))     with web3.py's WebSocketProvider

Subscriptions need `async with AsyncWeb3(AsyncProvider(chain))`; everything else works without.
Over `ws://` everything needs it, and over `http://` there are no subscriptions.
This needs web3: `pip install 'foreblock[web3]'`.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec
from web3 import AsyncHTTPProvider, WebSocketProvider
from web3._utils.batching import sort_batch_response_by_response_ids
from web3.exceptions import PersistentConnectionClosedOK
from web3.providers.base import JSONBaseProvider
from web3.providers.persistent import PersistentConnectionProvider

from foreblock.errors import EndpointError
from foreblock.scheduling.reply import Channel, Client, OpenSession, Reply, Session
from foreblock.upstream.rpc_client import Endpoint

Json = Any
_decode: Final = msgspec.json.Decoder().decode
CLOSED: Final = None  # in the queue, after the last notification


class InProcessChain(Protocol):
    """A chain in the process, such as `foreblock.DevChain`."""

    def answer(self, body: bytes) -> bytes:
        """The response to a JSON-RPC body."""

    def make_sessions(self) -> OpenSession:
        """Sessions of clients that subscribe; they are notified in the running loop."""


class Provider(JSONBaseProvider):  # type: ignore[misc] # web3 may not be installed
    """Sends requests to a chain in the process, or to the HTTP endpoint at a URL."""

    def __init__(self, target: InProcessChain | str, **options: Any) -> None:  # noqa: ANN401
        """`options` are those of web3's providers."""
        super().__init__(**options)
        self._answer = Endpoint(target).exchange if isinstance(target, str) else target.answer

    def make_request(self, method: Json, params: Json) -> Json:
        """The response to a request."""
        return _decode(self._answer(self.encode_rpc_request(method, params)))

    def make_batch_request(self, batch_requests: Sequence[tuple[Json, Json]]) -> Json:
        """The responses to a batch, in the order of its requests."""
        bodies = [self.encode_rpc_request(method, params) for method, params in batch_requests]
        found = _decode(self._answer(b"[%b]" % b",".join(bodies)))
        return sort_batch_response_by_response_ids(found) if isinstance(found, list) else found

    def is_connected(self, show_traceback: bool = False) -> bool:  # noqa: FBT001, FBT002, web3's
        """Return whether the chain or the endpoint responds."""
        try:
            return bool(super().is_connected(show_traceback))
        except EndpointError:
            if show_traceback:
                raise
            return False


class AsyncProvider(PersistentConnectionProvider):  # type: ignore[misc] # as above
    """Sends requests to a chain in the process, which notifies the running loop.

    For a URL it is a provider of web3.py.
    """

    endpoint_uri = "a chain in the process"

    def __new__(cls, target: InProcessChain | str, **options: Any) -> Any:  # noqa: ANN401
        """A provider for a chain in the process, or for the endpoint at a URL."""
        if not isinstance(target, str):
            return super().__new__(cls)
        is_socket = urlsplit(target).scheme in ("ws", "wss")
        return (WebSocketProvider if is_socket else AsyncHTTPProvider)(target, **options)

    def __init__(self, target: InProcessChain | str, **options: Any) -> None:  # noqa: ANN401
        """`options` are those of web3's providers."""
        assert not isinstance(target, str), "then it is a provider of web3.py"
        super().__init__(**options)
        self._chain: Final = target
        self._session: Session | None = None
        self._notices: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def is_connected(self, show_traceback: bool = False) -> bool:  # noqa: ARG002, FBT001, FBT002
        """True: the chain is in the process."""
        return True

    async def socket_send(self, request_data: bytes) -> None:
        """Answer a request; the response is there when this returns."""
        if self._session is None:
            body = self._chain.answer(request_data)
        else:
            reply = self._session.receive(request_data)
            assert isinstance(reply, Reply), "a chain in the process replies at once"
            body = reply.body
        found = _decode(body)
        if isinstance(found, list):
            found = sort_batch_response_by_response_ids(found)
        await self._request_processor.cache_raw_response(found)

    async def socket_recv(self) -> Json:
        """The next notification."""
        notice = await self._notices.get()
        if notice is CLOSED:
            raise PersistentConnectionClosedOK("the chain has closed the session")
        return _decode(notice)

    async def _provider_specific_connect(self) -> None:
        self._notices = asyncio.Queue()
        self._session = self._chain.make_sessions()(_Notices(self._notices))

    async def _provider_specific_disconnect(self) -> None:
        if self._session is not None:
            self._session.ended()
            self._session = None

    async def _provider_specific_socket_reader(self) -> Json:
        return await self.socket_recv()


class _Notices(Channel):
    """Passes notifications to a queue."""

    client = Client("", 0)
    unsent = 0

    def __init__(self, notices: asyncio.Queue[bytes | None]) -> None:
        self._notices: Final = notices

    def send(self, message: bytes) -> bool:
        """Queue a notification."""
        self._notices.put_nowait(message)
        return True

    def close(self, code: int, reason: str) -> None:  # noqa: ARG002, as declared
        """End the notifications."""
        self._notices.put_nowait(CLOSED)
