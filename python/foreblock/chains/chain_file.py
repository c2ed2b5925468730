"""The file of a chain: its form, read strictly. No I/O.

A file is TOML. A missing key, an unknown one, a wrong type or a number out of range is refused
with its path, because a chain that is followed under nearly its rules fails later, with a less
useful message. A fork that foreblock does not execute stands under `[unsupported]` with its
time: the chain can be followed until then. What nobody has published stands under `unknown`, in
words. `chain_profile` makes the rules from it.
"""

import tomllib
from itertools import pairwise
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from foreblock.errors import BadChain
from foreblock.primitives import parse_hash

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

    def begun(self) -> list[tuple[str, int]]:
        """The forks that have a time, in order."""
        times = ((name, getattr(self, name)) for name in FORKS)
        return [(name, time) for name, time in times if time is not None]


class FeeConstants(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the base fee moves; from Holocene on headers say it."""

    elasticity: Divisor
    denominator: Divisor
    denominator_canyon: Divisor


class AnnouncedBlocks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Flashblocks of the chain; `feeds` are addresses that anybody may try."""

    interval_ms: Annotated[int, Meta(ge=10, le=60_000)]
    sources: tuple[HttpUrl, ...]  # of these facts
    feeds: tuple[FeedUrl, ...] = ()


class PublicEndpoints(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Addresses that the operator of the chain has published; they limit rates."""

    rpc: HttpUrl
    sequencer: HttpUrl | None = None  # takes transactions


class ChainFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One chain."""

    name: Name
    title: str
    chain_id: Positive
    l1_chain_id: Positive
    block_time: Annotated[int, Meta(ge=1, le=3600)]  # seconds
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
