"""Budget of one upstream: units per second, shared by purpose.

Providers charge a method by its price in units and limit the units of a second; the default prices
are those of a large provider. The last second and a little count, so that no second exceeds the
budget, also where the provider counts it. Each purpose has a share that it and the purposes after
it may spend together: flashblocks all of it, clients what the reserve leaves, the others less and
less. So no purpose takes the reserve of flashblocks, or waits for a less urgent one. While only
flashblocks make requests, warming up has a larger share.

A URL may name its budget: `?units=500` is not sent. `Urgency` is the purpose of a request while it
waits; it can rise. Times are seconds of a monotonic clock, given by the caller.
"""

import asyncio
import math
import re
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from enum import IntEnum
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from foreblock.errors import InvalidArgument
from foreblock.secret_urls import redact_urls

# Seconds: a little more than one, since requests that go out a second apart may arrive closer.
WINDOW: Final = 1.125
DEFAULT_UNITS: Final = 300.0
LOCAL_UNITS: Final = 30_000.0  # of an upstream in a private network, which nobody charges for
DEFAULT_RESERVE: Final = 0.6

# Units of a method, by the table of Alchemy (alchemy.com/docs/reference/compute-unit-costs).
PRICES: Final[Mapping[str, int]] = {
    "eth_call": 26,
    "eth_chainId": 0,
    "eth_createAccessList": 10,
    "eth_getBalance": 20,
    "eth_getBlockByHash": 20,
    "eth_getBlockByNumber": 20,
    "eth_getCode": 20,
    "eth_getProof": 20,
    "eth_getStorageAt": 20,
    "eth_getStorageValues": 20,
    "eth_getTransactionCount": 20,
    "web3_clientVersion": 15,
    "debug_executionWitness": 170,
}
OTHER_PRICE: Final = 20


class Purpose(IntEnum):
    """The purpose of a request, the most urgent first."""

    FLASHBLOCK = 0
    CLIENT = 1
    SEALED = 2
    AUDIT = 3
    WARM_UP = 4


# The callers that get units at once, whatever was spent on warming up.
_AWAITED: Final = frozenset({Purpose.CLIENT, Purpose.SEALED, Purpose.AUDIT})

# Of what the reserve leaves.
_SHARES: Final = {
    Purpose.CLIENT: 1.0,
    Purpose.SEALED: 0.75,
    Purpose.AUDIT: 0.5,
    Purpose.WARM_UP: 0.25,
}
_CALM_SHARE: Final = 0.375  # of warming up, while only flashblocks ask


def price(method: str) -> int:
    """The units of one request."""
    return PRICES.get(method, OTHER_PRICE)


class UnitBudget:
    """The units of one upstream."""

    def __init__(self, units: float = DEFAULT_UNITS, reserve: float = DEFAULT_RESERVE) -> None:
        assert units > 0
        assert 0 <= reserve < 1
        self.units: Final = units
        self._reserve: Final = reserve
        self._spent: Final[deque[tuple[float, Purpose, float]]] = deque()
        self._sums: Final = dict.fromkeys(Purpose, 0.0)  # of the last second
        self._paused_until = 0.0
        self._calm_from = 0.0  # when only flashblocks will have been requested for a whole window
        self._short = (-math.inf, -math.inf)  # first and last time that flashblocks had to wait

    def share(self, purpose: Purpose) -> float:
        """Return the units that this purpose and those after it may spend in a second."""
        if purpose is Purpose.FLASHBLOCK:
            return self.units
        return self.units * (1 - self._reserve) * _SHARES[purpose]

    def _share_now(self, purpose: Purpose, now: float) -> float:
        if purpose is Purpose.WARM_UP and now >= self._calm_from:
            return self.units * (1 - self._reserve) * _CALM_SHARE
        return self.share(purpose)

    def take(self, units: float, purpose: Purpose, now: float) -> float:
        """Take units; returns 0.0, or the seconds after which to try again.

        More than a whole share is given when the share is unspent.
        """
        wait = self.wait(units, purpose, now)
        if wait == 0.0:
            self._spent.append((now, purpose, units))
            self._sums[purpose] += units
        elif purpose is Purpose.FLASHBLOCK and not self.paused(now):
            self._short = (self._short[0] if self.short_for(now) else now), now
        return wait

    def short_for(self, now: float) -> float:
        """Seconds for which flashblocks have had to wait for units; 0.0 if they do not now."""
        first, last = self._short
        return max(now - first, 1e-9) if now - last <= 2 * WINDOW else 0.0

    def wait(self, units: float, purpose: Purpose, now: float) -> float:
        """The seconds until this can be taken, if nobody takes anything meanwhile."""
        self._forget(now)
        if purpose in _AWAITED:
            self._calm_from = now + WINDOW
        waits = [self._paused_until - now]
        waits += [self._wait_for(each, units, now) for each in Purpose if each <= purpose]
        return max(0.0, *waits)

    def pause(self, seconds: float, now: float) -> None:
        """Take nothing for this time, as the upstream requires (Retry-After)."""
        self._paused_until = max(self._paused_until, now + seconds)

    def paused(self, now: float) -> float:
        """Seconds that are left of a pause."""
        return max(0.0, self._paused_until - now)

    def _wait_for(self, share_of: Purpose, units: float, now: float) -> float:
        """The seconds until units fit into one share."""
        spent = sum(self._sums[each] for each in Purpose if each >= share_of)
        limit = max(self._share_now(share_of, now), units)
        if spent + units <= limit + 1e-9:
            return 0.0
        for at, purpose, cost in self._spent:
            if purpose >= share_of:
                spent -= cost
                if spent + units <= limit + 1e-9:
                    return at + WINDOW - now
        raise AssertionError("an empty share has room")

    def _forget(self, now: float) -> None:
        while self._spent and self._spent[0][0] + WINDOW <= now:
            _, purpose, units = self._spent.popleft()
            self._sums[purpose] -= units
        if not self._spent:
            self._sums.update(dict.fromkeys(Purpose, 0.0))  # no rests of rounding


_UNITS: Final = re.compile(r"[0-9]{1,7}")
_PRIVATE_SUFFIXES: Final = (".localhost", ".local", ".internal")


def split_units(url: str) -> tuple[str, float | None]:
    """The URL without its parameter `units`, and its value. Raises `InvalidArgument`."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    units = [value for name, value in pairs if name == "units"]
    if not units:
        return url, None
    if len(units) > 1 or not _UNITS.fullmatch(units[0]) or int(units[0]) == 0:
        raise InvalidArgument(f"units of {redact_urls(url)} is not a number above 0")
    rest = urlencode([each for each in pairs if each[0] != "units"])
    return parts._replace(query=rest).geturl(), float(units[0])


def default_units(url: str) -> float:
    """The units per second of an upstream for which none are set."""
    return LOCAL_UNITS if _is_private(urlsplit(url).hostname or "") else DEFAULT_UNITS


def _is_private(host: str) -> bool:
    """Return True for this machine, a private address, and a name that no public DNS has."""
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_SUFFIXES)
    return address.is_private or address.is_loopback or address.is_link_local


class Urgency:
    """The purpose of a request in flight, for all that wait for it."""

    __slots__ = ("_raised", "purpose")

    def __init__(self, purpose: Purpose) -> None:
        self.purpose = purpose
        self._raised = asyncio.Event()

    def raise_to(self, purpose: Purpose) -> None:
        """Somebody else wants the same for this purpose."""
        if purpose < self.purpose:
            self.purpose = purpose
            self._raised.set()
            self._raised = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait for some seconds, or until it is more urgent."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._raised.wait()
