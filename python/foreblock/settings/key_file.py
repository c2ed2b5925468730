"""The file of API keys, as TOML or JSON. No I/O but `read_keys`.

    [keys.wallet]
    secret = "sha256:9f86…"   # or the secret itself
    units = 500               # a second
    burst = 1000              # at once; by default as much as in a second
    priority = "high"         # or normal, low
    methods = ["eth_*", "net_version"]

    [keys.anonymous]          # clients without a key; without it they are refused
    units = 20

    [weights]                 # units of a method, or of a namespace
    eth_call = 3
    "debug_*" = 100

Secrets are not kept, only their hashes. No error message has a value of the file.
"""

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct, ValidationError, convert

from foreblock.errors import BadSetting
from foreblock.scheduling.api_keys import KeySpec
from foreblock.scheduling.fair_queue import Priority

ANONYMOUS: Final = "anonymous"
HASHED: Final = "sha256:"
SHORTEST: Final = 16  # characters of a secret
PRIORITIES: Final = {each.name.lower(): each for each in Priority}
MOST_KEYS: Final = 1_000  # each has four metrics, and a page of memory in each worker

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_SECRET: Final = re.compile(r"[!-~]+")  # as a header has it

_Units = Annotated[float, Meta(ge=0.001, le=1e9)]


class _Key(Struct, forbid_unknown_fields=True):
    units: _Units
    secret: str = ""
    burst: Annotated[float, Meta(ge=1, le=1e9)] | None = None
    priority: str = "normal"
    methods: list[str] = []


class _File(Struct, forbid_unknown_fields=True):
    keys: dict[str, _Key]
    weights: dict[str, Annotated[float, Meta(ge=0, le=1e9)]] = {}


class KeyFile(NamedTuple):
    """The contents of a file."""

    keys: tuple[KeySpec, ...]
    weights: dict[str, float]


def read_keys(path: Path) -> KeyFile:
    """The keys of a file. Raises `BadSetting`, also where it cannot be read."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as why:
        reason = why.strerror if isinstance(why, OSError) else "not UTF-8"
        raise BadSetting(str(path), reason or "cannot be read") from None
    return parse_keys(text, str(path))


def parse_keys(text: str, name: str) -> KeyFile:
    """The keys of a text: JSON if the file's name ends so, else TOML. Raises `BadSetting`."""
    try:
        value = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
        found = convert(value, _File)
    except json.JSONDecodeError as why:
        raise BadSetting(name, f"line {why.lineno}: {why.msg}") from None
    except (tomllib.TOMLDecodeError, ValidationError, RecursionError) as why:
        raise BadSetting(name, str(why)) from None
    if len(found.keys) > MOST_KEYS:
        raise BadSetting(name, f"{len(found.keys)} keys, at most {MOST_KEYS}")
    keys = tuple(_checked(each, key, name) for each, key in found.keys.items())
    seen: dict[bytes, str] = {}
    for key in keys:
        if (other := seen.setdefault(key.digest, key.name)) != key.name:
            raise BadSetting(f"{name}: {key.name}", f"has the secret of {other}")
    return KeyFile(keys, found.weights)


def digest_of(secret: bytes) -> bytes:
    """The hash of a secret."""
    return hashlib.sha256(secret).digest()


def _checked(name: str, key: _Key, file: str) -> KeySpec:
    where = f"{file}: {name!r}"
    if not _NAME.fullmatch(name):
        raise BadSetting(where, "a name has up to 64 letters, digits, - and _")
    digest = b"" if name == ANONYMOUS and not key.secret else _digest(where, key.secret)
    burst = max(1.0, key.units) if key.burst is None else key.burst
    if key.priority not in PRIORITIES:
        raise BadSetting(where, f"expected a priority of {', '.join(PRIORITIES)}")
    priority = PRIORITIES[key.priority]
    return KeySpec(name, digest, key.units, burst, priority, tuple(key.methods))


def _digest(where: str, secret: str) -> bytes:
    if secret.startswith(HASHED):
        text = secret.removeprefix(HASHED).lower()
        if not _DIGEST.fullmatch(text):
            raise BadSetting(where, "after sha256: come 64 hexadecimal digits")
        return bytes.fromhex(text)
    if len(secret) < SHORTEST or not _SECRET.fullmatch(secret):
        raise BadSetting(where, f"a secret has at least {SHORTEST} printable ASCII characters")
    return digest_of(secret.encode())
