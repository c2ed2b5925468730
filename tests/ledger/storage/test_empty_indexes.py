"""Empty indices: their stored rows, and how they are found."""

from pathlib import Path

import pytest

from foreblock.errors import UnknownPartial
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.partial_rows import decode_numbers, made_of_key
from foreblock.ledger.storage.partials import (
    EmptyTail,
    Freshness,
    check_reachable,
    decode_freshness,
    empty_tail_of,
    partial_at,
)
from foreblock.ledger.storage.upkeep import PRUNE_HEIGHTS
from foreblock.settings import ChainSettings
from foreblock.types import Flashblock, FlashblockId
from support.chains.dev_chain import ACCOUNTS, NOBODY, DevChain, send

INTERVAL_MS = 200
BLOCK_MS = 2_000
PAGE = 4096


@pytest.fixture
def chain(tmp_path: Path) -> DevChain:
    return DevChain(tmp_path / "store")


def balances_by_place(chain: DevChain, flashblocks: list[Flashblock]) -> list[int]:
    """The balance of an account at each of these positions."""
    with chain.store.view() as view:
        found = []
        for each in flashblocks:
            partial = partial_at(view, each.block_number, each.index)
            check_reachable(view, partial)
            found.append(view.state_of_partial(partial).balance(NOBODY))
        return found


def snapshot_line(chain: DevChain) -> str:
    view = Ledger(chain.store, clock=chain.clock).view()
    try:
        return view.headers.decode()
    finally:
        view.close()


def test_a_note_comes_back_as_it_was() -> None:
    for tail in (None, EmptyTail(7, 9, 1_700_000_000 * 10**9)):
        note = Freshness(b"b" * 16, 5, tail)
        assert decode_freshness(note.encode()) == note


def test_each_empty_index_is_announced_and_found_and_none_is_a_partial(chain: DevChain) -> None:
    flashblocks = list(chain.published)
    for _ in range(4):
        flashblocks += chain.run(INTERVAL_MS)
    last = flashblocks[-1]
    assert [each.index for each in flashblocks] == [0, 1, 2, 3, 4]
    assert {each.diff.block_hash for each in flashblocks} == {last.diff.block_hash}
    assert f"pending=0x1.4:0x{last.diff.block_hash.hex()}" in snapshot_line(chain)
    with chain.store.view() as view:
        pending = view.heads.pending
        assert pending is not None
        partial = view.partial(pending)
        assert partial is not None
        assert partial.index == 0, "the first stands for all"
        assert [partial_at(view, 1, index) for index in range(5)] == [pending] * 5
        for place in ((1, 5), (2, 0), (0, 0), (1, 1 << 64), (1 << 64, 0)):
            with pytest.raises(UnknownPartial):
                partial_at(view, *place)


def test_what_happens_between_empty_indices_stands_where_it_was_announced(chain: DevChain) -> None:
    flashblocks = list(chain.published)
    for block in range(2):
        for index in range(10):
            if index in (3, 6):
                chain.submit(send(ACCOUNTS[0], 2 * block + index // 6, NOBODY, value=1))
            flashblocks += chain.run(INTERVAL_MS)
    seen = [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    expected = [*seen, *(2 + each for each in seen), 4]
    assert [(each.block_number, each.index) for each in flashblocks] == [
        *((block, index) for block in (1, 2) for index in range(11)), (3, 0),
    ]  # fmt: skip
    assert balances_by_place(chain, flashblocks) == expected
    with chain.store.view() as view:
        partials = decode_numbers(view.row(made_of_key(1)) or b"")
        found = [view.partial(number) for number in partials]
        assert [each and each.index for each in found] == [0, 4, 7]
        with pytest.raises(UnknownPartial):
            partial_at(view, 1, 11)


@pytest.mark.parametrize("runs", [1, 4, 10, 11])
def test_a_killed_writer_goes_on_after_the_last_that_was_announced(
    chain: DevChain, runs: int
) -> None:
    for _ in range(runs):
        chain.run(INTERVAL_MS)
    before, line = list(chain.published), snapshot_line(chain)
    chain.kill()
    chain.open()
    assert snapshot_line(chain) == line
    chain.run(2 * BLOCK_MS)
    places = [(each.block_number, each.index) for each in chain.published]
    assert len(set(places)) == len(places), "no place is announced twice"
    after = chain.published[len(before)]
    assert (after.block_number, after.index) in {
        (before[-1].block_number, before[-1].index + 1), (before[-1].block_number + 1, 0)
    }  # fmt: skip
    assert balances_by_place(chain, chain.published) == [0] * len(places)
    firsts = [each for each in chain.published if each.index == 0][1:]
    ends = {block: max(i for b, i in places if b == block) for block, _ in places}
    for first in firsts:
        below = first.block_number - 1
        assert first.previous == FlashblockId(below, ends[below]), "it follows the last index"


def test_the_note_is_of_one_partial_only(chain: DevChain) -> None:
    chain.run(3 * INTERVAL_MS)
    with chain.store.view() as view:
        pending = view.heads.pending
        assert pending is not None
        tail = empty_tail_of(view, pending)
        assert tail is not None
        assert tail.index == 3
        assert empty_tail_of(view, pending + 1) is None
    chain.submit(send(ACCOUNTS[0], 0))
    chain.run(INTERVAL_MS)
    with chain.store.view() as view:
        assert view.heads.pending is not None
        assert empty_tail_of(view, view.heads.pending) is None


def test_a_chain_with_faults_has_a_partial_for_each_index(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", ChainSettings(seed=3), faults=("tail=0.0001",))
    chain.run(BLOCK_MS)
    with chain.store.view() as view:
        assert len(decode_numbers(view.row(made_of_key(1)) or b"")) == 11


def test_places_go_with_the_other_rows_of_their_height(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", keep_partials=2)
    for _ in range(2 + PRUNE_HEIGHTS + 2):
        chain.run(BLOCK_MS)
    latest = chain.writer.latest.number
    with chain.store.view() as view:
        for index in (0, 4, 10):
            with pytest.raises(UnknownPartial):
                partial_at(view, 3, index)
        assert partial_at(view, latest, 10) == partial_at(view, latest, 0)


def test_an_empty_index_writes_no_page_of_the_store(chain: DevChain) -> None:
    for _ in range(3):
        chain.run(BLOCK_MS)
    chain.run(INTERVAL_MS)  # after this one the root of the first is computed
    for _ in range(5):
        before = written_bytes()
        chain.run(INTERVAL_MS)
        assert 0 < written_bytes() - before < PAGE


def written_bytes() -> int:
    """The bytes that this process has written so far."""
    io = Path("/proc/self/io").read_text("ascii")
    return next(int(line.split()[1]) for line in io.splitlines() if line.startswith("wchar"))
