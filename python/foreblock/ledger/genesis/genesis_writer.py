"""Write a genesis: the file that `genesis_file` reads, and storage as Solidity lays it out.

Reading the written file gives an equal value. Of Solidity there is only what a genesis needs:
entries of mappings by address, and short strings.
"""

import json
from typing import Final

from foreblock._engine import keccak256
from foreblock.ledger.genesis.genesis_file import Genesis, GenesisAccount
from foreblock.primitives import format_data, format_quantity

GENESIS_FILE: Final = "genesis.json"  # in the folder of a store, for followers of its chain
SHORT_STRING_BYTES: Final = 31  # of a slot; the last byte is the length


def genesis_text(genesis: Genesis) -> bytes:
    """The genesis as JSON text in geth's format, addresses in order."""
    document: dict[str, object] = {
        "config": json.loads(genesis.config),
        "nonce": format_data(genesis.nonce),
        "timestamp": format_quantity(genesis.timestamp),
        "extraData": format_data(genesis.extra_data),
        "gasLimit": format_quantity(genesis.gas_limit),
        "gasUsed": format_quantity(genesis.gas_used),
        "difficulty": format_quantity(genesis.difficulty),
        "mixHash": format_data(genesis.mix_hash),
        "coinbase": format_data(genesis.coinbase),
        "number": "0x0",
        "parentHash": format_data(genesis.parent_hash),
    }
    for key, number in (
        ("baseFeePerGas", genesis.base_fee),
        ("blobGasUsed", genesis.blob_gas_used),
        ("excessBlobGas", genesis.excess_blob_gas),
    ):
        if number is not None:
            document[key] = format_quantity(number)
    document["alloc"] = {
        format_data(address): _account(account)
        for address, account in sorted(genesis.accounts.items())
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def _account(account: GenesisAccount) -> dict[str, object]:
    """The fields of an account that are set, and always its balance, which other clients need."""
    document: dict[str, object] = {"balance": format_quantity(account.balance)}
    if account.nonce:
        document["nonce"] = format_quantity(account.nonce)
    if account.code:
        document["code"] = format_data(account.code)
    if account.storage:
        document["storage"] = {
            _word(slot): _word(value) for slot, value in sorted(account.storage.items())
        }
    return document


def _word(number: int) -> str:
    return format_data(number.to_bytes(32))


def mapping_slot(slot: int, address: bytes) -> int:
    """The slot of an address's entry in the mapping declared at `slot`."""
    return int.from_bytes(keccak256(address.rjust(32, b"\0") + slot.to_bytes(32)))


def short_string(text: str) -> int:
    """The value of a slot that holds a text of at most 31 bytes: left-aligned, length doubled."""
    data = text.encode()
    assert len(data) <= SHORT_STRING_BYTES
    return int.from_bytes(data.ljust(SHORT_STRING_BYTES, b"\0") + bytes([2 * len(data)]))
