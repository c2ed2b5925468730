"""The blocks of `foreblock bench rpc`, signed and executed.

Run this file to make them anew; a test compares.
"""

import tempfile
from pathlib import Path

from foreblock._engine import Message, sign_transaction
from foreblock.bench.rpc import chain
from support.chains.builder import ChainBuilder

KEY = int.from_bytes(b"\x46" * 32, "big")
GWEI = 10**9


def transfer(nonce: int) -> bytes:
    """One wei to one of the accounts; each time from the same sender."""
    message = Message(
        sender=bytes(20), to=chain.ACCOUNTS[-1 - nonce], value=1, gas=21_000,
        max_fee_per_gas=10 * GWEI, max_priority_fee_per_gas=GWEI,
    )  # fmt: skip
    return sign_transaction(message, 2, chain.CHAIN_ID, nonce, KEY.to_bytes(32)).raw


def build(folder: Path) -> bytes:
    """The blocks, back to back."""
    builder = ChainBuilder(folder, chain.genesis())
    first = builder.add([transfer(nonce) for nonce in range(chain.TRANSFERS)])
    second = builder.add([transfer(chain.TRANSFERS)])
    builder.store.close()
    return first.encode() + second.encode()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        chain.BLOCKS.write_bytes(build(Path(folder)))
