"""The file of API keys: what it may say, and that no message repeats a secret."""

import hashlib
import json
import re
import tomllib
from pathlib import Path

import pytest

from foreblock.errors import BadSetting
from foreblock.scheduling.fair_queue import Priority
from foreblock.settings.key_file import MOST_KEYS, parse_keys, read_keys
from support.each_case import each_case

SECRET = "wallet-secret-0123456789"  # noqa: S105, of this test
DIGEST = hashlib.sha256(SECRET.encode()).hexdigest()
TOML = f"""
[keys.wallet]
secret = "{SECRET}"
units = 500
burst = 1000
priority = "high"
methods = ["eth_*", "net_version"]

[keys.indexer]
secret = "sha256:{"ab" * 32}"
units = 50

[keys.anonymous]
units = 0.5
priority = "low"

[weights]
eth_call = 3
"debug_*" = 100
"""


def test_a_file_has_keys_and_weights() -> None:
    wallet, indexer, anonymous = parse_keys(TOML, "keys.toml").keys
    assert (wallet.name, wallet.digest.hex()) == ("wallet", DIGEST)
    assert (wallet.units, wallet.burst, wallet.priority) == (500, 1000, Priority.HIGH)
    assert list(map(wallet.allows, ("eth_call", "net_version", "net_x", "debug_eth_"))) == [
        True, True, False, False,
    ]  # fmt: skip
    assert (indexer.digest, indexer.burst) == (bytes.fromhex("ab" * 32), 50)
    assert indexer.allows("anything")
    assert (anonymous.digest, anonymous.burst, anonymous.priority) == (b"", 1, Priority.LOW)
    assert parse_keys(TOML, "keys.toml").weights == {"eth_call": 3, "debug_*": 100}


def test_the_documented_file_is_valid(checkout: Path) -> None:
    page = (checkout / "docs/access.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    names = [each.name for each in parse_keys(example, "keys.toml").keys]
    assert names == ["wallet", "indexer", "anonymous"]


def test_a_hash_stands_for_its_secret() -> None:
    hashed = TOML.replace(SECRET, f"sha256:{DIGEST}")
    assert hashed != TOML
    assert parse_keys(hashed, "keys.toml") == parse_keys(TOML, "keys.toml")


def test_json_says_the_same() -> None:
    assert parse_keys(json.dumps(tomllib.loads(TOML)), "k.json") == parse_keys(TOML, "k.toml")


@each_case(
    ("text", "why"),
    [
        ("[keys.a]\nunits = 1", "at least 16"),
        (f'[keys.a]\nsecret = "{SECRET}"', "units"),
        (f'[keys.a]\nunits = 0\nsecret = "{SECRET}"', ">= 0.001"),
        (f'[keys.a]\nunits = 1\nburst = 0.5\nsecret = "{SECRET}"', ">= 1"),
        (f'[keys.a]\nunits = 1\nsecret = "{SECRET[:15]}"', "at least 16"),
        (f'[keys.a]\nunits = 1\nsecret = "{SECRET} and more"', "printable"),
        ('[keys.a]\nunits = 1\nsecret = "sha256:abc"', "64 hexadecimal"),
        (f'[keys."a b"]\nunits = 1\nsecret = "{SECRET}"', "letters, digits"),
        (f'[keys."../a"]\nunits = 1\nsecret = "{SECRET}"', "letters, digits"),
        (f'[keys.a]\nunits = 1\nunit = 2\nsecret = "{SECRET}"', "unknown field"),
        (f'[keys.a]\nunits = 1\npriority = "top"\nsecret = "{SECRET}"', "high, normal, low"),
        (f'[keys.a]\nunits = 1\npriority = "{SECRET}"\nsecret = "{SECRET}2"', "priority"),
        (f'[keys.a]\nunits = 1\nsecret = "{SECRET}"\n[keys.b]\nunits = 1\nsecret = "{SECRET}"',
         "has the secret of a"),
        ("", "keys"),
        (f'[keys.a]\nunits = 1\nsecret = "{SECRET}', "Unterminated"),
        ("[keys.a]\nunits = 1\nsecret = 1234567890123456", "str"),
        ("\n".join(f'[keys.k{n}]\nunits = 1\nsecret = "secret-secret-{n}"'
                   for n in range(MOST_KEYS + 1)), "at most 1000"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_without_its_secrets(text: str, why: str) -> None:
    with pytest.raises(BadSetting, match=why) as refused:
        parse_keys(text, "keys.toml")
    assert str(refused.value).startswith("keys.toml")
    assert SECRET[:15] not in str(refused.value)
    assert "1234567890123456" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="No such file"):
        read_keys(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(BadSetting, match="UTF-8"):
        read_keys(tmp_path / "bytes.toml")
    (tmp_path / "bad.json").write_text(f'{{"keys": "{SECRET}"')
    with pytest.raises(BadSetting, match="line 1") as refused:
        read_keys(tmp_path / "bad.json")
    assert SECRET not in str(refused.value)
