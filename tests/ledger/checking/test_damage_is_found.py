"""Each kind of damage is found at its position, and named by table and key."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock._engine import Store
from foreblock.errors import StoreDamaged
from foreblock.ledger.checking.block_check import Damage
from foreblock.ledger.checking.check_store import check_store
from foreblock.ledger.storage import partial_rows, rows
from support.chains.checked_chains import CONTRACT, WRITES, busy_chain
from support.chains.importing import import_bytes
from support.store_damage import Tables, damaging


def found(folder: Path) -> list[Damage]:
    damages: list[Damage] = []
    try:
        check_store(str(folder), damages.append, lambda *_: None)
    except StoreDamaged as why:  # the store cannot even be opened
        damages.append(Damage("meta", b"heads", str(why)))
    return damages


@dataclass(frozen=True)
class Stores:
    """Undamaged stores, to be copied."""

    dev: Path
    imported: Path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, published: ChainFiles) -> Stores:
    folder = tmp_path_factory.mktemp("stores")
    chain = busy_chain(folder / "dev")
    chain.run(500)
    chain.kill()
    genesis, blocks = published.genesis.read_bytes(), published.chain.read_bytes()
    import_bytes(folder / "imported", genesis, blocks)
    assert found(folder / "dev") == found(folder / "imported") == []
    return Stores(folder / "dev", folder / "imported")


def starts(prefix: bytes) -> Callable[[bytes, bytes], bool]:
    return lambda key, value: key.startswith(prefix) and bool(value)


def number(key: bytes) -> int:
    return int.from_bytes(key[1:9])


# --- Damage to a store; each function returns the key of the row -------------------------


def flip_a_node(tables: Tables) -> bytes:
    """Flip a bit of the newest version of the last node: leaves of the account trie are not
    short.
    """
    keys = [key for key, node in tables["nodes"].items() if key[0] == 0 and node]
    newest = next(key for key in keys if key[:-8] == keys[-1][:-8])
    return tables["nodes"].flip(lambda key, _: key == newest)


def flip_an_old_node(tables: Tables) -> bytes:
    """Flip a bit of an older version of the root of the account trie."""
    versions = [key for key, _ in tables["nodes"].items() if key[:2] == b"\0\0"]
    return tables["nodes"].flip(lambda key, _: key == versions[1])


def flip_a_node_of_storage(tables: Tables) -> bytes:
    keys = [key for key, node in tables["nodes"].items() if key[:21] == b"\1" + CONTRACT and node]
    return tables["nodes"].flip(lambda key, _: key == keys[0])


def remove_a_node(tables: Tables) -> bytes:
    return tables["nodes"].remove(lambda key, node: key[:2] == b"\0\1" and len(node) > 40)


def remove_a_code(tables: Tables) -> bytes:
    return tables["codes"].remove(lambda _, code: code == WRITES)


def change_a_code(tables: Tables) -> bytes:
    return tables["codes"].flip(lambda _, code: code == WRITES)


def change_a_balance(tables: Tables) -> bytes:
    return tables["flat"].flip(starts(b"a" + CONTRACT))


def change_a_slot(tables: Tables) -> bytes:
    return tables["flat"].flip(_newest_slot(tables))


def remove_a_slot(tables: Tables) -> bytes:
    return tables["flat"].remove(_newest_slot(tables))


def _newest_slot(tables: Tables) -> Callable[[bytes, bytes], bool]:
    newest = next(key for key, _ in tables["flat"].items() if key.startswith(b"s" + CONTRACT))
    return lambda key, _: key == newest


def change_an_old_balance(tables: Tables) -> bytes:
    """Change a version that only older states have."""
    flat = tables["flat"].items()
    same = [key for key, value in flat if key[:1] == b"a" and value]
    older = [key for key, next_ in zip(same[1:], same, strict=False) if key[:21] == next_[:21]]
    return tables["flat"].flip(lambda key, _: key == older[0])


def change_kept_changes(tables: Tables) -> bytes:
    """Change the last entry of the oldest kept delta."""
    sealed = [value[32:] for _, value in tables["sealed"].items()][-5]
    tables["deltas"].flip(lambda key, _: key[:8] == sealed)
    return sealed


def remove_kept_changes(tables: Tables) -> bytes:
    sealed = [value[32:] for _, value in tables["sealed"].items()][-5]
    return tables["deltas"].remove(lambda key, _: key[:8] == sealed)[:8]


def remove_a_body(tables: Tables) -> bytes:
    return tables["rows"].remove(starts(b"B"))


def remove_transactions_of_a_flashblock(tables: Tables) -> bytes:
    return tables["rows"].remove(_of_sealed(tables, b"t"))


def change_a_transaction(tables: Tables) -> bytes:
    return tables["rows"].flip(_of_sealed(tables, b"t"))


def change_a_header(tables: Tables) -> bytes:
    return tables["rows"].flip(starts(b"H"), 60)


def change_a_total_difficulty(tables: Tables) -> bytes:
    return tables["rows"].flip(starts(b"H"), 31)


def swap_headers(tables: Tables) -> bytes:
    """Store a valid header of another block."""
    (_, first), (last, _) = [row for row in tables["rows"].items() if row[0][:1] == b"H"][-2:]
    return tables["rows"].put(last, first)


def change_a_receipt(tables: Tables) -> bytes:
    return tables["rows"].flip(lambda key, value: key[:1] == b"R" and len(value) > 300)


def change_a_receipt_of_a_flashblock(tables: Tables) -> bytes:
    return tables["rows"].flip(_of_sealed(tables, b"r"))


def change_a_sender(tables: Tables) -> bytes:
    return tables["rows"].flip(starts(b"s"), 0)


def change_totals_before_a_flashblock(tables: Tables) -> bytes:
    return tables["rows"].flip(_of_sealed(tables, b"s"))


def remove_a_transaction_from_its_index(tables: Tables) -> bytes:
    return tables["flat"].remove(starts(b"i\x21t"))[:-8]


def change_a_transaction_in_its_index(tables: Tables) -> bytes:
    return tables["flat"].flip(starts(b"i\x21t"))[:-8]


def remove_a_block_from_its_index(tables: Tables) -> bytes:
    return tables["flat"].remove(starts(b"i\x21b"))[:-8]


def remove_the_row_of_a_hash(tables: Tables) -> bytes:
    sealed = tables["sealed"].items()[-3][1][:32]
    return tables["rows"].remove(starts(b"h" + sealed))


def remove_a_section_of_logs(tables: Tables) -> bytes:
    return tables["rows"].remove(starts(b"L\0"))[:10]


def change_a_section_of_logs(tables: Tables) -> bytes:
    return tables["rows"].flip(starts(b"L\0"))[:10]


def change_the_latest_hash(tables: Tables) -> bytes:
    heads = tables[""].find(lambda key, _: key == b"heads")[1]
    latest = tables["sealed"].items()[-1][1][:32]
    at = heads.index(latest)
    return tables[""].put(b"heads", heads[:at] + bytes(32) + heads[at + 32 :])


def move_latest_down(tables: Tables) -> bytes:
    """Let the heads name a block that is not the highest."""
    heads = tables[""].find(lambda key, _: key == b"heads")[1]
    (below, old), (last, new) = tables["sealed"].items()[-2:]
    whole, wrong = b"\1" + last + new[:32], b"\1" + below + old[:32]
    assert whole in heads
    return tables[""].put(b"heads", heads.replace(whole, wrong))


def move_latest_far_up(tables: Tables) -> bytes:
    """Too far to check block by block up to there."""
    heads = tables[""].find(lambda key, _: key == b"heads")[1]
    last, row = tables["sealed"].items()[-1]
    far = b"\x0f" + last[1:]
    wrong = heads.replace(b"\1" + last + row[:32], b"\1" + far + row[:32])
    assert wrong != heads
    return tables[""].put(b"heads", wrong)


def change_a_sealed_hash(tables: Tables) -> bytes:
    return b"H" + tables["sealed"].flip(lambda key, _: int.from_bytes(key) == 5, 0)


def remove_a_sealed_block(tables: Tables) -> bytes:
    return b"H" + tables["sealed"].remove(lambda key, _: int.from_bytes(key) == 5)


def change_what_a_flashblock_would_seal_as(tables: Tables) -> bytes:
    key, value = _pending(tables)
    row = partial_rows.seals_as_key(number(key), int.from_bytes(value))
    tables["rows"].flip(lambda found, _: found == row, 0)
    return key


def change_the_header_of_a_flashblock(tables: Tables) -> bytes:
    key, value = _pending(tables)
    row = partial_rows.partial_key(number(key), int.from_bytes(value))
    tables["rows"].flip(lambda found, _: found == row, -40)
    return key


def change_the_config(tables: Tables) -> bytes:
    return tables["rows"].put(rows.CONFIG, b"{")


def _pending(tables: Tables) -> tuple[bytes, bytes]:
    """A flashblock whose sealed form is known."""
    known = {key[1:17] for key, _ in tables["rows"].items() if key[:1] + key[-1:] == b"pw"}
    return tables["rows"].find(lambda key, value: key[:1] == b"P" and key[1:9] + value in known)


def _of_sealed(tables: Tables, kind: bytes) -> Callable[[bytes, bytes], bool]:
    """Rows of flashblocks with transactions, of sealed blocks."""
    made = [row for row in tables["rows"].items() if row[0][:1] == b"S"][:-5]
    keys = {
        b"p" + key[1:] + value[at : at + 8] + kind
        for key, value in made
        for at in range(0, len(value), 8)
    }
    return lambda key, value: key in keys and len(value) > 20


DEV = {
    flip_a_node: "nodes", flip_an_old_node: "nodes", flip_a_node_of_storage: "nodes",
    remove_a_node: "nodes", remove_a_code: "flat", change_a_code: "codes",
    change_a_balance: "flat", change_a_slot: "flat", remove_a_slot: "flat",
    change_an_old_balance: "flat", remove_kept_changes: "deltas",
    change_kept_changes: "flat deltas",
    remove_transactions_of_a_flashblock: "rows", change_a_transaction: "rows",
    change_a_header: "rows", swap_headers: "rows", change_a_receipt_of_a_flashblock: "rows",
    change_totals_before_a_flashblock: "rows", remove_a_transaction_from_its_index: "flat",
    change_a_transaction_in_its_index: "flat", remove_the_row_of_a_hash: "rows",
    remove_a_section_of_logs: "rows", change_a_section_of_logs: "rows",
    change_the_latest_hash: "meta", move_latest_down: "meta", change_a_sealed_hash: "rows",
    move_latest_far_up: "meta",
    remove_a_sealed_block: "rows", change_what_a_flashblock_would_seal_as: "rows",
    change_the_header_of_a_flashblock: "rows", change_the_config: "rows",
}  # fmt: skip
IMPORTED = {
    flip_a_node: "nodes", remove_a_node: "nodes", remove_a_body: "rows",
    change_a_header: "rows", change_a_total_difficulty: "rows", change_a_receipt: "rows",
    change_a_sender: "rows", remove_a_block_from_its_index: "flat",
    remove_a_transaction_from_its_index: "flat", change_kept_changes: "flat deltas",
    remove_a_section_of_logs: "rows", change_an_old_balance: "flat",
}  # fmt: skip
CASES = [
    pytest.param(name, spoil, table, id=f"{name}-{spoil.__name__}")
    for name, kinds in (("dev", DEV), ("imported", IMPORTED))
    for spoil, table in kinds.items()
]


@pytest.mark.parametrize(("name", "spoil", "table"), CASES)
def test_damage_is_named(
    stores: Stores, tmp_path: Path, name: str, spoil: Callable[[Tables], bytes], table: str
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(getattr(stores, name), folder)
    with damaging(folder) as tables:
        key = spoil(tables)
    damages = found(folder)
    of_table = [each for each in damages if each.table in table.split()]
    assert of_table, damages
    if spoil is remove_a_code:  # named by the accounts that have it
        assert any(key.hex() in each.why for each in of_table)
    elif spoil is change_kept_changes:  # named by the entry that differs
        delta = f"delta {int.from_bytes(key)} says"
        assert any(delta in each.why or each.key == key for each in of_table)
    else:
        assert any(_is_near(each.key, key) for each in of_table), (key, of_table)


def _is_near(told: bytes, key: bytes) -> bool:
    """Return whether a key is that of the row, with or without the block of its version."""
    return bool(told) and (told.startswith(key) or key.startswith(told) or key[:-8] == told[:-8])


def test_heads_that_cannot_be_read_are_refused(stores: Stores, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    shutil.copytree(stores.dev, folder)
    with damaging(folder) as tables:
        tables[""].put(b"heads", b"\1")
    with pytest.raises(StoreDamaged):
        Store(str(folder))
    assert found(folder)


def test_a_copy_without_damage_has_none(stores: Stores, tmp_path: Path) -> None:
    """Copying and opening does no harm by itself."""
    for name in ("dev", "imported"):
        folder = tmp_path / name
        shutil.copytree(getattr(stores, name), folder)
        with damaging(folder) as tables:
            for table in ("flat", "nodes", "rows"):
                tables[table].put(*tables[table].items()[0])
        assert found(folder) == []
