"""Imports that stop in the middle and are run again."""

from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock._engine import Store
from foreblock.errors import BadBlock
from foreblock.ledger.importing import importer
from foreblock.ledger.importing.importer import Progress
from support.chains.importing import contents, import_bytes, latest, refusing


class Stop(Exception):
    """Raised by a report, like an interrupt."""


@pytest.mark.parametrize("at", range(1, 13))
def test_interrupted_import_goes_on_after_its_last_commit(
    example: ChainFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(importer, "BLOCKS_PER_COMMIT", 5)
    genesis, chain = example.genesis.read_bytes(), example.chain.read_bytes()

    def stop(progress: Progress) -> None:
        if progress.number == at:
            raise Stop

    data = tmp_path / "interrupted"
    with refusing(Stop):
        import_bytes(data, genesis, chain, report=stop)
    stored = latest(data)
    assert stored == (at - 1) // 5 * 5
    progress = import_bytes(data, genesis, chain)
    assert (progress.skipped, progress.blocks) == (stored, 12 - stored)
    import_bytes(tmp_path / "whole", genesis, chain)
    assert list(contents(data)) == list(contents(tmp_path / "whole"))


def test_repaired_file_goes_on_where_the_damaged_one_was_refused(
    long_chain: ChainFiles, tmp_path: Path
) -> None:
    items = long_chain.items()
    genesis, choice = long_chain.genesis.read_bytes(), long_chain.fork_choice.read_bytes()
    damaged = b"".join(items[:29]) + items[29][:-1] + b"\xff" + b"".join(items[30:])
    with refusing(BadBlock, match="block 30"):
        import_bytes(tmp_path, genesis, damaged, choice)
    progress = import_bytes(tmp_path, genesis, long_chain.chain.read_bytes(), choice)
    assert (progress.skipped, progress.blocks) == (29, 25)


def test_uncles_and_hashes_before_the_break_count_after_it(
    long_chain: ChainFiles, tmp_path: Path
) -> None:
    """Each run starts again at the store: with one block per run, all required ancestors come from
    it.
    """
    items = long_chain.items()
    genesis = long_chain.genesis.read_bytes()
    for count in range(1, len(items) + 1):
        import_bytes(tmp_path, genesis, b"".join(items[:count]))
    assert latest(tmp_path) == 54


def test_reports_tell_what_is_stored(
    example: ChainFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "BLOCKS_PER_COMMIT", 5)
    reports: list[Progress] = []
    genesis, chain = example.genesis.read_bytes(), example.chain.read_bytes()
    import_bytes(tmp_path, genesis, chain, report=reports.append)
    assert [report.stored for report in reports] == [0] * 5 + [5] * 6 + [10] * 3 + [12]
    assert reports[-1] == Progress(
        number=12, stored=12, blocks=12, transactions=7, gas=reports[-1].gas, position=len(chain)
    )


def test_empty_file_leaves_the_genesis(example: ChainFiles, tmp_path: Path) -> None:
    import_bytes(tmp_path, example.genesis.read_bytes(), b"")
    with Store(str(tmp_path)) as store, store.view() as view:
        assert view.heads.latest is not None
        assert view.heads.latest[0] == 0
