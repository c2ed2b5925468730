"""`foreblock import` for people and scripts."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock._engine import Store
from foreblock.ledger.storage.section_index import ADDRESSES
from support.servers.command import run, run_apart


def test_summary_for_people(example: ChainFiles, tmp_path: Path) -> None:
    done = run("import", *example.options(tmp_path / "store"))
    assert (done.returncode, done.stderr) == (0, "")
    imported, executed, latest, safe, finalized = done.stdout.splitlines()
    assert imported == "imported   12 blocks, 7 transactions"
    assert executed.startswith("executed   0.3 Mgas in ")
    assert latest.startswith("latest     12 0x")
    assert (safe, finalized) == ("safe       11", "finalized  10")


def test_summary_for_scripts(example: ChainFiles, tmp_path: Path) -> None:
    run("import", *example.options(tmp_path / "store"))
    done = run("import", "--json", *example.options(tmp_path / "store"))
    summary = json.loads(done.stdout)
    assert summary["blocks"] == 0
    assert summary["skipped"] == 12
    assert summary["latest"]["number"] == 12
    assert summary["finalized"]["number"] == 10


def test_transactions_by_address_are_indexed_where_that_is_wanted(
    example: ChainFiles, tmp_path: Path
) -> None:
    for options in ([], ["--address-index"]):
        done = run("import", *options, *example.options(tmp_path / "store"))
        assert (done.returncode, done.stderr) == (0, "")
        with Store(str(tmp_path / "store")) as store, store.view() as view:
            assert ADDRESSES.exists(view) == bool(options)


def test_bad_block_is_one_line_and_exit_code_1(example: ChainFiles, tmp_path: Path) -> None:
    broken = tmp_path / "broken.rlp"
    broken.write_bytes(example.chain.read_bytes()[:-1])
    files = ChainFiles(example.genesis, broken, example.fork_choice)
    done = run("import", *files.options(tmp_path / "store"))
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("foreblock: block 12: encoding: expected a block in canonical RLP")


def test_bad_genesis_leaves_no_store_behind(example: ChainFiles, tmp_path: Path) -> None:
    genesis = tmp_path / "genesis.json"
    genesis.write_text("{}")
    files = ChainFiles(genesis, example.chain, example.fork_choice)
    done = run("import", *files.options(tmp_path / "store"))
    assert (done.returncode, done.stderr) == (2, "foreblock: genesis: config: missing\n")
    assert not (tmp_path / "store").exists()


def test_store_in_use_is_refused(example: ChainFiles, tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True):
        done = run_apart("import", *example.options(tmp_path / "store"))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"foreblock: the store at {tmp_path / 'store'} is already being written by another process"
    ]


def test_missing_file_is_a_usage_error(example: ChainFiles, tmp_path: Path) -> None:
    files = ChainFiles(tmp_path / "nowhere.json", example.chain, example.fork_choice)
    done = run("import", *files.options(tmp_path / "store"))
    assert done.returncode == 2
    assert "nowhere.json" in done.stderr


INTERRUPTED = """
import os, signal
from foreblock.cli import main
from foreblock.ledger.importing import importer

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
importer.BLOCKS_PER_COMMIT = 5
decode = importer.decode_block

def decode_block(data, offset):
    block, end = decode(data, offset)
    if block.header.number == 8:
        os.kill(os.getpid(), signal.SIGINT)
    return block, end

importer.decode_block = decode_block
main()
"""


def test_interrupt_says_where_the_store_stands(example: ChainFiles, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, "import", *example.options(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr.splitlines()[-1] == (
        "foreblock: interrupted; the store is at block 5; run the same command again to continue"
    )
    again = run("import", "--json", *example.options(tmp_path / "store"))
    assert json.loads(again.stdout)["skipped"] == 5


@pytest.mark.parametrize("arguments", [["--help"], ["import", "--help"], ["bench", "--help"]])
def test_help_helps(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")


def test_version() -> None:
    assert run_apart("--version").stdout.startswith("foreblock 0.")
