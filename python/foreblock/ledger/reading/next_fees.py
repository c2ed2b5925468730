"""What gas and blob gas cost in a block, and in the one after it if it stays as it is."""

from typing import Final

from foreblock.ledger.reading.preconfirmed_block import ReadableBlock
from foreblock.ledger.rules.fees import blob_base_fee
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.header_rules import base_fee_after, excess_blob_gas_after

OPTIMISM_BLOB_FEE: Final = 1  # OP: what BLOBBASEFEE gives, there being no blobs


def next_base_fee_of(block: ReadableBlock) -> int:
    """The base fee of the block after this one; 0 where that is before London."""
    header, profile = block.header, block.profile
    rules = profile.rules(
        header.number + 1,
        header.timestamp + profile.block_time,
        merged=profile.merged(block.total_difficulty),
    )
    if rules.ethereum < EthereumFork.LONDON:
        return 0
    return base_fee_after(header, rules, block.rules, profile)


def blob_fees_of(block: ReadableBlock) -> tuple[int, int]:
    """What blob gas costs in this block and in the next; 0 before there is any."""
    header, profile = block.header, block.profile
    if header.excess_blob_gas is None:
        return 0, 0
    parameters = profile.blob_parameters(header.timestamp)
    if parameters is None:
        return OPTIMISM_BLOB_FEE, OPTIMISM_BLOB_FEE
    following = excess_blob_gas_after(header, header.timestamp, profile, block.rules)
    return blob_base_fee(header.excess_blob_gas, parameters), blob_base_fee(following, parameters)
