"""New mnemonics (BIP-39): from the system's randomness, or from a number as anvil makes them.

The number seeds Rust's `StdRng`, the stream of ChaCha with 12 rounds, and each byte is the low
one of a word of it: so a number gives the words that `anvil --mnemonic-seed-unsafe` gives. The
words are BIP-39's English list.
"""

import hashlib
import secrets
import struct
from importlib import resources
from typing import Final

from foreblock.errors import InvalidArgument
from foreblock.sequencer.mnemonic import WORD_COUNTS

LIST: Final = "bip39-english.txt"
WORD_BITS: Final = 11
BITS_OF_CHECKSUM_BIT: Final = 32  # BIP-39: of entropy, for each bit of the checksum
MOST_SEED: Final = 2**64 - 1

# How `rand` stretches a number of 64 bits to a key: a PCG generator.
_MULTIPLIER: Final = 6_364_136_223_846_793_005
_INCREMENT: Final = 11_634_580_027_462_260_723
_KEY_WORDS: Final = 8
_WORD_BYTES: Final = 4
_CONSTANT: Final = struct.unpack("<4I", b"expand 32-byte k")
_ROUNDS: Final = 12
_COLUMNS: Final = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS: Final = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_MASK: Final = 2**32 - 1


def random_mnemonic(words: int = 12) -> str:
    """Words from the randomness of the system; raises `InvalidArgument` for a wrong count."""
    if words not in WORD_COUNTS:
        raise InvalidArgument(f"a mnemonic has 12, 15, 18, 21 or 24 words, not {words}")
    return mnemonic_of(secrets.token_bytes(words * 4 // 3))


def seeded_mnemonic(seed: int) -> str:
    """The twelve words of a number, which anybody can guess; raises `InvalidArgument`."""
    if not 0 <= seed <= MOST_SEED:
        raise InvalidArgument(f"the seed of a mnemonic is at most 2^64 - 1, not {seed}")
    return mnemonic_of(_first_block(_key(seed))[::_WORD_BYTES])


def mnemonic_of(entropy: bytes) -> str:
    """The words that stand for these bytes and their checksum."""
    words = resources.files("foreblock.sequencer").joinpath(LIST).read_text("ascii").split()
    bits = len(entropy) * 8
    checked = bits // BITS_OF_CHECKSUM_BIT
    checksum = hashlib.sha256(entropy).digest()[0] >> (8 - checked)
    number = int.from_bytes(entropy) << checked | checksum
    places = range(bits + checked - WORD_BITS, -1, -WORD_BITS)
    return " ".join(words[number >> place & (1 << WORD_BITS) - 1] for place in places)


def _key(seed: int) -> tuple[int, ...]:
    """The key of a number: each word is a step of the generator."""
    words, state = [], seed
    for _ in range(_KEY_WORDS):
        state = (state * _MULTIPLIER + _INCREMENT) % 2**64
        shifted, turn = (state >> 18 ^ state) >> 27 & _MASK, state >> 59
        words.append((shifted >> turn | shifted << (32 - turn)) & _MASK)
    return tuple(words)


def _first_block(key: tuple[int, ...]) -> bytes:
    """The first 64 bytes of ChaCha's stream, with counter and nonce 0."""
    begun = [*_CONSTANT, *key, 0, 0, 0, 0]
    state = list(begun)
    for _ in range(_ROUNDS // 2):
        for places in (*_COLUMNS, *_DIAGONALS):
            _quarter_round(state, *places)
    return struct.pack("<16I", *((a + b) & _MASK for a, b in zip(state, begun, strict=True)))


def _quarter_round(state: list[int], a: int, b: int, c: int, d: int) -> None:
    for add, to, turned, by in ((b, a, d, 16), (d, c, b, 12), (b, a, d, 8), (d, c, b, 7)):
        state[to] = (state[to] + state[add]) & _MASK
        mixed = state[turned] ^ state[to]
        state[turned] = (mixed << by | mixed >> (32 - by)) & _MASK
