"""A sequencing writer killed at any moment: no printed commit is lost or changed.

It is killed with SIGKILL at a random time after a random commit, repeatedly on one store. The
output of all killed writers must equal that of an uninterrupted one, and the store must end up with
the same sealed blocks.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from crash.block_writer import next_index
from foreblock._engine import Store, View
from support.chains.writing import Chain

KILLS = int(os.environ.get("FOREBLOCK_BLOCK_KILLS", "2"))
TESTS = Path(__file__).parent.parent


def write_until_killed(folder: Path, random: Random) -> list[str]:
    """The output of a writer before it was killed."""
    said: list[str] = []
    command = [sys.executable, "-m", "crash.block_writer", str(folder)]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        said += [process.stdout.readline().strip() for _ in range(random.randint(1, 12))]
        until = time.perf_counter() + random.random() * random.choice([0.0001, 0.002, 0.02])
        while time.perf_counter() < until:
            pass
        process.kill()
        said += process.stdout.read().split("\n")
    return [line for line in said if line]


def hash_of(view: View, block: int) -> bytes:
    sealed = view.sealed(block)
    assert sealed is not None
    return sealed[0]


def test_killed_writers_say_what_one_says_that_nobody_kills(tmp_path: Path) -> None:
    random, folder = Random(), tmp_path / "store"
    said = [line for _ in range(KILLS) for line in write_until_killed(folder, random)]
    assert len(said) > KILLS, "they were killed before they did anything"

    with Store(str(folder)) as store, store.view() as view:
        assert view.heads.latest is not None
        height, _ = view.heads.latest
        hashes = [hash_of(view, block) for block in range(height + 1)]
    expected = Chain(tmp_path / "undisturbed")
    everything = {}
    while expected.writer.latest.number < height + 1:
        flashblock = next_index(expected)
        place = f"{flashblock.block_number}.{flashblock.index}"
        everything[place] = flashblock.diff.block_hash.hex()
        while expected.writer.follow_up():  # otherwise each block takes longer than the one before
            pass
    places = [line.split()[0] for line in said]
    assert len(set(places)) == len(places), "an index was announced twice"
    assert [line.split()[1] for line in said] == [everything[place] for place in places]
    with expected.store.view() as view:
        assert hashes == [hash_of(view, block) for block in range(height + 1)]
