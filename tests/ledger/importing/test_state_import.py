"""A store begun from a state dump equals that of the dumped chain, and continues it."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock._engine import Header, StateImport, Store, decode_block
from foreblock.errors import (
    BadBlock,
    BadState,
    DifferentGenesis,
    HeaderOnly,
    NoChain,
    StoreExists,
    StoreMissing,
    UnknownBlock,
)
from foreblock.ledger.checking.block_check import Damage
from foreblock.ledger.checking.check_store import check_store
from foreblock.ledger.importing.chain_files import read_items
from foreblock.ledger.importing.importer import import_chain, import_files
from foreblock.ledger.importing.state_import import (
    ImportedState,
    ImportStart,
    config_of_genesis,
    import_state,
)
from foreblock.ledger.reading.blocks import SealedBlock
from foreblock.ledger.reading.logs import number_range
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.chain_head import FirstBlock, read_header
from foreblock.ledger.storage.inspect_store import dump_state, dump_store
from support.chains.importing import import_bytes
from support.chains.long_chain import HEAD, MERGED_AT


def ignore_progress(*_: object) -> None:
    """Ignore progress reports."""


@pytest.fixture
def whole(long_chain: ChainFiles, tmp_path: Path) -> Path:
    """A store with all blocks and states of the long chain."""
    import_bytes(tmp_path / "whole", long_chain.genesis.read_bytes(), long_chain.chain.read_bytes())
    return tmp_path / "whole"


@pytest.fixture
def headers(long_chain: ChainFiles) -> list[Header]:
    """Headers of blocks 1 to the last."""
    return [decode_block(item, 0)[0].header for item in long_chain.items()]


def dumped(store: Path, block: int | None) -> bytes:
    out = io.BytesIO()
    dump_store(store, block, out, ignore_progress)
    return out.getvalue()


def begin(
    long_chain: ChainFiles, headers: list[Header], whole: Path, data: Path, block: int
) -> ImportedState:
    """Begin a store with the state after a block of the other."""
    dump = data.with_suffix(".jsonl")
    dump.write_bytes(dumped(whole, block))
    config = config_of_genesis(long_chain.genesis.read_bytes())
    genesis, _ = stored(whole, 0)
    _, difficulty = stored(whole, block)
    beginning = ImportStart([genesis, *headers[:block]], difficulty, config)
    return import_state(dump, beginning, data, ignore_progress, memory=1 << 14)


def stored(whole: Path, number: int) -> tuple[Header, int]:
    """A header of the long chain, and its total difficulty."""
    with Store(str(whole)) as store, store.view() as view:
        return read_header(view, number)


@contextmanager
def leaving_nothing(folder: Path) -> Iterator[None]:
    before = sorted(folder.iterdir())
    yield
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("block", [1, 20, MERGED_AT, 44, HEAD])
def test_chain_goes_on_from_an_imported_state(
    long_chain: ChainFiles, headers: list[Header], whole: Path, tmp_path: Path, block: int
) -> None:
    data = tmp_path / "begun"
    imported = begin(long_chain, headers, whole, data, block)
    assert imported.heads.latest == (block, headers[block - 1].hash)
    assert dumped(data, None) == dumped(whole, block)

    rest = tmp_path / "rest.rlp"
    rest.write_bytes(b"".join(long_chain.items()[block:]))
    done = import_files(None, rest, data, None, ignore_progress, address_index=True)
    assert done.progress.blocks == HEAD - block
    assert done.heads.latest == (HEAD, headers[-1].hash)
    assert dumped(data, None) == dumped(whole, None)
    found: list[Damage] = []
    checked = check_store(str(data), found.append, ignore_progress)
    assert found == []
    assert checked.blocks == HEAD - block + 1


def test_every_kept_block_can_be_dumped(whole: Path, headers: list[Header]) -> None:
    with Store(str(whole)) as store, store.view() as view:
        for block in range(1, HEAD + 1):
            out = io.BytesIO()
            done = dump_state(view, block, out)
            first, *lines = out.getvalue().splitlines()
            assert json.loads(first) == {"root": f"0x{headers[block - 1].state_root.hex()}"}
            addresses = [json.loads(line)["address"] for line in lines]
            assert addresses == sorted(addresses)
            assert len(addresses) == done.accounts > 0
        with pytest.raises(UnknownBlock):
            dump_state(view, HEAD + 1, io.BytesIO())


def test_blockhash_reaches_below_the_first_block(
    long_chain: ChainFiles, headers: list[Header], whole: Path, tmp_path: Path
) -> None:
    begin(long_chain, headers, whole, tmp_path / "begun", 44)
    with Store(str(tmp_path / "begun")) as store, store.view() as view:
        state = view.state(44)
        for number in range(1, 45):
            assert state.block_hash(number) == headers[number - 1].hash
        assert view.sealed(43) is None


def test_history_contract_knows_the_hashes_that_no_header_gives(
    long_chain: ChainFiles, headers: list[Header], whole: Path, tmp_path: Path
) -> None:
    """Prague begins at block 45, so the contract has the hashes from 44 on."""
    dump = tmp_path / "state.jsonl"
    dump.write_bytes(dumped(whole, 54))
    config = config_of_genesis(long_chain.genesis.read_bytes())
    few = ImportStart(headers[:43] + headers[53:], None, config)
    with pytest.raises(BadState, match="does not follow"):
        import_state(dump, few, tmp_path / "begun", ignore_progress)
    alone = ImportStart(headers[53:], None, config)
    with leaving_nothing(tmp_path), pytest.raises(BadState, match="the hash of block 43"):
        import_state(dump, alone, tmp_path / "begun", ignore_progress)


def test_headers_are_needed_where_the_state_has_no_hashes(
    long_chain: ChainFiles, headers: list[Header], whole: Path, tmp_path: Path
) -> None:
    config = config_of_genesis(long_chain.genesis.read_bytes())
    dump = tmp_path / "state.jsonl"
    dump.write_bytes(dumped(whole, 44))
    alone = ImportStart(headers[43:44], None, config)
    with leaving_nothing(tmp_path), pytest.raises(BadState, match="headers of blocks 0 to 44"):
        import_state(dump, alone, tmp_path / "begun", ignore_progress)


def test_mined_block_needs_its_total_difficulty(
    long_chain: ChainFiles, headers: list[Header], tmp_path: Path
) -> None:
    config = config_of_genesis(long_chain.genesis.read_bytes())
    beginning = ImportStart(headers[:20], None, config)
    with leaving_nothing(tmp_path), pytest.raises(BadState, match="total difficulty"):
        import_state(tmp_path / "none", beginning, tmp_path / "begun", ignore_progress)


def test_refused_dump_leaves_nothing(
    long_chain: ChainFiles, headers: list[Header], whole: Path, tmp_path: Path
) -> None:
    lines = dumped(whole, HEAD).splitlines(keepends=True)
    account = json.loads(lines[5])
    account["balance"] = hex(int(account["balance"], 16) + 1)
    broken = {
        "line 6: the dump ends": b"".join(lines[:5]) + lines[5][:40],
        "the accounts have the root": b"".join(lines[:-1]),
        "the header": dumped(whole, HEAD - 1),
        "the accounts have the root 0x": b"".join(
            [*lines[:5], json.dumps(account).encode() + b"\n", *lines[6:]]
        ),
        "stands twice": b"".join([*lines, lines[5]]),
    }
    config = config_of_genesis(long_chain.genesis.read_bytes())
    beginning = ImportStart([stored(whole, 0)[0], *headers], None, config)
    dump = tmp_path / "state.jsonl"
    for match, text in broken.items():
        dump.write_bytes(text)
        with leaving_nothing(tmp_path), pytest.raises(BadState, match=match):
            import_state(dump, beginning, tmp_path / "begun", ignore_progress)


def test_interrupted_import_leaves_nothing(
    long_chain: ChainFiles, headers: list[Header], whole: Path, tmp_path: Path
) -> None:
    dump = tmp_path / "state.jsonl"
    dump.write_bytes(dumped(whole, HEAD))
    config = config_of_genesis(long_chain.genesis.read_bytes())
    beginning = ImportStart([stored(whole, 0)[0], *headers], None, config)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with leaving_nothing(tmp_path), pytest.raises(KeyboardInterrupt):
        import_state(dump, beginning, tmp_path / "begun", interrupt)


def test_folder_with_something_in_it_is_left_alone(
    long_chain: ChainFiles, headers: list[Header], whole: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoreExists):
        begin(long_chain, headers, whole, whole, HEAD)
    empty = tmp_path / "empty"
    empty.mkdir()
    begin(long_chain, headers, whole, empty, HEAD)
    assert dumped(empty, None) == dumped(whole, None)


def test_all_stages_are_reported(headers: list[Header], whole: Path, tmp_path: Path) -> None:
    dump = tmp_path / "state.jsonl"
    dump.write_bytes(dumped(whole, HEAD))
    (tmp_path / "runs").mkdir()
    with Store(str(tmp_path / "begun"), write=True, sync=False) as store:
        root = headers[-1].state_root
        running = StateImport(store, HEAD, root, str(tmp_path / "runs"), memory=1 << 20)
        assert running.progress == ("read", 0, 0)
        running.run(str(dump))
        assert running.progress[0] == running.STAGES[-1] == "nodes"
        assert running.progress[1] == running.progress[2] > 0


def test_first_block_is_served_by_its_header(
    long_chain: ChainFiles, headers: list[Header], whole: Path, tmp_path: Path
) -> None:
    data = tmp_path / "begun"
    begin(long_chain, headers, whole, data, 44)
    rest = b"".join(long_chain.items()[44:])
    with Store(str(data), write=True) as store:
        import_chain(store, None, read_items(io.BytesIO(rest)))
    ledger = Ledger.open(str(data))
    try:
        view = ledger.view()
        assert view.first_block == FirstBlock(44, has_body=False)
        first, second = view.resolve("earliest"), view.resolve(45)
        assert (first.number, first.header) == (44, headers[43])
        assert isinstance(first, SealedBlock)
        assert not first.has_body
        with pytest.raises(HeaderOnly, match="full blocks start at 45"):
            read_stored(view, first)
        assert read_stored(view, second).portions()
        assert view.state(first).balance(headers[0].beneficiary) > 0
        with pytest.raises(UnknownBlock):
            view.resolve(43)
        with pytest.raises(HeaderOnly):
            number_range(view, 44, 50)
        everything = number_range(view, "earliest", "latest")
        assert (everything.first, everything.stop) == (45, HEAD + 1)
        view.close()
    finally:
        ledger.close()


def test_store_belongs_to_its_configuration(
    long_chain: ChainFiles, example: ChainFiles, headers: list[Header], whole: Path, tmp_path: Path
) -> None:
    data = tmp_path / "begun"
    begin(long_chain, headers, whole, data, 50)
    rest = tmp_path / "rest.rlp"
    rest.write_bytes(b"".join(long_chain.items()[50:]))
    with pytest.raises(DifferentGenesis):
        import_files(example.genesis, rest, data, None, ignore_progress)
    with pytest.raises(StoreMissing):
        import_files(None, rest, tmp_path / "none", None, ignore_progress)
    with Store(str(tmp_path / "empty"), write=True):
        pass
    with pytest.raises(NoChain):
        import_files(None, rest, tmp_path / "empty", None, ignore_progress)
    gap = tmp_path / "gap.rlp"
    gap.write_bytes(b"".join(long_chain.items()[51:]))
    with pytest.raises(BadBlock):
        import_files(long_chain.genesis, gap, data, None, ignore_progress)
    done = import_files(long_chain.genesis, rest, data, None, ignore_progress)
    assert done.heads.latest == (HEAD, headers[-1].hash)
