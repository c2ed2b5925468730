"""Bases of blocks to headers, and headers to what a feed says of them.

Everything in a header but roots, bloom and amounts comes with the payload attributes, or
follows from the parent. The fork says which fields there are.
"""

from foreblock._engine import Header
from foreblock.ledger.rules.empty_roots import EMPTY_REQUESTS_HASH, EMPTY_ROOT
from foreblock.ledger.rules.forks import EthereumFork, Rules
from foreblock.primitives import ZERO_HASH
from foreblock.types import Base, Diff


def header_of(base: Base, rules: Rules, excess_blob_gas: int = 0) -> Header:
    """The header of this block while nothing is in it; its state root is zero."""
    shanghai = rules.ethereum >= EthereumFork.SHANGHAI
    cancun = rules.ethereum >= EthereumFork.CANCUN
    prague = rules.ethereum >= EthereumFork.PRAGUE
    return Header(
        parent_hash=base.parent_hash,
        beneficiary=base.fee_recipient,
        state_root=ZERO_HASH,
        number=base.block_number,
        gas_limit=base.gas_limit,
        timestamp=base.timestamp,
        extra_data=base.extra_data,
        mix_hash=base.prev_randao,
        base_fee_per_gas=base.base_fee_per_gas,
        withdrawals_root=EMPTY_ROOT if shanghai else None,
        blob_gas_used=0 if cancun else None,
        excess_blob_gas=excess_blob_gas if cancun else None,
        parent_beacon_block_root=base.parent_beacon_block_root if cancun else None,
        requests_hash=EMPTY_REQUESTS_HASH if prague else None,
    )


def base_of(header: Header) -> Base:
    """The base of the block of this header."""
    return Base(
        parent_hash=header.parent_hash,
        parent_beacon_block_root=header.parent_beacon_block_root or ZERO_HASH,
        prev_randao=header.mix_hash,
        fee_recipient=header.beneficiary,
        block_number=header.number,
        gas_limit=header.gas_limit,
        timestamp=header.timestamp,
        extra_data=header.extra_data,
        base_fee_per_gas=header.base_fee_per_gas or 0,
    )


def diff_of(header: Header, transactions: tuple[bytes, ...]) -> Diff:
    """The announcement of a block so far, with the transactions that are new in it.

    It provides no hash if the withdrawals root is not known, which the hash covers.
    """
    return Diff(
        state_root=header.state_root,
        receipts_root=header.receipts_root,
        logs_bloom=header.logs_bloom,
        gas_used=header.gas_used,
        block_hash=ZERO_HASH if header.withdrawals_root == ZERO_HASH else header.hash,
        transactions=transactions,
        withdrawals_root=header.withdrawals_root or ZERO_HASH,
        blob_gas_used=header.blob_gas_used or 0,
    )
