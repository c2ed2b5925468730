"""Facts about a chain that cannot be read from its feed."""

from dataclasses import dataclass, field
from typing import Any, Literal

SECOND_NS = 10**9


@dataclass(frozen=True, slots=True)
class Chain:
    """A dev chain before the load begins: until then only attributes deposits change it."""

    chain_id: int
    block_time: int  # seconds
    token: bytes
    balances: dict[bytes, int]
    tokens: dict[bytes, int]  # balances of the token
    kept_blocks: int = 64  # the number of blocks with guaranteed pins
    # The result of eth_getTransactionCount at pending: with the pool or without.
    pending_nonce: Literal["state", "pool"] = "state"
    freshness_blocks: int = 2  # block times until a pending block expires
    contracts: frozenset[bytes] = field(default_factory=frozenset)
    # Whether the service follows the chain, and so may be late or miss flashblocks.
    followed: bool = False

    @property
    def freshness_ns(self) -> int:
        """The maximum time between a flashblock's commit and a response with it."""
        return self.freshness_blocks * self.block_time * SECOND_NS

    def as_json(self) -> dict[str, Any]:
        """For a journal."""
        return {
            "chain_id": self.chain_id,
            "block_time": self.block_time,
            "token": self.token.hex(),
            "balances": {owner.hex(): hex(amount) for owner, amount in self.balances.items()},
            "tokens": {owner.hex(): hex(amount) for owner, amount in self.tokens.items()},
            "kept_blocks": self.kept_blocks,
            "pending_nonce": self.pending_nonce,
            "followed": self.followed,
        }


def read_chain(found: dict[str, Any]) -> Chain:
    """The chain described by a journal."""
    return Chain(
        chain_id=found["chain_id"],
        block_time=found["block_time"],
        token=bytes.fromhex(found["token"]),
        balances={bytes.fromhex(who): int(has, 16) for who, has in found["balances"].items()},
        tokens={bytes.fromhex(who): int(has, 16) for who, has in found["tokens"].items()},
        kept_blocks=found["kept_blocks"],
        pending_nonce=found["pending_nonce"],
        followed=found.get("followed", False),
    )
