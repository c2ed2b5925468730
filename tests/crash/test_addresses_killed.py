"""The index of addresses, killed at any moment of its construction, continues from its rows.

It is built in a separate process that prints each write, and is killed with SIGKILL then or a
moment later. In the end its rows must equal those of an index that was built without interruption.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from conftest import ChainFiles
from foreblock._engine import Store
from foreblock.ledger.storage.section_index import ADDRESSES, touched_key
from foreblock.ledger.tracing.address_indexing import AddressIndexing
from support.chains.importing import import_bytes, latest

KILLS = int(os.environ.get("FOREBLOCK_INDEX_KILLS", "2"))

BUILD = """
import sys
from foreblock._engine import Store
from foreblock.ledger.storage import section_index
from foreblock.ledger.tracing import address_indexing

section_index.SIZES = (2, 4, 8)
section_index.MERGE_DISTANCE = (0, 1, 2)
section_index.MERGED_ENTRIES = 1
section_index.DELETED_ROWS = 2
address_indexing.JOB_S = 0.0

with Store(sys.argv[1], write=True) as store:
    indexing = address_indexing.AddressIndexing(store)
    while indexing.turn(int(sys.argv[2])):
        print("turn", flush=True)
print("done", flush=True)
"""


def build_until_killed(folder: Path, height: int, draw: random.Random) -> bool:
    """Build until killed; return whether it was done before."""
    command = [sys.executable, "-c", BUILD, str(folder), str(height)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(draw.randint(1, 8))]
        until = time.perf_counter() + draw.random() * draw.choice([0.0001, 0.002])
        while time.perf_counter() < until:
            pass
        process.kill()
        return "done\n" in [*said, *process.stdout]


def rows(folder: Path) -> list[tuple[bytes, bytes]]:
    """All rows of the index."""
    with Store(str(folder)) as store, store.view() as view:
        return [*view.rows(ADDRESSES.key, 10**6), *view.rows(touched_key(0)[:1], 10**6)]


def test_an_index_whose_building_is_killed_is_the_same_in_the_end(
    long_chain: ChainFiles, tmp_path: Path
) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    import_bytes(killed, long_chain.genesis.read_bytes(), long_chain.chain.read_bytes())
    height = latest(killed)
    shutil.copytree(killed, whole)
    draw = random.Random()
    ends = [build_until_killed(killed, height, draw) for _ in range(KILLS)]
    assert not ends[0], "it was killed in the middle"
    for folder in (killed, whole):
        command = [sys.executable, "-c", BUILD, str(folder), str(height)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert rows(killed) == rows(whole)
    assert len(rows(whole)) > height // 2


def test_a_repeated_import_indexes_what_an_earlier_one_did_not(
    long_chain: ChainFiles, tmp_path: Path
) -> None:
    genesis, chain = long_chain.genesis.read_bytes(), long_chain.chain.read_bytes()
    import_bytes(tmp_path / "store", genesis, chain)
    assert rows(tmp_path / "store") == []
    import_bytes(tmp_path / "store", genesis, chain, address_index=True)
    found = rows(tmp_path / "store")
    import_bytes(tmp_path / "at once", genesis, chain, address_index=True)
    assert found == rows(tmp_path / "at once") != []
    with Store(str(tmp_path / "store"), write=True) as store:
        AddressIndexing(store).catch_up(10**6)
    assert found == rows(tmp_path / "store"), "nothing is left to do"
