"""Measure searches by address, and the construction of their index.

    PYTHONPATH=tests python tests/measures/addresses.py [--blocks 10000]

The chain is that of `logs.py`: each block has a transaction to one contract, and ten blocks at
equal distances have one more to another. Times are the minimum of fifty requests to a service in
this process, because other load only adds to them.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from foreblock._engine import Store
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.tracing.address_indexing import AddressIndexing
from measures.logs import NOISE, SOUGHT, build
from support.servers.asking import Asker, asker, request

REQUESTS = 50


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=10_000)
    blocks = parser.parse_args().blocks
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, blocks)
        files = (folder / "genesis.json", folder / "chain.rlp", folder / "store")
        import_files(*files, None, lambda _: None)
        with Store(str(folder / "store"), write=True) as store:
            before, begun = store.used_bytes, time.process_time()
            AddressIndexing(store).catch_up(blocks)
            took, grown = time.process_time() - begun, store.used_bytes - before
        each = f"{took / blocks * 1e6:.0f} µs and {grown / blocks:.0f} bytes a block"
        sys.stdout.write(f"building, {blocks} blocks: {took:.1f} s, {each}\n")
        with asker(Ledger.open(str(folder / "store")), "ethereum") as client:
            for what, address in (("10 found", SOUGHT), ("all", NOISE), ("none", b"\x99" * 20)):
                first = best(client, "ots_searchTransactionsBefore", address, 0)
                last = best(client, "ots_searchTransactionsAfter", address, 0)
                sys.stdout.write(f"{what}: newest page {first:.0f} µs, oldest page {last:.0f} µs\n")


def best(client: Asker, method: str, address: bytes, block: int) -> float:
    """Microseconds of the fastest of some requests."""
    body, times = request(method, "0x" + address.hex(), block, 25), []
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        client.reply(body)
        times.append(time.perf_counter() - begun)
    return min(times) * 1e6


if __name__ == "__main__":
    main()
