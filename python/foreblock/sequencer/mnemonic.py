"""Accounts from a mnemonic: the words of BIP-39, the keys of BIP-32, Ethereum's path.

    m / 44' / 60' / 0' / 0 / i       account i, as wallets and other dev chains have it

Another path may be given, without the number at its end.

Words are not looked up and their checksum is not checked: any language and any words make
keys, as long as there are as many as BIP-39 has. So a word mistyped gives other accounts.
"""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
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
        """The key at the root of all that a seed gives."""
        digest = hmac.digest(b"Bitcoin seed", seed, hashlib.sha512)
        return cls(digest[:32], digest[32:])

    def child(self, index: int) -> "ExtendedKey":
        """The key below this one at `index`; from 2^31 on it is hardened.

        For about one index in 2^127 there is none, which BIP-32 asks to be said.
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


def dev_accounts(mnemonic: str, count: int, path: str = ETHEREUM_PATH) -> tuple[DevAccount, ...]:
    """The first accounts of a mnemonic."""
    parent = ExtendedKey.master(seed_of(mnemonic)).descend(parse_path(path))
    secrets = (parent.child(index).secret for index in range(count))
    return tuple(DevAccount(address_of(secret), secret) for secret in secrets)


def _normal(text: str) -> bytes:
    return unicodedata.normalize("NFKD", text).encode()
