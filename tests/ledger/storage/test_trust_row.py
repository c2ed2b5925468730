"""The row that says how a base was learned, and what may go on from it."""

from pathlib import Path

import pytest

from foreblock._engine import Store
from foreblock.errors import StoreDamaged
from foreblock.ledger.storage.follow_rows import TRUST, Trust, may_go_on, put_trust, read_trust

LEVELS: tuple[Trust, ...] = ("proven", "audited", "trusted")


def test_what_is_put_is_read_and_nothing_means_proven(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        with store.view() as view:
            assert read_trust(view) == "proven"
        for level in LEVELS:
            put_trust(store, level)
            with store.view() as view:
                assert read_trust(view) == level


def test_anything_else_is_damage(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        store.put_rows([(TRUST, b"hoped")], [])
        with store.view() as view, pytest.raises(StoreDamaged, match="hoped"):
            read_trust(view)


@pytest.mark.parametrize("stored", LEVELS)
def test_what_was_believed_is_good_for_who_believes_only(stored: Trust) -> None:
    assert may_go_on(stored, "trusted")
    assert may_go_on(stored, "proven") == may_go_on(stored, "audited") == (stored == "proven")
