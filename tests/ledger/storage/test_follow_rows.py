"""Rows of followed chains: a round trip of values; anything else is damage."""

from pathlib import Path

import pytest

from foreblock._engine import Store
from foreblock.errors import StoreDamaged
from foreblock.ledger.storage.follow_rows import (
    TRUST,
    WORKING_SET,
    Trust,
    may_go_on,
    put_trust,
    put_working_set,
    read_trust,
    read_working_set,
)

A, B = b"\xaa" * 20, b"\xbb" * 20
LARGE = (1 << 256) - 1


def test_what_is_put_is_read(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        with store.view() as view:
            assert read_working_set(view) == {}
        put_working_set(store, {A: (7, (1, LARGE, 0)), B: (8, ())}, [])
        with store.view() as view:
            assert read_working_set(view) == {A: (7, (1, LARGE, 0)), B: (8, ())}
        put_working_set(store, {B: (9, (2,))}, [A])
    with Store(str(tmp_path / "store"), write=True) as store, store.view() as view:
        assert read_working_set(view) == {B: (9, (2,))}


@pytest.mark.parametrize(
    "row",
    [
        (WORKING_SET + A, b"short"),
        (WORKING_SET + A, bytes(8 + 31)),
        (WORKING_SET + A[1:], bytes(8)),
    ],
)
def test_anything_else_is_damage(tmp_path: Path, row: tuple[bytes, bytes]) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        store.put_rows([row], [])
        with store.view() as view, pytest.raises(StoreDamaged, match="hot account"):
            read_working_set(view)


LEVELS: tuple[Trust, ...] = ("proven", "audited", "trusted")


def test_what_is_put_is_read_and_nothing_means_proven(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        with store.view() as view:
            assert read_trust(view) == "proven"
        for level in LEVELS:
            put_trust(store, level)
            with store.view() as view:
                assert read_trust(view) == level


def test_any_other_trust_is_damage(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        store.put_rows([(TRUST, b"hoped")], [])
        with store.view() as view, pytest.raises(StoreDamaged, match="hoped"):
            read_trust(view)


@pytest.mark.parametrize("stored", LEVELS)
def test_what_was_believed_is_good_for_who_believes_only(stored: Trust) -> None:
    assert may_go_on(stored, "trusted")
    assert may_go_on(stored, "proven") == may_go_on(stored, "audited") == (stored == "proven")
