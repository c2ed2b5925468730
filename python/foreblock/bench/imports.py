"""How fast a chain is imported, every root verified."""

import time
from pathlib import Path

from foreblock.bench.measure import Figure
from foreblock.ledger.importing.importer import import_files

ROUNDS = 5
MEGAGAS = 10**6


def import_speed(genesis: Path, chain: Path, folder: Path) -> Figure:
    """Whole imports of the chain, each into a new store, durable commits included."""
    rates, gas = [], 0
    for attempt in range(ROUNDS):
        begun = time.perf_counter()
        imported = import_files(genesis, chain, folder / f"import-{attempt}", None, lambda _: None)
        gas = imported.progress.gas
        rates.append(gas / MEGAGAS / (time.perf_counter() - begun))
    remark = f"{gas / MEGAGAS:.0f} Mgas a run, {chain.stat().st_size / 1024:.0f} kB of blocks"
    return Figure("import", "Mgas/s", rates, remarks=(remark,))
