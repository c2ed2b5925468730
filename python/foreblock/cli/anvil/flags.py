"""All flags of anvil 1.7, and what a command line with them means in settings. No I/O.

Each is taken, taken without effect, or refused with the reason; `docs/from-anvil.md` has the
same table for people.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from foreblock.cli.anvil.absent_flags import IGNORED, NOT_TO_BE_HAD
from foreblock.cli.anvil.flag import Settings
from foreblock.cli.anvil.taken_flags import TAKEN

FLAGS: Final = (*TAKEN, *IGNORED, *NOT_TO_BE_HAD)

# What anvil is without any flag, and `foreblock dev` is not.
DEFAULTS: Final[Mapping[str, str]] = {
    "dialect": "ethereum",
    "view": "sealed",
    "client_version": "anvil/v1.7.1",
    "rules": "ethereum",
    "genesis_time": "start",
    "mining": "automine",
    "gas_limit": "30000000",
    "transaction_gas": "1099511627776",  # 2^40: no limit of its own
    "keep_states": "0",
    "print": "true",
    "log_level": "warning",
    "cors_origins": "*",
    "dev_methods": "everywhere",
    "test_listen": "",
    "feed_listen": "",
    "workers": "1",
    "one_process": "true",
}
# Flags that say contradictory things, and those that need another.
EXCLUDING: Final = (
    ("mnemonic", "mnemonic_random"),
    ("mnemonic", "mnemonic_seed_unsafe"),
    ("mnemonic_random", "mnemonic_seed_unsafe"),
    ("no_mining", "block_time"),
    ("state", "load_state"),
    ("state", "dump_state"),
    ("init", "load_state"),
    ("init", "state"),
    ("code_size_limit", "disable_code_size_limit"),
    ("gas_limit", "disable_block_gas_limit"),
)
NEEDING: Final = (("mixed_mining", "block_time"),)


def settings_of(given: Mapping[str, str]) -> Settings:
    """The settings that flags give, by their keys; raises `ValueError` of a bad block time."""
    settings: Settings = {}
    for flag in FLAGS:
        if flag.key in given:
            settings |= flag.gives(given[flag.key])
    return settings


def refusals(given: Mapping[str, str]) -> Iterator[str]:
    """Why flags that were given cannot be had."""
    for flag in NOT_TO_BE_HAD:
        if flag.key in given:
            yield f"{_flag(flag.key)}: {flag.help}"
    for one, other in EXCLUDING:
        if one in given and other in given:
            yield f"{_flag(one)} cannot be used with {_flag(other)}"
    for one, other in NEEDING:
        if one in given and other not in given:
            yield f"{_flag(one)} needs {_flag(other)}"
    if given.get("network") not in {None, "ethereum", "optimism"}:
        yield f"--network: {given['network']} is not here; there are ethereum and optimism"


def _flag(key: str) -> str:
    return "--" + key.replace("_", "-")
