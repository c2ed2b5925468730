"""The engine's questions, in the order in which they share a store."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from foreblock.bench import calls, codec, commits, fill, imports, reads, roots
from foreblock.bench.measure import Figure


@dataclass(frozen=True)
class Sizes:
    """How many accounts the stores have."""

    accounts: int = 1_000_000
    small: int = 10_000
    large: int = 10_000_000

    @property
    def filled(self) -> int:
        """Accounts that are made in all."""
        return self.accounts + self.small + self.large


def answers(
    folder: Path,
    sizes: Sizes,
    chain: tuple[Path, Path] | None,
    filled: Callable[[int], None],
) -> Iterator[Figure | str]:
    """Figures as they are measured, and remarks that belong to no single one.

    `chain` is a genesis and a chain file; without them, import is not measured.
    """
    # First, while nothing else has grown the process: it says what is resident.
    yield from reads.growth(folder, sizes.small, sizes.large, filled)
    yield from codec.sender_recoveries()
    yield from _import(chain, folder)
    yield from _on_one_store(folder / "store", sizes, filled)


def _import(chain: tuple[Path, Path] | None, folder: Path) -> Iterator[Figure | str]:
    if chain is None:
        yield "import was not measured: give --genesis and --chain"
    else:
        yield imports.import_speed(*chain, folder)


def _on_one_store(folder: Path, sizes: Sizes, filled: Callable[[int], None]) -> Iterator[Figure]:
    accounts = [fill.address(position, sizes.accounts) for position in range(sizes.accounts)]
    with fill.store(folder, sizes.accounts, filled) as store:
        yield reads.account_reads(store, accounts)
        yield reads.reads_with_views(store, accounts)
        yield from calls.calls(store, accounts)
        yield from reads.reads_through_deltas(store, accounts)
        yield from commits.flashblock_commits(store, accounts, folder)
        yield from roots.state_roots(store, accounts)
