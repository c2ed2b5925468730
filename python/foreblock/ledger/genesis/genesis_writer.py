"""A genesis written as the file that `genesis` reads, so that others can begin the same chain.

Whatever was read or made comes out such that reading it again gives an equal value.
"""

import json
from typing import Final

from foreblock.ledger.genesis.genesis_file import Genesis, GenesisAccount
from foreblock.primitives import format_data, format_quantity

GENESIS_FILE: Final = "genesis.json"  # in the folder of a store, for those who follow its chain


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
    """What an account has; its balance is always said, since other clients need it."""
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
