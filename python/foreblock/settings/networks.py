"""Networks: the values that processes get, made of settings and checked before a start.

`foreblock serve` has one network from the settings, or several from texts of the form
NAME.SETTING=VALUE. A network inherits the settings that it does not set, with `data` as the
parent of its own directory.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

from foreblock.clock import is_block_time
from foreblock.errors import BadSetting
from foreblock.primitives import did_you_mean
from foreblock.secret_urls import redact_urls
from foreblock.settings.chain_settings import (
    ChainSettings,
    FollowSettings,
    KeepSettings,
    ReplicationSettings,
    ServeSettings,
    SourceSettings,
)
from foreblock.settings.declare import build, declared, flat, from_text
from foreblock.settings.fork_settings import ForkPoint
from foreblock.settings.service_settings import Dialect, Settings, StoreResources, ViewKind

BASE_BLOCK_TIME: Final = 0.2  # seconds
BASE_FORKS: Final = ("newest", "jovian", "karst")


class Network(Struct, frozen=True, kw_only=True):
    """One chain and its store."""

    name: str
    data: str  # the directory of its store
    source: Literal["store", "dev", "feed", "log", "follow"]
    keep: KeepSettings = KeepSettings(states=0)
    address_index: bool = False
    store: StoreResources = StoreResources()
    sync: bool = True  # commits wait for the disk
    dialect: Dialect | None = None  # at its root; the service's
    view: ViewKind | None = None
    dev: ChainSettings | None = None
    fork: ForkPoint | None = None  # on which a dev chain begins
    began: int = 0  # timestamp of block 0 of a dev chain that begins with its first start
    feed: SourceSettings | None = None  # of a chain that follows feeds
    genesis: str = ""  # the file of such a chain
    follow: FollowSettings | None = None
    log: ReplicationSettings | None = None  # None: commits go to the store alone

    @property
    def is_mirror(self) -> bool:
        """True if a dev chain mirrors the chain that is followed."""
        return self.dev is not None and self.follow is not None

    @property
    def begins_on_another(self) -> bool:
        """True if a dev chain begins on a block of another chain, as a fork or a mirror does."""
        return self.fork is not None or self.is_mirror


ONLY: Final = "main"  # the name of a single network
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")  # also a directory
_FORM: Final = "NAME.SETTING=VALUE"


class NetworkSettings(NamedTuple):
    """The settings of one network."""

    name: str
    settings: ServeSettings

    def network(
        self,
        source: Literal["feed", "log", "follow"],
        *,
        follow: FollowSettings | None = None,
        log: ReplicationSettings | None = None,
    ) -> Network:
        """The network that these settings describe, whose blocks come from a source."""
        service, follows = self.settings.service, source == "feed"
        return Network(
            name=self.name,
            data=service.data,
            source=source,
            keep=self.settings.keep,
            address_index=self.settings.address_index,
            store=service.store,
            dialect=service.dialect,
            view=service.view,
            feed=self.settings.chain if follows else None,
            genesis=str(Path(self.settings.genesis).absolute()) if follows else "",
            follow=follow,
            log=log,
        )


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
    if not settings.chain.network:
        check_kept(settings.keep)
        return [NetworkSettings(ONLY, settings)]
    by_name: dict[str, list[_Given]] = {}
    for text in settings.chain.network:
        given = _parsed(text)
        by_name.setdefault(given.network, []).append(given)
    networks = [
        NetworkSettings(name, _overridden(settings, name, _values(texts)))
        for name, texts in by_name.items()
    ]
    for name in ("data", "listen", "feed_listen", "snapshot_listen"):
        _refuse_equal(networks, name)
    _refuse_equal([each for each in networks if each.settings.replication.log], "log_name")
    return networks


def _overridden(settings: ServeSettings, name: str, values: Mapping[str, object]) -> ServeSettings:
    """The settings of a network: its own, and those that it inherits."""
    data = settings.service.data
    inherited = {**flat(settings), "data": f"{data}/{name}" if data else ""}
    overridden = build(ServeSettings, {**inherited, **values})
    check_kept(overridden.keep)
    return overridden


def check_kept(keep: KeepSettings) -> None:
    """Raise `BadSetting` if flashblocks would be kept longer than states."""
    if 0 < keep.states <= keep.partials:
        raise BadSetting(
            "keep_states", f"expected more than keep_partials, which is {keep.partials}"
        )


def check_interval(chain: ChainSettings) -> None:
    """Raise `BadSetting` if blocks would not share seconds evenly, or flashblocks exceed them."""
    if not is_block_time(chain.block_time):
        expected = "0.1, 0.2, 0.25, 0.5 or whole seconds"
        raise BadSetting("block_time", f"expected {expected}, found {chain.block_time:g}")
    has_base_rules = chain.rules == "optimism" and chain.fork in BASE_FORKS
    if chain.base_time and not (chain.block_time == BASE_BLOCK_TIME and has_base_rules):
        raise BadSetting("base_time", "needs block_time 0.2 and the rules optimism from Jovian on")
    if chain.refund_gas and chain.fork != "lagoon" and not chain.genesis:
        raise BadSetting("refund_gas", "needs the fork lagoon")
    if chain.interval > chain.block_time:
        raise BadSetting("interval", f"expected at most block_time, which is {chain.block_time:g}")


def _parsed(text: str) -> _Given:
    key, equals, value = text.partition("=")
    name, dot, setting = key.strip().rpartition(".")
    if not equals or not dot:
        raise BadSetting("network", f"expected {_FORM}, found {text!r}")
    if not _NAME.fullmatch(name):
        raise BadSetting(
            f"network {name!r}", "expected a name of up to 32 letters, digits, hyphens, underscores"
        )
    given = _Given(name, setting.replace("-", "_"), value.strip())
    if given.setting not in _SETTINGS:
        similar = did_you_mean(given.setting, _SETTINGS)
        raise BadSetting(given.label, f"a network has the settings {', '.join(_SETTINGS)}{similar}")
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


def _refuse_equal(networks: Sequence[NetworkSettings], name: str) -> None:
    """Refuse equal directories or addresses; port 0 never equals another."""
    taken: dict[object, str] = {}
    for network in networks:
        value = flat(network.settings)[name]
        if value and not str(value).endswith(":0"):
            other = taken.setdefault(value, network.name)
            if other != network.name:
                raise BadSetting(f"network {network.name}.{name}", f"{other} has {value!r} already")


# Settings of the service that a network may have of its own.
_OWN: Final = {"data", "listen", "dialect", "view", "map_size", "max_readers"}
_SHARED: Final = {"network"} | {it.name for it in declared(Settings)} - _OWN
_SETTINGS: Final = {it.name: it for it in declared(ServeSettings) if it.name not in _SHARED}


# --- A network that follows a public chain ------------------------------------------------------

ANCHORS: Final = ("latest", "safe", "finalized")
NO_FEED: Final = "off"  # in place of feeds: those that the chain is known to have are not used
_NAMED: Final = re.compile(r"0x[0-9a-fA-F]{64}|0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")
_UPSTREAMS: Final = ("http://", "https://")
_FEEDS: Final = ("ws://", "wss://", "poll+http://", "poll+https://")


def followed_network(wanted: NetworkSettings) -> Network:
    """The network. Raises `BadSetting`."""
    settings = wanted.settings
    follow = FollowSettings(**asdict(settings.follow), feed=settings.chain.feed)
    check_followed(follow)
    return wanted.network("follow", follow=follow)


def check_followed(wanted: FollowSettings) -> None:
    """Raise `BadSetting` for settings with which no chain can be followed.

    The chain and its endpoints are checked when the network is opened.
    """
    if wanted.anchor not in ANCHORS and not _NAMED.fullmatch(wanted.anchor):
        raise BadSetting("anchor", f"expected {', '.join(ANCHORS)}, a number or a hash")
    _check_urls("upstream", wanted.upstream, _UPSTREAMS)
    _check_urls("feed", [each for each in wanted.feed if each != NO_FEED], _FEEDS)
    _check_urls("send", [wanted.send] if wanted.send else [], _UPSTREAMS)


def _check_urls(name: str, urls: Sequence[str], schemes: Sequence[str]) -> None:
    for url in urls:
        if not url.startswith(tuple(schemes)) or url in schemes:
            raise BadSetting(name, f"expected a URL that begins with {', '.join(schemes)}")


# --- A network with a log -----------------------------------------------------------------------

LIBRARIES: Final = ("nats", "zstandard")  # modules that the log imports
LOG_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # as subjects of NATS may have
SCHEMES: Final = ("nats", "tls")


def log_of(network: str, given: ReplicationSettings) -> ReplicationSettings | None:
    """The log of a network with its name; None without servers. Raises `BadSetting`."""
    if not given.log:
        _refuse_useless(given)
        return None
    check_servers(given.log)
    named = replace(given, log_name=given.log_name or network)
    if not LOG_NAME.fullmatch(named.log_name):
        raise BadSetting("log_name", "expected up to 64 letters, digits, hyphens, underscores")
    check_libraries()
    return named


def _refuse_useless(given: ReplicationSettings) -> None:
    for name in ("log_name", "log_credentials", "log_ca", "snapshot_listen", "snapshot_from"):
        if getattr(given, name):
            raise BadSetting(name, "it needs log: the NATS servers of the log")


def check_servers(servers: Sequence[str]) -> None:
    """Raise `BadSetting` for a text that is not the address of a NATS server."""
    for server in servers:
        if not _is_address(server):
            expected = "nats://HOST:PORT or tls://HOST:PORT"
            raise BadSetting("log", f"expected {expected}, found {redact_urls(server)!r}")


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port
        return False


def check_libraries() -> None:
    """Raise `BadSetting` if a library of the log is not installed; none is loaded."""
    missing = [name for name in LIBRARIES if not _is_installed(name)]
    if missing:
        words = " and ".join(missing)
        raise BadSetting("log", f"{words} is not installed: pip install 'foreblock[replicas]'")


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ValueError:  # an import of it has failed before
        return False
