"""A network as its processes see it: where it is served, what it is made from.

A value that the supervisor hands to every process; nothing is opened here.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from foreblock.errors import BadSetting
from foreblock.setting import from_text
from foreblock.settings import ServeSettings
from foreblock.settings.loading import Declared, declared, flat


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


ONLY: Final = "main"  # what the one network is called that was given no name
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")  # it names a folder
_FORM: Final = "NAME.SETTING=VALUE"


class NetworkSettings(NamedTuple):
    """What one network is told; the names are those of the settings."""

    name: str
    data: str
    listen: str
    source: str
    genesis: str
    feed: tuple[str, ...]
    canonical: str
    feed_listen: str
    keep_states: int
    keep_partials: int
    keep_nodes: int
    map_size: int
    max_readers: int


class _Given(NamedTuple):
    """One of the texts."""

    network: str
    setting: str
    value: str

    @property
    def label(self) -> str:
        return f"network {self.network}.{self.setting}"


def networks_of(settings: ServeSettings) -> list[NetworkSettings]:
    """The networks in the order in which they were named first. Raises `BadSetting`."""
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
    for setting in ("data", "listen", "feed_listen"):
        _refuse_equal(networks, setting)
    return networks


def _network(name: str, values: Mapping[str, Any]) -> NetworkSettings:
    network = NetworkSettings(name=name, **values)
    check_kept(network.keep_states, network.keep_partials)
    return network


def check_kept(states: int, partials: int) -> None:
    """A flashblock can be asked for while its block can: `BadSetting` otherwise."""
    if 0 < states <= partials:
        raise BadSetting("keep_states", f"expected more than keep_partials, which is {partials}")


def _below(name: str, above: Mapping[str, Any]) -> dict[str, Any]:
    """What a network has that is told nothing."""
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
    """Values by setting; a list is given by repeating it, anything else once."""
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
    """No two may have the same folder or address; port 0 is another one each time."""
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
