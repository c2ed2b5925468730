"""The blocks of `foreblock bench rpc`, signed and executed.

Run this file to generate them again; a test compares.
"""

import tempfile
from pathlib import Path

from foreblock._engine import Message, sign_transaction
from foreblock.bench.rpc import chain
from support.chains.builder import ChainBuilder

KEY = int.from_bytes(b"\x46" * 32, "big")
GWEI = 10**9


def transfer(nonce: int, payee: int) -> bytes:
    """Transfer one wei to one of the accounts, always from the same sender."""
    return signed(nonce, chain.ACCOUNTS[-1 - payee], value=1, gas=21_000)


def log(nonce: int, number: int) -> bytes:
    """A call that logs a number."""
    return signed(nonce, chain.EMITTER_ADDRESS, data=number.to_bytes(32, "big"), gas=50_000)


def signed(nonce: int, to: bytes, *, gas: int, value: int = 0, data: bytes = b"") -> bytes:
    message = Message(
        sender=bytes(20), to=to, value=value, data=data, gas=gas,
        max_fee_per_gas=10 * GWEI, max_priority_fee_per_gas=GWEI,
    )  # fmt: skip
    return sign_transaction(message, 2, chain.CHAIN_ID, nonce, KEY.to_bytes(32)).raw


def build(folder: Path) -> bytes:
    """Build the blocks in sequence."""
    builder = ChainBuilder(folder, chain.genesis())
    transfers, logs = chain.TRANSFERS, chain.LOGS
    blocks = [
        builder.add([transfer(nonce, nonce) for nonce in range(transfers)]),
        builder.add([log(transfers + number, number) for number in range(logs)]),
        builder.add([transfer(transfers + logs, transfers)]),
    ]
    builder.store.close()
    return b"".join(block.encode() for block in blocks)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        chain.BLOCKS.write_bytes(build(Path(folder)))
