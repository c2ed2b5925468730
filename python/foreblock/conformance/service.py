"""A service of our own over the chain beside the cases.

The chain is imported, every root verified, into a folder that is removed afterwards; the
service is the one that `foreblock serve` starts, in a process of its own.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foreblock.errors import InvalidArgument
from foreblock.ledger.importing.importer import import_files
from foreblock.service.running import serving


@dataclass(frozen=True)
class ChainFiles:
    """Genesis, blocks and the fork choice, as `foreblock import` takes them."""

    genesis: Path
    chain: Path
    fork_choice: Path | None


def find_chain(folder: Path) -> ChainFiles:
    """The chain of a folder of cases: in it, above it, or in its `tests`.

    The last two fit a checkout of ethereum/execution-apis: the folder of one method, and
    the root.
    """
    for place in (folder, folder / "tests", folder.parent):
        if (place / "genesis.json").is_file() and (place / "chain.rlp").is_file():
            choice = place / "headfcu.json"
            return ChainFiles(
                place / "genesis.json", place / "chain.rlp", choice if choice.is_file() else None
            )
    raise InvalidArgument(
        f"no chain (genesis.json and chain.rlp) in {folder}, {folder / 'tests'} or "
        f"{folder.parent}; --url replays the cases against an endpoint that has it"
    )


@contextmanager
def served(chain: ChainFiles, options: Sequence[str] = ()) -> Iterator[str]:
    """The URL of a service over this chain, stopped and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="foreblock-") as folder:
        data = Path(folder) / "store"
        import_files(chain.genesis, chain.chain, data, chain.fork_choice, lambda _: None)
        with serving(data, options) as service:
            yield service.url
