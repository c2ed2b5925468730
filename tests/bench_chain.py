"""The blocks of `foreblock bench rpc`, signed and executed.

Run this file to make them anew; a test compares.
"""

import tempfile
from pathlib import Path

from builder import ChainBuilder
from foreblock.bench.rpc import chain
from signing import dynamic_fee

KEY = int.from_bytes(b"\x46" * 32, "big")
GWEI = 10**9


def transfer(nonce: int) -> bytes:
    """One wei to one of the accounts; each time from the same sender."""
    to = chain.ACCOUNTS[-1 - nonce]
    return dynamic_fee(KEY, [chain.CHAIN_ID, nonce, GWEI, 10 * GWEI, 21_000, to, 1, b"", []])


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
