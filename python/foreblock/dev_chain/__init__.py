"""A dev chain in the calling process, for tests and scripts."""

from foreblock.dev_chain.chain import Contract, DevChain, DevTransaction
from foreblock.dev_chain.control import Checkpoint, ClosedFlashblock
from foreblock.dev_chain.following import ChainFollower, FollowedDevChain
from foreblock.dev_chain.reading import ChainState

__all__ = [
    "ChainFollower",
    "ChainState",
    "Checkpoint",
    "ClosedFlashblock",
    "Contract",
    "DevChain",
    "DevTransaction",
    "FollowedDevChain",
]
