"""An import killed at any moment continues from its last commit.

The import runs in a separate process that commits after every block and reports each commit. It is
killed with SIGKILL at a random moment; the store must then hold at least every reported block, be
consistent, and give the same final state when run again.
"""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ChainFiles
from support.chains.importing import contents, import_bytes, latest
from support.each_case import sampled

KILLS = 25

IMPORT = """
import sys
from pathlib import Path
from foreblock.ledger.importing import importer
from foreblock.ledger.importing.importer import import_files

importer.BLOCKS_PER_COMMIT = 1
genesis, chain, data = map(Path, sys.argv[1:])

def report(progress):
    print(progress.stored, flush=True)

import_files(genesis, chain, data, None, report)
"""


def import_until_killed(files: ChainFiles, data: Path, lines: int) -> int:
    """Import until this many lines were reported, kill, and return the last reported block."""
    command = [sys.executable, "-c", IMPORT, str(files.genesis), str(files.chain), str(data)]
    reported = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for count, line in enumerate(process.stdout):
            reported = int(line)
            if count >= lines:
                process.kill()
                break
        # The data left in the pipe was reported too.
        return max([reported, *(int(line) for line in process.stdout if line.endswith("\n"))])


@pytest.mark.parametrize("seed", sampled(range(KILLS), 4))
def test_killed_import_keeps_what_it_reported_and_goes_on(
    example: ChainFiles, tmp_path: Path, seed: int
) -> None:
    reported = import_until_killed(example, tmp_path / "killed", random.Random(seed).randrange(24))
    assert latest(tmp_path / "killed") >= reported
    genesis, chain = example.genesis.read_bytes(), example.chain.read_bytes()
    stored = latest(tmp_path / "killed")
    progress = import_bytes(tmp_path / "killed", genesis, chain)
    assert (progress.skipped, progress.blocks) == (stored, 12 - stored)
    import_bytes(tmp_path / "whole", genesis, chain)
    assert list(contents(tmp_path / "killed")) == list(contents(tmp_path / "whole"))
