from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import ChainFiles
from foreblock._engine import Store, View
from foreblock.errors import (
    NoChain,
    NoSuchHead,
    PrunedState,
    StoreMissing,
    UnknownBlock,
    UnknownBlockHash,
    UnknownPartial,
)
from foreblock.ledger.reading import blocks as known_blocks
from foreblock.ledger.reading.blocks import ByHash, ByIndex, KnownBlocks
from foreblock.ledger.reading.events import Cursor, read_cursor
from foreblock.ledger.reading.view import Ledger
from support.chains.importing import import_bytes
from support.chains.preconfirming import PreconfirmingChain
from support.each_case import each_case


@pytest.fixture
def folder(tmp_path: Path, example: ChainFiles) -> Path:
    """The example chain: 12 blocks without a safe one."""
    import_bytes(tmp_path / "store", example.genesis.read_bytes(), example.chain.read_bytes())
    return tmp_path / "store"


@pytest.fixture
def ledger(folder: Path) -> Iterator[Ledger]:
    found = Ledger.open(str(folder))
    yield found
    found.close()


def test_blocks_are_found_by_number_tag_and_hash(ledger: Ledger) -> None:
    view = ledger.view()
    latest = view.resolve("latest")
    assert latest.number == 12
    assert view.resolve(12) is latest
    assert view.resolve("pending") is latest
    assert view.resolve(ByHash(latest.hash)) is latest
    assert view.resolve("earliest").number == 0
    assert view.resolve(ByHash(view.resolve(3).hash)).number == 3


def test_what_is_not_there_is_said(ledger: Ledger) -> None:
    view = ledger.view()
    for number in (13, 2**63 - 1, 2**64):
        with pytest.raises(UnknownBlock):
            view.resolve(number)
    with pytest.raises(UnknownBlockHash):
        view.resolve(ByHash(bytes(32)))
    with pytest.raises(UnknownPartial):
        view.resolve(ByIndex(12, 0))


def test_chain_without_fork_choice_has_no_safe_block(ledger: Ledger) -> None:
    view = ledger.view()
    with pytest.raises(NoSuchHead, match="there is no safe block"):
        view.resolve("safe")
    with pytest.raises(NoSuchHead, match="there is no finalized block"):
        view.resolve("finalized")


def test_rules_of_every_block_are_those_it_was_imported_under(ledger: Ledger) -> None:
    view = ledger.view()
    forks = [view.resolve(number).rules.engine_name for number in range(13)]
    assert forks[1] == "ethereum:Homestead"
    assert forks[5] == "ethereum:London"
    assert forks[6] == "ethereum:Paris"
    assert forks[12] == "ethereum:Osaka"


def test_pruned_state_is_an_error_and_its_block_is_not(tmp_path: Path, folder: Path) -> None:
    del tmp_path
    with Store(str(folder), write=True, keep_states=4, keep_partials=2) as store:
        while store.maintain(10_000):
            pass
        view = Ledger(store).view()
        assert view.resolve("earliest").number == 8
        assert view.state(view.resolve(8)).balance(bytes(20)) >= 0
        with pytest.raises(PrunedState):
            view.state(view.resolve(7))
        view.close()


def test_folder_without_a_store_or_a_chain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        Ledger.open(str(tmp_path / "nothing"))
    Store(str(tmp_path / "empty"), write=True).close()
    with pytest.raises(NoChain, match="holds no chain yet"):
        Ledger.open(str(tmp_path / "empty"))
    Store(str(tmp_path / "empty"), write=True).close()  # already closed


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    """Two sealed blocks above genesis, with two indices each."""
    found = PreconfirmingChain(tmp_path / "store")
    for _ in range(3):
        found.begin()
        found.extend([found.pay()])
    yield found
    found.close()


def test_values_of_blocks_are_kept_within_bounds(
    chain: PreconfirmingChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_blocks, "KEPT_BLOCKS", 2)
    known = KnownBlocks(chain.writer.profile)
    with chain.store.view() as view:
        first = known.sealed(view, 0, hash_of(view, 0))
        for number in (0, 1, 2, 1, 0):
            block = known.sealed(view, number, hash_of(view, number))
            assert (block.number, block.hash) == (number, hash_of(view, number))
            assert known.sealed(view, number, block.hash) is block
        assert block is not first, "it was dropped, and read again"
        assert view.heads.pending is not None
        there = [at for at in range(1, view.heads.pending + 1) if view.partial(at) is not None]
        partials = [known.partial(view, at) for at in there]
        assert [each.partial for each in partials] == there
        assert known.partial(view, there[-1]) is partials[-1]
        assert known.partial(view, there[0]) is not partials[0]


def hash_of(view: View, number: int) -> bytes:
    sealed = view.sealed(number)
    assert sealed is not None
    return sealed[0]


NUMBERS = st.integers(0, (1 << 64) - 1)
HASHES = st.binary(min_size=32, max_size=32)
SEEN = st.none() | NUMBERS
CURSORS = st.one_of(
    st.builds(lambda number, name, seen: Cursor(number, name, seen=seen), NUMBERS, HASHES, SEEN),
    st.builds(Cursor, NUMBERS, HASHES, NUMBERS, NUMBERS, SEEN),
)


@given(CURSORS)
def test_text_says_all(cursor: Cursor) -> None:
    assert read_cursor(cursor.text) == cursor


@given(st.text() | CURSORS.map(lambda each: each.text.upper() + " "))
def test_other_texts_are_no_cursors(text: str) -> None:
    found = read_cursor(text)
    assert found is None or found.text == text


HASH = "ab" * 32


@each_case(
    "text",
    [
        "", "1", f"1.{HASH[:-1]}", f"01.{HASH}", f"1.{HASH}.2", f"1.{HASH}.2.3.4", f"1.{HASH}+",
        f"1.{HASH}+-1", f"-1.{HASH}", f"1.{HASH.upper()}", f"1.{HASH}\n",
        f"1{'0' * 16}.{HASH}", f"\u0661.{HASH}",
    ],
)  # fmt: skip
def test_near_misses_are_refused(text: str) -> None:
    assert read_cursor(text) is None
