"""Blocks written index by index: the contents of each commit."""

from itertools import pairwise
from pathlib import Path

import pytest

from foreblock._engine import (
    Block,
    Store,
)
from foreblock.errors import NoChain
from foreblock.ledger.building.closed_index import base_of, header_of
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import Distances, LedgerWriter
from foreblock.ledger.importing.importer import Chain as ImportedChain
from foreblock.ledger.rules.forks import ETHEREUM_RULES_OF, OptimismFork, Rules
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.chain_head import read_chain_head, read_header
from foreblock.ledger.storage.partials import decode_freshness
from foreblock.types import Base, FlashblockId
from support.chains.importing import import_bytes
from support.chains.writing import (
    ETHER,
    PASSER,
    SCRIBE,
    SENDERS,
    Chain,
    genesis,
)
from support.each_case import each_case
from support.payloads.ledger_state import root_from_scratch

ZERO_HASH = bytes(32)


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return Chain(tmp_path / "store")


def numbers(chain: Chain) -> tuple[int, int | None]:
    """The commit and the pending partial block."""
    with chain.store.view() as view:
        return view.heads.commit, view.heads.pending


def test_store_without_a_genesis_is_refused(tmp_path: Path, chain: Chain) -> None:
    with Store(str(tmp_path / "empty"), write=True) as store, pytest.raises(NoChain):
        LedgerWriter(store, chain.clock)


def test_empty_index_has_the_hash_of_its_predecessor_and_both_places_resolve(
    chain: Chain,
) -> None:
    full = chain.add(chain.deposit(), chain.signed())
    empty = chain.add()
    assert full.diff.block_hash == empty.diff.block_hash
    assert empty.diff.transactions == ()
    first, second = chain.block.partials
    with chain.store.view() as view:
        for index, partial in enumerate((first, second)):
            row = view.row(partial_rows.by_position_key(1, index))
            assert row is not None
            assert partial_rows.decode_numbers(row) == (partial,)
            stored = view.partial(partial)
            assert stored is not None
            assert (stored.index, stored.hash) == (index, full.diff.block_hash)
        row = view.row(partial_rows.by_hash_key(full.diff.block_hash))
        assert row is not None
        assert partial_rows.decode_by_hash(row) == (1, first)


def test_rows_of_a_partial_tell_all_of_it(chain: Chain) -> None:
    chain.add(chain.deposit(), chain.signed())
    chain.clock.advance(10**9)
    transfer = chain.signed(1)
    flashblock = chain.add(transfer)
    first, second = chain.block.partials
    with chain.store.view() as view:
        row = view.row(partial_rows.partial_key(1, second))
        assert row is not None
        head = partial_rows.decode_partial_row(row)
        assert head.payload_id == flashblock.payload_id
        assert (head.index, head.before, head.transactions_before) == (1, (first,), 2)
        assert head.received_at_ns == chain.clock.wall_ns()
        assert head.header.hash == flashblock.diff.block_hash
        row = view.row(partial_rows.transactions_key(1, second))
        assert row is not None
        assert rows.decode_items(row) == (transfer.raw,)
        row = view.row(partial_rows.senders_key(1, second))
        assert row is not None
        assert partial_rows.split_senders(row) == [SENDERS[1]]
        place = view.state_of_partial(second).index(rows.transaction_index_key(transfer.hash))
        assert place is not None
        assert rows.decode_transaction_entry(place) == (1, 2)
        assert view.state_of_partial(first).index(rows.transaction_index_key(transfer.hash)) is None


def test_previous_is_the_index_before_even_across_blocks(chain: Chain) -> None:
    assert chain.add(chain.deposit()).previous is None
    assert chain.add().previous == FlashblockId(1, 0)
    assert chain.seal(chain.deposit()).previous == FlashblockId(1, 1)
    chain.reopen()
    assert chain.add().previous == FlashblockId(2, 0)
    assert chain.seal().previous == FlashblockId(2, 1)


def test_previous_is_known_for_a_block_begun_anew_on_one_made_of_indices(chain: Chain) -> None:
    chain.add(chain.deposit())
    chain.seal(chain.deposit())
    chain.drop_block()
    assert chain.add(chain.deposit()).previous == FlashblockId(1, 0)


def test_seal_and_next_index_are_one_commit(chain: Chain) -> None:
    chain.add(chain.deposit())
    chain.add(chain.signed())
    commit, _ = numbers(chain)
    header = chain.writer.header_if_sealed(chain.block)
    following = chain.seal(chain.deposit())
    with chain.store.view() as view:
        heads = view.heads
        assert heads.commit == commit + 1
        assert heads.latest == (1, header.hash)
        assert heads.pending == chain.block.partials[0] == heads.commit
        partial = view.partial(heads.pending)
        assert partial is not None
        assert (partial.block, partial.index, partial.parent_hash) == (2, 0, header.hash)
        assert partial.hash == following.diff.block_hash
    assert chain.writer.latest == header


def test_commit_numbers_strictly_increase_over_everything(chain: Chain) -> None:
    seen = [numbers(chain)[0]]
    for _ in range(3):
        for _ in range(3):
            chain.add(chain.signed())
            seen.append(numbers(chain)[0])
            chain.run_until_idle()
            assert numbers(chain)[0] == seen[-1], "what follows behind draws no number"
        chain.seal(chain.deposit())
        seen.append(numbers(chain)[0])
        chain.reopen()
        assert numbers(chain)[0] == seen[-1]
    assert all(earlier < later for earlier, later in pairwise(seen))


def test_sealed_header_is_the_last_partials_with_the_real_root(
    chain: Chain, tmp_path: Path
) -> None:
    chain.add(chain.deposit(mint=5 * ETHER), chain.write(SCRIBE, 1, 2))
    last = chain.add(chain.signed(1, value=ETHER))
    partial = chain.block.partials[-1]
    header = chain.block.header
    assert header is not None
    chain.seal()
    with chain.store.view() as view:
        sealed, total_difficulty = read_header(view, 1)
        assert sealed.hash == (view.sealed(1) or [None])[0]
        assert total_difficulty == 0
        assert sealed.replace(state_root=ZERO_HASH).hash == last.diff.block_hash == header.hash
        assert sealed.state_root == root_from_scratch(tmp_path / "anew", view.state(1))
        row = view.row(partial_rows.seals_as_key(1, partial))
        assert row is not None
        assert partial_rows.decode_seals_as(row) == (sealed.state_root, sealed.hash)
        row = view.row(partial_rows.by_hash_key(sealed.hash))
        assert row is not None
        assert partial_rows.decode_by_hash(row) == (1, 0)


def test_every_partial_gets_to_know_what_it_would_seal_as(chain: Chain, tmp_path: Path) -> None:
    chain.add(chain.deposit())
    for who in range(3):
        chain.add(chain.signed(who))
    chain.run_until_idle()
    chain.add()
    with chain.store.view() as view:
        for partial in chain.block.partials[:-1]:
            row = view.row(partial_rows.seals_as_key(1, partial))
            assert row is not None
            root, block_hash = partial_rows.decode_seals_as(row)
            state = view.state_of_partial(partial)
            assert root == root_from_scratch(tmp_path / f"{partial}", state)
            head = view.row(partial_rows.partial_key(1, partial))
            assert head is not None
            header = partial_rows.decode_partial_row(head).header
            assert block_hash == header.replace(state_root=root).hash


def test_sealed_blocks_pass_a_strict_import(chain: Chain, tmp_path: Path) -> None:
    """Every root, every amount and the rules between headers, checked by other code."""
    blocks = []
    for height in range(1, 5):
        block = chain.block
        chain.add(chain.deposit(mint=ETHER))
        chain.add(chain.write(SCRIBE, height, 1), chain.write(PASSER, height, 2, who=1))
        chain.run_until_idle()
        chain.add(chain.signed(2))
        raws = chain.transactions(height, block.partials)
        sealed = chain.writer.header_if_sealed(block)
        blocks.append(Block(sealed, raws, (), ()).encode())
        chain.seal()
    imported = import_bytes(tmp_path / "imported", genesis(), b"".join(blocks))
    assert imported.blocks == 4


def test_sealed_block_names_the_partials_it_is_made_of(chain: Chain) -> None:
    chain.add(chain.deposit())
    chain.add(chain.signed())
    partials = chain.block.partials
    chain.seal()
    with chain.store.view() as view:
        row = view.row(partial_rows.made_of_key(1))
        assert row is not None
        assert partial_rows.decode_numbers(row) == partials
        assert view.row(rows.body_key(1)) is None, "the body is not stored a second time"
        statuses = [stored.status for each in partials if (stored := view.partial(each))]
        assert statuses == ["live", "sealed"]


@pytest.mark.parametrize("reopen", [False, True])
def test_trie_nodes_are_stored_up_to_the_latest_block(chain: Chain, *, reopen: bool) -> None:
    """A writer that starts in the middle of a block computes none for that block; the store
    does.
    """
    for _ in range(3):
        chain.add(chain.deposit(), chain.signed())
        if reopen:
            chain.reopen()
        chain.seal()
        chain.run_until_idle()
        with chain.store.view() as view:
            assert view.heads.nodes == view.heads.folded == chain.writer.latest.number


def test_heads_follow_at_their_distance_and_never_go_back(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store", distances=Distances(2, 3))
    seen = []
    chain.add()
    for _ in range(6):
        with chain.store.view() as view:
            heads = view.heads
            assert heads.latest is not None
            assert heads.safe is not None
            assert heads.finalized is not None
            seen.append((heads.latest[0], heads.safe[0], heads.finalized[0]))
        chain.seal()
    assert seen == [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 1, 0), (4, 2, 1), (5, 3, 2)]


def test_pending_is_fresh_for_two_block_times_after_each_commit(chain: Chain) -> None:
    for flashblock in (chain.add, chain.add, chain.seal):
        chain.clock.advance(123_456_789)
        flashblock()
        with chain.store.view() as view:
            freshness = decode_freshness(view.heads.note)
        assert freshness is not None
        assert freshness.until_ns == chain.clock.monotonic_ns() + 4 * 10**9


def test_imported_blocks_can_be_followed_by_partial_ones(tmp_path: Path) -> None:
    source = Chain(tmp_path / "source")
    source.add(source.deposit(mint=ETHER), source.signed())
    raws = source.transactions(1, source.block.partials)
    encoded = Block(source.writer.header_if_sealed(source.block), raws, (), ()).encode()
    import_bytes(tmp_path / "store", genesis(), encoded)
    chain = Chain(tmp_path / "store")
    assert chain.writer.latest.number == 1
    deposit = chain.deposit()
    imported, written = chain.add(deposit), source.seal(deposit)
    assert imported.diff == written.diff
    assert imported.base == written.base
    assert (imported.previous, written.previous) == (None, FlashblockId(1, 0))
    chain.run_until_idle()
    chain.seal()
    source.seal()
    assert chain.writer.latest == source.writer.latest


def test_blocks_made_of_partials_can_be_followed_by_imported_ones(chain: Chain) -> None:
    chain.add(chain.deposit())
    chain.seal()
    sealed = chain.writer.header_if_sealed(chain.block)
    with chain.store.view() as view:
        tip = read_chain_head(view, chain.writer.profile)
    assert tip.header == chain.writer.latest
    verified = ImportedChain(chain.store, chain.writer.profile)
    verified.add(Block(sealed, (), (), ()))
    verified.commit()
    verified.close()
    assert LedgerWriter(chain.store, chain.clock).latest == sealed


def test_what_a_commit_adds_and_drops_can_be_revived_in_it(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store")
    block = chain.block
    block.run([chain.deposit()])
    with CommitBuilder(chain.store) as builder:
        closed = block.close_index(builder.next)
        number = builder.extend(closed, (), 0)
        builder.drop([number], "another job of its block was sealed")
        builder.revive([number])
        builder.batch.pending(number)
        builder.commit()
    with chain.store.view() as view:
        partial = view.partial(number)
        assert partial is not None
        assert (partial.status, view.heads.pending) == ("live", number)
        by_place = view.row(partial_rows.by_position_key(closed.header.number, closed.index))
        assert by_place == partial_rows.encode_numbers((number,))
        by_hash = view.row(partial_rows.by_hash_key(closed.header.hash))
        assert by_hash == partial_rows.encode_by_hash(closed.header.number, number)


BASE = Base(
    parent_hash=b"\1" * 32,
    parent_beacon_block_root=b"\2" * 32,
    prev_randao=b"\3" * 32,
    fee_recipient=b"\4" * 20,
    block_number=5,
    gas_limit=6_000_000,
    timestamp=7,
    extra_data=b"\x08" * 9,
    base_fee_per_gas=9,
)


def rules(fork: OptimismFork) -> Rules:
    return Rules(ETHEREUM_RULES_OF[fork], fork)


@each_case("fork", [fork for fork in OptimismFork if fork >= OptimismFork.ECOTONE])
def test_base_comes_back_from_its_header(fork: OptimismFork) -> None:
    assert base_of(header_of(BASE, rules(fork))) == BASE


def test_beacon_root_is_not_in_headers_before_ecotone() -> None:
    header = header_of(BASE, rules(OptimismFork.CANYON))
    assert header.parent_beacon_block_root is None
    assert base_of(header).parent_beacon_block_root == bytes(32)


@each_case(
    ("fork", "fields"),
    [
        (OptimismFork.REGOLITH, (False, False, False)),
        (OptimismFork.CANYON, (True, False, False)),
        (OptimismFork.HOLOCENE, (True, True, False)),
        (OptimismFork.ISTHMUS, (True, True, True)),
        (OptimismFork.JOVIAN, (True, True, True)),
    ],
)
def test_fields_come_with_their_forks(fork: OptimismFork, fields: tuple[bool, ...]) -> None:
    header = header_of(BASE, rules(fork))
    found = (header.withdrawals_root, header.excess_blob_gas, header.requests_hash)
    assert tuple(each is not None for each in found) == fields
