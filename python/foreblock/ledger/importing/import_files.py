"""Import from files into a store's folder: the importer with its files and its store.

Everything is read from the small files before the store is opened, so a mistake in
them leaves no folder behind.
"""

from dataclasses import dataclass
from pathlib import Path

from foreblock._engine import Heads, Store
from foreblock.ledger.genesis.fork_choice import read_fork_choice
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.importing.chain_file import read_items
from foreblock.ledger.importing.importer import Progress, Report, import_chain


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, and where the store stands after it."""

    progress: Progress
    heads: Heads


def import_files(
    genesis: Path, chain: Path, data: Path, fork_choice: Path | None, report: Report
) -> Imported:
    """Import the blocks of a file; raises `ForeblockError` or `OSError`."""
    beginning = read_genesis(genesis.read_bytes())
    choice = None if fork_choice is None else read_fork_choice(fork_choice.read_bytes())
    with chain.open("rb") as file, Store(str(data), write=True) as store:
        progress = import_chain(store, beginning, read_items(file), choice, report)
        with store.view() as view:
            return Imported(progress, view.heads)
