"""A dev chain in the calling process, for tests and scripts."""

from foreblock.dev_chain.chain import Contract, DevChain, DevTransaction
from foreblock.dev_chain.control import Checkpoint, ClosedFlashblock
from foreblock.dev_chain.reading import ChainState

__all__ = [
    "ChainState",
    "Checkpoint",
    "ClosedFlashblock",
    "Contract",
    "DevChain",
    "DevTransaction",
]
