"""Access of other programs and libraries to a chain of this process: JSON-RPC, web3.py, HTTP."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from foreblock.dev_chain.failures import CustomErrors
from foreblock.dev_chain.local_service import LocalService
from foreblock.dev_chain.reading import ChainState
from foreblock.scheduling.reply import OpenSession

if TYPE_CHECKING:
    from foreblock.dev_chain.serving import ChainServer


class ChainAccess(ChainState):
    """The latest state of a chain, which can also be read from elsewhere."""

    def __init__(
        self, network: LocalService, errors: CustomErrors, opened: ExitStack, *, by_clock: bool
    ) -> None:
        """`opened` is closed with the chain; `by_clock` if time passes while it is served."""
        super().__init__(network, "latest", errors)
        self._opened: Final = opened
        self.by_clock: Final = by_clock

    def answer(self, body: bytes) -> bytes:
        """The response to a JSON-RPC body: a request or a batch."""
        return self._network.answer(body).body

    def make_sessions(self) -> OpenSession:
        """Sessions of clients that subscribe; they are notified in the running loop."""
        return self._network.make_sessions()

    def web3(self) -> Any:  # noqa: ANN401, web3 may not be installed
        """A `web3.Web3` on the chain, which needs the package web3."""
        from web3 import Web3  # noqa: PLC0415, only when it is used

        from foreblock.web3 import Provider  # noqa: PLC0415

        return Web3(Provider(self))

    def async_web3(self) -> Any:  # noqa: ANN401, web3 may not be installed
        """A `web3.AsyncWeb3` on the chain; enter it for subscriptions."""
        from web3 import AsyncWeb3  # noqa: PLC0415, only when it is used

        from foreblock.web3 import AsyncProvider  # noqa: PLC0415

        return AsyncWeb3(AsyncProvider(self))

    def serve(self, port: int = 0, host: str = "127.0.0.1") -> "ChainServer":
        """Serve the chain over HTTP and WebSocket, from a thread; port 0 picks a free one.

        By the clock, time passes meanwhile. Raises `AddressInUse`, `AddressUnusable`.
        """
        from foreblock.dev_chain.serving import ChainServer  # noqa: PLC0415, it loads the server

        server = ChainServer(self._network, f"{host}:{port}", follows_time=self.by_clock)
        self._opened.callback(server.close)
        return server

    def watch(self) -> Callable[[], str]:
        """A function that returns what has happened since now, and what waits.

        It has what `foreblock dev --print-traces` prints, also of flashblocks that were lost.
        """
        return self._network.watch()
