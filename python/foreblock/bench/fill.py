"""Stores to measure on: many accounts, a token, a few blocks.

Accounts are sorted, as in a snapshot, so filling appends instead of inserting. Addresses are a
function of their position; benchmarks draw positions at random.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from foreblock._engine import Env, Overlay, Store
from foreblock.types import Account

ETHER: Final = 10**18
CHAIN_ID: Final = 31337
GAS_LIMIT: Final = 60_000_000
PORTION: Final = 250_000

# Returns slot 0: PUSH0 SLOAD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN.
READER: Final = bytes.fromhex("5f545f5260205ff3")
READER_ADDRESS: Final = b"\xfa" * 20
# The same code in a contract of the largest size that may be deployed.
LARGE_READER_ADDRESS: Final = b"\xfb" * 20
LARGE_READER: Final = READER.ljust(24_576, b"\x5b")

# Moves one unit from the caller's slot to the slot named by the data, as a token does:
# both slots are read and written, and a log is made.
#   CALLER SLOAD PUSH1 1 SWAP1 SUB CALLER SSTORE
#   PUSH0 CALLDATALOAD DUP1 SLOAD PUSH1 1 ADD SWAP1 SSTORE
#   PUSH1 1 PUSH0 MSTORE PUSH0 CALLDATALOAD CALLER PUSH1 32 PUSH0 LOG2 STOP
TOKEN: Final = bytes.fromhex("33546001900333555f358054600101905560015f525f353360205fa200")
TOKEN_ADDRESS: Final = b"\xfc" * 20


def address(position: int, count: int) -> bytes:
    """One of `count` ascending addresses, spread over all addresses."""
    step = 2**160 // count
    # Neighbours differ in more than their first bytes.
    digest = hashlib.blake2b(position.to_bytes(8, "big"), digest_size=16).digest()
    offset = int.from_bytes(digest, "big") % step
    return (step * position + offset).to_bytes(20, "big")


def store(folder: Path, count: int, progress: Callable[[int], None] = lambda _: None) -> Store:
    """A store of `count` accounts with one ether each, and the contracts above."""
    opened = Store(str(folder), write=True)
    account = Account(balance=ETHER)
    for start in range(0, count, PORTION):
        positions = range(start, min(start + PORTION, count))
        opened.load([(address(position, count), account) for position in positions])
        progress(len(positions))
    overlay = Overlay.empty()
    overlay.set(READER_ADDRESS, code=READER, state={0: 42})
    overlay.set(LARGE_READER_ADDRESS, code=LARGE_READER, state={0: 42})
    overlay.set(TOKEN_ADDRESS, code=TOKEN)
    batch = opened.batch()
    batch.append(0, bytes(32), overlay.take(batch.draw()))
    opened.commit(batch)
    return opened


def env(number: int) -> Env:
    """The environment of a block on the newest rules of the L2."""
    return Env(
        rules="optimism:Jovian",
        chain_id=CHAIN_ID,
        number=number,
        timestamp=2 * number,
        coinbase=bytes(20),
        gas_limit=GAS_LIMIT,
        prevrandao=bytes(32),
    )
