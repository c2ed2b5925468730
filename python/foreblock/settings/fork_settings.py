"""The settings of a fork: the chain that it begins on, and how its state is fetched."""

from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from foreblock.settings.declare import setting


@dataclass(frozen=True)
class ForkSettings:
    """The fork of a network, if there is a `url` or a `state`."""

    url: tuple[str, ...] = setting(
        (),
        "JSON-RPC endpoints of a chain to fork, the best first, or its name; ?units=500: a budget",
        "URL",
    )
    block_number: str = setting(
        "latest",
        "block to fork at: a number, a hash, latest, safe or finalized; -N: N below latest",
        "BLOCK",
    )
    transaction_hash: str = setting(
        "",
        "transaction to fork after: its block is the first local one, and ends with it",
        "HASH",
    )
    chain_id: int = setting(
        0, "chain id that the endpoints must have; 0: any that all of them share", "ID"
    )
    header: tuple[str, ...] = setting(
        (), "headers of the requests to the endpoints, as in 'Name: value'", "HEADER", secret=True
    )
    timeout: float = setting(
        45.0, "longest time that a request waits for the endpoints", "SECONDS", least=0.01
    )
    retries: int = setting(5, "tries after the first, if no endpoint responds")
    retry_backoff: float = setting(1.0, "time between two tries", "SECONDS")
    units: float = setting(
        0.0,
        "units per second to spend at each endpoint; 0: 330, or no limit in a private network",
        "UNITS",
    )
    rate_limit: bool = setting(default=True, help="limit the units per second")
    proofs: Literal["auto", "on", "off"] = setting(
        "auto",
        "verify state by proofs: if the endpoints have them (auto), always (on) or never (off)",
    )
    cache: bool = setting(default=True, help="keep fetched state on disk, for all forks of a block")
    cache_path: str = setting(
        "", "directory of fetched state; empty: ~/.cache/foreblock/forks", "DIRECTORY"
    )
    record: str = setting("", "file in which everything that a fork fetches is recorded", "FILE")
    state: str = setting(
        "", "recording or file of the cache to run from, without an endpoint", "FILE"
    )

    @property
    def is_on(self) -> bool:
        """True if there is a block to fork at."""
        return bool(self.url or self.state)


class ReplayedBlock(Struct, frozen=True):
    """The beginning of a block of another chain, which a fork executes as its first block."""

    header: bytes  # of the whole block
    transactions: tuple[bytes, ...]


class ForkPoint(Struct, frozen=True, kw_only=True):
    """The block of another chain on which a network begins."""

    chain_id: int  # of the other chain
    header: bytes
    config: bytes  # of the local chain, as in a genesis
    proven: bool  # its state is used only with proofs
    attributes: bytes = b""  # of L1, as its first transaction has them on an OP chain
    values: bytes  # packed: what every local block needs, and the development accounts
    replayed: ReplayedBlock | None = None
    abilities: tuple[bytes, ...] = ()  # of the endpoints, in their order, if they were probed
