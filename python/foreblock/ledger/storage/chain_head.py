"""The two ends of a stored chain: its last block, and where it begins.

A head is a value: `after` returns the next one. An import reads it from the store once, then
advances it with each block, committed or not.

A store that begins above block 0 was created from a state and the header that it belongs to. It
has no earlier blocks, except hashes that BLOCKHASH may need (`Store.put_ancestor_hashes`).

    rows             key                    value
    first            F                      number (8) ‖ 1 if its body is stored, else 0 (1)

A store without this row begins with block 0 and has its body. The body of a later block is in its
own rows, or in those of the partials that it was sealed from (`body_keys`).
"""

import struct
from typing import Final

from msgspec import Struct

from foreblock._engine import Block, Header, View, base_time
from foreblock.errors import BadGenesis, StoreDamaged
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.fork_config import StatedForks
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.header_rules import ANCESTORS_NEEDED, Ancestor
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.partial_rows import made_of_key
from foreblock.ledger.storage.rows import (
    CONFIG,
    body_key,
    decode_body,
    decode_header_row,
    header_key,
)

FIRST: Final = b"F"

_FIRST: Final = struct.Struct(">Q?")


class FirstBlock(Struct, frozen=True):
    """Where the chain of a store begins."""

    number: int = 0
    has_body: bool = True

    @property
    def whole(self) -> int:
        """The first block whose transactions and receipts are stored, or will be."""
        return self.number if self.has_body else self.number + 1

    @property
    def row(self) -> tuple[bytes, bytes]:
        """The key and the value of its row."""
        return FIRST, _FIRST.pack(self.number, self.has_body)


GENESIS: Final = FirstBlock()


def read_first_block(view: View) -> FirstBlock:
    """Where the chain of a view begins; raises `StoreDamaged`."""
    row = view.row(FIRST)
    if row is None:
        return GENESIS
    if len(row) != _FIRST.size:
        raise StoreDamaged("the row of the first block has another length")
    return FirstBlock(*_FIRST.unpack(row))


def header_rows(header: Header, total_difficulty: int) -> list[tuple[bytes, bytes]]:
    """The rows of a first block without a body; its index entries are `header_entries`."""
    number = header.number
    return [
        (rows.header_key(number), rows.encode_header_row(header, total_difficulty)),
        FirstBlock(number, has_body=False).row,
    ]


def header_entries(header: Header) -> dict[bytes, bytes]:
    """The index entries of a block without a body."""
    return {rows.block_index_key(header.hash): header.number.to_bytes(8)}


class ChainHead(Struct, frozen=True):
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


def with_milliseconds(view: View, header: Header, partials: tuple[int, ...]) -> Header:
    """A header with the part of a second that its block states, if it states one."""
    (key, _), *_ = body_keys(header.number, partials)
    row = view.row(key)
    return header if row is None else header.with_milliseconds(base_time(row))


def read_row(view: View, key: bytes, number: int) -> bytes:
    """A row that a stored block must have; raises `StoreDamaged`."""
    row = view.row(key)
    if row is None:
        raise StoreDamaged(f"block {number} lacks its row {key[:1].decode()}")
    return row


def partials_of_sealed(view: View, block: int) -> tuple[int, ...]:
    """The partials that a sealed block is made of; empty if it was imported whole."""
    portions = portions_of_sealed(view, block)
    return portions[:-1] if portions and portions[-1] & partial_rows.END else portions


def portions_of_sealed(view: View, block: int) -> tuple[int, ...]:
    """The partials that have the body of a sealed block, and its end if it has one.

    A row left by an earlier branch at this height ends with another partial than the one
    that the block was sealed by.
    """
    sealed, row = view.sealed(block), view.row(partial_rows.made_of_key(block))
    if sealed is None or row is None:
        return ()
    numbers = partial_rows.decode_numbers(row)
    return numbers if numbers[-1] & ~partial_rows.END == sealed[1] else ()


def body_keys(block: int, partials: tuple[int, ...]) -> list[tuple[bytes, bytes]]:
    """The keys of transactions and receipts of each portion of a block."""
    if not partials:
        return [(rows.body_key(block), rows.receipts_key(block))]
    return [
        (partial_rows.transactions_key(block, each), partial_rows.receipts_key(block, each))
        for each in partials
    ]
