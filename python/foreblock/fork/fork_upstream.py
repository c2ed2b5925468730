"""The endpoints of a fork: their budgets and headers, and proofs of the fork block only."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from foreblock.chains.chain_file import ChainFacts, names, preset
from foreblock.clock import SystemClock
from foreblock.errors import BadSetting, InvalidArgument
from foreblock.follow.capabilities import Capabilities
from foreblock.follow.state_plan import RequestLimits
from foreblock.follow.state_upstream import StateUpstream
from foreblock.primitives import parse_quantity
from foreblock.settings import ForkSettings
from foreblock.upstream.budget import (
    LOCAL_UNITS,
    Purpose,
    UnitBudget,
    Urgency,
    default_units,
    split_units,
)
from foreblock.upstream.http import Connections
from foreblock.upstream.json_rpc import Call, RefusalKind, refuse

UNITS: Final = 330.0  # per second, as in anvil
UNLIMITED: Final = 1e9
SECONDS: Final = 30.0  # for the id of its chain
_CHAIN_ID: Final[Call] = ("eth_chainId", [])


class ForkUpstream(StateUpstream):
    """An endpoint that is used for one block, however far ahead its latest block is."""

    @property
    def limits(self) -> RequestLimits:
        """Its limits; a proof of its tip would be of another block."""
        return self._limits

    @limits.setter
    def limits(self, limits: RequestLimits) -> None:
        self._limits = limits._replace(tip_proofs=False)

    async def chain_id(self) -> int:
        """The id of its chain. Raises `RefusedAnswer`."""
        urgency = Urgency(Purpose.FLASHBLOCK)
        found = (await self.ask([_CHAIN_ID], urgency, self.now + SECONDS))[1]
        if not isinstance(found, Raw):
            raise found
        try:
            return parse_quantity(msgspec.json.decode(found, type=str), 64)
        except ValueError as why:
            raise refuse(RefusalKind.WRONG_SHAPE, f"eth_chainId: {why}") from None


def open_upstreams(
    settings: ForkSettings, chain_id: int | None, abilities: Sequence[bytes] = ()
) -> list[ForkUpstream]:
    """The endpoints, each with its budget, and its abilities if they are known.

    Raises `BadSetting` for an invalid URL.
    """
    clock, is_only, opened = SystemClock(), len(settings.url) == 1, []
    for named in settings.url:
        facts = named_chain(named)
        url = named if facts is None or facts.endpoints is None else facts.endpoints.rpc
        headers = headers_of(settings)
        try:
            budget = UnitBudget(units_of(settings, url), reserve=0.0)
            connections = Connections(split_units(url)[0], headers=headers)
            upstream = ForkUpstream(
                url, clock, budget, chain_id, is_only=is_only, connections=connections
            )
        except InvalidArgument as why:
            raise BadSetting("fork_url", str(why)) from None
        except ValueError:  # of `urlsplit`, whose text may have a password
            raise BadSetting("fork_url", "not a valid URL") from None
        opened.append(upstream)
    for upstream, known in zip(opened, abilities, strict=False):
        if known:
            upstream.assume(msgspec.json.decode(known, type=Capabilities))
    return opened


def named_chain(url: str) -> ChainFacts | None:
    """The chain whose name is in place of a URL; None for a URL. Raises `BadSetting`."""
    if url.startswith(("http://", "https://")):
        return None
    if url in names():
        return preset(url)
    expected = "a URL that begins with http:// or https://, or a chain of `foreblock chains`"
    raise BadSetting("fork_url", f"expected {expected}")


def units_of(settings: ForkSettings, url: str) -> float:
    """The units per second of an endpoint."""
    if not settings.rate_limit:
        return UNLIMITED
    bare, own = split_units(url)
    is_local = default_units(bare) == LOCAL_UNITS
    return own or settings.units or (LOCAL_UNITS if is_local else UNITS)


def headers_of(settings: ForkSettings) -> dict[str, str]:
    """The headers of requests, by name. Raises `BadSetting`."""
    headers = {}
    for text in settings.header:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or not text.isprintable():
            raise BadSetting("fork_header", "expected 'Name: value'")
        headers[name.strip()] = value.strip()
    return headers
