"""Begin a store at an anchor: a block of a running chain, of whose state nothing is known yet.

The anchor is stored with its body, or by its header alone where no upstream had more; everything
before it is not in the store. A store that was begun so can begin anew at another anchor, in a new
epoch: what it had is out of reach then, but for codes. The configuration of the chain is that of
the first time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from foreblock._engine import (
    Block,
    Header,
    Learned,
    Misses,
    Store,
    Transaction,
    View,
    Withdrawal,
    decode_receipt,
    decode_transactions,
)
from foreblock.errors import BadGenesis
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.profile import ChainProfile, RulesEnd
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import (
    FirstBlock,
    body_keys,
    header_entries,
    header_rows,
    made_of,
    read_first_block,
    read_header,
    read_row,
)
from foreblock.ledger.storage.follow_rows import put_rules_end

__all__ = [
    "Anchor",
    "Learned",
    "begin_anew_at",
    "begin_at",
    "is_empty",
    "latest_as_anchor",
    "profile_in",
    "total_difficulty_at",
    "unknown_in",
]

FIRST_EPOCH: Final = 1


def profile_in(config: bytes) -> ChainProfile:
    """The rules that a configuration, as in a genesis, describes. Raises `BadGenesis`."""
    return read_profile(JsonValue.parse(config, BadGenesis))


@dataclass(frozen=True, slots=True)
class Anchor:
    """A block to begin at; without a body where nobody had it."""

    header: Header
    block: Block | None = None
    receipts: tuple[bytes, ...] = ()  # as in their trie

    def entries(self) -> dict[bytes, bytes]:
        """Its index entries."""
        if self.block is None:
            return header_entries(self.header)
        return rows.index_entries(self.block, self._transactions())

    def rows(self, total_difficulty: int) -> Iterator[tuple[bytes, bytes]]:
        """Its rows."""
        if self.block is None:
            yield from header_rows(self.header, total_difficulty)
            return
        receipts = tuple(map(decode_receipt, self.receipts))
        yield from rows.block_rows(self.block, total_difficulty, self._transactions(), receipts)
        yield FirstBlock(self.header.number, has_body=True).row

    def _transactions(self) -> list[Transaction]:
        return [] if self.block is None else decode_transactions(self.block.transactions)


def begin_at(store: Store, anchor: Anchor, config: bytes) -> None:
    """Begin an empty store at this block."""
    header, batch = anchor.header, store.batch()
    batch.begin_at(header.number, header.hash, header.state_root, FIRST_EPOCH, anchor.entries())
    for key, value in anchor.rows(total_difficulty_at(header, profile_in(config))):
        batch.put(key, value)
    batch.put(rows.CONFIG, config)
    store.commit(batch)


def begin_anew_at(store: Store, anchor: Anchor, end: RulesEnd | None = None) -> None:
    """Begin anew at this block, in the next epoch.

    `end` says that its rules are not known here, nor those of the blocks after it.
    """
    with store.view() as view:
        epoch = view.heads.base.epoch + 1
        profile = profile_in(view.row(rows.CONFIG) or b"")
    header, batch = anchor.header, store.batch()
    batch.pending(None)
    batch.rebase(header.number, header.hash, header.state_root, epoch, anchor.entries())
    for key, value in anchor.rows(total_difficulty_at(header, profile)):
        batch.put(key, value)
    put_rules_end(batch, end)
    store.commit(batch)


def latest_as_anchor(view: View) -> Anchor:
    """The latest block of a store, with its body if that is stored."""
    assert view.heads.latest is not None, "a store begins with its anchor"
    number = view.heads.latest[0]
    header, _ = read_header(view, number)
    if number < read_first_block(view).whole:
        return Anchor(header)
    partials = made_of(view, number)
    transactions: list[bytes] = []
    receipts: list[bytes] = []
    # As in `reading.stored_block`: what is made of flashblocks is of an OP chain.
    uncles: tuple[Header, ...] = ()
    withdrawals: tuple[Withdrawal, ...] | None = None if header.withdrawals_root is None else ()
    for body_key, receipts_key in body_keys(number, partials):
        row = read_row(view, body_key, number)
        if partials:
            transactions += rows.decode_items(row)
        else:
            body = rows.decode_body(row)
            transactions += body.transactions
            uncles, withdrawals = body.uncles, body.withdrawals
        receipts += rows.decode_items(read_row(view, receipts_key, number))
    return Anchor(header, Block(header, transactions, uncles, withdrawals), tuple(receipts))


def total_difficulty_at(header: Header, profile: ChainProfile) -> int:
    """What counts as the total difficulty of an anchor, and of the blocks after it.

    It says on which side of the merge a block is; before it, nobody knows the sum.
    """
    terminal = profile.terminal_total_difficulty or 0
    return header.difficulty or terminal


def unknown_in(
    store: Store, accounts: Iterable[bytes], slots: Mapping[bytes, Iterable[int]]
) -> Misses:
    """What of these keys the store does not know, nor what is laid under it."""
    with store.view() as view:
        assert view.heads.latest is not None, "a store begins with its anchor"
        wanted = {address: list(keys) for address, keys in slots.items()}
        return view.state(view.heads.latest[0]).missing(list(accounts), wanted)


def is_empty(view: View) -> bool:
    """Whether a store has no block."""
    return view.heads.latest is None
