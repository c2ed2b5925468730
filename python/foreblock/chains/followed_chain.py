"""The chain that a follower is told: a preset, a file of the same form, or a genesis.

A genesis in geth's format, or its `config` section alone, describes a chain as well as a preset
does; its state is not used.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from foreblock.chains.chain_config import config_of
from foreblock.chains.known_chains import find_chain
from foreblock.errors import BadChain, BadGenesis
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.profile import ChainProfile

_JSON: Final = ".json"
_LONGEST_GENESIS: Final = 256 << 20


class FollowedChain(NamedTuple):
    """What following needs to know of a chain."""

    title: str
    config: bytes  # as in a genesis
    profile: ChainProfile
    feeds: tuple[str, ...] = ()  # that anybody may try
    unsupported: Mapping[str, int] = {}  # forks that are not executed here, with their times


def followed_chain(name_or_file: str) -> FollowedChain:
    """The chain of this name or file. Raises `BadChain` or `BadGenesis`."""
    if name_or_file.endswith(_JSON):
        return _of_genesis(name_or_file)
    facts = find_chain(name_or_file)
    config = config_of(facts)
    return FollowedChain(
        facts.title,
        config,
        read_profile(JsonValue.parse(config, BadGenesis)),
        facts.flashblocks.feeds if facts.flashblocks is not None else (),
        facts.unsupported,
    )


def _of_genesis(name: str) -> FollowedChain:
    try:
        with Path(name).open("rb") as file:
            text = file.read(_LONGEST_GENESIS + 1)
    except OSError as why:
        raise BadChain(name, (why.strerror or str(why)).lower()) from why
    if len(text) > _LONGEST_GENESIS:
        raise BadChain(name, f"longer than {_LONGEST_GENESIS} bytes")
    root = JsonValue.parse(text, BadGenesis)
    members = dict(root.items())
    config = root.need("config") if "config" in members else root
    profile = read_profile(config)
    return FollowedChain(Path(name).name, config.text(), profile)
