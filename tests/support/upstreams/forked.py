"""A chain to fork, in this process and served over HTTP, with a relay before it."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from foreblock import DevChain
from foreblock.dev_chain import Contract
from support.upstreams.relay import Relay

BOB = b"\xb0" * 20
Rules = Literal["optimism", "ethereum"]


class Upstream(NamedTuple):
    """A chain with a token, and the relay before it."""

    chain: DevChain
    token: Contract
    abi: list[Any]
    code: str  # that deploys a token
    relay: Relay

    def fork(self, **settings: Any) -> DevChain:  # noqa: ANN401, of the chain
        """A fork of its latest block, with nothing on disk."""
        options = {"cache": False, **settings.pop("options", {})}
        return DevChain(fork={"url": self.relay.url, "retry_backoff": 0.01, **options}, **settings)

    def on(self, fork: DevChain) -> Contract:
        """The token on a fork."""
        return fork.contract(self.token.address, self.abi)


OpenUpstream = Callable[[Rules], Upstream]
