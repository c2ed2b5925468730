"""The state of a development chain beside its blocks: how it is mined, its time, its liberties.

One row holds it, written with the commit that changes it, so that readers see it as of their
snapshot, and a chain that is stopped or killed goes on as it was.

    rows       key    value
    dev        X      MessagePack of `DevState`
"""

from typing import Final, Literal

import msgspec
from msgspec import Struct

from foreblock._engine import View

KEY: Final = b"X"

Mining = Literal["clock", "automine", "manual"]


class DevState(Struct, frozen=True, array_like=True):
    """What commands have made of a development chain."""

    instance: bytes  # 32 bytes, new for each new chain
    mining: Mining = "clock"
    also_clock: bool = False  # automine, and a block by the clock as well
    block_time: int = 2  # seconds
    interval_ms: int = 200  # of flashblocks; 0: on demand
    # Time: how far it is ahead of the clock, in seconds, and the distance of blocks if it is fixed.
    offset: int = 0
    timestamp_interval: int | None = None
    # What blocks begin with; none is the chain's own rule.
    coinbase: bytes | None = None
    gas_limit: int | None = None
    minimum_base_fee: int | None = None
    # Of the block in progress.
    keeps_time: bool = False  # its timestamp was asked for, and does not follow the clock
    is_cheated: bool = False  # it holds changes of state that no transaction made
    attempts: int = 0  # blocks that were begun anew, for payload ids
    # Accounts that may send without a signature.
    impersonated: tuple[bytes, ...] = ()
    impersonates_all: bool = False
    next_snapshot: int = 0
    faults: tuple[str, ...] = ()
    branches: int = 0  # how often the chain was taken back, for payload ids
    first_cheat: int | None = None  # the block in which a state was first set by hand
    # Whether is printed what happens, and what transactions call; none is as the settings say.
    prints: bool | None = None
    prints_traces: bool | None = None
    shows_sealed: bool = False  # only sealed blocks are shown, as by anvil


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(DevState).decode


def encode_dev_state(state: DevState) -> bytes:
    """The row."""
    return _encode(state)


def read_dev_state(view: View) -> DevState | None:
    """The state of the chain; none of one that no sequencer here has built."""
    row = view.row(KEY)
    return None if row is None else _decode(row)
