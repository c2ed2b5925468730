"""What an operator may choose about methods; every default is the published contract."""

from dataclasses import dataclass
from typing import Literal

Dialect = Literal["preconf", "ethereum"]
PendingIdentity = Literal["real", "null"]
PendingNonce = Literal["pool", "state"]


@dataclass(frozen=True, slots=True)
class Options:
    """The choices that methods know of."""

    dialect: Dialect = "preconf"
    gas_cap: int = 50_000_000  # of one call; more is lowered to it, 0 lifts it
    call_timeout_ms: int = 5_000
    call_create: bool = False  # whether eth_call may create a contract in `preconf`
    simulate_blocks: int = 256  # of one simulation, fillers included
    simulate_block_calls: int = 5_000  # of one simulated block
    simulate_calls: int = 10_000  # of one simulation
    simulate_output: int = 16 << 20  # bytes that they return
    block_text_bytes: int = 64 << 20  # of rendered blocks that are kept
    flashblock_text_bytes: int = 32 << 20  # of rendered flashblocks, of which blocks are made
    receipt_bytes: int = 32 << 20  # of receipts that are kept, about
    pending_identity: PendingIdentity = "real"  # number and hash of a block asked for as pending
    pending_nonce: PendingNonce = "pool"  # whether nonces at `pending` count what waits

    @property
    def block_required(self) -> bool:
        """Whether a block must be named; else `latest` is meant."""
        return self.dialect == "preconf"

    @property
    def creates(self) -> bool:
        """Whether a call without `to` creates a contract."""
        return self.dialect == "ethereum" or self.call_create
