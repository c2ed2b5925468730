"""A chain whose blocks grow index by index, for tests of readers.

Each block begins with a deposit, as on a real chain. The genesis has an account with ether, the
system contracts of Ethereum with their real code, and a counter: a contract that adds its input to
its slot 0 and logs the sum.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from foreblock._engine import Message, Transaction, sign_transaction
from foreblock.types import Flashblock
from support.chains.writing import CHAIN_ID, HISTORY, KEYS, L1_BLOCK, PASSER, PRICE, SENDERS, Chain
from support.chains.writing import genesis as plain_genesis
from support.payloads.bytecode import code

SENDER: Final = SENDERS[0]
PAID: Final = b"\x77" * 20  # deposits go to another account
COUNTER: Final = b"\xc0" * 20
BEACON_ROOTS: Final = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")

# The code published in EIP-2935 and EIP-4788.
HISTORY_CODE: Final = (
    "0x3373fffffffffffffffffffffffffffffffffffffffe14604657602036036042575f35600143038111604257"
    "611fff81430311604257611fff9006545f5260205ff35b5f5ffd5b5f35611fff60014303065500"
)
BEACON_ROOTS_CODE: Final = (
    "0x3373fffffffffffffffffffffffffffffffffffffffe14604d57602036146024575f5ffd5b5f35801560495762"
    "001fff810690815414603c575f5ffd5b62001fff01545f5260205ff35b5f5ffd5b62001fff42064281555f359062"
    "001fff015500"
)
COUNTER_CODE: Final = code(
    0, "SLOAD", "CALLVALUE", "ADD", 0, "SSTORE", 0, "SLOAD", 0, "MSTORE", 32, 0, "LOG0"
)


def genesis() -> bytes:
    """The genesis file."""
    document = json.loads(plain_genesis())
    codes = {
        COUNTER: COUNTER_CODE,
        PASSER: COUNTER_CODE,
        HISTORY: HISTORY_CODE,
        BEACON_ROOTS: BEACON_ROOTS_CODE,
    }
    alloc: dict[str, Any] = document["alloc"]
    for address, text in codes.items():
        alloc.setdefault(f"0x{address.hex()}", {"balance": "0", "nonce": "0x1"})["code"] = text
    assert f"0x{L1_BLOCK.hex()}" in alloc, "execution reads its scalars"
    return json.dumps(document | {"timestamp": "0x3e8"}).encode()


class PreconfirmingChain(Chain):
    """A chain and the block in progress; the test triggers each step."""

    def __init__(self, folder: Path, *, keep_partials: int = 64) -> None:
        super().__init__(folder, document=genesis(), keep_partials=keep_partials)
        self.nonce = 0

    def close(self) -> None:
        """Release the store."""
        self.writer.close()
        self.store.close()

    def begin(self) -> Flashblock:
        """Seal the block in progress and add the first index of the next one: its deposit."""
        return self.add(self.deposit()) if self._block is None else self.seal(self.deposit())

    def extend(self, transactions: Sequence[Transaction] = ()) -> Flashblock:
        """Add the next index of the block, with these transactions."""
        return self.add(*transactions)

    def pay(self, to: bytes | None = PAID, value: int = 1, data: bytes = b"") -> Transaction:
        """The sender's next transaction."""
        message = Message(
            sender=SENDER,
            to=to,
            value=value,
            data=data,
            gas=200_000,
            max_fee_per_gas=PRICE,
            max_priority_fee_per_gas=10**9,
        )
        self.nonce += 1
        return sign_transaction(message, 2, CHAIN_ID, self.nonce - 1, KEYS[0])
