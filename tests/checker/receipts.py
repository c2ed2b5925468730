"""Receipts as in the receipts trie, and the bloom of their logs."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from checker.keccak import keccak256
from support.payloads import rlp

BLOOM_BYTES = 256
NO_BLOOM = bytes(BLOOM_BYTES)


@dataclass(frozen=True, slots=True)
class Log:
    """The log of a contract."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes

    def encoded(self) -> bytes:
        """The encoding in a receipt."""
        topics = rlp.encode([rlp.encode(topic) for topic in self.topics])
        return rlp.encode([rlp.encode(self.address), topics, rlp.encode(self.data)])


@lru_cache(65536)
def _bits(value: bytes) -> int:
    """Three of 2,048 bits, from the hash of an address or a topic (yellow paper, 4.3.1)."""
    digest, bits = keccak256(value), 0
    for at in (0, 2, 4):
        bits |= 1 << (int.from_bytes(digest[at : at + 2]) % (8 * BLOOM_BYTES))
    return bits


def bloom(logs: Iterable[Log]) -> bytes:
    """The bloom of these logs."""
    bits = 0
    for log in logs:
        for value in (log.address, *log.topics):
            bits |= _bits(value)
    return bits.to_bytes(BLOOM_BYTES)


def unite(one: bytes, other: bytes) -> bytes:
    """The union of two blooms."""
    return (int.from_bytes(one) | int.from_bytes(other)).to_bytes(BLOOM_BYTES)


def receipt(type: int, gas: int, logs: Iterable[Log] = (), deposit_nonce: int = -1) -> bytes:
    """The receipt of a success. `gas` is the cumulative gas of the block.

    That of a deposit ends with its sender's nonce and a version (OP stack, Canyon).
    """
    kept = list(logs)
    items = [
        rlp.encode(1),
        rlp.encode(gas),
        rlp.encode(bloom(kept)),
        rlp.encode([log.encoded() for log in kept]),
    ]
    if deposit_nonce >= 0:
        items += [rlp.encode(deposit_nonce), rlp.encode(1)]
    return bytes([type]) + rlp.encode(items)
