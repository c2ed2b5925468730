"""Keccak-256 in plain Python, of many messages at once.

The state of Keccak is 25 lanes of 64 bits. Here a lane of all messages is one large number,
each message having its own 64 bits of it, so that one operation of Python works for all: a
hundred messages take hardly longer than one.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

RATE = 136  # bytes that go in at a time
LANES = RATE // 8
# The bit that ends a message; SHA3 has 0x06, by which the tests compare with it.
KECCAK, SHA3 = 0x01, 0x06

# FIPS 202, 3.2.2: how far the lane (x, y) is rotated, at x + 5 * y.
ROTATIONS = (
    0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14,
)  # fmt: skip
# FIPS 202, 3.2.3: where the lane (x, y) goes.
TARGETS = tuple(y + 5 * ((2 * x + 3 * y) % 5) for y in range(5) for x in range(5))


def _round_constants() -> tuple[int, ...]:
    """FIPS 202, 3.2.5: 24 constants from a shift register."""
    register, constants = 1, []
    for _ in range(24):
        constant = 0
        for power in range(7):
            constant |= (register & 1) << ((1 << power) - 1)
            register <<= 1
            if register & 0x100:
                register ^= 0x171
        constants.append(constant)
    return tuple(constants)


ROUND_CONSTANTS = _round_constants()


@lru_cache(1024)
def _repeated(pattern: int, count: int) -> int:
    """64 bits, once for each of `count` messages."""
    return int.from_bytes(pattern.to_bytes(8, "little") * count, "little")


@lru_cache(256)
def _masks(count: int) -> tuple[tuple[int, int], ...]:
    """For each rotation the bits that stay in their message when shifted up, and down."""
    return tuple(
        (_repeated((1 << 64) - (1 << by), count), _repeated((1 << by) - 1, count))
        for by in ROTATIONS
    )


def _permute(lanes: list[int], count: int) -> list[int]:
    ones, masks = _repeated((1 << 64) - 1, count), _masks(count)
    up, down = _repeated((1 << 64) - 2, count), _repeated(1, count)
    for constant in ROUND_CONSTANTS:
        columns = [
            lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]
            for x in range(5)
        ]
        turned = [((each << 1) & up) | ((each >> 63) & down) for each in columns]
        mixed = [columns[x - 1] ^ turned[(x + 1) % 5] for x in range(5)]
        moved = [0] * 25
        for at in range(25):
            lane, by, (high, low) = lanes[at] ^ mixed[at % 5], ROTATIONS[at], masks[at]
            moved[TARGETS[at]] = ((lane << by) & high) | ((lane >> (64 - by)) & low)
        lanes = [
            moved[y + x] ^ (~moved[y + (x + 1) % 5] & moved[y + (x + 2) % 5] & ones)
            for y in range(0, 25, 5)
            for x in range(5)
        ]
        lanes[0] ^= _repeated(constant, count)
    return lanes


def _padded(message: bytes, suffix: int) -> bytes:
    missing = RATE - len(message) % RATE
    padding = bytearray(missing)
    padding[0] = suffix
    padding[-1] |= 0x80
    return message + bytes(padding)


def _hash_equally_long(messages: Sequence[bytes]) -> list[bytes]:
    """The hashes of padded messages of the same length."""
    count = len(messages)
    lanes = [0] * 25
    for start in range(0, len(messages[0]), RATE):
        for lane in range(LANES):
            at = start + 8 * lane
            lanes[lane] ^= int.from_bytes(b"".join([m[at : at + 8] for m in messages]), "little")
        lanes = _permute(lanes, count)
    first = [lane.to_bytes(8 * count, "little") for lane in lanes[:4]]
    return [b"".join([lane[at : at + 8] for lane in first]) for at in range(0, 8 * count, 8)]


def keccak256_each(messages: Sequence[bytes], suffix: int = KECCAK) -> list[bytes]:
    """The hash of each message."""
    groups: dict[int, list[int]] = defaultdict(list)
    padded = [_padded(message, suffix) for message in messages]
    for place, message in enumerate(padded):
        groups[len(message)].append(place)
    hashes = [b""] * len(messages)
    for places in groups.values():
        found = _hash_equally_long([padded[place] for place in places])
        for place, digest in zip(places, found, strict=True):
            hashes[place] = digest
    return hashes


def keccak256(message: bytes) -> bytes:
    """The hash of one message."""
    return keccak256_each([message])[0]
