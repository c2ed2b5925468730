"""A transaction in the pool, and the terms on which a block takes it: plain values."""

from dataclasses import dataclass

from msgspec import Struct

from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.l1_fees import L1Fees
from foreblock.types import Transaction


@dataclass(frozen=True, slots=True)
class Terms:
    """What the block in progress asks of a transaction."""

    chain_id: int
    rules: Rules
    gas_limit: int  # of the block, less what its deposit may need
    base_fee: int
    minimum_base_fee: int  # the base fee of no later block is below it
    l1_fees: L1Fees
    transaction_gas: int | None = None  # that one may have at most, besides what the rules say


class Pooled(Struct, frozen=True, eq=False):
    """A transaction that waits, with what the pool asks of it again and again."""

    transaction: Transaction
    arrival: int  # no two have the same; who came earlier has the lower one
    hash: bytes
    sender: bytes
    nonce: int
    gas_limit: int
    fee_cap: int
    tip_cap: int
    cost: int  # at most: value, gas at the fee cap, L1 fee, operator fee
    data_footprint: int
    size: int  # bytes of its encoding

    def tip(self, base_fee: int) -> int:
        """What it pays above this base fee for a unit of gas; below 0 where it cannot pay that."""
        return min(self.tip_cap, self.fee_cap - base_fee)
