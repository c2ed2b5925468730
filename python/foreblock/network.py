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
    base_fee: int  # wei
    block_time: int  # seconds
    interval_ms: int
    seed: int
    instant: bool = False
    load: int = 0  # generated transactions a second


class Network(Struct, frozen=True, kw_only=True):
    """One chain and how it is served."""

    name: str
    data: str  # the folder of its store
    source: Literal["store", "dev"]
    dev: DevChain | None = None
