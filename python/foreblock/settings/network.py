"""A network as its processes see it: where it is served, what it is made from.

A value that the supervisor hands to every process; nothing is opened here.
"""

from typing import Literal

from msgspec import Struct


class DevChain(Struct, frozen=True, kw_only=True):
    """What the sequencer of a development chain is told."""

    genesis: str = ""  # a file; else a genesis of our own is made from what follows
    chain_id: int = 31337
    mnemonic: str
    accounts: int
    balance: int  # wei of each account
    gas_limit: int
    transaction_gas: int = 2**24  # 0: as much as a block has
    base_fee: int  # wei
    block_time: int  # seconds
    interval_ms: int
    seed: int
    instant: bool = False
    load: int = 0  # generated transactions a second
    faults: list[str] = []  # kinds and rates, as in drop=0.01


class FeedChain(Struct, frozen=True, kw_only=True):
    """What a chain is told that others sequence."""

    genesis: str  # a file
    feeds: list[str]  # WebSockets of flashblocks
    canonical: str = ""  # an endpoint with sealed blocks; none if empty


class Network(Struct, frozen=True, kw_only=True):
    """One chain and how it is served."""

    name: str
    data: str  # the folder of its store
    source: Literal["store", "dev", "feed"]
    keep_states: int = 0  # blocks; 0 keeps all
    keep_partials: int = 64
    keep_nodes: int = 128
    map_size: int = 1 << 38  # of its store, in bytes, to begin with
    max_readers: int = 16_384
    dev: DevChain | None = None
    feed: FeedChain | None = None
