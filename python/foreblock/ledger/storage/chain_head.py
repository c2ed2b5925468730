"""The end of a stored chain, with what the rules of its next block need.

A head is a value: `after` gives the next one. An import reads it from the store once and then
advances it with each block, committed or not.
"""

from dataclasses import dataclass

from foreblock._engine import Block, Header, View
from foreblock.errors import BadGenesis, StoreDamaged
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.fork_config import StatedForks
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.uncles import ANCESTORS_NEEDED, Ancestor
from foreblock.ledger.storage.first_block import read_first_block
from foreblock.ledger.storage.partial_rows import made_of_key
from foreblock.ledger.storage.rows import (
    CONFIG,
    body_key,
    decode_body,
    decode_header_row,
    header_key,
)


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The last block, its rules, and the few before it."""

    header: Header
    total_difficulty: int
    rules: Rules
    ancestors: tuple[Ancestor, ...]  # oldest first; the last is the block itself

    def rules_of_next(self, time: int, profile: ChainProfile) -> Rules:
        """The rules for a child at this time."""
        merged = profile.merged(self.total_difficulty)
        return profile.rules(self.header.number + 1, time, merged=merged)

    def after(self, block: Block, rules: Rules) -> "ChainHead":
        """The head when this block follows."""
        ancestor = Ancestor(block.header, tuple(uncle.hash for uncle in block.uncles))
        return ChainHead(
            header=block.header,
            total_difficulty=self.total_difficulty + block.header.difficulty,
            rules=rules,
            ancestors=(*self.ancestors, ancestor)[-ANCESTORS_NEEDED:],
        )


def read_chain_head(view: View, profile: ChainProfile) -> ChainHead:
    """The head of a store that holds at least its genesis."""
    assert view.heads.latest is not None, "a store is begun with its first block"
    number, _ = view.heads.latest
    header, total_difficulty = read_header(view, number)
    first = max(number - ANCESTORS_NEEDED + 1, 0)
    begin = read_first_block(view).number
    return ChainHead(
        header=header,
        total_difficulty=total_difficulty,
        rules=rules_of(header, total_difficulty, profile),
        ancestors=tuple(
            _ancestor(view, each)
            for each in range(first, number + 1)
            # Before the first block there are headers if it was mined.
            if each >= begin or view.row(header_key(each)) is not None
        ),
    )


def stored_profile(view: View) -> ChainProfile:
    """The profile of the chain that a store holds."""
    return read_profile(JsonValue.parse(view.row(CONFIG) or b"", BadGenesis))


def stated_forks(view: View) -> StatedForks:
    """The forks that the genesis of a stored chain states, those without effect included."""
    config = JsonValue.parse(view.row(CONFIG) or b"", BadGenesis)
    stated = {key: member for key, member in config.items() if member.value is not None}
    return StatedForks(
        blocks={key: each.number() for key, each in stated.items() if key.endswith("Block")},
        times={key: each.number() for key, each in stated.items() if key.endswith("Time")},
    )


def rules_of(header: Header, total_difficulty: int, profile: ChainProfile) -> Rules:
    """The rules of a block, whose total difficulty this is."""
    if header.number == 0:
        return profile.rules_of_genesis(header.timestamp)
    merged = profile.merged(total_difficulty - header.difficulty)
    return profile.rules(header.number, header.timestamp, merged=merged)


def _ancestor(view: View, number: int) -> Ancestor:
    header, _ = read_header(view, number)
    if view.row(made_of_key(number)) is not None or number < read_first_block(view).whole:
        return Ancestor(header, ())  # a block made of partials has no uncles
    body = decode_body(read_row(view, body_key(number), number))
    return Ancestor(header, tuple(uncle.hash for uncle in body.uncles))


def read_header(view: View, number: int) -> tuple[Header, int]:
    """A stored header and its total difficulty."""
    return decode_header_row(read_row(view, header_key(number), number))


def read_row(view: View, key: bytes, number: int) -> bytes:
    """A row that a stored block must have; raises `StoreDamaged`."""
    row = view.row(key)
    if row is None:
        raise StoreDamaged(f"block {number} lacks its row {key[:1].decode()}")
    return row
