"""Decodes transactions of the restricted load, and the deposit at the start of a block.

Senders are not recovered, which is slow in plain Python; the load records its signers.
"""

from dataclasses import dataclass

from checker.decoding import fields, number, text
from checker.fastlz import compressed_length

DYNAMIC_FEE = 0x02  # EIP-1559
DEPOSIT = 0x7E  # OP stack

# OP stack, Fjord: the estimate of the compressed size, in millionths of a byte.
LEAST_SIZE = 100_000_000
SIZE_FACTOR, SIZE_OFFSET = 836_500, 42_585_600


@dataclass(frozen=True, slots=True)
class Payment:
    """A transaction of type 2."""

    raw: bytes
    hash: bytes
    sender: bytes
    chain_id: int
    nonce: int
    max_priority_fee_per_gas: int
    max_fee_per_gas: int
    gas_limit: int
    to: bytes
    value: int
    data: bytes
    y_parity: int
    r: int
    s: int
    compressed_size: int  # its contribution to the data on L1, in millionths of a byte

    def price(self, base_fee: int) -> int:
        """The price per gas."""
        return min(self.max_fee_per_gas, base_fee + self.max_priority_fee_per_gas)


@dataclass(frozen=True, slots=True)
class Deposit:
    """An unsigned transaction from L1."""

    raw: bytes
    hash: bytes
    source_hash: bytes
    sender: bytes
    to: bytes
    mint: int
    value: int
    gas_limit: int
    is_system: bool
    data: bytes


Transaction = Payment | Deposit


def decode_payment(raw: bytes, hash: bytes, sender: bytes) -> Payment:
    """Decode a payment; `ValueError` for anything outside the restricted load."""
    if raw[:1] != bytes([DYNAMIC_FEE]):
        raise ValueError(f"a transaction of type {raw[:1].hex()}, not of type 2")
    items = fields(raw[1:], 12)
    to, access_list = text(items[5]), items[8]
    if len(to) != 20 or access_list != []:
        raise ValueError("a creation or an access list")
    return Payment(
        raw=raw,
        hash=hash,
        sender=sender,
        chain_id=number(items[0]),
        nonce=number(items[1]),
        max_priority_fee_per_gas=number(items[2]),
        max_fee_per_gas=number(items[3]),
        gas_limit=number(items[4]),
        to=to,
        value=number(items[6]),
        data=text(items[7]),
        y_parity=number(items[9]),
        r=number(items[10]),
        s=number(items[11]),
        compressed_size=max(LEAST_SIZE, SIZE_FACTOR * compressed_length(raw) - SIZE_OFFSET),
    )


def decode_deposit(raw: bytes, hash: bytes) -> Deposit:
    """Decode a deposit that calls a contract; `ValueError` for anything else."""
    if raw[:1] != bytes([DEPOSIT]):
        raise ValueError(f"a transaction of type {raw[:1].hex()}, not a deposit")
    items = fields(raw[1:], 8)
    if len(text(items[2])) != 20:
        raise ValueError("a deposit that creates a contract")
    return Deposit(
        raw=raw,
        hash=hash,
        source_hash=text(items[0]),
        sender=text(items[1]),
        to=text(items[2]),
        mint=number(items[3]),
        value=number(items[4]),
        gas_limit=number(items[5]),
        is_system=bool(number(items[6])),
        data=text(items[7]),
    )
