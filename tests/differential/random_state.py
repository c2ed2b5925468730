"""A chain of random transactions through every fork, whose state grows and shrinks.

Accounts are paid for the first time, slots are written and cleared, contracts are created with
storage and destroyed.
"""

import json
from pathlib import Path
from random import Random

from foreblock._engine import Message, address_of, sign_transaction
from foreblock.ledger.rules.transaction_rules import created_address
from support.chains.builder import ChainBuilder
from support.chains.long_chain import CHAIN_ID, GWEI, SECRET, genesis
from support.payloads.bytecode import code

BLOCKS = 54
TRANSACTIONS = 40  # of a block
PAIRS = 4  # slots written by a transaction
SLOTS = [0, 1, 2, 7, 2**255, *range(100, 140)]
KEEPERS = [bytes([0xEE, number]) * 10 for number in range(6)]
# Stores the words of its input in the slots before them.
KEEPER = code(
    *(
        word
        for at in range(0, 64 * PAIRS, 64)
        for word in (at + 32, "CALLDATALOAD", at, "CALLDATALOAD", "SSTORE")
    )
)
DESTRUCTION = bytes.fromhex("33ff")  # CALLER SELFDESTRUCT


def write(folder: Path, seed: int) -> None:
    """Make the chain and write genesis.json and chain.rlp into a folder."""
    start = json.loads(genesis())
    # Constantinople ran only together with Petersburg on every network: revm has no EIP-1283.
    start["config"]["petersburgBlock"] = start["config"]["constantinopleBlock"]
    start["config"]["depositContractAddress"] = "0x00000000219ab540356cbb839cbe05303d7705fa"
    for keeper in KEEPERS:
        start["alloc"]["0x" + keeper.hex()] = {"balance": "0x0", "code": KEEPER}
    text = json.dumps(start).encode()
    (folder / "genesis.json").write_bytes(text)
    chain = ChainBuilder(folder / "made", text)
    transactions = _Transactions(Random(seed))
    chain.add()  # before EIP-155
    for _ in range(1, BLOCKS):
        chain.add([transactions.next() for _ in range(TRANSACTIONS)])
    chain.store.close()
    (folder / "chain.rlp").write_bytes(b"".join(block.encode() for block in chain.blocks))


class _Transactions:
    """Random transactions of one account."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._nonce = 0
        self._created: list[bytes] = []

    def next(self) -> bytes:
        kind = self._random.randrange(10)
        if kind < 2:
            return self._send(self._random.randbytes(20), value=1)
        if kind < 4:
            return self._send(None, data=self._init())
        if kind < 5 and self._created:
            return self._send(self._random.choice(self._created))
        words = b"".join(number.to_bytes(32) for number in self._pairs())
        return self._send(self._random.choice(KEEPERS), data=words)

    def _pairs(self) -> list[int]:
        choose = self._random.choice
        return [choose(each) for _ in range(PAIRS) for each in (SLOTS, (0, 0, 1, 2**200))]

    def _init(self) -> bytes:
        """Init code that writes slots, and deploys code that destroys itself when it is called."""
        pairs = self._pairs()
        stores = [
            word
            for slot, value in zip(pairs[::2], pairs[1::2], strict=True)
            for word in (value, slot, "SSTORE")
        ]
        self._created.append(created(self._nonce))
        return bytes.fromhex(
            code(*stores, int.from_bytes(DESTRUCTION), 0, "MSTORE", 2, 30, "RETURN")[2:]
        )

    def _send(self, to: bytes | None, value: int = 0, data: bytes = b"") -> bytes:
        message = Message(
            sender=bytes(20), to=to, value=value, data=data, gas=200_000, gas_price=2 * GWEI
        )
        nonce, self._nonce = self._nonce, self._nonce + 1
        return sign_transaction(message, 0, CHAIN_ID, nonce, SECRET).raw


def created(nonce: int) -> bytes:
    """The address of the contract created by a transaction with this nonce."""
    return created_address(address_of(SECRET), nonce)
