"""Sign transactions: minimal RLP, secp256k1 and RFC 6979; samples of new types.

Slow and not constant-time, so only for well-known test keys.
"""

import hashlib
import hmac
from collections.abc import Iterator, Sequence

from foreblock._engine import Transaction, deposit_transaction, keccak256

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)
Point = tuple[int, int] | None
Item = int | bytes | Sequence["Item"]


def add(one: Point, other: Point) -> Point:
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % P == 0:
        return None
    slope = 3 * x1 * x1 * pow(2 * y1, -1, P) if one == other else (y2 - y1) * pow(x2 - x1, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P


def multiply(point: Point, factor: int) -> Point:
    total: Point = None
    for bit in f"{factor:b}":
        total = add(total, total)
        if bit == "1":
            total = add(total, point)
    return total


def address(key: int) -> bytes:
    """The account of a private key."""
    point = multiply(G, key)
    assert point is not None
    return keccak256(b"".join(each.to_bytes(32, "big") for each in point))[12:]


def nonces(key: int, digest: bytes) -> Iterator[int]:
    """The nonces of RFC 6979, section 3.2."""
    secret = key.to_bytes(32, "big") + (int.from_bytes(digest, "big") % N).to_bytes(32, "big")
    k, v = bytes(32), b"\x01" * 32
    for separator in (b"\0", b"\x01"):
        k = hmac.digest(k, v + separator + secret, hashlib.sha256)
        v = hmac.digest(k, v, hashlib.sha256)
    while True:
        v = hmac.digest(k, v, hashlib.sha256)
        candidate = int.from_bytes(v, "big")
        if 0 < candidate < N:
            yield candidate
        k = hmac.digest(k, v + b"\0", hashlib.sha256)
        v = hmac.digest(k, v, hashlib.sha256)


def sign(key: int, digest: bytes) -> tuple[int, int, int]:
    """Return parity, r and s; s is in the lower half, as EIP-2 requires."""
    for nonce in nonces(key, digest):
        point = multiply(G, nonce)
        assert point is not None
        r, parity = point[0] % N, point[1] % 2
        s = pow(nonce, -1, N) * (int.from_bytes(digest, "big") + r * key) % N
        if r and s and point[0] < N:
            return (parity, r, s) if s <= N // 2 else (1 - parity, r, N - s)
    raise AssertionError("nonces never end")


def rlp(item: Item) -> bytes:
    if isinstance(item, int):
        return rlp(item.to_bytes((item.bit_length() + 7) // 8, "big"))
    if isinstance(item, bytes):
        return item if len(item) == 1 and item[0] < 0x80 else length(len(item), 0x80) + item
    content = b"".join(map(rlp, item))
    return length(len(content), 0xC0) + content


def length(size: int, base: int) -> bytes:
    if size < 56:
        return bytes([base + size])
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([base + 55 + len(digits)]) + digits


BLOB = bytes.fromhex(
    "03f8fd870c72dd9d5e883e81c701840813f23c830186a0947dcd17433742f4c0ca53122ab541d0ba67fc27df038c29"
    "db68258899c2fe656d6974f85bf859947dcd17433742f4c0ca53122ab541d0ba67fc27dff842a00000000000000000"
    "000000000000000000000000000000000000000000000000a035f96bc70aa62a539fa99d9153b0f8aaa4594abf70cc"
    "8a8d9018e04e39a1798283020000e1a0015a4cab4911426699ed34483de6640cf55a568afc5c5edffdcbd8bcd4452f"
    "6801a0f5b2ecf5fb4a93d85bfa76fab96a57eed00c3e5ed379f0018756e33d3cbb985aa06647a16a0b2aee4772edf9"
    "c03afb679e21d134ce3231f0fce7f6bfa9d1152f03"
)
SET_CODE = bytes.fromhex(
    "04f8d3870c72dd9d5e883e81d30184056a921482b3b09400000000000000000000000000000000000000008080c0f8"
    "63f861870c72dd9d5e883e948c2319620d7c348bb4e2b2a0b230c81f310e95618080a0f17d59102e9ebed035d1bd77"
    "bc668b170eb1d38edef6e7d971857d85781d68fea0193dbdc8dea2fc194da75febbd4de9689b625eecd1e4ca30e27b"
    "45339af2257280a0333946e8b98c5b7eff15da75e7264e9e16728f06436e86611c82fd14eaee2256a03b268e5c9bb2"
    "9a77f6976ae0f580f781ad765de3f9163b528ea9230ac02c996c"
)


def deposit_with_code(code: bytes, gas: int) -> Transaction:
    """A deposit that runs code as a creation; it needs no signature and no funds."""
    return deposit_transaction(
        source_hash=b"\7" * 32,
        sender=b"\1" * 20,
        to=None,
        mint=0,
        value=0,
        gas_limit=gas,
        input=code,
    )
