"""A block of JSON-RPC with whole transactions to the block that was hashed. No I/O.

For endpoints that do not give a block's own bytes. Uncles cannot be rebuilt, since JSON
names them by their hashes only; chains that need this have none.
"""

from foreblock.types import Block, Header, Withdrawal
from foreblock.upstream.fields import Fields
from foreblock.upstream.transaction_json import encode_transaction


def rebuild_block(answer: object) -> Block:
    """The block that an answer of eth_getBlockByHash shows; a `ValueError` names the field."""
    block = Fields(answer)
    if block.texts("uncles"):
        raise ValueError("uncles: a block with uncles cannot be rebuilt")
    return Block(
        _header(block),
        [encode_transaction(each) for each in block.items("transactions")],
        withdrawals=_withdrawals(block) if block.has("withdrawals") else None,
    )


def _header(block: Fields) -> Header:
    return Header(
        parent_hash=block.hash("parentHash"),
        ommers_hash=block.hash("sha3Uncles"),
        beneficiary=block.address("miner"),
        state_root=block.hash("stateRoot"),
        transactions_root=block.hash("transactionsRoot"),
        receipts_root=block.hash("receiptsRoot"),
        logs_bloom=block.data("logsBloom"),
        difficulty=block.number("difficulty"),
        number=block.number("number"),
        gas_limit=block.number("gasLimit"),
        gas_used=block.number("gasUsed"),
        timestamp=block.number("timestamp"),
        extra_data=block.data("extraData"),
        mix_hash=block.hash("mixHash"),
        nonce=block.data("nonce"),
        base_fee_per_gas=block.number_or_none("baseFeePerGas"),
        withdrawals_root=block.hash_or_none("withdrawalsRoot"),
        blob_gas_used=block.number_or_none("blobGasUsed"),
        excess_blob_gas=block.number_or_none("excessBlobGas"),
        parent_beacon_block_root=block.hash_or_none("parentBeaconBlockRoot"),
        requests_hash=block.hash_or_none("requestsHash"),
        block_access_list_hash=block.hash_or_none("blockAccessListHash"),
        slot_number=block.number_or_none("slotNumber"),
    )


def _withdrawals(block: Fields) -> list[Withdrawal]:
    return [
        Withdrawal(
            each.number("index"),
            each.number("validatorIndex"),
            each.address("address"),
            each.number("amount"),
        )
        for each in block.items("withdrawals")
    ]
