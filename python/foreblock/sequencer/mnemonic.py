"""Mnemonics of BIP-39 and their accounts: the keys of BIP-32 on Ethereum's path.

    m / 44' / 60' / 0' / 0 / i       account i, as in wallets and other dev chains

Another path may be given, without the number at its end.

The words of a given mnemonic are not checked: any language and any words make keys, as long as
their number is one of BIP-39. A mistyped word gives other accounts.

A new mnemonic has words of the English list, from the system's randomness or from a number. The
number seeds Rust's `StdRng`, the stream of ChaCha with 12 rounds, and each byte is the low one of
a word of it: so a number gives the words that `anvil --mnemonic-seed-unsafe` gives.
"""

import hashlib
import hmac
import re
import secrets
import struct
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Final, Self

from foreblock.errors import InvalidArgument
from foreblock.types import address_of, public_key

# The mnemonic of every dev chain; its keys are known to everybody.
TEST_MNEMONIC: Final = "test test test test test test test test test test test junk"

WORD_COUNTS: Final = (12, 15, 18, 21, 24)  # BIP-39, for 128 to 256 bits
HARDENED: Final = 1 << 31  # BIP-32, written with a quote
ETHEREUM_PATH: Final = "m/44'/60'/0'/0/"  # BIP-44, SLIP-44

_STEP: Final = re.compile(r"[0-9]{1,10}['hH]?", re.ASCII)
_SEED_ROUNDS: Final = 2048  # BIP-39
# SEC 2: the order of secp256k1, below which a secret key is.
_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


@dataclass(frozen=True, slots=True)
class DevAccount:
    """An account whose secret key is known here."""

    address: bytes
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ExtendedKey:
    """A secret key from which others are derived (BIP-32)."""

    secret: bytes = field(repr=False)
    chain_code: bytes = field(repr=False)

    @classmethod
    def master(cls, seed: bytes) -> Self:
        """The root key of a seed."""
        digest = hmac.digest(b"Bitcoin seed", seed, hashlib.sha512)
        return cls(digest[:32], digest[32:])

    def child(self, index: int) -> "ExtendedKey":
        """The key below this one at `index`; from 2^31 on it is hardened.

        For about one index in 2^127 there is none, which BIP-32 requires to be reported.
        """
        own = b"\0" + self.secret if index >= HARDENED else public_key(self.secret)
        digest = hmac.digest(self.chain_code, own + index.to_bytes(4), hashlib.sha512)
        tweak = int.from_bytes(digest[:32])
        secret = (tweak + int.from_bytes(self.secret)) % _ORDER
        if tweak >= _ORDER or secret == 0:
            raise InvalidArgument(f"there is no key at index {index}; use another mnemonic")
        return ExtendedKey(secret.to_bytes(32), digest[32:])

    def descend(self, path: Iterable[int]) -> "ExtendedKey":
        """The key that a path leads to."""
        key = self
        for index in path:
            key = key.child(index)
        return key


def seed_of(mnemonic: str, passphrase: str = "") -> bytes:
    """The 64 bytes that a mnemonic stands for; `InvalidArgument` for a wrong count of words."""
    words = mnemonic.split()
    if len(words) not in WORD_COUNTS:
        *but_last, last = map(str, WORD_COUNTS)
        allowed = f"{', '.join(but_last)} or {last}"
        raise InvalidArgument(f"a mnemonic has {allowed} words, this one has {len(words)}")
    # One space between words, whichever ones were given: BIP-39 hashes the text itself.
    return hashlib.pbkdf2_hmac(
        "sha512", _normal(" ".join(words)), _normal("mnemonic" + passphrase), _SEED_ROUNDS
    )


def parse_path(text: str) -> tuple[int, ...]:
    """The indices of a path such as `m/44'/60'/0'/0/`; raises `InvalidArgument`."""
    root, *steps = text.rstrip("/").split("/")
    if root != "m" or not all(map(_STEP.fullmatch, steps)):
        raise InvalidArgument(f"derivation path: {text!r} is not one such as {ETHEREUM_PATH}")
    indices = tuple(int(each.rstrip("'hH")) for each in steps)
    if any(index >= HARDENED for index in indices):
        raise InvalidArgument(f"derivation path: {text!r} has a number above 2^31 - 1")
    return tuple(
        index | (0 if each.isdigit() else HARDENED)
        for index, each in zip(indices, steps, strict=True)
    )


@lru_cache(maxsize=8)  # deriving ten takes 3 ms, half of a new chain in the process
def dev_accounts(mnemonic: str, count: int, path: str = ETHEREUM_PATH) -> tuple[DevAccount, ...]:
    """The first accounts of a mnemonic."""
    parent = ExtendedKey.master(seed_of(mnemonic)).descend(parse_path(path))
    secrets = (parent.child(index).secret for index in range(count))
    return tuple(DevAccount(address_of(secret), secret) for secret in secrets)


def _normal(text: str) -> bytes:
    return unicodedata.normalize("NFKD", text).encode()


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
