"""Options of the methods; every default is the published contract."""

from dataclasses import dataclass
from typing import Literal

from foreblock.ledger.reading.blocks import PRECONFIRMED, SEALED, Visibility

Dialect = Literal["preconf", "ethereum"]
PendingIdentity = Literal["real", "null"]
PendingNonce = Literal["pool", "state"]
ViewKind = Literal["preconfirmed", "sealed"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options that an operator sets for all methods."""

    dialect: Dialect = "preconf"
    gas_cap: int = 50_000_000  # of one call; larger values are lowered to it, 0 is no limit
    call_timeout_ms: int = 5_000
    call_create: bool = False  # whether eth_call may create a contract in `preconf`
    simulate_blocks: int = 256  # of one simulation, fillers included
    simulate_block_calls: int = 5_000  # of one simulated block
    simulate_calls: int = 10_000  # of one simulation
    simulate_output: int = 16 << 20  # bytes that they return
    logs_results: int = 10_000  # logs that one query may find
    logs_blocks: int = 0  # between the first and the last block of a query; 0 is no limit
    trace_output: int = 64 << 20  # bytes of one trace
    trace_blocks: int = 100  # of one trace_filter
    block_text_bytes: int = 64 << 20  # cache of rendered blocks
    flashblock_text_bytes: int = 32 << 20  # cache of rendered flashblocks
    receipt_bytes: int = 32 << 20  # cache of rendered receipts, about
    pending_identity: PendingIdentity = "real"  # number and hash of the block at `pending`
    pending_nonce: PendingNonce = "pool"  # whether nonces at `pending` count the pool
    view: ViewKind = "preconfirmed"  # of requests to the default path
    pending_by_number: bool = False  # whether a number may mean the block in progress
    sync_timeout_ms: int = 20_000  # default of eth_sendRawTransactionSync
    sync_timeout_most_ms: int = 60_000  # longer ones are lowered to it

    client_version: str = ""  # in web3_clientVersion; empty is the software's own

    @property
    def block_required(self) -> bool:
        """Requests must name a block; otherwise the default is `latest`."""
        return self.dialect == "preconf"

    @property
    def visibility(self) -> Visibility:
        """The blocks that views show; an ordinary node has none above `latest` by number."""
        if self.view == "sealed":
            return SEALED
        return Visibility(by_number=True) if self.pending_by_number else PRECONFIRMED

    @property
    def unnamed_block(self) -> Literal["latest", "pending"]:
        """The default block of a prepared transaction: the one that it builds on."""
        return "pending" if self.view == "preconfirmed" else "latest"

    @property
    def creates(self) -> bool:
        """A call without `to` creates a contract."""
        return self.dialect == "ethereum" or self.call_create
