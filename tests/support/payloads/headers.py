"""Headers for tests: one that is well formed, to be changed in what a test is about."""

from typing import Any

from foreblock._engine import Header
from foreblock.ledger.rules.check import EMPTY_OMMERS_HASH, EMPTY_REQUESTS_HASH, EMPTY_ROOT

MINED: dict[str, Any] = {
    "parent_hash": bytes(32),
    "ommers_hash": EMPTY_OMMERS_HASH,
    "beneficiary": bytes(20),
    "state_root": EMPTY_ROOT,
    "transactions_root": EMPTY_ROOT,
    "receipts_root": EMPTY_ROOT,
    "logs_bloom": bytes(256),
    "difficulty": 131_072,
    "number": 0,
    "gas_limit": 30_000_000,
    "gas_used": 0,
    "timestamp": 1_000,
    "extra_data": b"",
    "mix_hash": bytes(32),
    "nonce": bytes(8),
}

PRAGUE: dict[str, Any] = MINED | {
    "difficulty": 0,
    "base_fee_per_gas": 10**9,
    "withdrawals_root": EMPTY_ROOT,
    "blob_gas_used": 0,
    "excess_blob_gas": 0,
    "parent_beacon_block_root": bytes(32),
    "requests_hash": EMPTY_REQUESTS_HASH,
}


def header(fields: dict[str, Any], **changes: object) -> Header:
    """A header with these fields, some of them changed."""
    return Header(**(fields | changes))
