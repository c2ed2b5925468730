"""The rows of templates: a round trip of values; anything else is damage."""

from pathlib import Path

import pytest

from foreblock._engine import Store
from foreblock.errors import StoreDamaged
from foreblock.ledger.following.call_templates import (
    TEMPLATES,
    Data,
    Pair,
    Sender,
    SlotRule,
    Target,
    Word,
    put_templates,
    read_templates,
)

KIND, OTHER = (b"\xc0" * 32, b"\x01\x02\x03\x04"), (b"\xc1" * 32, b"\x01\x02\x03\x04")
NESTED = Pair(Data(4, 20), Pair(Sender(), Word(bytes(32))))
RULES = [SlotRule(Target(), NESTED, 0), SlotRule(Word(b"\x09" * 32), NESTED.right, 3)]  # type: ignore[arg-type]


def test_what_is_put_is_read(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        put_templates(store, {KIND: RULES, OTHER: RULES[:1]}, [])
        with store.view() as view:
            assert read_templates(view) == {KIND: RULES, OTHER: RULES[:1]}
        put_templates(store, {}, [OTHER])
        put_templates(store, {}, [])
    with Store(str(tmp_path / "store"), write=True) as store, store.view() as view:
        assert read_templates(view) == {KIND: RULES}


@pytest.mark.parametrize(
    "row", [(TEMPLATES + bytes(36), b"what"), (TEMPLATES + bytes(35), b"\x90")]
)
def test_anything_else_is_damage(tmp_path: Path, row: tuple[bytes, bytes]) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        store.put_rows([row], [])
        with store.view() as view, pytest.raises(StoreDamaged, match="template"):
            read_templates(view)
