"""How much of something may come: so much a second, and so much at once. No I/O, no clock.

What is spent beyond it is owed and refills first, but never more than one burst is owed:
who was too loud is not silenced for ever.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rate:
    """So much a second in the long run, and so much at once."""

    a_second: float
    at_once: float


class Allowance:
    """What is left of one rate; full at first. Times are seconds of any clock that only grows."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: Rate) -> None:
        self._rate: Final = rate
        self._left = rate.at_once
        self._at: float | None = None

    def left(self, now: float) -> float:
        """What may be spent now; negative while something is owed."""
        if self._at is not None:
            refilled = self._left + (now - self._at) * self._rate.a_second
            self._left = min(refilled, self._rate.at_once)
        self._at = now
        return self._left

    def spend(self, amount: float, now: float) -> bool:
        """Spend it in any case; false where it was not there."""
        left = self.left(now) - amount
        self._left = max(left, -self._rate.at_once)
        return left >= 0

    def wait(self, now: float) -> float:
        """Seconds until nothing is owed any more."""
        return max(0.0, -self.left(now) / self._rate.a_second)

    def is_full(self, now: float) -> bool:
        """Whether nothing has been spent that has not come back."""
        return self.left(now) >= self._rate.at_once


# In handshakes: at least so many a second and at once, however few clients are allowed.
ADDRESS: Final = Rate(10, 100)
ALL: Final = Rate(100, 500)
# What a client that talked too much costs its address.
TURNED_OUT: Final = 50
# Connections for each client that is allowed: those that shake hands and close count as well.
_CONNECTIONS: Final = 2
_KNOWN: Final = 4096  # addresses that are remembered before those that owe nothing are not


class Guests:
    """The connections that are open, and what their addresses have cost so far."""

    def __init__(self, clients: int, clients_per_address: int) -> None:
        self._most: Final = _CONNECTIONS * clients
        self._most_of_one: Final = _CONNECTIONS * clients_per_address
        self._rate: Final = _at_least(ADDRESS, clients_per_address)
        self._all: Final = Allowance(_at_least(ALL, clients))
        self._spent: Final[dict[str, Allowance]] = {}
        self._open: Final[dict[str, int]] = {}
        self._count = 0

    def enter(self, address: str, now: float) -> bool:
        """One more connection, if it may come; `leave` is for its end."""
        here = self._open.get(address, 0)
        if self._count >= self._most or here >= self._most_of_one:
            return False
        allowance = self._allowance(address, now)
        if allowance.left(now) < 1 or self._all.left(now) < 1:
            return False
        allowance.spend(1, now)
        self._all.spend(1, now)
        self._open[address] = here + 1
        self._count += 1
        return True

    def leave(self, address: str) -> None:
        """A connection is gone."""
        self._count -= 1
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def turned_out(self, address: str, now: float) -> None:
        """A client talked too much."""
        self._allowance(address, now).spend(TURNED_OUT, now)

    def _allowance(self, address: str, now: float) -> Allowance:
        if address not in self._spent:
            if len(self._spent) >= _KNOWN:
                self._forget(now)
            self._spent[address] = Allowance(self._rate)
        return self._spent[address]

    def _forget(self, now: float) -> None:
        """Drop those that owe nothing; if all do, everybody begins anew."""
        for address in [at for at, each in self._spent.items() if each.is_full(now)]:
            del self._spent[address]
        if len(self._spent) >= _KNOWN:
            self._spent.clear()


def network_of(host: str) -> str:
    """The part of an address that one host has to itself; empty for what is none."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(address) >> 64 << 64))


def _at_least(rate: Rate, clients: int) -> Rate:
    return Rate(max(rate.a_second, clients), max(rate.at_once, 2 * clients))
