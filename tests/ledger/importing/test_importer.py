"""Import whole chains: the stored data, compared with published values."""

import json
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock._engine import Block, Store
from foreblock.errors import DifferentBlock, DifferentGenesis
from foreblock.ledger.importing import importer
from foreblock.ledger.importing.importer import Imported, import_files
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import stored_profile
from support.chains import example as example_chain
from support.chains.builder import ChainBuilder
from support.chains.importing import contents, import_bytes, latest, refusing
from support.chains.long_chain import TOTAL_DIFFICULTY


def run(files: ChainFiles, data: Path) -> Imported:
    return import_files(files.genesis, files.chain, data, files.fork_choice, lambda _: None)


def test_published_chain_is_imported_with_every_root_right(
    published: ChainFiles, tmp_path: Path
) -> None:
    imported = run(published, tmp_path / "store")
    assert imported.progress.blocks == 54
    assert imported.progress.transactions == 249
    head = "d226371d0b1551adb03fb52b71f08e3e11247fe9b1af994768af8cdaa8e7dcd7"
    expected = (54, bytes.fromhex(head))
    heads = imported.heads
    assert (heads.latest, heads.safe, heads.finalized) == (expected, expected, expected)


def test_published_state_is_reached_account_by_account(
    published: ChainFiles, conformance: Path, tmp_path: Path
) -> None:
    run(published, tmp_path / "store")
    dump = json.loads((conformance / "headstate.json").read_text())
    expected = {bytes.fromhex(key[2:]): account for key, account in dump["accounts"].items()}
    with Store(str(tmp_path / "store")) as store, store.view() as view:
        state = view.state(54)
        found = dict(state.accounts(None, 1_000))
        assert found.keys() == expected.keys()
        assert len(found) == 114
        for address, account in found.items():
            published_account = expected[address]
            assert account.balance == int(published_account["balance"])
            assert account.nonce == published_account["nonce"]
            assert account.code_hash.hex() == published_account["codeHash"][2:]
            code = published_account.get("code", "0x")
            assert state.code(address).hex() == code[2:]
            slots = {
                int(slot, 16): int(value, 16)
                for slot, value in published_account.get("storage", {}).items()
            }
            assert dict(state.slots(address, None, 10_000)) == slots


def test_total_difficulty_is_kept_and_ends_at_the_merge(
    long_chain: ChainFiles, tmp_path: Path
) -> None:
    run(long_chain, tmp_path / "store")
    with Store(str(tmp_path / "store")) as store, store.view() as view:
        totals = []
        for number in range(55):
            row = view.row(rows.header_key(number))
            assert row is not None
            totals.append(rows.decode_header_row(row)[1])
    assert totals[0] == 131_072
    assert totals[35:] == [TOTAL_DIFFICULTY] * 20
    assert totals[34] < TOTAL_DIFFICULTY


def test_example_chain_is_what_the_builder_makes(example: ChainFiles, tmp_path: Path) -> None:
    """If they differ, `python tests/support/chains/example.py` generates the files again."""
    blocks = example_chain.build(tmp_path).blocks
    assert example.items() == [block.encode() for block in blocks]
    assert example.fork_choice.read_bytes() == example_chain.fork_choice(blocks)


def test_example_chain_is_imported(example: ChainFiles, tmp_path: Path) -> None:
    imported = run(example, tmp_path / "store")
    heads = imported.heads
    assert heads.latest is not None
    assert heads.safe is not None
    assert heads.finalized is not None
    assert (heads.latest[0], heads.safe[0], heads.finalized[0]) == (12, 11, 10)


def test_every_block_and_transaction_is_found_by_hash(example: ChainFiles, tmp_path: Path) -> None:
    run(example, tmp_path / "store")
    blocks = example_chain.build(tmp_path / "built").blocks
    with Store(str(tmp_path / "store")) as store, store.view() as view:
        state = view.state(12)
        for block in blocks:
            entry = state.index(rows.block_index_key(block.hash))
            assert entry is not None
            assert rows.decode_block_entry(entry) == block.header.number
            body_row = view.row(rows.body_key(block.header.number))
            assert body_row is not None
            body = rows.decode_body(body_row)
            assert body.transactions == block.transactions
            assert body.uncles == block.uncles
            assert body.withdrawals == block.withdrawals
        assert state.index(rows.block_index_key(bytes(32))) is None


def test_index_of_an_earlier_state_does_not_know_later_blocks(
    example: ChainFiles, tmp_path: Path
) -> None:
    run(example, tmp_path / "store")
    with Store(str(tmp_path / "store")) as store, store.view() as view:
        sealed = view.sealed(7)
        assert sealed is not None
        assert view.state(6).index(rows.block_index_key(sealed[0])) is None
        assert view.state(7).index(rows.block_index_key(sealed[0])) is not None


def test_profile_of_a_stored_chain_can_be_read_back(example: ChainFiles, tmp_path: Path) -> None:
    run(example, tmp_path / "store")
    with Store(str(tmp_path / "store")) as store, store.view() as view:
        assert stored_profile(view).chain_id == 1337


def test_importing_twice_changes_nothing(example: ChainFiles, tmp_path: Path) -> None:
    run(example, tmp_path / "store")
    before = list(contents(tmp_path / "store"))
    again = run(example, tmp_path / "store")
    assert (again.progress.blocks, again.progress.skipped) == (0, 12)
    assert list(contents(tmp_path / "store")) == before


@pytest.mark.parametrize("blocks_per_commit", [1, 5, 64])
def test_how_often_an_import_commits_makes_no_difference(
    example: ChainFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    blocks_per_commit: int,
) -> None:
    run(example, tmp_path / "once")
    monkeypatch.setattr(importer, "BLOCKS_PER_COMMIT", blocks_per_commit)
    run(example, tmp_path / "often")
    assert list(contents(tmp_path / "often")) == list(contents(tmp_path / "once"))


def test_chain_may_come_in_parts_that_overlap(example: ChainFiles, tmp_path: Path) -> None:
    items = example.items()
    genesis = example.genesis.read_bytes()
    run(example, tmp_path / "whole")
    for start, end in ((0, 4), (2, 4), (4, 7), (5, 12)):
        import_bytes(tmp_path / "parts", genesis, b"".join(items[start:end]))
    import_bytes(tmp_path / "parts", genesis, b"", example.fork_choice.read_bytes())
    assert list(contents(tmp_path / "parts")) == list(contents(tmp_path / "whole"))


def test_file_may_begin_with_the_genesis_block(example: ChainFiles, tmp_path: Path) -> None:
    import_bytes(tmp_path / "store", example.genesis.read_bytes(), b"")
    with Store(str(tmp_path / "store")) as store, store.view() as view:
        row = view.row(rows.header_key(0))
    assert row is not None
    header, _ = rows.decode_header_row(row)
    block_zero = Block(header).encode()
    chain = block_zero + example.chain.read_bytes()
    progress = import_bytes(tmp_path / "store", example.genesis.read_bytes(), chain)
    assert (progress.skipped, progress.blocks) == (1, 12)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda genesis: genesis.update(timestamp="0x1"), "header"),
        (lambda genesis: genesis["alloc"].update({"0x" + "99" * 20: {"balance": "1"}}), "accounts"),
        (lambda genesis: genesis["config"].update(chainId=7), "chain id"),
        (lambda genesis: genesis["config"].update(osakaTime=99), "forks by time"),
    ],
)
def test_store_refuses_another_genesis(
    example: ChainFiles, tmp_path: Path, change: object, what: str
) -> None:
    run(example, tmp_path / "store")
    genesis = json.loads(example.genesis.read_bytes())
    assert callable(change)
    change(genesis)
    with refusing(DifferentGenesis) as caught:
        import_bytes(tmp_path / "store", json.dumps(genesis).encode(), example.chain.read_bytes())
    assert isinstance(caught.value, DifferentGenesis)
    assert caught.value.what == what
    assert latest(tmp_path / "store") == 12


def test_genesis_written_differently_is_the_same(example: ChainFiles, tmp_path: Path) -> None:
    run(example, tmp_path / "store")
    genesis = json.loads(example.genesis.read_bytes())
    genesis["alloc"] = {
        address.removeprefix("0x").upper(): account | {"balance": hex(int(account["balance"], 0))}
        for address, account in reversed(genesis["alloc"].items())
    }
    text = json.dumps(genesis).encode()
    assert import_bytes(tmp_path / "store", text, example.chain.read_bytes()).skipped == 12


def test_store_refuses_another_chain_of_the_same_genesis(
    example: ChainFiles, tmp_path: Path
) -> None:
    genesis = example.genesis.read_bytes()
    run(example, tmp_path / "store")
    other = ChainBuilder(tmp_path / "other", genesis)
    other.add(extra_data=b"other")
    with refusing(DifferentBlock) as caught:
        import_bytes(tmp_path / "store", genesis, other.blocks[0].encode())
    assert isinstance(caught.value, DifferentBlock)
    assert caught.value.number == 1
    assert latest(tmp_path / "store") == 12
