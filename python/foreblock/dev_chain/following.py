"""A second service that follows a chain of this process, as `DevChain.follow` returns it."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from foreblock.dev_chain.access import ChainAccess
from foreblock.dev_chain.failures import CustomErrors

if TYPE_CHECKING:
    from foreblock.dev_chain.chain import DevChain
    from foreblock.dev_chain.local_follower import LocalFollower


class ChainFollower(ChainAccess):
    """What a service behind the feed of a chain serves; it stands still between two waits."""

    _network: "LocalFollower"

    def __init__(self, network: "LocalFollower", errors: CustomErrors, opened: ExitStack) -> None:
        super().__init__(network, errors, opened, by_clock=False)

    def wait(self) -> None:
        """Let it receive all that the feed has sent, and fetch all that the chain has sealed.

        Messages that a fault delays come when the time of the chain has come to them.
        """
        self._network.catch_up()

    def disconnect(self) -> None:
        """Cut its connection to the feed. Messages that it has not received are lost."""
        self._network.disconnect()

    def reconnect(self) -> None:
        """Connect it again. It resumes after its last flashblock, in the block in progress."""
        self._network.reconnect()

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How often each outcome of a message of the feed occurred, such as `Malformed`."""
        return self._network.outcomes()


class FollowedDevChain(NamedTuple):
    """A chain, and a service that follows it."""

    chain: "DevChain"
    follower: ChainFollower

    def wait(self) -> None:
        """Let the follower catch up with the chain."""
        self.follower.wait()
