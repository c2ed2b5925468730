"""Rate limits of feeds, as token buckets, and limits of connections by address. No I/O, no clock.

A bucket may go into debt, but never by more than one burst, so that an abusive peer is not
locked out for ever.

A handshake costs about a millisecond of the writer's loop, and a client that sends too much
costs more before it is closed. Both count against the address and against all together, so
reconnecting in a loop gets an address nowhere. Beyond its limits a connection is closed before
any of it is read. IPv6 addresses count by their first 64 bits, which one host may own.

A frame of two to six bytes costs a parser as much time as one of a megabyte. So `FrameScan`
counts frames before they are parsed, by their headers alone (RFC 6455, 5.2), up to a maximum.
The bytes before the first frame are the handshake, which ends with its first empty line.
Violations of the protocol are left to the parser.
"""

import ipaddress
from typing import Final, NamedTuple

from msgspec import Struct


class Rate(Struct, frozen=True):
    """Tokens per second in the long run, and the size of a burst."""

    per_second: float
    burst: float


class TokenBucket:
    """A token bucket, full at first. Times are seconds of any monotonic clock."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: Rate) -> None:
        self._rate: Final = rate
        self._left = rate.burst
        self._at: float | None = None

    def left(self, now: float) -> float:
        """Tokens available now; negative while in debt."""
        if self._at is not None:
            refilled = self._left + (now - self._at) * self._rate.per_second
            self._left = min(refilled, self._rate.burst)
        self._at = now
        return self._left

    def spend(self, amount: float, now: float) -> bool:
        """Spend tokens in any case; false if they were not available."""
        left = self.left(now) - amount
        self._left = max(left, -self._rate.burst)
        return left >= 0

    def wait(self, now: float) -> float:
        """Seconds until the debt is repaid."""
        return max(0.0, -self.left(now) / self._rate.per_second)

    def is_full(self, now: float) -> bool:
        return self.left(now) >= self._rate.burst


# Minimum rates of handshakes, however few clients are allowed.
ADDRESS: Final = Rate(10, 100)
ALL: Final = Rate(100, 500)
# Handshakes that a client over its limit costs its address.
PENALTY: Final = 50
# Connections per allowed client, since opening and closing ones count as well.
_CONNECTIONS: Final = 2
_KNOWN: Final = 4096  # addresses remembered


class ConnectionLimits:
    """Decides which connections to accept, from open connections and past costs by address."""

    def __init__(self, clients: int, clients_per_address: int) -> None:
        self._most: Final = _CONNECTIONS * clients
        self._most_of_one: Final = _CONNECTIONS * clients_per_address
        self._rate: Final = _at_least(ADDRESS, clients_per_address)
        self._all: Final = TokenBucket(_at_least(ALL, clients))
        self.buckets: Final[dict[str, TokenBucket]] = {}
        self._open: Final[dict[str, int]] = {}
        self._count = 0

    def admit(self, address: str, now: float) -> bool:
        """Count a new connection if it may be accepted; call `release` when it ends."""
        here = self._open.get(address, 0)
        if self._count >= self._most or here >= self._most_of_one:
            return False
        bucket = self._bucket(address, now)
        if bucket.left(now) < 1 or self._all.left(now) < 1:
            return False
        bucket.spend(1, now)
        self._all.spend(1, now)
        self._open[address] = here + 1
        self._count += 1
        return True

    def release(self, address: str) -> None:
        self._count -= 1
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def penalize(self, address: str, now: float) -> None:
        """Charge the address for a client over its limit."""
        self._bucket(address, now).spend(PENALTY, now)

    def _bucket(self, address: str, now: float) -> TokenBucket:
        if address not in self.buckets:
            if len(self.buckets) >= _KNOWN:
                self._forget(now)
            self.buckets[address] = TokenBucket(self._rate)
        return self.buckets[address]

    def _forget(self, now: float) -> None:
        """Drop full buckets, or all if none is full."""
        for address in [at for at, each in self.buckets.items() if each.is_full(now)]:
            del self.buckets[address]
        if len(self.buckets) >= _KNOWN:
            self.buckets.clear()


def network_of(host: str) -> str:
    """The address, or the /64 network of an IPv6 address; empty if it is neither."""
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
    return Rate(max(rate.per_second, clients), max(rate.burst, 2 * clients))


_END_OF_HEAD: Final = b"\r\n\r\n"
_CONTROL: Final = 0x08  # this bit of the opcode
_MASKED: Final = 0x80
_LONGEST: Final = 14  # bytes of a frame header
_LENGTH_BYTES: Final = {126: 2, 127: 8}


class Scanned(NamedTuple):
    """The bytes scanned, and the frames that begin in them."""

    bytes: int
    frames: int
    control: int  # pings, pongs and closes among them


class FrameScan:
    """Scans one direction of a connection, from its first byte on."""

    def __init__(self) -> None:
        self.in_handshake = True
        self._begun = b""  # a partial header
        self._skip = 0  # bytes of a payload still to come

    def scan(self, data: bytes, begin: int, most: int) -> Scanned:
        """Scan data from `begin` to its end, or to the header of frame number `most + 1`."""
        at = begin
        if self.in_handshake:
            at = self._handshake(data, at)
        frames = control = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
                continue
            if frames == most:
                break
            head = self._begun + data[at : at + _LONGEST - len(self._begun)]
            size = _head_size(head)
            if size is None:
                self._begun, at = head, len(data)
                break
            at += size - len(self._begun)
            self._begun, self._skip = b"", _payload_size(head)
            frames += 1
            control += head[0] & _CONTROL != 0
        return Scanned(at - begin, frames, control)

    def _handshake(self, data: bytes, at: int) -> int:
        """The position of the first frame, or the end of the data if it is not there yet."""
        joined = self._begun + data[at:]
        end = joined.find(_END_OF_HEAD)
        if end < 0:
            self._begun = joined[-len(_END_OF_HEAD) + 1 :]
            return len(data)
        at += end + len(_END_OF_HEAD) - len(self._begun)
        self.in_handshake, self._begun = False, b""
        return at


def _head_size(head: bytes) -> int | None:
    """Return the size of a header, or None if it is incomplete."""
    if len(head) < 2:
        return None
    size = 2 + _LENGTH_BYTES.get(head[1] & ~_MASKED & 0xFF, 0) + (4 if head[1] & _MASKED else 0)
    return size if len(head) >= size else None


def _payload_size(head: bytes) -> int:
    short = head[1] & ~_MASKED & 0xFF
    more = _LENGTH_BYTES.get(short)
    return short if more is None else int.from_bytes(head[2 : 2 + more])
