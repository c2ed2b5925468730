"""Networks: the values that processes get, and how several are read from settings. No I/O.

`foreblock serve` has one network from the settings, or several from texts of the form
NAME.SETTING=VALUE. A network takes what it does not set from the settings themselves, with
`data` as the parent of its own directory.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from foreblock.errors import BadSetting
from foreblock.setting import from_text
from foreblock.settings import FollowChoices, FollowSettings, ServeSettings
from foreblock.settings.loading import Declared, declared, flat


class DevChain(Struct, frozen=True, kw_only=True):
    """The options of a development chain."""

    genesis: str = ""  # a file; otherwise made from the following
    chain_id: int = 31337
    mnemonic: str
    derivation_path: str = "m/44'/60'/0'/0/"
    accounts: int
    balance: int  # wei of each account
    gas_limit: int
    transaction_gas: int = 0  # 0 allows a whole block
    order: Literal["fees", "fifo"] = "fees"  # of transactions
    auto_impersonate: bool = False  # transactions of every account are taken unsigned
    base_fee: int  # wei
    block_time: int  # seconds
    interval_ms: int
    seed: int
    rules: Literal["optimism", "ethereum"] = "optimism"
    fork: str = "newest"
    alloc: str = ""  # a file with more accounts
    code_size: int = 0  # bytes of a contract at most; 0: as the fork says
    create2_deployer: bool = True
    timestamp: int = 0  # of block 0, where time does not go by the clock
    begun: int = 0  # the timestamp of block 0 otherwise; 0 is a fixed one
    instant: bool = False
    dev_methods: Literal["loopback", "everywhere", "off"] = "loopback"  # where they are answered
    mining: Literal["clock", "automine", "mixed", "manual"] = "clock"
    epoch_blocks: int = 32  # from the latest block to safe, and from safe to finalized
    prints: bool = False  # what happens, unless the chain was told otherwise
    prints_traces: bool = False  # and what transactions call
    load: int = 0  # generated transactions per second
    faults: list[str] = []  # kinds and rates, as in drop=0.01
    feed_form: Literal["flashblocks", "subblocks"] = "flashblocks"


class FeedChain(Struct, frozen=True, kw_only=True):
    """The options of a chain that follows feeds."""

    genesis: str  # a file
    feeds: list[str]  # WebSockets of flashblocks
    canonical: str = ""  # endpoint with sealed blocks; empty disables it
    believe_cheats: bool = False  # of dev chains


class LogOptions(Struct, frozen=True, kw_only=True):
    """The log of a network, which its writer appends to and its replicas follow."""

    servers: list[str]  # of NATS
    name: str  # of the stream and the subjects
    replicas: int = 1  # servers that store it, if it is created here
    credentials: str = ""  # a file with the NATS user
    ca: str = ""  # a file with the certificates to trust; TLS is required then
    takeover: float = 2.0  # seconds of silence; 0 is never
    snapshot_listen: str = ""  # where copies of the store are handed out
    snapshot_from: list[str] = []  # where copies may be fetched


class Network(Struct, frozen=True, kw_only=True):
    """One chain and its store."""

    name: str
    data: str  # the directory of its store
    source: Literal["store", "dev", "feed", "log", "follow"]
    keep_states: int = 0  # blocks; 0 keeps all
    keep_partials: int = 64
    keep_nodes: int = 128
    address_index: bool = False
    map_size: int = 1 << 38  # initial, in bytes
    max_readers: int = 16_384
    sync: bool = True  # commits wait for the disk
    dialect: Literal["preconf", "ethereum"] | None = None  # at its root; the service's
    view: Literal["preconfirmed", "sealed"] | None = None
    dev: DevChain | None = None
    feed: FeedChain | None = None
    follow: FollowSettings | None = None
    log: LogOptions | None = None  # none: commits go to the store alone


ONLY: Final = "main"  # the name of a single network
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")  # also a directory
_FORM: Final = "NAME.SETTING=VALUE"


class NetworkSettings(NamedTuple):
    """The settings of one network, by their names."""

    name: str
    data: str
    listen: str
    source: str
    genesis: str
    feed: tuple[str, ...]
    canonical: str
    believe_cheats: bool
    feed_listen: str
    keep_states: int
    keep_partials: int
    keep_nodes: int
    address_index: bool
    map_size: int
    max_readers: int
    dialect: Literal["preconf", "ethereum"]
    view: Literal["preconfirmed", "sealed"]
    log: tuple[str, ...]
    log_name: str
    log_replicas: int
    log_credentials: str
    log_ca: str
    takeover: float
    snapshot_listen: str
    snapshot_from: tuple[str, ...]
    chain: str
    upstream: tuple[str, ...]
    trust: Literal["proven", "audited", "trusted"]
    audit_seconds: float
    trust_fallback: bool
    sealed: Literal["named", "computed"]
    anchor: str
    fetch_timeout: float
    fetch_rounds: int
    fetch_keys: int
    fetch_behind: int
    upstream_units: float
    upstream_reserve: float
    cold: Literal["fetch", "refuse"]
    beyond: Literal["refuse", "verify", "pass"]
    follow_idle: float
    lag_blocks: int
    send: str

    def network(
        self,
        source: Literal["feed", "log", "follow"],
        *,
        feed: FeedChain | None = None,
        follow: FollowSettings | None = None,
        log: LogOptions | None = None,
    ) -> Network:
        """The network that these settings describe, whose blocks come from a source."""
        return Network(
            name=self.name,
            data=self.data,
            source=source,
            keep_states=self.keep_states,
            keep_partials=self.keep_partials,
            keep_nodes=self.keep_nodes,
            address_index=self.address_index,
            map_size=self.map_size,
            max_readers=self.max_readers,
            dialect=self.dialect,
            view=self.view,
            feed=feed,
            follow=follow,
            log=log,
        )

    @property
    def follow(self) -> FollowSettings:
        """How its public chain is followed."""
        names = (each.name for each in fields(FollowChoices))
        return FollowSettings(**{name: getattr(self, name) for name in names}, feed=self.feed)


class _Given(NamedTuple):
    """One parsed text."""

    network: str
    setting: str
    value: str

    @property
    def label(self) -> str:
        return f"network {self.network}.{self.setting}"


def networks_of(settings: ServeSettings) -> list[NetworkSettings]:
    """The networks in order of first mention. Raises `BadSetting`."""
    above = {name: value for name, value in flat(settings).items() if name in _SETTINGS}
    if not settings.chain.network:
        return [_network(ONLY, above)]
    by_name: dict[str, list[_Given]] = {}
    for text in settings.chain.network:
        given = _parsed(text)
        by_name.setdefault(given.network, []).append(given)
    networks = [
        _network(name, _below(name, above) | _values(texts)) for name, texts in by_name.items()
    ]
    for setting in ("data", "listen", "feed_listen", "snapshot_listen"):
        _refuse_equal(networks, setting)
    _refuse_equal([each for each in networks if each.log], "log_name")
    return networks


def _network(name: str, values: Mapping[str, Any]) -> NetworkSettings:
    network = NetworkSettings(name=name, **values)
    check_kept(network.keep_states, network.keep_partials)
    return network


def check_kept(states: int, partials: int) -> None:
    """Raise `BadSetting` if flashblocks would be kept longer than states."""
    if 0 < states <= partials:
        raise BadSetting("keep_states", f"expected more than keep_partials, which is {partials}")


def _below(name: str, above: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a network inherits."""
    return {**above, "data": f"{above['data']}/{name}" if above["data"] else ""}


def _parsed(text: str) -> _Given:
    place, is_there, value = text.partition("=")
    name, dot, setting = place.strip().rpartition(".")
    if not is_there or not dot:
        raise BadSetting("network", f"expected {_FORM}, found {text!r}")
    if not _NAME.fullmatch(name):
        raise BadSetting(
            f"network {name!r}", "expected a name of up to 32 letters, digits, hyphens, underscores"
        )
    given = _Given(name, setting.replace("-", "_"), value.strip())
    if given.setting not in _SETTINGS:
        raise BadSetting(given.label, f"a network has the settings {', '.join(_SETTINGS)}")
    return given


def _values(texts: Sequence[_Given]) -> dict[str, object]:
    """Values by setting; only lists may repeat."""
    values: dict[str, object] = {}
    for given in texts:
        it = _SETTINGS[given.setting]
        before = values.get(it.name)
        if isinstance(it.default, tuple):
            earlier = before if isinstance(before, tuple) else ()
            values[it.name] = (*earlier, given.value)
        elif before is not None:
            raise BadSetting(given.label, f"given twice: {before!r} and {given.value!r}")
        else:
            values[it.name] = from_text(given.label, it.kind, it.bounds, given.value)
    return values


def _refuse_equal(networks: Sequence[NetworkSettings], setting: str) -> None:
    """Refuse equal directories or addresses; port 0 never equals another."""
    taken: dict[str, str] = {}
    for network in networks:
        value: str = getattr(network, setting)
        if value and not value.endswith(":0"):
            other = taken.setdefault(value, network.name)
            if other != network.name:
                raise BadSetting(
                    f"network {network.name}.{setting}", f"{other} has {value!r} already"
                )


def _declared() -> dict[str, Declared]:
    names = NetworkSettings._fields[1:]
    every = {it.name: it for it in declared(ServeSettings)}
    return {name: every[name] for name in names}


_SETTINGS: Final = _declared()
