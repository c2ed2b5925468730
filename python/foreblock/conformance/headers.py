"""The hash of a block as its JSON object states it."""

from foreblock.primitives import parse_data, parse_quantity
from foreblock.types import Header


def hash_of(block: dict[str, str]) -> bytes:
    """keccak256 of the header that the fields of a block object make."""

    def data(name: str) -> bytes:
        return parse_data(block[name])

    def number(name: str) -> int:
        return parse_quantity(block[name])

    def data_from_its_fork(name: str) -> bytes | None:
        return data(name) if name in block else None

    def number_from_its_fork(name: str) -> int | None:
        return number(name) if name in block else None

    return Header(
        parent_hash=data("parentHash"),
        ommers_hash=data("sha3Uncles"),
        beneficiary=data("miner"),
        state_root=data("stateRoot"),
        transactions_root=data("transactionsRoot"),
        receipts_root=data("receiptsRoot"),
        logs_bloom=data("logsBloom"),
        difficulty=number("difficulty"),
        number=number("number"),
        gas_limit=number("gasLimit"),
        gas_used=number("gasUsed"),
        timestamp=number("timestamp"),
        extra_data=data("extraData"),
        mix_hash=data("mixHash"),
        nonce=data("nonce"),
        base_fee_per_gas=number_from_its_fork("baseFeePerGas"),
        withdrawals_root=data_from_its_fork("withdrawalsRoot"),
        blob_gas_used=number_from_its_fork("blobGasUsed"),
        excess_blob_gas=number_from_its_fork("excessBlobGas"),
        parent_beacon_block_root=data_from_its_fork("parentBeaconBlockRoot"),
        requests_hash=data_from_its_fork("requestsHash"),
    ).hash
