"""A public chain as data: the form of its file, the presets, and the rules that follow from it.

A file is TOML. A missing key, an unknown one, a wrong type or a number out of range is refused
with its path, because a chain that is followed under almost the right rules fails later, with a
less useful message. A fork that foreblock does not execute is listed under `[unsupported]` with
its time: the chain can be followed until then. Facts that nobody has published are described under
`unknown`.

The rules equal those of a genesis file with these fork times. The state of the genesis is not
needed, because following begins at a block that an endpoint proves. A store keeps the `config`
section of such a genesis, in geth's format, and derives its rules from it.

A followed chain is named by a preset, a file of this form, or a genesis in geth's format, or only
its `config` section.
"""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct

from foreblock.errors import BadChain, BadGenesis
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork
from foreblock.ledger.rules.profile import ChainProfile, OptimismParameters
from foreblock.primitives import ZERO_ADDRESS, did_you_mean, parse_hash

Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{1,40}$")]
Seconds = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Positive = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Divisor = Annotated[int, Meta(ge=1, lt=1 << 32)]
HashText = Annotated[str, Meta(pattern=r"^0x[0-9a-f]{64}$")]
HttpUrl = Annotated[str, Meta(pattern=r"^https?://[^\s]+$")]
FeedUrl = Annotated[str, Meta(pattern=r"^(wss?|poll\+https?)://[^\s]+$")]
# In the order in which they follow each other.
FORKS: Final = (
    "regolith", "canyon", "ecotone", "fjord", "granite", "holocene", "isthmus", "jovian", "karst",
    "lagoon",
)  # fmt: skip


class ChainStart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first block of the chain as an OP chain; OP Mainnet's is not number 0."""

    number: Count
    hash: HashText
    time: Seconds


class ForkTimes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When each fork begins; one that is left out has no time yet."""

    regolith: Seconds = 0  # every public chain has had it from its first block on
    canyon: Seconds | None = None
    ecotone: Seconds | None = None
    fjord: Seconds | None = None
    granite: Seconds | None = None
    holocene: Seconds | None = None
    isthmus: Seconds | None = None
    jovian: Seconds | None = None
    karst: Seconds | None = None
    lagoon: Seconds | None = None

    def begun(self) -> list[tuple[str, int]]:
        """The forks that have a time, in order."""
        times = ((name, getattr(self, name)) for name in FORKS)
        return [(name, time) for name, time in times if time is not None]


class FeeConstants(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the base fee moves; from Holocene on headers contain it."""

    elasticity: Divisor
    denominator: Divisor
    denominator_canyon: Divisor


class AnnouncedBlocks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Flashblocks of the chain; `feeds` are public addresses."""

    interval_ms: Annotated[int, Meta(ge=10, le=60_000)]
    sources: tuple[HttpUrl, ...]  # of these facts
    feeds: tuple[FeedUrl, ...] = ()


class PublicEndpoints(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Addresses that the operator of the chain has published; they limit rates."""

    rpc: HttpUrl
    sequencer: HttpUrl | None = None  # takes transactions


Whole = Annotated[int, Meta(ge=1, le=3600)]
Part = Annotated[float, Meta(ge=0.1, lt=1)]


class ChainFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One chain."""

    name: Name
    title: str
    chain_id: Positive
    l1_chain_id: Positive
    block_time: Whole | Part  # seconds
    source: HttpUrl  # of what no other source is named for
    genesis: ChainStart
    forks: ForkTimes
    fees: FeeConstants
    flashblocks: AnnouncedBlocks | None = None
    endpoints: PublicEndpoints | None = None
    unsupported: dict[str, Seconds] = {}
    unknown: tuple[str, ...] = ()

    @property
    def genesis_hash(self) -> bytes:
        """The hash of the first block."""
        return parse_hash(self.genesis.hash)

    @property
    def rules_end(self) -> int | None:
        """The time from which blocks cannot be executed here; none if none is known."""
        return min(self.unsupported.values(), default=None)


def read_chain(text: str, where: str) -> ChainFacts:
    """The chain of a file; `where` names it in errors. Raises `BadChain`."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as why:
        raise BadChain(where, f"not TOML: {why}") from why
    _refuse_unknown_forks(tables, where)
    try:
        facts = msgspec.convert(tables, ChainFacts)
    except msgspec.ValidationError as why:
        raise BadChain(where, str(why)) from why
    _check_order(facts, where)
    return facts


def _refuse_unknown_forks(tables: dict[str, Any], where: str) -> None:
    forks = tables.get("forks")
    for name in forks if isinstance(forks, dict) else ():
        if name not in FORKS:
            why = f"forks.{name} is not a fork that foreblock executes; its place is [unsupported]"
            raise BadChain(where, why)
    unsupported = tables.get("unsupported")
    for name in unsupported if isinstance(unsupported, dict) else ():
        if name in FORKS:
            raise BadChain(where, f"unsupported.{name} is a fork that foreblock executes")


def _check_order(facts: ChainFacts, where: str) -> None:
    begun = facts.forks.begun()
    if [name for name, _ in begun] != list(FORKS[: len(begun)]):
        gap = next(name for name in FORKS if getattr(facts.forks, name) is None)
        raise BadChain(where, f"forks.{gap} has no time, and a later fork has one")
    for (before, first), (after, second) in pairwise(begun):
        if second < first:
            raise BadChain(where, f"forks.{after} begins at {second}, before {before} at {first}")
    if facts.rules_end is not None and facts.rules_end < begun[-1][1]:
        raise BadChain(where, f"an unsupported fork begins before {begun[-1][0]}")


def config_of(chain: ChainFacts) -> bytes:
    """The configuration as JSON text."""
    config: dict[str, object] = {"chainId": chain.chain_id, "bedrockBlock": 0}
    config |= {f"{name}Time": time for name, time in chain.forks.begun()}
    config["optimism"] = {
        "eip1559Elasticity": chain.fees.elasticity,
        "eip1559Denominator": chain.fees.denominator,
        "eip1559DenominatorCanyon": chain.fees.denominator_canyon,
        "blockTime": chain.block_time,
    }
    return json.dumps(config).encode()


def profile_of(chain: ChainFacts) -> ChainProfile:
    """The rule set, the fork schedule and the constants of this chain."""
    forks = ((time, OptimismFork[name.upper()]) for name, time in chain.forks.begun())
    return ChainProfile(
        chain_id=chain.chain_id,
        forks_by_block=((0, EthereumFork.GRAY_GLACIER),),
        forks_by_time=((0, EthereumFork.PARIS),),
        blob_schedule=(),
        terminal_total_difficulty=0,
        deposit_contract=ZERO_ADDRESS,
        optimism=OptimismParameters(
            forks=((0, OptimismFork.BEDROCK), *forks),
            elasticity=chain.fees.elasticity,
            denominator=chain.fees.denominator,
            denominator_canyon=chain.fees.denominator_canyon,
            block_time=chain.block_time,
        ),
    )


_SUFFIX: Final = ".toml"
_UNSUPPORTED: Final = {
    "base": "not supported: since its upgrades of 2026 Base has its own rules and no flashblocks",
    "xlayer": "not supported: X Layer's client has its own rules",
}
LONGEST_FILE: Final = 1 << 20  # bytes


def names() -> list[str]:
    """The names of all presets, in order."""
    folder = files(__package__).joinpath("presets")
    return sorted(
        each.name.removesuffix(_SUFFIX) for each in folder.iterdir() if each.name.endswith(_SUFFIX)
    )


@cache
def preset(name: str) -> ChainFacts:
    """The preset of this name. Raises `BadChain`."""
    if name not in names():
        similar = did_you_mean(name, names()) or "; `foreblock chains` lists the known ones"
        raise BadChain(name, _UNSUPPORTED.get(name, f"not a chain that foreblock knows{similar}"))
    text = files(__package__).joinpath("presets", name + _SUFFIX).read_text("utf-8")
    return read_chain(text, name)


def is_file(name_or_file: str) -> bool:
    """True if this names a file: a text with a dot or a slash."""
    return "." in name_or_file or "/" in name_or_file


def find_chain(name_or_file: str) -> ChainFacts:
    """The preset of this name, or the chain in this file. Raises `BadChain`."""
    if not is_file(name_or_file):
        return preset(name_or_file)
    try:
        with Path(name_or_file).open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
        text = content.decode("utf-8")
    except (OSError, ValueError) as why:
        reason = why.strerror if isinstance(why, OSError) and why.strerror else str(why)
        raise BadChain(name_or_file, reason.lower()) from why
    if len(content) > LONGEST_FILE:
        raise BadChain(name_or_file, f"longer than {LONGEST_FILE} bytes")
    return read_chain(text, name_or_file)


_JSON: Final = ".json"
_LONGEST_GENESIS: Final = 256 << 20


class FollowedChain(NamedTuple):
    """The facts of a chain that following needs."""

    title: str
    config: bytes  # as in a genesis
    profile: ChainProfile
    feeds: tuple[str, ...] = ()  # public addresses
    unsupported: Mapping[str, int] = {}  # forks that are not executed here, with their times


def followed_chain(name_or_file: str) -> FollowedChain:
    """The chain of this name or file. Raises `BadChain` or `BadGenesis`."""
    if name_or_file.endswith(_JSON):
        return _of_genesis(name_or_file)
    facts = find_chain(name_or_file)
    config = config_of(facts)
    return FollowedChain(
        facts.title,
        config,
        read_profile(JsonValue.parse(config, BadGenesis)),
        facts.flashblocks.feeds if facts.flashblocks is not None else (),
        facts.unsupported,
    )


def _of_genesis(name: str) -> FollowedChain:
    try:
        with Path(name).open("rb") as file:
            text = file.read(_LONGEST_GENESIS + 1)
    except OSError as why:
        raise BadChain(name, (why.strerror or str(why)).lower()) from why
    if len(text) > _LONGEST_GENESIS:
        raise BadChain(name, f"longer than {_LONGEST_GENESIS} bytes")
    root = JsonValue.parse(text, BadGenesis)
    members = dict(root.items())
    config = root.need("config") if "config" in members else root
    profile = read_profile(config)
    return FollowedChain(Path(name).name, config.text(), profile)
