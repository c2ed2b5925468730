"""Keccak-256 of pycryptodome, which shares no code with the engine."""

from Crypto.Hash import keccak


def keccak256(message: bytes) -> bytes:
    return keccak.new(data=message, digest_bits=256).digest()
