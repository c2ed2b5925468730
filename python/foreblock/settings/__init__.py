"""Every setting, in one frozen value.

Values come from flags, from `FOREBLOCK_*` variables and from `foreblock.toml`, in that
order; the first that has one wins, and what none has keeps its default. A setting has one
name everywhere: `body_limit` in the file is `--body-limit` and `FOREBLOCK_BODY_LIMIT`.

Nothing here reads the environment or a file by itself: they are handed in, so that the
outcome depends on the arguments alone.
"""

import tomllib
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from foreblock.errors import BadSetting
from foreblock.server.limits import Access, ServerLimits
from foreblock.setting import Bounds, from_text, from_value, setting

FILE: Final = "foreblock.toml"
DEFAULT: Final = "default"

MOST_NICE: Final = 19  # of the system
MOST_LOAD: Final = 10_000  # as many as a pool holds, due at once when a second was missed


@dataclass(frozen=True)
class BatchLimits:
    """What one JSON-RPC batch may ask for; geth's numbers."""

    items: int = setting(1000, "requests in a batch; 0 sets no limit")
    bytes: int = setting(25_000_000, "bytes of a batch's results; 0 sets no limit")


@dataclass(frozen=True)
class CallLimits:
    """What one call may use."""

    gas_cap: int = setting(50_000_000, "gas of a call; 0 sets no limit")
    timeout: float = setting(5.0, "seconds of a call; 0 sets no limit")
    create: bool = setting(
        default=False,
        help="let eth_call leave out `to` in the preconf dialect, which deploys and runs",
    )


@dataclass(frozen=True)
class SimulationLimits:
    """What one simulation may ask for; geth's numbers."""

    blocks: int = setting(256, "blocks of a simulation, those that fill gaps included", least=1)
    block_calls: int = setting(5_000, "calls of a simulated block", least=1)
    calls: int = setting(10_000, "calls of a simulation", least=1)
    output: int = setting(16 << 20, "bytes that the calls of a simulation return", least=1)


@dataclass(frozen=True)
class PoolLimits:
    """The threads of one worker for long calls."""

    threads: int = setting(0, "threads for long calls in one worker; 0 shares the cores out")
    begun: int = setting(16, "long calls in progress in one worker, taking turns", least=1)
    queue: int = setting(256, "long calls that may wait before more are refused", least=1)


@dataclass(frozen=True)
class FeedLimits:
    """What clients of a feed of ours may do, and the feeds that we read."""

    clients: int = setting(100, "clients of one feed", least=1)
    clients_per_address: int = setting(10, "of them from one address", least=1)
    client_bytes: int = setting(
        1024,
        "bytes a second that a client of the feed may send; a read is 64 more, a frame 32",
        least=1,
    )
    frames: int = setting(
        1_000, "frames a second that are read from a feed; more have to wait", least=1
    )
    control_frames: int = setting(
        20, "pings and pongs a second for which a feed is given up, and not heard for 10 s", least=1
    )


@dataclass(frozen=True)
class StoreRoom:
    """What each store takes of the system."""

    map_size: int = setting(
        1 << 38,
        "bytes of addresses that a store begins with; more are taken when they are used up",
        least=1 << 20,
        most=1 << 46,
    )
    max_readers: int = setting(
        16_384, "commits of a store that all its processes read at one time", least=64, most=1 << 20
    )


@dataclass(frozen=True)
class Settings:
    """What `foreblock serve` runs with."""

    data: str = setting("", "the store's folder")
    listen: str = setting("127.0.0.1:8545", "address and port to listen on; port 0 takes any")
    workers: int = setting(0, "worker processes; 0 makes one for each core")
    nice: int = setting(
        0, "how far workers step back behind other processes, up to 19", most=MOST_NICE
    )
    dialect: Literal["preconf", "ethereum"] = setting(
        "preconf", "the published contract, or replies as execution-apis and geth have them"
    )
    snapshot_header: bool = setting(
        default=True, help="name the snapshot of each answer in Foreblock-Snapshot"
    )
    pending_identity: Literal["real", "null"] = setting(
        "real", "what a block asked for as pending says as its number and hash: its own, or null"
    )
    pending_nonce: Literal["pool", "state"] = setting(
        "pool", "whether a nonce at pending counts transactions that wait, or the state alone"
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "the least important events that are logged"
    )
    worker_timeout: float = setting(
        10.0, "seconds without a sign of life, after which a worker is replaced; 0 sets no limit"
    )
    writer_timeout: float = setting(
        60.0, "the same for the writer, whose disk may stall; 0 sets no limit"
    )
    server: ServerLimits = field(default_factory=ServerLimits, metadata={"prefix": ""})
    access: Access = field(default_factory=Access, metadata={"prefix": ""})
    batch: BatchLimits = field(default_factory=BatchLimits, metadata={"prefix": "batch_"})
    call: CallLimits = field(default_factory=CallLimits, metadata={"prefix": "call_"})
    simulate: SimulationLimits = field(
        default_factory=SimulationLimits, metadata={"prefix": "simulate_"}
    )
    pool: PoolLimits = field(default_factory=PoolLimits, metadata={"prefix": "pool_"})
    feed: FeedLimits = field(default_factory=FeedLimits, metadata={"prefix": "feed_"})
    store: StoreRoom = field(default_factory=StoreRoom, metadata={"prefix": ""})


@dataclass(frozen=True)
class ChainSettings:
    """What the chains of `foreblock dev` are like."""

    chain_id: int = setting(31337, "chain id of the main network; the test network has the next")
    block_time: int = setting(2, "seconds from one block to the next", least=1)
    interval: float = setting(0.2, "seconds from one flashblock to the next", least=0.01)
    gas_limit: int = setting(400_000_000, "gas limit of a block", least=2_000_000)
    transaction_gas: int = setting(
        2**24, "gas of a transaction at most; 0 for as much as a block has"
    )
    base_fee: int = setting(1_000_000_000, "base fee of block 0 and the least there is, in wei")
    mnemonic: str = setting(
        "test test test test test test test test test test test junk",
        "words that the development accounts are derived from",
    )
    accounts: int = setting(10, "development accounts")
    balance: int = setting(10_000, "ether of each development account")
    genesis: str = setting("", "a genesis file for all networks, instead of one made from these")
    seed: int = setting(0, "what the chains' randomness comes from; equal seeds, equal chains")
    instant: bool = setting(
        default=False, help="let a transaction close its flashblock at once, at most every 10 ms"
    )
    load: int = setting(
        0, "transactions a second to generate on each network, up to 10000", most=MOST_LOAD
    )
    faults: tuple[str, ...] = setting(
        (), "faults on purpose and their rates, as in drop=0.01,reorg=0.001; docs/dev-chain.md"
    )


@dataclass(frozen=True)
class KeepSettings:
    """How much of the past a network keeps that is written to, in blocks behind the latest."""

    states: int = setting(
        1_800, "blocks behind the latest whose states can be asked for; 0 keeps all"
    )
    partials: int = setting(64, "blocks behind the latest whose flashblocks can be asked for")
    nodes: int = setting(
        128, "blocks behind the latest whose trie nodes are kept, for reorganisations"
    )


@dataclass(frozen=True)
class DevSettings:
    """What `foreblock dev` runs with: the service, and the two chains that it is on."""

    service: Settings = field(default_factory=Settings, metadata={"prefix": ""})
    test_listen: str = setting(
        "127.0.0.1:9545", "address and port of the test network; nothing leaves it out"
    )
    feed_listen: str = setting(
        "127.0.0.1:8546", "address and port of the main network's flashblocks; nothing: none"
    )
    test_feed_listen: str = setting(
        "127.0.0.1:9546", "address and port of the test network's flashblocks; nothing: none"
    )
    chain: ChainSettings = field(default_factory=ChainSettings, metadata={"prefix": ""})
    keep: KeepSettings = field(default_factory=KeepSettings, metadata={"prefix": "keep_"})


@dataclass(frozen=True)
class SourceSettings:
    """What the chain of `foreblock serve` is made from, or each chain if there are several."""

    source: Literal["store", "feed"] = setting(
        "store", "what the chain is made from: what the store holds, or flashblocks as they come"
    )
    feed: tuple[str, ...] = setting((), "WebSockets to read flashblocks from, ws:// or wss://")
    canonical: str = setting(
        "", "an endpoint to fetch sealed blocks from, where the feed does not tell them"
    )
    network: tuple[str, ...] = setting(
        (), "several networks in place of one: NAME.SETTING=VALUE for what each has of its own"
    )


@dataclass(frozen=True)
class ServeSettings:
    """What `foreblock serve` runs with: the service, and what its chain is made from."""

    service: Settings = field(default_factory=Settings, metadata={"prefix": ""})
    chain: SourceSettings = field(default_factory=SourceSettings, metadata={"prefix": ""})
    genesis: str = setting("", "the genesis file of a chain that is made from a feed")
    feed_listen: str = setting("", "address and port to pass flashblocks on at; nothing: none")
    keep: KeepSettings = field(default_factory=KeepSettings, metadata={"prefix": "keep_"})


@dataclass(frozen=True)
class EverySetting:
    """All there are, whichever verb takes them; those of equal names as `foreblock dev` does."""

    dev: DevSettings = field(default_factory=DevSettings, metadata={"prefix": ""})
    source: SourceSettings = field(default_factory=SourceSettings, metadata={"prefix": ""})


S = TypeVar("S", Settings, DevSettings, ServeSettings, EverySetting)


class Declared(NamedTuple):
    """A setting as it was declared."""

    name: str
    kind: Any
    default: object
    help: str
    bounds: Bounds

    @property
    def flag(self) -> str:
        """Its option on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Its variable in the environment."""
        return "FOREBLOCK_" + self.name.upper()


class Loaded(NamedTuple, Generic[S]):
    """Settings, and where each came from, by name."""

    settings: S
    origins: Mapping[str, str]


def declared(kind: type = Settings, prefix: str = "") -> Iterator[Declared]:
    """Every setting, in the order of the classes."""
    hints = typing.get_type_hints(kind)
    for each in fields(kind):
        if "prefix" in each.metadata:
            yield from declared(hints[each.name], each.metadata["prefix"])
        else:
            name, metadata = prefix + each.name, each.metadata
            yield Declared(
                name, hints[each.name], each.default, metadata["help"], metadata["bounds"]
            )


def load(
    kind: type[S],
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    file: Path | None = None,
) -> Loaded[S]:
    """The settings in force. Raises `BadSetting`, which names the setting and its place.

    A file may hold settings of other verbs.
    """
    table = _read(file) if file is not None else {}
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for it in declared(kind):
        values[it.name], origins[it.name] = _find(it, flags, environment, table, str(file))
    unknown = table.keys() - {it.name for it in declared(EverySetting)}
    if unknown:
        raise BadSetting(f"{file}: {min(unknown)}", "there is no such setting")
    return Loaded(_build(kind, "", values), origins)


def flat(settings: Any, prefix: str = "") -> dict[str, object]:  # noqa: ANN401
    """Every value by the name of its setting."""
    values: dict[str, object] = {}
    for each in fields(settings):
        held = getattr(settings, each.name)
        if "prefix" in each.metadata:
            values |= flat(held, each.metadata["prefix"])
        else:
            values[prefix + each.name] = held
    return values


def _find(
    it: Declared,
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    table: Mapping[str, object],
    file: str,
) -> tuple[object, str]:
    flag = flags.get(it.name)
    if flag is not None:
        return from_text(it.flag, it.kind, it.bounds, flag), it.flag
    if it.variable in environment:
        return from_text(it.variable, it.kind, it.bounds, environment[it.variable]), it.variable
    if it.name in table:
        held = table[it.name]
        if it.name == "network" and isinstance(held, dict):
            held = _dotted(f"{file}: {it.name}", held)
        return from_value(f"{file}: {it.name}", it.kind, it.bounds, held), file
    return it.default, DEFAULT


def _dotted(place: str, tables: Mapping[str, object]) -> list[str]:
    """Tables of a file, as in [network.main], in the form that flags and variables have."""
    texts = []
    numbers = {it.name for it in declared(ServeSettings) if it.kind is int}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise BadSetting(f"{place}.{name}", f"expected a table, found {table!r}")
        for key, value in table.items():
            values = value if isinstance(value, list) else [value]
            if key in numbers and isinstance(value, int) and not isinstance(value, bool):
                values = [str(value)]
            if not all(isinstance(each, str) for each in values):
                expected = "a number" if key in numbers else "a string or a list of strings"
                raise BadSetting(f"{place}.{name}.{key}", f"expected {expected}, found {value!r}")
            texts += [f"{name}.{key}={each}" for each in values]
    return texts


def _build(kind: type, prefix: str, values: Mapping[str, object]) -> Any:  # noqa: ANN401
    hints = typing.get_type_hints(kind)
    given = {}
    for each in fields(kind):
        if "prefix" in each.metadata:
            given[each.name] = _build(hints[each.name], each.metadata["prefix"], values)
        else:
            given[each.name] = values[prefix + each.name]
    return kind(**given)


def _read(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as opened:
            return tomllib.load(opened)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise BadSetting(str(file), str(failure)) from None
